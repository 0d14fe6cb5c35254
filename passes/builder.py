"""Helpers to build kernel bodies: constants, loops, buffers, views, and ops by name.

All of them build at the current insertion point and take the current location.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from davinci.dialects.base import as_attribute as as_attribute
from davinci.dialects.base import create as create
from davinci.mlir import Op, arith, ir, memref, scf
from davinci.units import row_major

op = create

IndexLike = int | ir.Value
"""An index: a Python int or an SSA value of type `index`."""


def constant_index(value: int) -> ir.Value:
    kind = ir.IndexType.get()
    # The class takes twice as long, and there are many of them.
    return op("arith.constant", [], [kind], value=ir.IntegerAttr.get(kind, value)).result


def as_value(value: IndexLike) -> ir.Value:
    return constant_index(value) if isinstance(value, int) else value


def add(left: IndexLike, right: IndexLike) -> IndexLike:
    """left + right, folded where both are known."""
    if isinstance(left, int) and isinstance(right, int):
        return left + right
    if left == 0 or right == 0:
        return right if isinstance(left, int) else left
    return arith.AddIOp(as_value(left), as_value(right)).result


def mul(left: IndexLike, right: IndexLike) -> IndexLike:
    """left * right, folded where both are known or one is 0 or 1."""
    if isinstance(left, int) and isinstance(right, int):
        return left * right
    for a, b in ((left, right), (right, left)):
        if isinstance(a, int) and a == 0:
            return 0
        if isinstance(a, int) and a == 1:
            return b
    return arith.MulIOp(as_value(left), as_value(right)).result


def divided(index: IndexLike, by: int) -> IndexLike:
    """index / by, rounded down, of what is not negative."""
    if isinstance(index, int):
        return index // by
    return index if by == 1 else arith.DivUIOp(index, constant_index(by)).result


def remainder(index: IndexLike, by: int) -> IndexLike:
    """What is left of that."""
    if isinstance(index, int):
        return index % by
    return 0 if by == 1 else arith.RemUIOp(index, constant_index(by)).result


def replace_operands(op: Op, values: Mapping[ir.Value, ir.Value]) -> None:
    """Replaces operands of `op`, and of operations in its regions, that are keys of `values`."""

    def visit(nested: Op) -> ir.WalkResult:
        for i, value in enumerate(nested.operands):
            if value in values:
                nested.operands[i] = values[value]
        return ir.WalkResult.ADVANCE

    op.walk(visit)


def space(name: str) -> ir.Attribute | None:
    """The attribute `#cce.space<"name">`, or None for GM."""
    return None if name == "GM" else ir.Attribute.parse(f'#cce.space<"{name}">')


def alloc(shape: Sequence[int], element: ir.Type, memory: str) -> ir.Value:
    """A buffer in on-chip memory `memory`; `plan-memory` gives it an address."""
    return memref.AllocOp(
        ir.MemRefType.get(list(shape), element, memory_space=space(memory)), [], []
    ).result


def global_of_zeros(name: str, kind: ir.MemRefType) -> None:
    """`memref.global` of a name, private, of a memref type, that holds zeros in the beginning."""
    element = kind.element_type
    zero = (
        ir.FloatAttr.get(element, 0.0)
        if isinstance(element, ir.FloatType)
        else ir.IntegerAttr.get(element, 0)
    )
    values = ir.DenseElementsAttr.get_splat(ir.RankedTensorType.get(kind.shape, element), zero)
    op(
        "memref.global",
        [],
        sym_name=name,
        sym_visibility="private",
        type=ir.TypeAttr.get(kind),
        initial_value=values,
    )


def subview(
    source: ir.Value,
    offsets: Sequence[IndexLike],
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
    drop: Sequence[int] = (),
) -> ir.Value:
    """`memref.subview` with static sizes and strides; the dimensions in `drop` (size 1) go away."""
    source_type = ir.MemRefType(source.type)
    steps = list(strides) if strides is not None else [1] * len(sizes)
    source_strides, source_offset = source_type.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    offset: int = source_offset
    for o, s in zip(offsets, source_strides, strict=True):
        if s == 0:
            continue  # a repeat: MLIR, too, folds the product of its stride and any offset
        offset = offset + o * s if isinstance(o, int) and offset != dynamic else dynamic
    kept = [i for i in range(len(sizes)) if i not in drop]
    layout = ir.StridedLayoutAttr.get(offset, [source_strides[i] * steps[i] for i in kept])
    result = ir.MemRefType.get(
        [sizes[i] for i in kept],
        source_type.element_type,
        layout=layout,
        memory_space=source_type.memory_space,
    )
    static = [o if isinstance(o, int) else ir.ShapedType.get_dynamic_size() for o in offsets]
    dynamic_offsets = [o for o in offsets if not isinstance(o, int)]
    return _view("memref.subview", result, source, dynamic_offsets, static, sizes, steps)


def restride(
    source: ir.Value, shape: Sequence[int], strides: Sequence[int], offset: IndexLike = 0
) -> ir.Value:
    """`memref.reinterpret_cast` to another shape and strides (in elements, 0 = broadcast).

    The offset is from the buffer's base, so the source must not itself be a dynamic view.
    """
    source_type = ir.MemRefType(source.type)
    static = offset if isinstance(offset, int) else ir.ShapedType.get_dynamic_size()
    result = ir.MemRefType.get(
        list(shape),
        source_type.element_type,
        layout=ir.StridedLayoutAttr.get(static, list(strides)),
        memory_space=source_type.memory_space,
    )
    dynamic = [] if isinstance(offset, int) else [offset]
    return _view("memref.reinterpret_cast", result, source, dynamic, [static], shape, strides)


def _view(
    name: str,
    result: ir.MemRefType,
    source: ir.Value,
    dynamic: Sequence[ir.Value],
    offsets: Sequence[int],
    sizes: Sequence[int],
    strides: Sequence[int],
) -> ir.Value:
    """A view whose offsets may be dynamic. Views are many, and their classes take longer."""
    return ir.Operation.create(
        name,
        results=[result],
        operands=[source, *dynamic],
        attributes={
            "static_offsets": ir.DenseI64ArrayAttr.get(list(offsets)),
            "static_sizes": ir.DenseI64ArrayAttr.get(list(sizes)),
            "static_strides": ir.DenseI64ArrayAttr.get(list(strides)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(dynamic), 0, 0]),
        },
    ).result


def viewed(raw: ir.Value, shape: Sequence[int], element: ir.Type) -> ir.Value:
    """The bytes of a buffer `raw` of i8 as a contiguous array."""
    kind = ir.MemRefType.get(
        list(shape), element, memory_space=ir.MemRefType(raw.type).memory_space
    )
    return memref.ViewOp(kind, raw, constant_index(0), []).result


def reshaped(buffer: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The first elements of a contiguous buffer as a contiguous array of `shape`."""
    if list(ir.MemRefType(buffer.type).shape) == list(shape):
        return buffer
    return restride(buffer, shape, row_major(shape), offset_of(buffer))


def offset_of(buffer: ir.Value) -> int:
    """Elements in front of a static view of a buffer, counted from the buffer's base."""
    _, offset = ir.MemRefType(buffer.type).get_strides_and_offset()
    assert offset != ir.ShapedType.get_dynamic_stride_or_offset(), "a view that begins anywhere"
    return int(offset)


@contextmanager
def for_loop(start: IndexLike, stop: IndexLike, step: IndexLike = 1) -> Iterator[ir.Value]:
    """`with for_loop(0, n) as i:` builds the body of an `scf.for` on `index`."""
    loop = scf.ForOp(as_value(start), as_value(stop), as_value(step))
    with ir.InsertionPoint(loop.body):
        yield loop.induction_variable
        scf.YieldOp([])


def is_equal(index: IndexLike, value: int) -> ir.Value:
    """Whether an index has a value."""
    equal = arith.CmpIOp(arith.CmpIPredicate.eq, as_value(index), constant_index(value))
    found: ir.Value = equal.result
    return found


@contextmanager
def only_if(condition: ir.Value) -> Iterator[None]:
    """Builds what is done only where a condition holds."""
    branch = scf.IfOp(condition)
    with ir.InsertionPoint(branch.then_block):
        yield
        scf.YieldOp([])


def share_in_two(
    lane: IndexLike, at: int, size: int, build: Callable[[IndexLike, int], None]
) -> None:
    """Builds what one of two cores does of `size` indices, of which the first core has those
    before `at`: one text where both have as many, else a branch for each.

    Args:
        lane: 0 on the first core, 1 on the second one.
        build: given the first index and how many there are; not called for none.
    """
    if 2 * at == size:
        build(mul(lane, at), at)
        return

    def part(first: int, count: int) -> None:
        if count:
            build(first, count)

    choose(lane, 0, partial(part, 0, at), partial(part, at, size - at))


def choose(
    index: IndexLike, value: int, then: Callable[[], None], other: Callable[[], None]
) -> scf.IfOp:
    """Builds one thing for an index of that value, another for all others."""
    branch = scf.IfOp(is_equal(index, value), has_else=True)
    for block, build in ((branch.then_block, then), (branch.else_block, other)):
        with ir.InsertionPoint(block):
            build()
            scf.YieldOp([])
    return branch

"""Helpers to build loops over the elements of tensors, at the current insertion point.

A *stored* tensor has signless elements, as buffers have; StableHLO's unsigned ones are cast to and
from it, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.mlir import Op, arith, ir, scf, tensor
from davinci.passes import builder
from davinci.passes.builder import IndexLike

Values = list[ir.Value]
Body = Callable[[Values, Values], Sequence[ir.Value]]
"""Builds the body of loops from their indices and carried values; returns the next values."""


def signless(kind: ir.RankedTensorType) -> ir.RankedTensorType:
    """The tensor type with the same bits in signless integers."""
    if isinstance(kind.element_type, ir.IntegerType) and kind.element_type.is_unsigned:
        element = ir.IntegerType.get_signless(kind.element_type.width)
        return ir.RankedTensorType.get(kind.shape, element)
    return kind


def cast(value: ir.Value, kind: ir.Type) -> ir.Value:
    """`value` as a tensor type that differs in the sign of its elements only."""
    if value.type == kind:
        return value
    return builder.op("builtin.unrealized_conversion_cast", [value], [kind]).result


def stored(value: ir.Value) -> ir.Value:
    return cast(value, signless(value.type))


def restored(values: Sequence[ir.Value], like: Sequence[ir.Value]) -> Values:
    """Stored tensors as the types of the results `like`."""
    return [cast(value, old.type) for value, old in zip(values, like, strict=True)]


def extract(source: ir.Value, indices: Sequence[IndexLike] = ()) -> ir.Value:
    return tensor.ExtractOp(source, [builder.as_value(i) for i in indices]).result


def insert(scalar: ir.Value, target: ir.Value, indices: Sequence[ir.Value]) -> ir.Value:
    return tensor.InsertOp(scalar, target, [builder.as_value(i) for i in indices]).result


def buffer(kind: ir.Type, *copied: ir.Value) -> ir.Value:
    """A tensor in a buffer of its own, which holds nothing or a copy of another tensor."""
    segments = ir.DenseI32ArrayAttr.get([0, len(copied), 0])
    name = "bufferization.alloc_tensor"
    return builder.op(name, copied, [kind], operandSegmentSizes=segments).result


def rank_zero(scalar: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
    """A scalar of a signless type as a tensor of rank 0 of the type `kind`."""
    return cast(tensor.FromElementsOp(signless(kind), [scalar]).result, kind)


def inline(block: ir.Block, arguments: Sequence[ir.Value], made: list[Op] | None = None) -> Values:
    """Copies the operations of `block` here; returns what its terminator returns.

    Args:
        block: of a region.
        arguments: values for its arguments.
        made: if given, a list to which the copies are added.
    """
    values: dict[ir.Value, ir.Value] = dict(zip(block.arguments, arguments, strict=True))
    *body, terminator = list(block.operations)
    for view in body:
        copy = view.operation.clone()
        builder.replace_operands(copy, values)
        values.update(zip(view.operation.results, copy.results, strict=True))
        if made is not None:
            made.append(copy)
    return [values.get(v, v) for v in terminator.operation.operands]


def apply(region: ir.Region, scalars: Sequence[ir.Value]) -> Values:
    """The results of a region of StableHLO on tensors of rank 0, from scalars to scalars."""
    block = region.blocks[0]
    arguments = [rank_zero(s, a.type) for s, a in zip(scalars, block.arguments, strict=True)]
    return [extract(stored(result)) for result in inline(block, arguments)]


def for_each(bounds: Sequence[int], carried: Sequence[ir.Value], body: Body) -> Values:
    """A nest of loops from 0 to `bounds`; returns the values that the outermost one ends with."""
    return for_range([(0, bound, 1) for bound in bounds], carried, body)


def for_range(
    ranges: Sequence[tuple[IndexLike, IndexLike, IndexLike]],
    carried: Sequence[ir.Value],
    body: Body,
) -> Values:
    """A nest of loops over (start, stop, step), outermost first."""
    return nest(list(ranges), list(carried), [], body)


def nest(
    ranges: list[tuple[IndexLike, IndexLike, IndexLike]],
    carried: Values,
    indices: Values,
    body: Body,
) -> Values:
    if not ranges:
        return list(body(indices, carried))
    start, stop, step = map(builder.as_value, ranges[0])
    loop = scf.ForOp(start, stop, step, carried)
    with ir.InsertionPoint(loop.body):
        inner = nest(
            ranges[1:], list(loop.inner_iter_args), [*indices, loop.induction_variable], body
        )
        scf.YieldOp(inner)
    return list(loop.results)


def as_index(scalar: ir.Value, unsigned: bool) -> ir.Value:
    """An integer as `index`; an unsigned one of 64 bits is at most 2^62, beyond any tensor."""
    if unsigned and scalar.type.width == 64:
        scalar = arith.MinUIOp(scalar, constant(scalar.type, 1 << 62)).result
    make = arith.IndexCastUIOp if unsigned else arith.IndexCastOp
    return make(ir.IndexType.get(), scalar).result


def constant(kind: ir.Type, value: int) -> ir.Value:
    return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, value)).result


def boolean(value: bool) -> ir.Value:
    return constant(ir.IntegerType.get_signless(1), int(value))


def compare(predicate: str, a: IndexLike, b: IndexLike) -> ir.Value:
    """A comparison of indices; `predicate` is that of arith: eq, slt, ult, ..."""
    kind = getattr(arith.CmpIPredicate, predicate)
    return arith.CmpIOp(kind, builder.as_value(a), builder.as_value(b)).result


def select(condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
    return arith.SelectOp(condition, a, b).result


def all_of(conditions: Sequence[ir.Value]) -> ir.Value:
    """Whether all conditions hold; true of none."""
    found = boolean(True)
    for condition in conditions:
        found = arith.AndIOp(found, condition).result
    return found


def inside(position: ir.Value, size: int) -> ir.Value:
    """Whether 0 <= position < size."""
    return compare("ult", position, size)

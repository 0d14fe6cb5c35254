"""Memrefs of another compiler's kernels as addresses with sizes and strides.

A view is followed through `memref` operations when the pass meets them, in program order; sizes and
strides are ints where they are known and values of type `index` where the program computes them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.dialects.base import attribute
from davinci.isa import DTYPES, Space
from davinci.mlir import Op, arith, ir, type_text
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Address, Shift, constant_i64, scaled
from davinci.passes.pipeline.base import fail
from davinci.units import BYTE_BITS

DYNAMIC = -(1 << 63)
"""What stands for an operand among static offsets, sizes and strides."""

SPACES = {
    "gm": Space.GM,
    "cbuf": Space.L1,
    "ca": Space.L0A,
    "cb": Space.L0B,
    "cc": Space.L0C,
    "ub": Space.UB,
}
"""Memories by the names of AscendNPU-IR."""

KINDS = {"i8": "s8", "i16": "s16", "i32": "s32", "i64": "s64", "f16": "f16", "f32": "f32",
         "bf16": "bf16", "i1": "i1"}  # fmt: skip
"""Element types of MLIR as instructions name them; integers without sign count as signed."""


@dataclass(frozen=True)
class MemrefView:
    """A memref: where its first element is, and how far apart the others are.

    Attributes:
        root: the start of the buffer, from which `memref.reinterpret_cast` counts.
        shift: from there to the first element, in bytes.
        sizes, strides: of each dimension; strides in elements.
        kind: the element type as instructions name it, "f32", "s32"; "i1" for booleans, of which a
            byte holds eight.
    """

    root: Address
    shift: Shift
    sizes: tuple[IndexLike, ...]
    strides: tuple[IndexLike, ...]
    kind: str

    @property
    def space(self) -> Space:
        return self.root.space

    @property
    def itemsize(self) -> int:
        """Bytes of an element; booleans have none."""
        return DTYPES[self.kind].itemsize

    @property
    def address(self) -> Address:
        """Of the first element."""
        return self.root.plus(self.shift)

    @property
    def static(self) -> bool:
        """Whether all sizes and strides are known."""
        return all(isinstance(n, int) for n in (*self.sizes, *self.strides))

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of a view that is `static`."""
        return tuple(n for n in self.sizes if isinstance(n, int))

    @property
    def steps(self) -> tuple[int, ...]:
        """The strides of a view that is `static`."""
        return tuple(n for n in self.strides if isinstance(n, int))

    def at(self, shift: Shift) -> MemrefView:
        """The same, so many bytes further on."""
        return replace(self, shift=self.shift.plus(shift))

    def with_dims(self, sizes: Sequence[IndexLike], strides: Sequence[IndexLike]) -> MemrefView:
        return replace(self, sizes=tuple(sizes), strides=tuple(strides))

    def step(self, index: IndexLike, stride: IndexLike) -> Shift:
        """Bytes of `index` times `stride` elements."""
        return distance(builder.mul(index, stride), self.kind)


def distance(elements: IndexLike, kind: str) -> Shift:
    """A number of elements in bytes; of booleans it must be whole bytes."""
    if kind == "i1":
        if isinstance(elements, int):
            return Shift(elements // BYTE_BITS)
        return Shift(0, as_i64(builder.divided(elements, BYTE_BITS)))
    size = DTYPES[kind].itemsize
    return Shift(elements * size) if isinstance(elements, int) else Shift(0, scaled(elements, size))


def elements_of(shift: Shift, kind: str) -> IndexLike:
    """How many whole elements lie in a distance of bytes: the inverse of `distance`."""
    known: IndexLike = shift.constant
    if shift.dynamic is not None:
        known = builder.add(arith.IndexCastOp(ir.IndexType.get(), shift.dynamic).result, known)
    if kind == "i1":
        return builder.mul(known, BYTE_BITS)
    return builder.divided(known, DTYPES[kind].itemsize)


def kind_of(op: Op, element: ir.Type) -> str:
    """The element type as instructions name it."""
    text = type_text(element)
    if text not in KINDS:
        fail(op, "has an element type that the units lack", found=text, expected=", ".join(KINDS))
    return KINDS[text]


def space_of(op: Op, memref: ir.MemRefType) -> Space:
    """The memory that a memref type names."""
    space = memref.memory_space
    name = ir.StringAttr(space).value if isinstance(space, ir.StringAttr) else "gm"
    if space is not None and name not in SPACES:
        fail(op, "has a memory that is not known", found=str(space), expected=", ".join(SPACES))
    return SPACES[name]


def typed(op: Op, value: ir.Value, root: Address) -> MemrefView:
    """The view of a whole buffer, or of a value whose sizes and strides its type says.

    Raises:
        CompileError: the type does not say them.
    """
    kind = ir.MemRefType(value.type)
    strides, _ = kind.get_strides_and_offset()
    sizes = list(kind.shape)
    if kind.rank > 1 and any(n < 0 for n in (*sizes, *strides)):
        fail(op, "has sizes that are not known here", found=str(kind), expected="a static shape")
    known = [n if n >= 0 else DYNAMIC for n in sizes]
    return MemrefView(root, Shift(), tuple(known), tuple(strides), kind_of(op, kind.element_type))


def mixed(op: Op, name: str, operands: Iterator[ir.Value]) -> list[IndexLike]:
    """The static values of an attribute, with the next operands where it says that there are."""
    return [next(operands) if n == DYNAMIC else n for n in attribute(op, name)]


def subview(op: Op, source: MemrefView) -> MemrefView:
    """`memref.subview`, some of whose dimensions of size 1 may be left out."""
    rest = iter(list(op.operands)[1:])
    offsets, sizes, steps = (
        mixed(op, f"static_{name}", rest) for name in ("offsets", "sizes", "strides")
    )
    shift: IndexLike = 0
    for offset, stride in zip(offsets, source.strides, strict=True):
        shift = builder.add(shift, builder.mul(offset, stride))
    strides = [builder.mul(a, b) for a, b in zip(source.strides, steps, strict=True)]
    kept = kept_dims(sizes, list(ir.MemRefType(op.results[0].type).shape))
    made = source.at(distance(shift, source.kind))
    return made.with_dims([sizes[i] for i in kept], [strides[i] for i in kept])


def kept_dims(sizes: Sequence[IndexLike], shape: Sequence[int]) -> list[int]:
    """Which dimensions are in a result of `shape`; the others have the size 1."""
    kept: list[int] = []
    for i, size in enumerate(sizes):
        left = len(sizes) - i
        needed = len(shape) - len(kept)
        if needed and (size != 1 or left == needed or shape[len(kept)] == 1):
            kept.append(i)
    return kept


def reinterpreted(op: Op, source: MemrefView) -> MemrefView:
    """`memref.reinterpret_cast`, which counts from the start of the buffer."""
    rest = iter(list(op.operands)[1:])
    (offset,), sizes, strides = (
        mixed(op, f"static_{name}", rest) for name in ("offsets", "sizes", "strides")
    )
    shift = distance(offset, source.kind)
    return MemrefView(source.root, shift, tuple(sizes), tuple(strides), source.kind)


def collapsed(op: Op, source: MemrefView) -> MemrefView:
    """`memref.collapse_shape`: a group has the stride of its innermost dimension above 1."""
    sizes: list[IndexLike] = []
    strides: list[IndexLike] = []
    for group in attribute(op, "reassociation"):
        size: IndexLike = 1
        for i in group:
            size = builder.mul(size, source.sizes[i])
        wide = [i for i in group if source.sizes[i] != 1] or [group[-1]]
        sizes.append(size)
        strides.append(source.strides[wide[-1]])
    return source.with_dims(sizes, strides)


def expanded(op: Op, source: MemrefView) -> MemrefView:
    """`memref.expand_shape`: inside a group each stride is the next one's times its size."""
    rest = iter(list(op.operands)[1:])
    if "static_output_shape" in op.attributes:
        sizes = mixed(op, "static_output_shape", rest)
    else:
        sizes = list(ir.MemRefType(op.results[0].type).shape)
    strides: list[IndexLike] = [1] * len(sizes)
    for group, stride in zip(attribute(op, "reassociation"), source.strides, strict=True):
        step = stride
        for i in reversed(group):
            strides[i] = step
            step = builder.mul(step, sizes[i])
    return source.with_dims(sizes, strides)


def bits_as(op: Op, source: MemrefView) -> MemrefView:
    """`hir.bitcast`: the same elements, their bits as another type of that size."""
    return replace(source, kind=kind_of(op, ir.MemRefType(op.results[0].type).element_type))


def bytes_as(op: Op, source: MemrefView) -> MemrefView:
    """`memref.view`: a buffer of bytes, from an offset on, as a dense array."""
    offset, *rest = list(op.operands)[1:]
    kind = ir.MemRefType(op.results[0].type)
    given = iter(rest)
    sizes: list[IndexLike] = [next(given) if n < 0 else n for n in kind.shape]
    root = source.address.plus(distance(folded(offset), "s8"))
    return MemrefView(root, Shift(), tuple(sizes), dense(sizes), kind_of(op, kind.element_type))


def dense(sizes: Sequence[IndexLike]) -> tuple[IndexLike, ...]:
    """Strides of a row-major array."""
    strides: list[IndexLike] = []
    step: IndexLike = 1
    for size in reversed(sizes):
        strides.append(step)
        step = builder.mul(step, size)
    return tuple(reversed(strides))


def folded(value: ir.Value) -> IndexLike:
    """An index as an int where it is a constant."""
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    if owner is not None and owner.name == "arith.constant":
        return int(ir.IntegerAttr(owner.attributes["value"]).value)
    index: IndexLike = value
    return index


def as_integer(view: MemrefView) -> ir.Value:
    """The address of a view on chip as an i64 value."""
    return view.address.integer()


def as_integer_or_fail(op: Op, view: MemrefView) -> ir.Value:
    if view.root.base is not None:
        fail(op, "chooses between buffers in global memory", expected="buffers on chip")
    return as_integer(view)


def from_integer(op: Op, value: ir.Value, like: ir.Type) -> MemrefView:
    """The view of an on-chip memref whose address is the i64 `value`, of the type `like`."""
    kind = ir.MemRefType(like)
    strides, _ = kind.get_strides_and_offset()
    if any(n < 0 for n in (*kind.shape, *strides)):
        fail(op, "has a buffer whose shape is not known", found=str(kind))
    root = Address(space_of(op, kind), None, Shift(0, value))
    return MemrefView(
        root, Shift(), tuple(kind.shape), tuple(strides), kind_of(op, kind.element_type)
    )


def elements(view: MemrefView) -> int:
    """How many elements a static view has."""
    return math.prod(view.shape)


def as_i64(value: IndexLike) -> ir.Value:
    """An index as an i64 value."""
    if isinstance(value, int):
        return constant_i64(value)
    return arith.IndexCastOp(ir.IntegerType.get_signless(64), value).result


def field(value: IndexLike) -> IndexLike:
    """An index as a field of an instruction: an int where it is known, else an i64 value."""
    return value if isinstance(value, int) else as_i64(value)

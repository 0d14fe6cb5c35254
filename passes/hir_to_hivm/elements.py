"""Elements one by one, by the scalar unit: what no vector instruction does.

The vendor's library goes through elements in this way where the vector unit lacks a type (64 bits
for example). Here it stands in, too, where its library has a sequence of vector instructions that
has no counterpart among our lowerings: right, and slower than on the machine. What a kernel
loads and stores so is counted in every report ("scalar accesses").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from davinci.isa import Pipe, Space
from davinci.mlir import NumberType, arith, ir, scf
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Shift
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import MemrefView, distance
from davinci.units import BYTE_BITS

Indices = Sequence[IndexLike]


@contextmanager
def on_the_scalar_unit(translator: Translator) -> Iterator[None]:
    """The vector unit hands over to the scalar unit before, and takes over afterwards."""
    translator.hand_over(Pipe.V, Pipe.S)
    yield
    translator.hand_over(Pipe.S, Pipe.V)
    translator.emitter.forget()


def each(translator: Translator, sizes: Sequence[IndexLike], body: Callable[..., None]) -> None:
    """Calls `body` with the indices of each element, inside loops over `sizes`."""

    def level(depth: int, indices: list[IndexLike]) -> None:
        if depth == len(sizes):
            body(indices)
        elif sizes[depth] == 1:
            level(depth + 1, [*indices, 0])
        else:
            with builder.for_loop(0, sizes[depth]) as index, translator.emitter.block():
                level(depth + 1, [*indices, index])

    level(0, [])


def carried(
    translator: Translator,
    size: IndexLike,
    begin: Sequence[ir.Value],
    body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
) -> list[ir.Value]:
    """A loop that hands values on: `body` makes those after an index of those before it."""
    zero, one = builder.constant_index(0), builder.constant_index(1)
    loop = scf.ForOp(zero, builder.as_value(size), one, list(begin))
    with ir.InsertionPoint(loop.body), translator.emitter.block():
        scf.YieldOp(list(body(loop.induction_variable, list(loop.inner_iter_args))))
    return list(loop.operation.results)


def integer(bits: int) -> ir.IntegerType:
    return ir.IntegerType.get_signless(bits)


def number(kind: ir.Type, value: float) -> ir.Value:
    """A constant of an MLIR type."""
    if isinstance(kind, ir.IntegerType):
        return arith.ConstantOp(kind, ir.IntegerAttr.get(kind, int(value))).result
    return arith.ConstantOp(kind, ir.FloatAttr.get(kind, value)).result


def is_float(kind: str) -> bool:
    return kind in ("f16", "f32", "bf16")


def bits_type(view: MemrefView) -> ir.IntegerType:
    """The integer type of as many bits as an element has."""
    return integer(1 if view.kind == "i1" else BYTE_BITS * view.itemsize)


def offset(view: MemrefView, indices: Indices) -> IndexLike:
    """How many elements an element is behind the first one; dimensions of size 1 do not count."""
    total: IndexLike = 0
    for index, size, step in zip(indices, view.sizes, view.strides, strict=True):
        if size != 1:
            total = builder.add(total, builder.mul(index, step))
    return total


def read_bits(translator: Translator, view: MemrefView, indices: Indices) -> ir.Value:
    """The bits of an element as an integer."""
    if view.space not in (Space.UB, Space.GM):
        raise Unsupported(f"elements of {view.space.name} one by one")
    at = offset(view, indices)
    if view.kind != "i1":
        return translator.load(view, distance(at, view.kind), bits_type(view))
    byte, bit = builder.divided(at, BYTE_BITS), builder.remainder(at, BYTE_BITS)
    held = translator.load(as_bytes(view), distance(byte, "s8"), integer(BYTE_BITS))
    moved = arith.ShRUIOp(held, as_byte(bit)).result
    return arith.TruncIOp(integer(1), moved).result


def write_bits(translator: Translator, view: MemrefView, indices: Indices, value: ir.Value) -> None:
    """Stores the bits of an element; a boolean changes one bit of its byte."""
    if view.space not in (Space.UB, Space.GM):
        raise Unsupported(f"elements of {view.space.name} one by one")
    at = offset(view, indices)
    if view.kind != "i1":
        translator.store(view, distance(at, view.kind), value)
        return
    shift = distance(builder.divided(at, BYTE_BITS), "s8")
    bit = as_byte(builder.remainder(at, BYTE_BITS))
    held = translator.load(as_bytes(view), shift, integer(BYTE_BITS))
    one = arith.ShLIOp(number(integer(BYTE_BITS), 1), bit).result
    others = arith.AndIOp(held, arith.XOrIOp(one, number(integer(BYTE_BITS), -1)).result).result
    mine = arith.ShLIOp(arith.ExtUIOp(integer(BYTE_BITS), value).result, bit).result
    translator.store(as_bytes(view), shift, arith.OrIOp(others, mine).result)


def as_bytes(view: MemrefView) -> MemrefView:
    return MemrefView(view.root, view.shift, (1,), (1,), "s8")


def as_byte(index: IndexLike) -> ir.Value:
    """An index below 8 as a byte."""
    return arith.IndexCastOp(integer(BYTE_BITS), builder.as_value(index)).result


def value_of(bits: ir.Value, kind: str) -> ir.Value:
    """An element as what the scalar unit computes with: an integer, or f32 for any float."""
    if kind == "bf16":
        wide = arith.ShLIOp(arith.ExtUIOp(integer(32), bits).result, number(integer(32), 16)).result
        return arith.BitcastOp(ir.F32Type.get(), wide).result
    if kind == "f16":
        half = arith.BitcastOp(ir.F16Type.get(), bits).result
        return arith.ExtFOp(ir.F32Type.get(), half).result
    if kind == "f32":
        return arith.BitcastOp(ir.F32Type.get(), bits).result
    return bits


def bits_of_value(value: ir.Value, kind: str) -> ir.Value:
    """The bits that an element of that kind has for a value; floats are rounded to the nearest.

    Raises:
        Unsupported: bfloat16, whose rounding the scalar unit lacks.
    """
    if kind == "bf16":
        raise Unsupported("bf16 of numbers that the scalar unit computes")
    if kind == "f16":
        half = arith.TruncFOp(ir.F16Type.get(), value).result
        return arith.BitcastOp(integer(16), half).result
    return arith.BitcastOp(integer(32), value).result if kind == "f32" else value


def read(translator: Translator, view: MemrefView, indices: Indices) -> ir.Value:
    """An element as what the scalar unit computes with."""
    return value_of(read_bits(translator, view, indices), view.kind)


def write(translator: Translator, view: MemrefView, indices: Indices, value: ir.Value) -> None:
    write_bits(translator, view, indices, bits_of_value(value, view.kind))


def element_type(kind: str) -> NumberType:
    """The MLIR type that `read` gives."""
    if is_float(kind):
        return ir.F32Type.get()
    return integer(1 if kind == "i1" else int(kind[1:]))


def write_booleans(
    translator: Translator, view: MemrefView, element: Callable[[list[IndexLike]], ir.Value]
) -> None:
    """Stores whole bytes of booleans, of which `element` gives each; those behind the last one
    of a row are 0.

    Raises:
        Unsupported: rows of booleans that do not begin bytes.
    """
    sizes = list(view.sizes) or [1]
    *outer, inner = sizes
    strides = list(view.strides) or [1]
    for size, step in zip(outer, strides[:-1], strict=True):
        if size != 1 and not (isinstance(step, int) and step % BYTE_BITS == 0):
            raise Unsupported("rows of booleans that do not begin bytes")
    if inner != 1 and strides[-1] != 1:
        raise Unsupported("booleans that lie apart")
    count = builder.divided(builder.add(inner, BYTE_BITS - 1), BYTE_BITS)
    byte = integer(BYTE_BITS)

    def row(indices: list[IndexLike]) -> None:
        *before, number_of = indices
        first = builder.mul(number_of, BYTE_BITS)
        made = number(byte, 0)
        for bit in range(BYTE_BITS):
            at = builder.add(first, bit)
            if isinstance(at, int) and isinstance(inner, int):
                if at >= inner:
                    break
                found = element([*before, at])
            elif isinstance(inner, int) and inner % BYTE_BITS == 0:
                found = element([*before, at])
            else:
                found = inside(translator, at, inner, [*before, at], element)
            wide = arith.ExtUIOp(byte, found).result
            made = arith.OrIOp(made, arith.ShLIOp(wide, number(byte, bit)).result).result
        start: IndexLike = 0
        for index, size, step in zip(before, outer, strides[:-1], strict=True):
            if size != 1:
                start = builder.add(start, builder.divided(builder.mul(index, step), BYTE_BITS))
        translator.store(as_bytes(view), distance(builder.add(start, number_of), "s8"), made)

    each(translator, [*outer, count], row)


def inside(
    translator: Translator,
    at: IndexLike,
    size: IndexLike,
    indices: list[IndexLike],
    element: Callable[[list[IndexLike]], ir.Value],
) -> ir.Value:
    """The boolean at an index below `size`, 0 behind it."""
    ends = builder.as_value(size)
    holds = arith.CmpIOp(arith.CmpIPredicate.slt, builder.as_value(at), ends).result
    made = scf.IfOp(holds, [integer(1)], has_else=True)
    with ir.InsertionPoint(made.then_block), translator.emitter.block():
        scf.YieldOp([element(indices)])
    with ir.InsertionPoint(made.else_block), translator.emitter.block():
        scf.YieldOp([number(integer(1), 0)])
    return made.operation.results[0]


def compute(
    translator: Translator,
    dst: MemrefView,
    element: Callable[[list[IndexLike]], ir.Value],
) -> None:
    """Stores what `element` gives for each element of `dst`, bits in an integer."""
    with on_the_scalar_unit(translator):
        if dst.kind == "i1":
            write_booleans(translator, dst, element)
        else:
            each(
                translator, dst.sizes, lambda at: write_bits(translator, dst, at, element(list(at)))
            )


def place(view: MemrefView, indices: Indices) -> Shift:
    return distance(offset(view, indices), view.kind)

"""Copies of rows between global memory and UB whose number, length and places are computed."""

from __future__ import annotations

from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.instructions import COPIES
from davinci.mlir import Op, arith, ir
from davinci.passes.builder import IndexLike, add, as_value, divided, mul
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import scaled, term
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant
from davinci.passes.pipeline.base import fail
from davinci.units import BLOCK_BYTES


@lowering("copy_rows")
def lower_copy_rows(emitter: Emitter, op: Op) -> None:
    """One instruction, of which a burst is a row; gaps in UB are whole blocks."""
    source, target, *numbers = op.operands
    src, dst = buffer_of(source), buffer_of(target)
    loads = src.space == "GM"
    tile, item = (dst if loads else src), src.itemsize
    record = emitter.record(op, f"{COPIES[src.space, dst.space].name}_align", f"b{8 * item}")
    most = {field.name: field.limit for field in record.fields}
    if tile.shape[0] > most["n_burst"]:
        expected = f"at most {most['n_burst']}"
        fail(op, "has a tile of too many rows", found=str(tile.shape[0]), expected=expected)
    offset, stride, rows, elements = map(_folded, numbers)
    length = mul(elements, item)
    outside: IndexLike = 0
    inside: IndexLike = 0
    if tile.shape[0] > 1:
        outside = _difference(mul(stride, item), length)
        taken = divided(add(length, BLOCK_BYTES - 1), BLOCK_BYTES)
        inside = _difference(tile.strides[0] * item // BLOCK_BYTES, taken)
    fields = {"n_burst": rows, "len_burst": length}
    fields["src_gap"], fields["dst_gap"] = (outside, inside) if loads else (inside, outside)
    array, held = (source, target) if loads else (target, source)
    begin = emitter.addresses.of(array).plus(term(as_value(offset), item))
    at = (begin, emitter.addresses.of(held))[:: -1 if loads else 1]
    emitter.instruction(record, at, {name: _field(value) for name, value in fields.items()})


def _folded(value: ir.Value) -> IndexLike:
    known = is_constant(value)
    return value if known is None else known


def _difference(left: IndexLike, right: IndexLike) -> IndexLike:
    if isinstance(left, int) and isinstance(right, int):
        return left - right
    return arith.SubIOp(as_value(left), as_value(right)).result


def _field(value: IndexLike) -> IndexLike:
    """An index as a field of an instruction: an int where it is known, else an i64 value."""
    return value if isinstance(value, int) else scaled(value, 1)

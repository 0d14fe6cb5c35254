"""Copies between memories: contiguous runs become bursts, one outer dimension their number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import gcd

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.instructions import COPIES, COPY_BYTES, FRACTAL_COPIES, NAMES
from davinci.dialects.hivm import ops as hivm
from davinci.isa import Instruction
from davinci.isa.strides import SharedDim, merge_dims, split_run
from davinci.mlir import Op, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift
from davinci.passes.cce_to_hivm.emitter import Emitter, move
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, FRACTAL_SIDE, round_up

WORD_BYTES = 4
"""The largest elements that a copy to the byte knows; of larger ones it copies words."""

FRACTAL = FRACTAL_SIDE * FRACTAL_SIDE
"""Elements of a fractal in L0C, the unit of copy_matrix_cc_to_ubuf."""


@lowering("copy", "copy_l1")
def lower_copy(emitter: Emitter, op: Op) -> None:
    """Units are 32-byte blocks, into BT two of them; a run that is no whole unit is moved up to one
    (round_up), or to the byte (exact)."""
    src, dst = op.operands
    if attribute(op, "exact", False):
        emit_exact(emitter, op, src, dst)
        return
    kind = buffer_of(src).dtype if attribute(op, "adds", False) else ""
    with adding(emitter, op, kind):
        emit_copy(emitter, op, src, dst)


def emit_copy(emitter: Emitter, op: Op, source: ir.Value, target: ir.Value) -> None:
    """The bursts by which an operation copies whole blocks, or loads of a run of whole fractals."""
    src, dst = buffer_of(source), buffer_of(target)
    if dst.space in FRACTAL_COPIES:
        emit_fractals(emitter, op, source, target)
        return
    record = emitter.record(op, COPIES[src.space, dst.space].name)
    outer, run = split_run(merge_dims(src.shape, [src.strides, dst.strides]))
    in_bytes = [SharedDim(d.size, tuple(s * src.itemsize for s in d.strides)) for d in outer]
    unit = COPY_BYTES.get(dst.space, BLOCK_BYTES)
    run_bytes = round_up(run * src.itemsize, unit)
    emit_bursts(emitter, record, [source, target], in_bytes, run_bytes, (unit, unit))


def emit_exact(emitter: Emitter, op: Op, source: ir.Value, target: ir.Value) -> None:
    """The burst by which an operation copies a run of whole elements."""
    src, dst = buffer_of(source), buffer_of(target)
    item = min(src.itemsize, WORD_BYTES)
    name = f"{COPIES[src.space, dst.space].name}_align"
    record = emitter.record(op, name, f"b{8 * item}")
    emit_bursts(emitter, record, [source, target], [], src.size * src.itemsize, (1, 1))


def emit_fractals(emitter: Emitter, op: Op, source: ir.Value, target: ir.Value) -> None:
    """The loads by which an operation copies a run of whole fractals from global memory."""
    src, dst = buffer_of(source), buffer_of(target)
    record = emitter.record(op, FRACTAL_COPIES[dst.space], src.dtype)
    most = next(field.limit for field in record.fields if field.name == "repeat")
    start = [emitter.addresses.of(value) for value in (target, source)]
    for first, count in cut(src.size * src.itemsize // FRACTAL_BYTES, most):
        at = [place.plus(Shift(first * FRACTAL_BYTES)) for place in start]
        fields = {"start_index": 0, "src_stride": 1, "repeat": count}
        emitter.instruction(record, at, fields)


@contextmanager
def adding(emitter: Emitter, op: Op, kind: str) -> Iterator[None]:
    """Stores inside add to what is in GM, in that element type; "": they overwrite."""
    if kind:
        hivm.build(emitter.record(op, f"set_atomic_{kind}").name, "", [], {})
    yield
    if kind:
        hivm.build("set_atomic_none", "", [], {})


@lowering("copy_l0c")
def lower_copy_l0c(emitter: Emitter, op: Op) -> None:
    """Units are fractals of 256 elements, 1024 or 512 bytes on each side by its own type."""
    src, dst = (buffer_of(v) for v in op.operands)
    kind = src.dtype if src.dtype == dst.dtype else f"{src.dtype}2{dst.dtype}"
    kind += "relu" if attribute(op, "relu", False) else ""
    record = emitter.record(op, NAMES["copy_l0c"], kind)
    start = [emitter.addresses.of(v) for v in op.operands]
    emit_runs(emitter, record, start, *fractal_runs(src, dst, src.shape[:2], slice(2)))


def fractal_runs(
    src: BufferView, dst: BufferView, shape: Sequence[int], dims: slice
) -> tuple[list[SharedDim], int, tuple[int, int]]:
    """Outer dimensions, bytes of a run and units of a copy of fractals, as `emit_runs` takes them.

    Args:
        shape: fractals along the dimensions `dims` of both sides.
    """
    sides = (src, dst)
    strides = [[*b.strides[dims], 1] for b in sides]
    outer, run = split_run(merge_dims([*shape, FRACTAL], strides))
    in_bytes = [
        SharedDim(d.size, tuple(s * b.itemsize for s, b in zip(d.strides, sides, strict=True)))
        for d in outer
    ]
    return in_bytes, run * src.itemsize, (FRACTAL * src.itemsize, FRACTAL * dst.itemsize)


@lowering("dequantize_l0c")
def lower_dequantize_l0c(emitter: Emitter, op: Op) -> None:
    """An instruction for each column of fractals, which DEQSCALE has the scales of."""
    source, factors, target = op.operands
    src, scales, dst = (buffer_of(v) for v in op.operands)
    kind = f"{src.dtype}2{dst.dtype}v"
    record = emitter.record(op, NAMES["dequantize_l0c"], kind)
    runs = fractal_runs(src, dst, src.shape[1:2], slice(1, 2))
    begin = [emitter.addresses.of(v) for v in (source, target)]
    first = emitter.addresses.of(factors)
    for column in range(src.shape[0]):
        emitter.set_scales(first.plus(Shift(column * scales.strides[0] * scales.itemsize)))
        at = move(begin, [Shift(column * b.strides[0] * b.itemsize) for b in (src, dst)])
        emit_runs(emitter, record, at, *runs)


def emit_bursts(
    emitter: Emitter,
    record: Instruction,
    values: Sequence[ir.Value],
    outer: list[SharedDim],
    run_bytes: int,
    units: tuple[int, int],
) -> None:
    """Copies runs of `run_bytes` (counted at the source) over the dimensions `outer`.

    The largest dimension whose gaps the fields can hold becomes the number of bursts, the others
    loops. Lengths and numbers beyond a field are cut.

    Args:
        values: source and destination memrefs.
        outer: dimensions with (source, destination) strides in bytes.
        units: bytes a length or gap of 1 stands for, at the source and the destination.
    """
    start = [emitter.addresses.of(v) for v in values]
    emit_runs(emitter, record, start, outer, run_bytes, units)


def emit_runs(
    emitter: Emitter,
    record: Instruction,
    start: Sequence[Address],
    outer: list[SharedDim],
    run_bytes: int,
    units: tuple[int, int],
) -> None:
    """`emit_bursts` from source and destination addresses."""
    most = {f.name: f.limit for f in record.fields}
    length = run_bytes // units[0]
    pieces = [(0, length)]
    if length > most["len_burst"]:
        pieces = cut(length, most["len_burst"])
    for shifts, dims in whole_gaps(outer, units):
        begin = move(start, [Shift(shift) for shift in shifts])
        for first, blocks in pieces:
            at = move(begin, [Shift(first * unit) for unit in units])
            emit_piece(emitter, record, dims, at, blocks, units)


def whole_gaps(
    outer: list[SharedDim], units: tuple[int, int]
) -> list[tuple[tuple[int, int], list[SharedDim]]]:
    """`outer` in parts that bursts can walk, each with where it starts in bytes.

    Rows of GM need not lie whole units apart. Every second, fourth, .. one does; so rows that leave
    the same remainder go together: 21 rows of 100 elements of 2 bytes are rows 0, 4, .. 20, and
    1, 5, .. 17, and so on.
    """
    ragged = [d for d in outer if any(s % u for s, u in zip(d.strides, units, strict=True))]
    if not ragged:
        return [((0, 0), outer)]
    rows = max(ragged, key=lambda dim: dim.size)
    apart = max(u // gcd(s, u) for s, u in zip(rows.strides, units, strict=True))
    if rows.size <= apart:
        return [((0, 0), outer)]
    others = [dim for dim in outer if dim is not rows]
    wide = (rows.strides[0] * apart, rows.strides[1] * apart)
    count, longer = divmod(rows.size, apart)
    parts = []
    for first, rest, size in ((0, longer, count + 1), (longer, apart - longer, count)):
        if rest:
            start = (first * rows.strides[0], first * rows.strides[1])
            parts.append((start, [*others, SharedDim(rest, rows.strides), SharedDim(size, wide)]))
    return parts


def emit_piece(
    emitter: Emitter,
    record: Instruction,
    outer: list[SharedDim],
    at: Sequence[Address],
    blocks: int,
    units: tuple[int, int],
) -> None:
    """Copies runs of `blocks` over the dimensions `outer`."""
    most = {f.name: f.limit for f in record.fields}
    index, gaps = choose_bursts(outer, blocks, units, most)
    if index < 0:
        emit(emitter, record, outer, at, 1, blocks, (0, 0))
        return
    dim, loops = outer[index], outer[:index] + outer[index + 1 :]
    for begin, count in cut(dim.size, most["n_burst"]):
        chunk = move(at, [Shift(begin * s) for s in dim.strides])
        emit(emitter, record, loops, chunk, count, blocks, gaps)


def choose_bursts(
    outer: Sequence[SharedDim], blocks: int, units: tuple[int, int], most: dict[str, int]
) -> tuple[int, tuple[int, int]]:
    """The largest dimension that can be the bursts, with its gaps; index -1 if there is none."""
    best, best_gaps = -1, (0, 0)
    for i, dim in enumerate(outer):
        gaps = [s / unit - blocks for s, unit in zip(dim.strides, units, strict=True)]
        fits = all(
            g >= 0 and g.is_integer() and g <= most[name]
            for g, name in zip(gaps, ("src_gap", "dst_gap"), strict=True)
        )
        # Of equal ones the one whose bursts follow each other at the source, a single run of GM.
        if fits and (best < 0 or (dim.size, gaps[0] == 0) > (outer[best].size, best_gaps[0] == 0)):
            best, best_gaps = i, (int(gaps[0]), int(gaps[1]))
    return best, best_gaps


def cut(size: int, most: int) -> list[tuple[int, int]]:
    """(start, length) of the pieces of `size` of at most `most`."""
    return [(start, min(most, size - start)) for start in range(0, size, most)]


def emit(
    emitter: Emitter,
    record: Instruction,
    loops: Sequence[SharedDim],
    at: Sequence[Address],
    count: int,
    blocks: int,
    gaps: tuple[int, int],
) -> None:
    fields = {"n_burst": count, "len_burst": blocks, "src_gap": gaps[0], "dst_gap": gaps[1]}

    def body(addresses: Sequence[Address]) -> None:
        src, dst = addresses
        emitter.instruction(record, [dst, src], fields)

    emitter.loops(loops, (1, 1), at, body)

"""The published measurements of the vector unit and the banks of UB (docs/hardware.md b2, d)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hand_written import Body, Stream, run
from published import KB, SEEN, VECTOR_CORES, Row, V, device, microseconds

from davinci.isa import INSTRUCTIONS

DEPTH = "fitted: vector.fixed_cycles_of"
RATE = "fitted: vector.cycles_per_repeat"
BOTH = "fitted: vector.fixed_cycles_of, cycles_per_repeat"
ORDER = "fitted: vector.head_cycles"

# Isolated vector operations: one instruction, from its issue to its completion.

SLOT = 0x4000
"""PTO's operands lie one after the other, 16 KB each: all in one bank."""

REPEATS = (16, 32, 64)

RESULTS = {"vcadd.f32": 1, "vconv_f322f16": 4}
"""The destination's repeat stride where it is not 8 blocks."""


def vector_op(mnemonic: str, repeats: int) -> int:
    """Cycles of one instruction on operands of PTO's layout, full repeats one after the other."""
    record = INSTRUCTIONS[mnemonic]

    def body(s: Stream, block: int) -> None:
        names = [o.name for o in record.operands if o.name != "dst"]
        values = {name: i * SLOT for i, name in enumerate(names)}
        strides = {f.name: 8 for f in record.fields if f.name.endswith("_rep_stride")}
        strides["dst_rep_stride"] = RESULTS.get(mnemonic, 8)
        s.emit(mnemonic, dst=len(names) * SLOT, repeat=repeats, **values, **strides)

    return run(device(), body, "AIV").cycles


SINGLE: list[tuple[str, str, int, float, str]] = [
    ("TADD f32", "vadd.f32", 64, 160, "fitted: vector.completion_cycles"),
    ("TADD f16", "vadd.f16", 32, 92, "fitted: vector.completion_cycles"),
    ("TADD s32", "vadd.s32", 64, 151, DEPTH),
    ("TSUB f32", "vsub.f32", 64, 153, SEEN),
    ("TMUL f32", "vmul.f32", 64, 168, DEPTH),
    ("TMUL f16", "vmul.f16", 32, 96, DEPTH),
    ("TMUL s32", "vmul.s32", 64, 152, DEPTH),
    ("TEXP f32", "vexp.f32", 64, 159, SEEN),
    ("TEXP f16", "vexp.f16", 32, 95, RATE),
    ("TDIV f32", "vdiv.f32", 64, 288, SEEN),
    ("TRSQRT f16", "vrsqrt.f16", 32, 58, SEEN),
    ("TSQRT f16", "vsqrt.f16", 32, 160, DEPTH),
    ("vbrcb b32", "vbrcb.b32", 1, 18, DEPTH),
    ("vgather b32", "vgather.b32", 1, 26, DEPTH),
]

FITS: list[tuple[str, str, float, float, str]] = [
    ("TADD f32", "vadd.f32", 2.11, 24, SEEN),
    ("TMUL f32", "vmul.f32", 2.3, 25, DEPTH),
    ("TMAX f32", "vmax.f32", 2.01, 23, DEPTH),
    ("TAND", "vand.s16", 2.03, 20, DEPTH),
    ("TDIV f32", "vdiv.f32", 4.03, 31, BOTH),
    ("TEXP f32", "vexp.f32", 2.00, 31, DEPTH),
    ("TLOG f32", "vln.f32", 2.00, 33, BOTH),
    ("TRELU f32", "vrelu.f32", 1.00, 23, DEPTH),
    ("TMAXS f32", "vmaxs.f32", 1.00, 23, DEPTH),
    ("TLRELU f32", "vlrelu.f32", 1.03, 26, DEPTH),
    ("TMULS f32", "vmuls.f32", 1.00, 26, DEPTH),
    ("TRSQRT f32", "vrsqrt.f32", 1.07, 24, DEPTH),
    ("TROWSUM f32", "vcadd.f32", 7.00, 44, DEPTH),
    ("TROWMAX f32", "vcmax.f32", 7.00, 32, DEPTH),
    ("TCVT f32 to f16", "vconv_f322f16", 0.90, 27, DEPTH),
]
"""Name, instruction, cycles a repeat and besides, which parameter comes from the fit."""

LACKS = {
    "TCVT f32 to f16": "how 64 lanes of 32 bits are converted in less than a cycle: officially a "
    "repeat takes one, and few repeats take 29 and one each (PTO), as here, but a line through 1 "
    "to 128 of them is 27 and 0.90 each"
}


def isolated(
    single: Sequence[tuple[str, str, int, float, str]] = SINGLE,
    fits: Sequence[tuple[str, str, float, float, str]] = FITS,
) -> Iterator[Row]:
    """PTO: single operations on 64 x 64 elements, and its fits of others."""
    group = "isolated vector operations"
    for name, mnemonic, repeats, measured, evidence in single:
        cycles = vector_op(mnemonic, repeats)
        yield Row(group, name, "cycles", measured, cycles, 0.05, evidence=evidence)
    group = "fits of isolated vector operations"
    for name, mnemonic, slope, constant, evidence in fits:
        for repeats in REPEATS:
            title = f"{name}, {slope:.2f} x {repeats} + {constant}"
            cycles = vector_op(mnemonic, repeats)
            fit = slope * repeats + constant
            yield Row(
                group, title, "cycles", fit, cycles, 0.05, LACKS.get(name, ""), evidence, name
            )


# PTO's operations of several instructions, as its kernels issue them.

TILE, PARTIAL, TOTAL = 0, 0x10000, 0x20000
"""Addresses of the tile, of what is made of it, and of the result."""

ROW_BYTES = 256
BARRIER = "fitted: sync.barrier_cycles"


def columns(name: str, rows: int) -> Body:
    """Sums or maxima of the columns of rows x 64 f32: row after row, each behind a barrier. PTO
    marks its sums as made by pairs, but their line has no steps and is as much above that of the
    maxima, which have this order, as single additions are: 2 cycles a row."""

    def body(s: Stream, block: int) -> None:
        s.emit("copy_ubuf_to_ubuf", dst=TOTAL, src=TILE, n_burst=1, len_burst=8)
        s.emit("pipe_barrier", pipe=V)
        for i in range(1, rows):
            s.emit(name, dst=TOTAL, src0=TOTAL, src1=TILE + i * ROW_BYTES, repeat=1)
            s.emit("pipe_barrier", pipe=V)

    return body


def halves(of_two: str, of_row: str, rows: int) -> Body:
    """Sums or maxima of each of so many rows of 128 f32: of its halves, then of the rest."""

    def body(s: Stream, block: int) -> None:
        strides = {"dst_rep_stride": 8, "src0_rep_stride": 16, "src1_rep_stride": 16}
        s.emit(of_two, dst=PARTIAL, src0=TILE, src1=TILE + 256, repeat=rows, **strides)
        s.emit("pipe_barrier", pipe=V)
        s.emit(of_row, dst=TOTAL, src=PARTIAL, repeat=rows, dst_rep_stride=1, src_rep_stride=8)

    return body


def quotients(element: str, repeats: int) -> Body:
    """A tile divided by a number: that fills a tile first."""

    def body(s: Stream, block: int) -> None:
        s.emit(f"vector_dup.{element}", dst=TOTAL, repeat=repeats, dst_rep_stride=8)
        s.emit("pipe_barrier", pipe=V)
        strides = dict.fromkeys(("dst_rep_stride", "src0_rep_stride", "src1_rep_stride"), 8)
        s.emit(f"vdiv.{element}", dst=TOTAL, src0=TILE, src1=TOTAL, repeat=repeats, **strides)

    return body


def copies(count: int, blocks: int) -> Body:
    """So many copies of a burst, as the rows of a tile."""

    def body(s: Stream, block: int) -> None:
        for i in range(count):
            place = i * 2 * ROW_BYTES
            s.emit("copy_ubuf_to_ubuf", dst=TOTAL + place, src=place, n_burst=1, len_burst=blocks)

    return body


def row_expansion(s: Stream, block: int) -> None:
    """A number for each of 64 rows of 64 f32, repeated along it."""
    for row in range(64):
        s.emit("vector_dup.f32", dst=PARTIAL + row * ROW_BYTES, repeat=1)


def transposition(s: Stream, block: int) -> None:
    """Of 128 x 128 f32: columns of 8 numbers become rows, 16 rows at a time, then a copy of all.
    Squares of f16 take their place, which have as many bytes."""
    for column in range(16):
        sources = [TILE + column * 32 + i * 512 for i in range(16)]
        results = [PARTIAL + (8 * column + i // 2) * 512 + i % 2 * 32 for i in range(16)]
        for register, rows in ((0, results), (2, sources)):
            for first in range(0, 16, 4):
                places = {f"address{i}": rows[first + i] // 32 for i in range(4)}
                s.emit("set_va_reg", va=register + first // 8, half=first // 4 % 2, **places)
        registers = {"dst_va0": 0, "dst_va1": 1, "src_va0": 2, "src_va1": 3}
        s.emit("scatter_vnchwconv.b16", repeat=8, dst_stride=2, src_stride=256, **registers)
    s.emit("pipe_barrier", pipe=V)
    s.emit("copy_ubuf_to_ubuf", dst=TOTAL, src=PARTIAL, n_burst=128, len_burst=16)


def root_in_place(element: str, repeats: int) -> Body:
    """Square roots that take the place of their operands."""

    def body(s: Stream, block: int) -> None:
        strides = {"dst_rep_stride": 8, "src_rep_stride": 8}
        s.emit(f"vsqrt.{element}", dst=TILE, src=TILE, repeat=repeats, **strides)

    return body


COPIES = "fitted: vector.copy_bytes_per_cycle, fixed_cycles_of"
MOVED = "fitted: vector.copy_bursts_at_once, fixed_cycles_of"
ROOTS = (
    "what square roots in place meet: f16 takes 102 cycles there and 160 elsewhere, f32 198 and "
    "160, so f16 would be faster than the rate that its other figure gives, and f32 slower"
)

LEFT = {
    "square roots": ROOTS,
    "transposition": "how transpositions that follow each other share the unit: 16 of 8 repeats at "
    "the official 2 cycles and a copy at 256 bytes a cycle are 512, all else has to pass meanwhile",
}
"""What operations lack, by how their names begin."""

SEVERAL: list[tuple[str, float, Body, str]] = [
    *(
        (f"column {what} of {rows} x 64 f32", slope * rows + constant, columns(name, rows), BARRIER)
        for what, name, slope, constant in (
            ("maxima", "vmax.f32", 17.5, 17),
            ("sums", "vadd.f32", 19.5, 15),
        )
        for rows in REPEATS
    ),
    *(
        (f"row {what} of {rows} x 128 f32", 8 * rows + constant, halves(two, row, rows), SEEN)
        for what, two, row, constant in (
            ("maxima", "vmax.f32", "vcmax.f32", 48),
            ("sums", "vadd.f32", "vcadd.f32", 61.5),
        )
        for rows in REPEATS
    ),
    *(
        (f"{repeats} repeats of {element} by a number", slope * repeats + 45, body, SEEN)
        for element, slope in (("f32", 5), ("f16", 9))
        for repeats in REPEATS
        for body in (quotients(element, repeats),)
    ),
    ("a copy of 12 KB", 390, copies(1, 384), COPIES),
    ("a copy of 32 KB", 1029, copies(1, 1024), COPIES),
    ("63 copies of 512 bytes", 1323, copies(63, 16), COPIES),
    ("15 copies of 96 bytes", 120, copies(15, 3), COPIES),
    ("row expansion of 64 x 64 f32", 933, row_expansion, DEPTH),
    ("transposition of 128 x 128 f32", 501, transposition, MOVED),
    ("square roots in place, 64 repeats of f32", 198, root_in_place("f32", 64), SEEN),
    ("square roots in place, 32 repeats of f16", 102, root_in_place("f16", 32), SEEN),
]


def several() -> Iterator[Row]:
    """PTO: operations of several instructions, from the first issue to the last completion."""
    for name, measured, body, evidence in SEVERAL:
        cycles = run(device(), body, "AIV").cycles
        lacks = next((why for begin, why in LEFT.items() if name.startswith(begin)), "")
        group = "operations of several instructions"
        yield Row(group, name, "cycles", measured, cycles, 0.05, lacks, evidence)


# Bank conflicts: 1000 additions of 64 repeats one after the other, at the published addresses.

ADDITIONS = 200


def additions(mnemonic: str, repeat: int, src0: int, src1: int, dst: int, **fields: int) -> float:
    """Cycles of each of many equal additions."""

    def body(s: Stream, block: int) -> None:
        strides = {"dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 8, **fields}
        for _ in range(ADDITIONS):
            s.emit(mnemonic, dst=dst, src0=src0, src1=src1, repeat=repeat, **strides)

    return run(device(), body, "AIV").cycles / ADDITIONS


ONE_BLOCK = {"src0_blk_stride": 0, "src0_rep_stride": 1}
"""A source whose repeats read one block for all lanes, each the next one."""

SCENARIOS: list[tuple[str, float, str, int, int, dict[str, int]]] = [
    ("no conflict", 86.04, "fitted: vector.fixed_cycles", 0x10100, 0x20000, {}),
    ("both sources in one bank", 150.0, SEEN, 0x4000, 0x10000, {}),
    ("both sources in one bank group", 150.0, SEEN, 0x10000, 0x14100, {}),
    ("source and destination in one bank, aligned", 86.0, SEEN, 0x10100, 0x4000, {}),
    ("the same, one block apart", 135.0, ORDER, 0x10100, 0x4020, {}),
    ("destination over a source", 86.04, SEEN, 0x10100, 0x10100, {}),
    ("the same, one block of the other source", 129.0, ORDER, 0x10100, 0x10100, ONE_BLOCK),
    (
        "the same, 8 blocks from repeat to repeat",
        86.0,
        SEEN,
        0x10100,
        0x10100,
        ONE_BLOCK | {"src0_rep_stride": 8},
    ),
]
"""Name, cycles measured, evidence, addresses of the second source and destination, fields."""

ROWS, COLUMNS, TILE_ROWS = 8192, 8192, 144
TILE_BYTES = TILE_ROWS * 256


def rearranged(stride: int) -> float:
    """Microseconds a core of the copies that make fractals of 8192 x 8192 f16, in tiles of 144 x
    128 with blocks written `stride` blocks apart: two pairs of buffers take turns, sources first.
    """
    written = (TILE_ROWS - 1 + 7 * stride + 1) * 32 + 32 * (stride - TILE_ROWS)
    ping, pong = (0, 2 * TILE_BYTES), (TILE_BYTES, 2 * TILE_BYTES + written)
    strides = {"dst_blk_stride": stride, "dst_rep_stride": 1, "src_rep_stride": 8}

    def body(s: Stream, block: int) -> None:
        for turn in range(ADDITIONS):
            src, dst = ping if turn % 2 == 0 else pong
            s.emit("vcopy.b16", dst=dst, src=src, repeat=TILE_ROWS, **strides)

    cycles = run(device(), body, "AIV").cycles / ADDITIONS
    return microseconds(cycles) * ROWS / TILE_ROWS * COLUMNS / 128 / VECTOR_CORES


def bank_conflicts() -> Iterator[Row]:
    """BP bank_conflict_ub and bank_conflict_nd2nz."""
    group = "bank conflicts"
    for name, measured, evidence, src1, dst, fields in SCENARIOS:
        cycles = additions("vadd.f32", 64, 0, src1, dst, **fields)
        yield Row(group, name, "cycles", measured, cycles, 0.05, evidence=evidence)
    group = "strided copies, 8192 x 8192 f16"
    for stride, time in ((144, 47.79), (145, 7.133)):
        name = f"blocks written {stride} apart"
        found = rearranged(stride)
        yield Row(group, name, "us", time, found, 0.05, evidence=SEEN)


# The vector time of V4.

ELEMENTS = 8192 * 8192


def vector_time(cores: int, elements: int, pairs: list[tuple[int, int, int]]) -> float:
    """Microseconds a core of additions of `elements` f16 each, which add up 8192 x 8192; they take
    turns in their addresses of src0, src1 and dst."""
    each = [additions("vadd.f16", elements // 128, *places) for places in pairs]
    return microseconds(sum(each) / len(each)) * ELEMENTS / elements / cores


def addition_times() -> Iterator[Row]:
    """BP: time of the vector unit in the versions of an addition."""
    group = "V4 addition of 8192 x 8192 f16: vector unit"
    slot = 32 * KB
    first, second = (0, slot, 2 * slot), (3 * slot, 4 * slot, 5 * slot)
    shifted = 2 * 16256
    apart = [(0, shifted, 4 * slot), (2 * slot, 2 * slot + shifted, 4 * slot + shifted)]
    for name, measured, cores, elements, pairs in (
        ("1 core, 8 KB", 761.7, 1, 4096, [first]),
        ("48 cores", 15.9, VECTOR_CORES, 4096, [first]),
        ("32 KB", 12.8, VECTOR_CORES, 16384, [first]),
        ("two buffers", 12.8, VECTOR_CORES, 16384, [first, second]),
        ("no conflicts", 6.95, VECTOR_CORES, 16256, apart),
    ):
        time = vector_time(cores, elements, pairs)
        yield Row(group, name, "us", measured, time, 0.05, evidence=SEEN)

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
    ("TSUB f32", "vsub.f32", 64, 153, SEEN),
    ("TMUL f32", "vmul.f32", 64, 168, DEPTH),
    ("TMUL f16", "vmul.f16", 32, 96, DEPTH),
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
    ("vcadd f32", "vcadd.f32", 7.00, 46, DEPTH),
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

SUMS, TOTAL = 0x11000, 0x22000
"""Addresses of partial sums and of the sum, behind the tile at 0."""


def column_sum(s: Stream, block: int) -> None:
    """Of 64 x 64 f32: rows by pairs, and their sums by pairs, level by level, with the
    barriers of the kernel, two after most; then a copy."""
    src, rows = 0, 64
    while rows > 1:
        for i in range(rows // 2):
            row = src + 2 * i * 256
            s.emit("vadd.f32", dst=SUMS + i * 256, src0=row, src1=row + 256, repeat=1)
        for _ in range(1 if rows == 64 else 2):
            s.emit("pipe_barrier", pipe=V)
        src, rows = SUMS, rows // 2
    s.emit("copy_ubuf_to_ubuf", dst=TOTAL, src=SUMS, n_burst=1, len_burst=8)


def column_sum_of_one_row(s: Stream, block: int) -> None:
    """Of 1 x 3072 f32: a copy."""
    s.emit("copy_ubuf_to_ubuf", dst=TOTAL, src=0, n_burst=1, len_burst=384)


def row_expansion(s: Stream, block: int) -> None:
    """A number for each of 64 rows of 64 f32, repeated along it."""
    for row in range(64):
        s.emit("vector_dup.f32", dst=SUMS + row * 256, repeat=1)


SEVERAL: list[tuple[str, float, Body, str]] = [
    ("column sum of 64 x 64 f32", 1263, column_sum, "fitted: vector.overlap_cycles"),
    (
        "column sum of 1 x 3072 f32",
        390,
        column_sum_of_one_row,
        "fitted: vector.copy_bytes_per_cycle, fixed_cycles_of",
    ),
    ("row expansion of 64 x 64 f32", 933, row_expansion, DEPTH),
]


def several() -> Iterator[Row]:
    """PTO: operations of several instructions, from the first issue to the last completion."""
    for name, measured, body, evidence in SEVERAL:
        cycles = run(device(), body, "AIV").cycles
        yield Row(
            "operations of several instructions", name, "cycles", measured, cycles, 0.05,
            evidence=evidence,
        )  # fmt: skip


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

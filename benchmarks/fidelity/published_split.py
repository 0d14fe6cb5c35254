"""catlass, example 52: products of 8-bit integers whose k is split over cube cores; vector cores
add the parts and scale the sums by row and column (docs/hardware.md d).

On a 910B3 of 20 cube cores. The program is that of the public source: a part of k to a core; when
all have stored their sums, all vector cores add a piece of all parts; when those have stored, the
vector cores of the first cube cores make bf16 of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from hand_written import Stream
from published import (
    FIX,
    INDEPENDENT,
    KB,
    MACHINE,
    MTE1,
    MTE2,
    MTE3,
    M,
    Row,
    V,
    device,
    head,
    microseconds,
    nd2nz,
)

from davinci.isa import Pipe
from davinci.machine import Machine

GROUP = "catlass product of int8, k split"

MACHINE_B3 = MACHINE.model_copy(update={"cores": 20, "clock_mhz": 1800})
"""The 910B3: fewer cores, another clock."""

BLOCK_M, BLOCK_N, BLOCK_K, STEP_K = 128, 256, 128, 512
"""Rows, columns and elements of k that a mad multiplies; a transfer to L1 brings `STEP_K` of k."""

READY, ADDED, SUMMED = 5, 6, 7
"""Flags: a cube core has stored its sums; all of them have; all parts are added."""

TILE_ROWS = 32
"""Rows of a block that a vector core scales at a time."""

LANES, BRANCHES = 64, BLOCK_N // 64
"""Numbers of 32 bits in a repeat; repeats in a row of a block."""

SUMS, COLUMN_SCALES, ROW_SCALES = (0, 32 * KB), (64 * KB, 65 * KB), (66 * KB, 67 * KB)
RESULTS = (68 * KB, 84 * KB)
FLOATS, SPREAD, SCALED = 100 * KB, 132 * KB, 133 * KB
"""Places in UB of the scaling: two buffers each of what is brought and taken away, then f32."""


@dataclass(frozen=True)
class Split:
    """A product of rows x depth by depth x columns; B lies with k along its rows.

    Attributes:
        machine: whose cores share it.
    """

    rows: int
    columns: int
    depth: int
    machine: Machine = MACHINE_B3

    @property
    def blocks(self) -> int:
        return self.rows // BLOCK_M * (self.columns // BLOCK_N)

    @property
    def parts(self) -> int:
        """Of k: as many as there are cores for each block, and at most one for each step."""
        return max(1, min(self.machine.cores // self.blocks, self.depth // STEP_K))

    @property
    def places(self) -> tuple[int, ...]:
        """In global memory: A, B, the parts' sums, those added, the result, scales, the end."""
        sums = 4 * self.rows * self.columns
        sizes = (
            self.rows * self.depth, self.columns * self.depth, sums * self.parts, sums,
            sums // 2, 8 * KB,
        )  # fmt: skip
        found = [512]
        for size in sizes:
            found.append(found[-1] + size)
        return tuple(found)

    def steps(self, part: int) -> range:
        """The steps along k of a part; the first ones have one more if they do not divide."""
        each, more = divmod(self.depth // STEP_K, self.parts)
        first = each * part + min(part, more)
        return range(first, first + each + (part < more))

    def corner(self, block: int) -> tuple[int, int]:
        """First row and column of a block."""
        column, row = divmod(block, self.rows // BLOCK_M)
        return row * BLOCK_M, column * BLOCK_N


def bring(s: Stream, how: Split, corner: tuple[int, int], number: int, step: int) -> None:
    """The rows of a block that the step along k needs, to one of two buffers each."""
    a, b, *_ = how.places
    row, column = corner
    slot = number % 2
    for event, source, rows, base in (
        (slot, a + row * how.depth, BLOCK_M, 0),
        (2 + slot, b + column * how.depth, BLOCK_N, 2 * BLOCK_M * STEP_K),
    ):
        s.wait(MTE1, MTE2, event)
        place = base + slot * rows * STEP_K
        nd2nz(s, place, source + step * STEP_K, rows, STEP_K, how.depth, "b8")
        s.set(MTE2, MTE1, event)


def cube(s: Stream, how: Split, core: int) -> None:
    """The cube core of a block; its transfers are a step ahead."""
    s.lend(MTE2, MTE1, 4)
    s.lend(MTE1, M, 4)
    for task in range(core, how.blocks * how.parts, how.machine.cores):
        part, block = divmod(task, how.blocks)
        row, column = corner = how.corner(block)
        steps = how.steps(part)
        bring(s, how, corner, 0, steps[0])
        for number in range(len(steps)):
            if number + 1 < len(steps):
                bring(s, how, corner, number + 1, steps[number + 1])
            multiply(s, number)
        s.flag(M, FIX)
        s.emit(
            "fixpipe.s32",
            dst=how.places[2] + 4 * ((part * how.rows + row) * how.columns + column),
            src=0,
            nz2nd=1,
            n_size=BLOCK_N,
            m_size=BLOCK_M,
            src_stride=BLOCK_M,
            dst_stride=how.columns,
        )
    s.collect(MTE2, MTE1, 4)
    s.collect(MTE1, M, 4)
    s.emit("ffts_cross_core_sync", pipe=FIX, mode=2, flag=READY)
    s.emit("pipe_barrier", pipe=Pipe.ALL)


def multiply(s: Stream, number: int) -> None:
    """The mads of a step along k."""
    slot = number % 2
    for i in range(STEP_K // BLOCK_K):
        half = i % 2
        a = slot * BLOCK_M * STEP_K + i * BLOCK_M * BLOCK_K
        b = 2 * BLOCK_M * STEP_K + slot * BLOCK_N * STEP_K + i * BLOCK_N * BLOCK_K
        l0a, l0b = half * BLOCK_M * BLOCK_K, half * BLOCK_N * BLOCK_K
        s.wait(M, MTE1, half)
        if i == 0:
            s.wait(MTE2, MTE1, slot)
        for fractal in range(BLOCK_M // 16):
            at, to = a + 512 * fractal, l0a + 512 * fractal * (BLOCK_K // 32)
            stride = BLOCK_M // 16
            s.emit("load_cbuf_to_ca.s8", dst=to, src=at, src_stride=stride, repeat=BLOCK_K // 32)
        s.wait(M, MTE1, 2 + half)
        if i == 0:
            s.wait(MTE2, MTE1, 2 + slot)
        for fractal in range(BLOCK_K // 32):
            offset = fractal * BLOCK_N * 32
            repeat = BLOCK_N // 16
            s.emit(
                "load_cbuf_to_cb.s8", dst=l0b + offset, src=b + offset, src_stride=1, repeat=repeat
            )
        if i == STEP_K // BLOCK_K - 1:
            s.set(MTE1, MTE2, slot)
            s.set(MTE1, MTE2, 2 + slot)
        s.flag(MTE1, M, half)
        init = int(number == 0 and i == 0)
        s.emit("mad.s82s32", c=0, a=l0a, b=l0b, init=init, m=BLOCK_M, k=BLOCK_K, n=BLOCK_N)
        s.set(M, MTE1, half)
        s.set(M, MTE1, 2 + half)


def meet(s: Stream, flag: int) -> None:
    """The vector cores of all blocks wait until each of them has come here."""
    s.emit("ffts_cross_core_sync", pipe=MTE2, mode=0, flag=flag)
    s.emit("wait_flag_dev", flag=flag)


def add(s: Stream, how: Split, core: int) -> None:
    """A vector core adds its piece of the parts' sums."""
    count = how.rows * how.columns
    cores = 2 * how.machine.cores
    each = -(-(count // cores) // LANES) * LANES
    _, _, sums, added, *_ = how.places
    s.set(MTE3, MTE2)
    for first in range(core * each, count, cores * each):
        piece = min(each, count - first)
        s.wait(MTE3, MTE2)
        s.emit(
            "copy_gm_to_ubuf_align.b32",
            dst=0,
            src=sums + 4 * first,
            n_burst=how.parts,
            len_burst=4 * piece,
            src_gap=4 * (count - piece),
        )
        s.flag(MTE2, V)
        for part in range(1, how.parts):
            strides = dict.fromkeys(("dst_rep_stride", "src0_rep_stride", "src1_rep_stride"), 8)
            source = 4 * part * piece
            repeat = -(-piece // LANES)
            s.emit("vadd.s32", dst=0, src0=0, src1=source, repeat=repeat, **strides)
            s.emit("pipe_barrier", pipe=V)
        s.flag(V, MTE3)
        s.emit(
            "copy_ubuf_to_gm_align.b32",
            dst=added + 4 * first,
            src=0,
            n_burst=1,
            len_burst=4 * piece,
        )
        s.set(MTE3, MTE2)
    s.wait(MTE3, MTE2)


def scale(s: Stream, how: Split, block: int, sub_block: int) -> None:
    """The vector cores of a cube core make bf16 of blocks, in tiles of rows that they take in
    turns."""
    _, _, _, added, result, scales, _ = how.places
    s.lend(MTE2, V, 6)
    s.lend(V, MTE3, 2)
    turn = 0
    for number in range(block, how.blocks, how.machine.cores // 2):
        top, column = how.corner(number)
        for first in range(sub_block * TILE_ROWS, BLOCK_M, 2 * TILE_ROWS):
            row, slot = top + first, turn % 2
            turn += 1
            for event, dst, source, rows, size, gap in (
                (slot, SUMS[slot], added + 4 * (row * how.columns + column), TILE_ROWS,
                 4 * BLOCK_N, 4 * (how.columns - BLOCK_N)),
                (2 + slot, COLUMN_SCALES[slot], scales + 4 * column, 1, 4 * BLOCK_N, 0),
                (4 + slot, ROW_SCALES[slot], scales + 4 * KB + 4 * row, 1, 4 * TILE_ROWS, 0),
            ):  # fmt: skip
                s.wait(V, MTE2, event)
                sizes = {"n_burst": rows, "len_burst": size, "src_gap": gap}
                s.emit("copy_gm_to_ubuf_align.b32", dst=dst, src=source, **sizes)
                s.set(MTE2, V, event)
            compute(s, slot)
            to = result + 2 * (row * how.columns + column)
            sizes = {"n_burst": TILE_ROWS, "len_burst": 2 * BLOCK_N}
            gap = 2 * (how.columns - BLOCK_N)
            s.emit("copy_ubuf_to_gm_align.b16", dst=to, src=RESULTS[slot], dst_gap=gap, **sizes)
            s.set(MTE3, V, slot)
    s.collect(MTE2, V, 6)
    s.collect(V, MTE3, 2)


def compute(s: Stream, slot: int) -> None:
    """Sums of a tile times a scale for each column and each row, as bf16."""
    repeats, row = TILE_ROWS * BRANCHES, BLOCK_N * 4 // 32

    def barrier() -> None:
        s.emit("pipe_barrier", pipe=V)

    def multiplied(dst: int, factors: int, by_row: bool) -> None:
        for i in range(BRANCHES):
            at = dst + 256 * i
            strides = {"dst_rep_stride": row, "src0_rep_stride": row}
            strides |= {"src1_rep_stride": int(by_row), "src1_blk_stride": int(not by_row)}
            other = factors if by_row else factors + 256 * i
            source = FLOATS + 256 * i
            s.emit("vmul.f32", dst=at, src0=source, src1=other, repeat=TILE_ROWS, **strides)

    for event in (slot, 2 + slot, 4 + slot):
        s.wait(MTE2, V, event)
    strides = {"dst_rep_stride": 8, "src_rep_stride": 8}
    s.emit("vconv_s322f32", dst=FLOATS, src=SUMS[slot], repeat=repeats, **strides)
    s.set(V, MTE2, slot)
    barrier()
    multiplied(FLOATS, COLUMN_SCALES[slot], by_row=False)
    s.emit(
        "vbrcb.b32",
        dst=SPREAD,
        src=ROW_SCALES[slot],
        repeat=TILE_ROWS // 8,
        dst_blk_stride=1,
        dst_rep_stride=8,
    )
    for event in (2 + slot, 4 + slot):
        s.set(V, MTE2, event)
    barrier()
    multiplied(SCALED, SPREAD, by_row=True)
    barrier()
    s.wait(MTE3, V, slot)
    strides = {"dst_rep_stride": 4, "src_rep_stride": 8}
    s.emit("vconv_f322bf16r", dst=RESULTS[slot], src=SCALED, repeat=repeats, **strides)
    s.flag(V, MTE3, slot)


def task(how: Split) -> float:
    """Microseconds of the task; nothing is in the L2 when it begins."""

    def cube_program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream = Stream(core)
        cube(stream, how, block)
        stream.flush()

    def vector_program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream = Stream(core)
        stream.emit("wait_flag_dev", flag=READY)
        meet(stream, ADDED)
        add(stream, how, 2 * block + core.sub_block)
        stream.emit("pipe_barrier", pipe=Pipe.ALL)
        meet(stream, SUMMED)
        scale(stream, how, block, core.sub_block)
        stream.flush()

    machine = how.machine
    target = device(how.places[-1], machine)
    programs = {"AIC": cube_program, "AIV": vector_program}
    profile = target.launch(GROUP, programs, [], machine.cores)
    return microseconds(profile.cycles, machine) + head(machine.cores, machine)


MEASURED = (
    (Split(128, 256, 1024), 18.11),
    (Split(128, 256, 2048), 20.67),
    (Split(128, 256, 4096), 21.15),
    (Split(128, 256, 8192), 20.01),
    (Split(128, 256, 16384), 23.83),
    (Split(256, 512, 16384), 34.29),
)
"""Products of 256 and 512 columns and microseconds of their tasks."""


LACKS = (
    "what a launch of cube and vector cores together takes besides its head, and what its "
    "meetings do: 1 to 5 us are documented for the former (hardware.md, b3), which no task here "
    "has. Measured less simulated are 3.1, 5.4, 5.3, 1.2, 0.6 and 6.1 us, which follow neither "
    "cores nor bytes: with a step of k for each core, 4 parts take 2.6 us more on the board than "
    "2, 8 half a microsecond more than 4, and 16 1.1 less than 8. With the 3 us of the machine "
    "file all six would be within 12 %, but attention of one core, whose tasks are of both kinds, "
    "too, up to 16 % too long (below), so one constant does not serve both"
)


def split_products() -> Iterator[Row]:
    """The example's own table."""
    for how, measured in MEASURED:
        name = f"{how.rows} x {how.columns} x {how.depth}, {how.parts} parts: task"
        yield Row(GROUP, name, "us", measured, task(how), 0.15, LACKS, INDEPENDENT)

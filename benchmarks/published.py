"""The published measurements of docs/hardware.md (b, d), each as a stream for the simulator.

Every function gives rows: what was measured, and what the simulator says for the same program.
Nothing here changes the model: addresses and schedules are those that were published, or are said
to be assumed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from streams import Body, Stream, run

from davinci import machine as machines
from davinci.isa import Pipe
from davinci.simulator import Device

MACHINE = machines.load("ascend910b")
MHZ = MACHINE.clock_mhz
CUBE_CORES, VECTOR_CORES = MACHINE.cores, 2 * MACHINE.cores
V, M, MTE1, MTE2, MTE3, FIX = Pipe.V, Pipe.M, Pipe.MTE1, Pipe.MTE2, Pipe.MTE3, Pipe.FIX

KB = 1024


@dataclass(frozen=True)
class Row:
    """One measurement beside the simulator's figure.

    Attributes:
        group, name: which measurement.
        unit: "cycles" or "us".
        measured, simulated: the figures.
        target: largest error that is accepted, as a fraction.
        missing: the mechanism that the model lacks, if the row is outside.
        evidence: "fitted" if a parameter of the model comes from this row, else "independent".
    """

    group: str
    name: str
    unit: str
    measured: float
    simulated: float
    target: float
    missing: str = ""
    evidence: str = "independent"

    @property
    def error(self) -> float:
        return self.simulated / self.measured - 1

    @property
    def good(self) -> bool:
        return abs(self.error) <= self.target


def evidence(keys: str = "") -> str:
    """Of a row from which those parameters of the machine file come."""
    return f"fitted: {keys}" if keys else "independent"


def device(gm_bytes: int = 1 << 20) -> Device:
    """A device that finds times only."""
    return Device(MACHINE, gm_bytes, data=False)


def microseconds(cycles: float) -> float:
    return cycles / MHZ


# Chained mads: eight of m 128, k 64 without waiting.


def mads(n: int) -> int:
    """Cycles of eight mads."""

    def body(s: Stream, block: int) -> None:
        for _ in range(8):
            s.emit("mad.f162f32", m=128, k=64, n=n, init=1)

    return run(device(), body, "AIC").cycles


def chained_mads() -> Iterator[Row]:
    """API, unit flag table."""
    for n, measured in ((256, 4209), (128, 2172)):
        yield Row("chained mads", f"n {n}", "cycles", measured, mads(n), 0.05, evidence="fitted")


# GM to UB: one transfer.


def tload(size: int) -> int:
    """Cycles of one transfer of `size` bytes."""

    def body(s: Stream, block: int) -> None:
        s.emit("copy_gm_to_ubuf", dst=0, src=512, n_burst=1, len_burst=size // 32)

    return run(device(), body, "AIV").cycles


def transfers() -> Iterator[Row]:
    """PTO `tload`."""
    for size, measured in ((65536, 776), (65024, 773), (32512, 519), (16256, 392)):
        name = f"{size / KB:.2f} KB"
        yield Row("GM to UB", name, "cycles", measured, tload(size), 0.05, evidence="fitted")


# V4: x + y of 8192 x 8192 f16.

ELEMENTS = 8192 * 8192
X, Y, Z = 512, 512 + 2 * ELEMENTS, 512 + 4 * ELEMENTS


def addition(cores: int, size: int, buffers: int, parts: int = 1) -> float:
    """Microseconds of the whole addition with copies of `size` bytes, after one that fills the L2.

    Cores take whole tiles, of one of `parts` equal parts, from which the figure is scaled. The
    second operand is loaded when the first has arrived: the published MTE2 time is twice that of a
    single transfer.
    """
    tiles = 2 * ELEMENTS // size // cores // parts
    rows = {"n_burst": 1, "len_burst": size // 32}
    strides = {"dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 8}

    def body(s: Stream, block: int) -> None:
        s.lend(MTE2, V, buffers)
        s.lend(V, MTE3, buffers)
        for tile in range(tiles):
            event = tile % buffers
            place = (block * tiles + tile) * size
            a, b, c = ((3 * event + i) * size for i in range(3))
            s.wait(V, MTE2, event)
            s.emit("copy_gm_to_ubuf", dst=a, src=X + place, **rows)
            s.emit("pipe_barrier", pipe=MTE2)
            s.emit("copy_gm_to_ubuf", dst=b, src=Y + place, **rows)
            s.flag(MTE2, V, event)
            s.wait(MTE3, V, event)
            for at in range(0, size, 128 * 256):
                count = min(128, (size - at) // 256)
                s.emit("vadd.f16", dst=c + at, src0=a + at, src1=b + at, repeat=count, **strides)
            s.set(V, MTE2, event)
            s.flag(V, MTE3, event)
            s.emit("copy_ubuf_to_gm", dst=Z + place, src=c, **rows)
            s.set(MTE3, V, event)
        s.collect(MTE2, V, buffers)
        s.collect(V, MTE3, buffers)

    target = device(Z + 2 * ELEMENTS)
    run(target, body, "AIV", cores)
    cycles = run(target, body, "AIV", cores).cycles
    return microseconds(cycles) * 2 * ELEMENTS / (cores * tiles * size)


def vector_addition() -> Iterator[Row]:
    """BP: an addition made faster step by step."""
    group = "V4 addition of 8192 x 8192 f16"
    one, all_ = 1, VECTOR_CORES
    yield Row(group, "1 core, 8 KB", "us", 6909.6, addition(one, 8 * KB, 1, parts=16), 0.15)
    yield Row(group, "48 cores", "us", 306.6, addition(all_, 8 * KB, 1), 0.15)
    yield Row(group, "32 KB", "us", 268.5, addition(all_, 32 * KB, 1), 0.15)
    double = addition(all_, 32 * KB, 2)
    yield Row(group, "two buffers", "us", 264.0, double, 0.15)
    bypass = "inputs that bypass the L2 leave it to the output, which never meets the memory"
    yield Row(group, "inputs bypass the L2", "us", 187.7, double, 0.15, bypass)
    yield Row(group, "inputs bypass the L2, no conflicts", "us", 184.5, double, 0.15, bypass)


# V5: reading 12288 x 12288 f16.

SIDE = 12288
ROW = 2 * SIDE


def reading(cores: int, rows: int, columns: int, parts: int = 1) -> float:
    """Microseconds to read all of it into UB in tiles of rows x columns, row by row of tiles.

    Simulates one of `parts` equal parts.
    """
    wide = SIDE // columns
    total = SIDE // rows * wide
    tiles = total // cores // parts
    width = 2 * columns
    strides = {"len_burst": width // 32, "src_gap": (ROW - width) // 32}

    def body(s: Stream, block: int) -> None:
        for tile in range(block * tiles, (block + 1) * tiles):
            place = 512 + tile // wide * rows * ROW + tile % wide * width
            s.emit("copy_gm_to_ubuf", dst=0, src=place, n_burst=rows, **strides)

    return _read_time(body, "AIV", cores, total / (cores * tiles))


def reading_fractals(rows: int, columns: int) -> float:
    """The same into L1 as fractals: each tile is waited for."""
    wide = SIDE // columns
    total = SIDE // rows * wide
    tiles = total // CUBE_CORES

    def body(s: Stream, block: int) -> None:
        s.lend(MTE2, MTE1)
        for tile in range(block * tiles, (block + 1) * tiles):
            s.wait(MTE1, MTE2)
            place = 512 + tile // wide * rows * ROW + tile % wide * 2 * columns
            nd2nz(s, 0, place, rows, columns, SIDE)
            s.flag(MTE2, MTE1)
            s.set(MTE1, MTE2)
        s.collect(MTE2, MTE1)

    return _read_time(body, "AIC", CUBE_CORES, total / (CUBE_CORES * tiles))


def _read_time(body: Body, kind: str, cores: int, scale: float) -> float:
    profile = run(device(512 + SIDE * ROW), body, kind, cores)
    return microseconds(profile.cycles) * scale


def reading_again(slices: int) -> float:
    """Microseconds to read all of it four times in rows of 2 KB, slice by slice."""
    rows, columns = 64, 1024
    part = SIDE // rows * (SIDE // columns) // slices
    wide = SIDE // columns
    tiles = part // VECTOR_CORES
    strides = {"len_burst": 2 * columns // 32, "src_gap": (ROW - 2 * columns) // 32}

    def body(s: Stream, block: int) -> None:
        for cut in range(slices):
            for _ in range(4):
                for tile in range(cut * part + block * tiles, cut * part + (block + 1) * tiles):
                    place = 512 + tile // wide * rows * ROW + tile % wide * 2 * columns
                    s.emit("copy_gm_to_ubuf", dst=0, src=place, n_burst=rows, **strides)

    return _read_time(body, "AIV", VECTOR_CORES, part / (VECTOR_CORES * tiles))


def data_copy() -> Iterator[Row]:
    """BP data_copy."""
    group = "V5 reading 12288 x 12288 f16"
    for rows, columns, measured in ((1, 64, 548.0), (64, 64, 220.8), (64, 1024, 202.7)):
        time = reading(VECTOR_CORES, rows, columns, parts=64 // rows)
        yield Row(group, f"to UB, tiles of {rows} x {columns}", "us", measured, time, 0.15)
    for shape, measured in (((64, 64), 283.5), ((64, 256), 214.5)):
        name = f"to L1 as fractals, tiles of {shape[0]} x {shape[1]}"
        yield Row(group, name, "us", measured, reading_fractals(*shape), 0.15)
    yield Row(group, "four times", "us", 828.0, reading_again(1), 0.15)
    yield Row(group, "four times, slice by slice", "us", 365.7, reading_again(4), 0.15)


def nd2nz(s: Stream, dst: int, src: int, rows: int, columns: int, row_elements: int) -> None:
    """Loads rows x columns of f16 into L1 as Nz."""
    s.emit(
        "copy_gm_to_cbuf_multi_nd2nz.b16",
        dst=dst,
        src=src,
        nd_num=1,
        n_value=rows,
        d_value=columns,
        src_d_value=row_elements,
        dst_nz_c0_stride=rows + -rows % 16,
        dst_nz_n_stride=1,
    )

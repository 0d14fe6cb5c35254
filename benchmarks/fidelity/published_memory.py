"""V4 and V5 of the published measurements: an addition limited by the memory, and reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hand_written import Stream, run
from published import (
    CUBE_CORES,
    KB,
    MACHINE,
    MTE2,
    MTE3,
    VECTOR_CORES,
    Row,
    V,
    device,
    evidence,
    head,
    microseconds,
    nd2nz,
)

from davinci.isa import Pipe, Space

BYPASS = MACHINE.l2.bypass_offset_bytes or 0

# V4: x + y of 8192 x 8192 f16.

ELEMENTS = 8192 * 8192
X, Y, Z = 512, 512 + 2 * ELEMENTS, 512 + 4 * ELEMENTS

Places = Sequence[tuple[int, int, int]]
"""Addresses in UB of x, y and z, for each buffer."""


def one_after_the_other(size: int, buffers: int) -> Places:
    """Places of `size` bytes without gaps."""
    return [(3 * i * size, (3 * i + 1) * size, (3 * i + 2) * size) for i in range(buffers)]


def addition(
    cores: int, size: int, places: Places, parts: int = 1, bypass: int = 0, scalar: bool = False
) -> float:
    """Microseconds of the whole addition with copies of `size` bytes, after one that fills the L2.

    Cores take whole tiles, of one of `parts` equal parts, from which the figure is scaled. The
    second operand is loaded when the first has arrived: the published MTE2 time is twice that of a
    single transfer. `bypass` is added to the addresses of x and y. With `scalar` the scalar unit
    adds, element by element.
    """
    tiles = 2 * ELEMENTS // size // cores // parts
    rows = {"n_burst": 1, "len_burst": size // 32}
    buffers = len(places)

    def body(s: Stream, block: int) -> None:
        s.lend(MTE2, V, buffers)
        s.lend(V, MTE3, buffers)
        for tile in range(tiles):
            event = tile % buffers
            place = (block * tiles + tile) * size
            a, b, c = places[event]
            s.wait(V, MTE2, event)
            s.emit("copy_gm_to_ubuf", dst=a, src=X + place + bypass, **rows)
            s.emit("pipe_barrier", pipe=MTE2)
            s.emit("copy_gm_to_ubuf", dst=b, src=Y + place + bypass, **rows)
            s.flag(MTE2, V, event)
            s.wait(MTE3, V, event)
            if scalar:
                s.flag(V, Pipe.S)
                add_elements(s, a, b, c, size)
                s.flag(Pipe.S, V)
            else:
                add_repeats(s, a, b, c, size)
            s.set(V, MTE2, event)
            s.flag(V, MTE3, event)
            s.emit("copy_ubuf_to_gm", dst=Z + place, src=c, **rows)
            s.set(MTE3, V, event)
        s.collect(MTE2, V, buffers)
        s.collect(V, MTE3, buffers)

    target = device(Z + 2 * ELEMENTS)
    run(target, body, "AIV", cores)
    cycles = run(target, body, "AIV", cores).cycles
    return microseconds(cycles) * 2 * ELEMENTS / (cores * tiles * size) + head(cores / 2)


def add_repeats(s: Stream, a: int, b: int, c: int, size: int) -> None:
    """Adds `size` bytes of f16 on the vector unit."""
    strides = {"dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 8}
    for at in range(0, size, 128 * 256):
        count = min(128, (size - at) // 256)
        s.emit("vadd.f16", dst=c + at, src0=a + at, src1=b + at, repeat=count, **strides)


OPERATIONS = 4
"""Of the scalar unit for each element: two operands to f32, the sum, and that to f16."""


def add_elements(s: Stream, a: int, b: int, c: int, size: int) -> None:
    """Adds `size` bytes of f16 on the scalar unit: two loads and a store for each element."""
    count = size // 2
    s.emit(
        "scalar_access",
        scalar_ops=count * OPERATIONS,
        loads=2 * count,
        stores=count,
        load_low=min(a, b),
        load_high=max(a, b) + size,
        store_low=c,
        store_high=c + size,
        space=Space.UB,
    )


PUBLISHED_SIZE = 2 * 16256
APART = [
    (0, PUBLISHED_SIZE, 128 * KB),
    (64 * KB, 64 * KB + PUBLISHED_SIZE, 128 * KB + PUBLISHED_SIZE),
]
"""The published places without conflicts."""

PAST_THE_L2 = ("inputs bypass the L2", "inputs bypass the L2, no conflicts")
RATE = "gm.read_bytes_per_cycle"
"""Set with those rows in view and with readings that only the memory limits."""


def vector_addition() -> Iterator[Row]:
    """BP: an addition made faster step by step."""
    group = "V4 addition of 8192 x 8192 f16"
    small, large = one_after_the_other(8 * KB, 1), one_after_the_other(32 * KB, 1)
    slow = addition(1, 8 * KB, small, parts=1024, scalar=True)
    key = evidence("scalar.ub_access_cycles")
    yield Row(group, "1 core, scalar unit", "us", 1239689, slow, 0.15, evidence=key)
    one, key = addition(1, 8 * KB, small, parts=16), evidence("mte3.start_cycles")
    yield Row(group, "1 core, 8 KB", "us", 6909.6, one, 0.15, evidence=key)
    yield Row(group, "48 cores", "us", 306.6, addition(VECTOR_CORES, 8 * KB, small), 0.15)
    yield Row(group, "32 KB", "us", 268.5, addition(VECTOR_CORES, 32 * KB, large), 0.15)
    double = one_after_the_other(32 * KB, 2)
    yield Row(group, "two buffers", "us", 264.0, addition(VECTOR_CORES, 32 * KB, double), 0.15)
    past = addition(VECTOR_CORES, 32 * KB, double, bypass=BYPASS)
    apart = addition(VECTOR_CORES, PUBLISHED_SIZE, APART, bypass=BYPASS)
    for name, real, time in zip(PAST_THE_L2, (187.7, 184.5), (past, apart), strict=True):
        yield Row(group, name, "us", real, time, 0.15, evidence=evidence(RATE))


# V5: reading 12288 x 12288 f16, and all of 6144 x 512 by every core.


@dataclass(frozen=True)
class Reading:
    """How a matrix of f16 is read.

    Attributes:
        kind: cores, "AIV" to UB or "AIC" to L1 as fractals.
        rows, columns: of a tile.
        width: columns of the matrix.
        height: its rows.
        slices: parts along the columns that are read one after the other.
        repeats: how often each of them is read.
        all_of_it: every core reads all; else each has its own rows.
        staggered: then each core begins with rows of its own.
        parts: one of so many equal parts of the rows is simulated.
    """

    kind: str
    rows: int
    columns: int
    width: int = 12288
    height: int = 12288
    slices: int = 1
    repeats: int = 1
    all_of_it: bool = False
    staggered: bool = False
    parts: int = 1

    @property
    def cores(self) -> int:
        return VECTOR_CORES if self.kind == "AIV" else CUBE_CORES

    def tile(self, s: Stream, row: int, column: int) -> None:
        """Reads one tile; matrices that all cores read bypass the L2."""
        columns = min(self.columns, self.width - column)
        place = 512 + 2 * (row * self.width + column) + self.all_of_it * BYPASS
        if self.kind == "AIC":
            nd2nz(s, 0, place, self.rows, columns, self.width)
            return
        gap = 2 * (self.width - columns)
        if gap % 32 or 2 * columns % 32:
            sizes = {"n_burst": self.rows, "len_burst": 2 * columns, "src_gap": gap}
            s.emit("copy_gm_to_ubuf_align.b16", dst=0, src=place, **sizes)
        else:
            sizes = {"n_burst": self.rows, "len_burst": 2 * columns // 32, "src_gap": gap // 32}
            s.emit("copy_gm_to_ubuf", dst=0, src=place, **sizes)

    def body(self, s: Stream, block: int) -> None:
        """What one core reads."""
        share = self.height // self.cores
        first = range(self.cores) if self.all_of_it else [block]
        part = self.width // self.slices
        for cut in range(self.slices):
            for _ in range(self.repeats):
                for number in first:
                    mine = (number + block * self.staggered) % self.cores
                    for row in range(0, share // self.parts, self.rows):
                        for column in range(cut * part, (cut + 1) * part, self.columns):
                            self.tile(s, mine * share + row, column)


def reading(how: Reading) -> float:
    """Microseconds it takes."""
    target = device(512 + 2 * how.width * how.height)
    return microseconds(run(target, how.body, how.kind, how.cores).cycles) * how.parts


SAME = {"width": 512, "height": 6144, "all_of_it": True}

READINGS: list[tuple[str, float, Reading, str]] = [
    ("to UB, tiles of 1 x 64", 548.2, Reading("AIV", 1, 64, parts=64), ""),
    ("to UB, tiles of 64 x 64", 220.8, Reading("AIV", 64, 64), RATE),
    ("to UB, tiles of 64 x 1024", 202.7, Reading("AIV", 64, 1024), RATE),
    ("to UB, rows of 12287", 259.0, Reading("AIV", 64, 1024, width=12287), ""),
    ("to UB, four times", 816.1, Reading("AIV", 64, 1024, repeats=4), RATE),
    ("to UB, four times, by slices", 354.6, Reading("AIV", 64, 1024, slices=4, repeats=4), ""),
    (
        "to UB, all by all cores, staggered",
        307.4,
        Reading("AIV", 128, 64, **SAME, staggered=True),
        "mte2.row_miss_cycles",
    ),
    (
        "to UB, all by all cores, in the same order",
        474.7,
        Reading("AIV", 128, 64, **SAME),
        "gm.same_line_request_cycles",
    ),
    ("to L1, tiles of 64 x 64", 283.5, Reading("AIC", 64, 64), ""),
    ("to L1, tiles of 64 x 256", 214.5, Reading("AIC", 64, 256), RATE),
    (
        "to L1, rows of 12287",
        422.5,
        Reading("AIC", 64, 256, width=12287),
        "mte2.nd2nz_block_cycles",
    ),
    ("to L1, four times", 872.2, Reading("AIC", 64, 1024, repeats=4), RATE),
    ("to L1, four times, by slices", 397.8, Reading("AIC", 64, 1024, slices=4, repeats=4), ""),
    (
        "to L1, all by all cores, staggered",
        209.8,
        Reading("AIC", 256, 64, **SAME, staggered=True),
        "mte2.nd2nz_row_miss_cycles",
    ),
    (
        "to L1, all by all cores, in the same order",
        240.2,
        Reading("AIC", 256, 64, **SAME),
        "gm.same_line_percent",
    ),
]
"""Name, measured time of MTE2 or of a core, how, keys that were set with it in view."""

LACKS = {
    "to UB, rows of 12287": "what rows that do not begin at a whole block cost on the way to UB. "
    "To L1 they are put together block by block (`mte2.nd2nz_block_cycles`); here 2.4 cycles a "
    "block would do, but one row cannot tell a limit of the core from one of the memory, so there "
    "is no such key. More requests do not explain it: a line more for each row is in the L2 from "
    "the tile before, a request more of 128 bytes brings no other lines from the memory, and tiles "
    "of 64 x 64, with four requests for each line, take 9 % longer, not 28"
}


def data_copy(
    readings: Sequence[tuple[str, float, Reading, str]] = READINGS,
) -> Iterator[Row]:
    """BP data_copy."""
    for name, measured, how, keys in readings:
        time = reading(how)
        missing = LACKS.get(name, "")
        yield Row("V5 reading", name, "us", measured, time, 0.15, missing, evidence(keys))

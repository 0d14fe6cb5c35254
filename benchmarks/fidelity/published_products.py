"""V1 of the published measurements: f16 products of 8192 x 8192 x 8192, A and B with k along the
rows, by versions of a program that get faster step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hand_written import Body, Stream, run
from published import (
    FIX,
    MTE1,
    MTE2,
    M,
    Row,
    device,
    evidence,
    head,
    microseconds,
    nd2nz,
)

from davinci.isa.unit_flags import FLIP, KEEP, OFF
from davinci.machine import Machine

B_EVENT = 2
"""Events of the buffers of B in L1; those of A are before them."""


PIXELS = {"filter_w": 1, "filter_h": 1, "stride_w": 1, "stride_h": 1}
PIXELS |= {"dilation_w": 1, "dilation_h": 1}
"""Fields of load3d by which a window is a single pixel."""


@dataclass(frozen=True)
class Product:
    """A version of a product of rows x depth by depth x columns.

    Attributes:
        down, across: cores along the rows and columns of C.
        share_m, share_n: rows and columns of a core; the last ones may have less.
        m, n, k: block of one mad.
        step_a, step_b: blocks along k that a transfer of A and of B to L1 brings.
        passes: parts of the rows, each of which all columns are computed for before the next.
        size: rows, columns and depth.
        itemsize: bytes of an element of C.
        b_by_rows: B has n along its rows, not k.
        turns: transfers and loads take turns; else everything has two buffers.
        unit_flag: the cube and fixpipe hand L0C to each other fractal by fractal.
        machine: that runs it; None: that of `published`.
    """

    down: int
    across: int
    share_m: int
    share_n: int
    m: int
    n: int
    k: int
    step_a: int = 1
    step_b: int = 1
    passes: int = 1
    size: tuple[int, int, int] = (8192, 8192, 8192)
    itemsize: int = 2
    b_by_rows: bool = False
    turns: bool = False
    unit_flag: bool = False
    machine: Machine | None = None

    @property
    def cores(self) -> int:
        return self.down * self.across

    @property
    def buffers(self) -> int:
        return 1 if self.turns else 2


@dataclass(frozen=True)
class PipeTimes:
    """Microseconds of a core for the whole product, the average of all cores; of the longest
    core from its start to its end, with the head of the task. `waits` are those of fixpipe for
    sums, from when it could have begun."""

    cube: float
    mte1: float
    mte2: float
    fixpipe: float
    task: float
    waits: float = 0

    @property
    def columns(self) -> tuple[float, ...]:
        """In the order of `NAMES`."""
        return self.cube, self.mte1, self.mte2, self.fixpipe, self.task


ROWS_BEFORE = 2
"""Rows of blocks whose transfers go through the L2 before the one that is simulated: all of B is
there then, if there is room for it."""


def product(how: Product, columns: int = 0, whole: bool = False) -> PipeTimes:
    """Simulates one row of blocks on each core, with the L2 as the rows before leave it.

    Args:
        how: the version.
        columns: of a core that are simulated; 0: all. They are all alike.
        whole: all rows are simulated, with nothing in the L2 before.
    """
    height, width, _ = how.size
    share = how.share_n
    taken = columns or share
    blocks = how.share_m // how.m

    def body_of(rows: range, whole: bool) -> Body:
        def body(s: Stream, block: int) -> None:
            top = block % how.down * how.share_m
            left = block // how.down * share
            right = min(left + taken, left + share, width)
            Rows(s, how, whole).blocks(top, rows, left, right)

        return body

    gm_bytes = 512 + 2 * how.size[2] * (height + width) + how.itemsize * height * width
    target = device(gm_bytes, how.machine)
    before = 0 if whole else min(ROWS_BEFORE, blocks - 1)
    rows = range(blocks) if whole else range(before, before + 1)
    if before:
        run(target, body_of(range(before), False), "AIC", how.cores)
    profile = run(target, body_of(rows, True), "AIC", how.cores)
    scale = blocks / len(rows) * how.passes * share / taken
    pipes = [profile.pipes[f"PIPE_{pipe.name}"] for pipe in (M, MTE1, MTE2, FIX)]
    pipes.append(profile.flag_cycles["PIPE_FIX"])
    cube, mte1, mte2, fix, waits = (microseconds(n, how.machine) * scale / how.cores for n in pipes)
    task = microseconds(profile.cycles, how.machine) * scale + head(how.cores, how.machine)
    return PipeTimes(cube, mte1, mte2, fix, task, waits)


class Rows:
    """Rows of blocks of C on one core; without `whole` their transfers only."""

    def __init__(self, s: Stream, how: Product, whole: bool) -> None:
        self.s, self.how, self.whole = s, how, whole
        height, width, depth = how.size
        self.a = 512
        self.b = self.a + 2 * height * depth
        self.c = self.b + 2 * width * depth
        self.b_l1 = 2 * how.m * how.k * how.step_a * how.buffers
        self.a_nz = how.machine is not None and "mad_nz" in how.machine.intrinsics
        self.mads = 0

    def blocks(self, top: int, rows: range, left: int, right: int) -> None:
        """Those rows of blocks from row `top` on, from column `left` to `right`."""
        s, how = self.s, self.how
        both = [(MTE2, MTE1, how.buffers, 0), (MTE2, MTE1, how.buffers, B_EVENT)]
        if self.whole:
            for owner, user, count, event in both:
                for i in range(count):
                    s.set(user, owner, event + i)
            s.lend(MTE1, M, how.buffers)
            if not how.unit_flag:
                s.lend(M, FIX)
        for row in rows:
            for column in range(left, right, how.n):
                self.block(top + row * how.m, column, min(how.n, right - column))
        if self.whole:
            if not how.unit_flag:
                s.collect(M, FIX)
            s.collect(MTE1, M, how.buffers)
            for owner, user, count, event in both:
                for i in range(count):
                    s.wait(user, owner, event + i)

    def bring(self, event: int, step: int, chunk: int, first: int, rows: int) -> None:
        """Chunk `chunk` along k of `rows` rows of A (event 0) or B to its buffer in L1."""
        s, how = self.s, self.how
        depth = how.size[2]
        if chunk * how.k * step >= depth:
            return
        slot = chunk % how.buffers
        base = self.b_l1 if event else 0
        place = base + slot * 2 * (how.n if event else how.m) * how.k * step
        if self.whole:
            s.wait(MTE1, MTE2, event + slot)
        at = chunk * how.k * step
        if event and how.b_by_rows:
            width = how.size[1]
            nd2nz(s, place, first + 2 * at * width, how.k * step, rows, width)
        else:
            nd2nz(s, place, first + 2 * at, rows, how.k * step, depth)
        if self.whole:
            s.set(MTE2, MTE1, event + slot)

    def block(self, top: int, column: int, n: int) -> None:
        """One block of C."""
        s, how = self.s, self.how
        depth = how.size[2]
        padded = n + -n % 16
        a = self.a + 2 * depth * top
        b = self.b + 2 * column * (1 if how.b_by_rows else depth)
        sides = ((B_EVENT, how.step_b, b, n), (0, how.step_a, a, how.m))
        ahead = how.buffers - 1
        flags = self.whole and not how.unit_flag
        if flags:
            s.wait(FIX, M)
        for event, step, first, rows in sides:
            for chunk in range(ahead):
                self.bring(event, step, chunk, first, rows)
        for count in range(depth // how.k):
            for event, step, first, rows in sides:
                if count % step == 0:
                    self.bring(event, step, count // step + ahead, first, rows)
            if self.whole:
                self.step(count, n, padded)
        if flags:
            s.flag(M, FIX)
        self.leave(top, column, n)
        if flags:
            s.set(FIX, M)

    def leave(self, top: int, column: int, n: int) -> None:
        """One block of C leaves L0C."""
        s, how = self.s, self.how
        sizes = {"n_size": n, "m_size": how.m, "dst_stride": how.size[1], "src_stride": how.m}
        place = self.c + how.itemsize * (how.size[1] * top + column)
        kind = "fixpipe.f322f16" if how.itemsize == 2 else "fixpipe.f32"
        flag = FLIP if how.unit_flag and self.whole else OFF
        s.emit(kind, dst=place, src=0, nz2nd=1, unit_flag=flag, **sizes)

    def step(self, count: int, n: int, padded: int) -> None:
        """Loads and multiplies block `count` along k."""
        s, how = self.s, self.how
        slot = self.mads % how.buffers
        self.mads += 1
        l0a, l0b = slot * 2 * how.m * how.k, slot * 2 * how.n * how.k
        s.wait(M, MTE1, slot)
        loads = (
            (l0a, 0, how.step_a, how.m, 0),
            (l0b, B_EVENT, how.step_b, padded, self.b_l1),
        )
        for dst, event, step, rows, base in loads:
            buffer = count // step % how.buffers
            size = how.n if event else how.m
            src = base + buffer * 2 * size * how.k * step + count % step * 2 * rows * how.k
            if count % step == 0:
                s.wait(MTE2, MTE1, event + buffer)
            fractals = rows * how.k // 256
            if event:
                s.emit("load_cbuf_to_cb.f16", dst=dst, src=src, src_stride=1, repeat=fractals)
            elif self.a_nz:
                s.emit("load_cbuf_to_ca.f16", dst=dst, src=src, src_stride=1, repeat=fractals)
            else:
                # Nz to Zz in one instruction: a row of pixels with k channels, windows of one.
                s.emit("set_fmatrix", l1_w=rows, l1_h=1)
                s.emit(
                    "img2colv2_cbuf_to_ca.f16",
                    dst=dst,
                    src=src,
                    k_extension=how.k,
                    m_extension=rows,
                    **PIXELS,
                )
            if count % step == step - 1:
                s.set(MTE1, MTE2, event + buffer)
        s.flag(MTE1, M, slot)
        mad = "mad_nz.f162f32" if self.a_nz else "mad.f162f32"
        flag = OFF
        if how.unit_flag:
            flag = FLIP if count + 1 == how.size[2] // how.k else KEEP
        sizes = {"m": how.m, "k": how.k, "n": n, "unit_flag": flag}
        s.emit(mad, c=0, a=l0a, b=l0b, init=int(count == 0), **sizes)
        s.set(M, MTE1, slot)


BLOCK = (128, 256, 64)
SPLIT = (4, 6, 2048, 1536)
HALVES = (4, 6, 1024, 1536)
LARGEST = Product(*SPLIT, *BLOCK, 8, 4)
IN_HALVES = Product(*HALVES, *BLOCK, 8, 4, 2)
BY_UNITS = replace(IN_HALVES, unit_flag=True)

PRODUCTS: list[tuple[str, Product, int, tuple[float, ...]]] = [
    (
        "C0, 1 core, 64 x 64 x 64",
        Product(1, 1, 8192, 8192, 64, 64, 64, turns=True),
        256,
        (141699, 162104, 582516, 34303, 759364),
    ),
    (
        "C1, 1 core, 128 x 256 x 64",
        Product(1, 1, 8192, 8192, *BLOCK, turns=True),
        512,
        (81477, 52004, 195613, 11314, 249467),
    ),
    (
        "C2, 24 cores, 2 x 12",
        Product(2, 12, 4096, 683, *BLOCK, turns=True),
        0,
        (3463, 2261, 10178, 875, 12541),
    ),
    ("C3, 24 cores, 4 x 6", Product(*SPLIT, *BLOCK, turns=True), 0, (3395, 2167, 8617, 489, 12284)),
    ("C4, large transfers", Product(*SPLIT, *BLOCK, 2, 4), 0, (3116, 2333, 4051, 45, 5040)),
    ("C5, larger ones", LARGEST, 0, (3352, 2750, 3779, 48, 4157)),
    ("C6, half of the rows at a time", IN_HALVES, 0, (3254, 2681, 3625, 47, 4088)),
    ("C7, constant tiling", IN_HALVES, 0, (3164, 2610, 3514, 46, 4053)),
    ("C8, unit flag", BY_UNITS, 0, (3076, 2534, 3436, 273, 4012)),
    ("basic API", LARGEST, 0, (3082, 2538, 3552, 160, 4121)),
    ("basic API, half of the rows at a time", IN_HALVES, 0, (3082, 2553, 3487, 162, 4082)),
]
"""Name, version, columns simulated, measured times of cube, MTE1, MTE2, fixpipe and the task."""

NAMES = ("cube", "MTE1", "MTE2", "fixpipe", "task")
TARGETS = (0.05, 0.05, 0.15, 0.15, 0.15)

FITTED = {
    "mte1.fixed_cycles": [(version, "MTE1") for version in ("C0", "C1", "C2")],
    "cube.latency_cycles": [(version, "cube") for version in ("C0", "C1", "C2", "C3")],
    "cube.occupancy_cycles": [(version, "cube") for version in ("C8", "basic API")],
    "mte2.nd2nz_fixed_cycles, nd2nz_row_cycles": [("C0", "MTE2"), ("C1", "MTE2")],
    "gm.same_line_percent": [("C3", "MTE2")],
    "fixpipe.port_bytes_per_cycle": [(version, "fixpipe") for version in ("C4", "C5", "C6", "C7")],
    "mte1.stall_bytes": [("C3", "MTE1"), ("C4", "MTE1"), ("C8", "MTE1"), ("C8", "MTE2")],
}
"""Keys of the machine file, and the rows that were in view when they were set."""


def mark(name: str, pipe: str) -> str:
    """Evidence of a row; see `Row`."""
    row = name.split(",")[0], pipe
    return evidence(", ".join(keys for keys, rows in FITTED.items() if row in rows))


CLOCK = (
    "clocks that slow down or differ. The cube has the same mads in C4 to C8 and the basic API; it "
    "takes 3,076 to 3,116 us in C4, C8 and the basic API, but 3,352, 3,254 and 3,164 in C5 to C7. "
    "There cube, MTE1 and MTE2 all are longer than in C8, by the same 9 to 10, 6 and 2 to 3 %, the "
    "task by 4, 2 and 1 %; with that taken off, cube and MTE1 are within 2 %. One clock is none: "
    "1,720 MHz, which is right for C5, makes the cube of C6 3, of C7 6 and of C8 9 % too long "
    "(below), and no publication says which load lowers it by how much"
)
FIXPIPE = (
    "what the fixpipe column holds besides writing: waits for sums. For each block it is 5.6 to "
    "5.8 steps along k long in C0, C1, C3 and both programs of the basic API, whose steps take "
    "620 to 1,849 cycles (8.9 in C2, whose rows of C are not aligned), so it begins when the "
    "scalar unit, which a full queue holds up, has issued it. Counted from then (below) C0, C1 and "
    "C3 are 8 to 15 % short; how far the scalar unit comes depends on the instructions of a step, "
    "which are not published, nor why C4 to C7 have the time of the bytes. In C8, which has the "
    "unit flag, fixpipe itself waits (9.8 steps on the board, 7.8 here), and the same is not known"
)
LACKS = {(name, pipe): CLOCK for name, *_ in PRODUCTS[5:8] for pipe in NAMES}
LACKS |= {(name, "fixpipe"): FIXPIPE for name, *_ in PRODUCTS}

PTO_SIZE = 3072
PTO_SHARES = (206.7, 79.0, 62.0, 90.9, 5.8)
"""Microseconds of the task; of it, per cent in which cube, MTE1, MTE2 and fixpipe work."""


def pto_product() -> Iterator[Row]:
    """PTO's manual kernel: f16 to f32, 4 x 6 cores, four steps of A and B in L1, two buffers."""
    size, share = (PTO_SIZE,) * 3, (PTO_SIZE // 4, PTO_SIZE // 6)
    times = product(Product(4, 6, *share, *BLOCK, 4, 4, size=size, itemsize=4), whole=True)
    group = f"PTO product of {PTO_SIZE}"
    task, *shares = PTO_SHARES
    measured = [share / 100 * task for share in shares]
    for pipe, real, found, target in zip(
        NAMES, [*measured, task], times.columns, TARGETS, strict=True
    ):
        key = evidence("mte1.overlap_cycles" if pipe == "MTE1" else "")
        yield Row(group, pipe, "us", real, found, target, evidence=key)


SMALL = (64, 64, 256)
TILING = {"size": (4096, 5120, 4096), "itemsize": 4, "b_by_rows": True}
UNALIGNED = Product(8, 3, 128, 1408, *BLOCK, 4, 4, size=(1024, 4095, 1024), b_by_rows=True)

TUNING: list[tuple[str, Product, dict[str, float]]] = [
    ("4 cores, 64 x 64 x 256", Product(2, 2, 2048, 2560, *SMALL, **TILING), {"task": 12045}),
    (
        "20 cores, 64 x 64 x 256",
        Product(4, 5, 1024, 1024, *SMALL, **TILING),
        {"task": 2532, "MTE2": 2452},
    ),
    ("128 x 256 x 64", Product(4, 5, 1024, 1024, *BLOCK, **TILING), {"MTE2": 808}),
    (
        "large transfers",
        Product(4, 5, 1024, 1024, *BLOCK, 4, 4, **TILING),
        {"MTE2": 591},
    ),
    ("24 cores, rows of B not aligned", UNALIGNED, {"MTE2": 130.8}),
]


def tuning(cases: Sequence[tuple[str, Product, dict[str, float]]] = TUNING) -> Iterator[Row]:
    """BP: 4096 x 5120 x 4096 on a part of 20 cores, and one whose rows are not aligned."""
    other = (
        "what a transfer to fractals costs on another part, of 20 cores: 2.0 cycles a row and no "
        "fixed part, not 2.54 and 40.5, put all five rows within 4 % at 1850 MHz, 1.9 do at 1800; "
        "C1 would be 16 % short with them (below). "
        "The three published times of MTE2 are as many equations for bytes, rows and the fixed "
        "part; they give 146 bytes a cycle, 2.08 cycles a row and -2. The first is the 153 of the "
        "vendor at 1770 MHz, so bytes pass as here, on a 910B3 of 1800 MHz, and rows do not. The "
        "distance of rows, 8 and 10 KB where V1 has 16, is not it: those of PTO's product are 6 KB "
        "apart and take 5 % less than here. Cores and clock alone are not either: 20 cores change "
        "nothing, and at 1800 MHz these rows would be 19 to 32 % above the measured ones, at 1500 "
        "(910B4) 42 to 58 %"
    )
    for name, how, measured in cases:
        times = product(how)
        found = {"task": times.task, "MTE2": times.mte2}
        for pipe, real in measured.items():
            key = evidence("mte2.nd2nz_block_cycles" if how is UNALIGNED else "")
            text = "" if how is UNALIGNED else other
            title = f"{name}: {pipe}"
            yield Row("V7 other products", title, "us", real, found[pipe], 0.15, text, key)


def products(
    versions: Sequence[tuple[str, Product, int, tuple[float, ...]]] = PRODUCTS,
) -> Iterator[Row]:
    """BP: a product made faster step by step."""
    known: dict[Product, PipeTimes] = {}
    for name, how, columns, measured in versions:
        if how not in known:
            known[how] = product(how, columns=columns)
        times = known[how]
        for pipe, real, found, target in zip(NAMES, measured, times.columns, TARGETS, strict=True):
            yield Row(
                "V1 product of 8192",
                f"{name}: {pipe}",
                "us",
                real,
                found,
                target,
                LACKS.get((name, pipe), ""),
                mark(name, pipe),
            )

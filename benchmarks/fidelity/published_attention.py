"""PTO's manual flash attention, one head of 128: a cube core and its two vector cores take 128
queries, all keys in tiles of 512, and hand scores, weights and partial results over in GM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hand_written import Stream
from published import (
    CUBE_CORES,
    FIX,
    MTE1,
    MTE2,
    MTE3,
    M,
    Row,
    V,
    device,
    evidence,
    head,
    nd2nz,
)

GROUP = "PTO attention"
MHZ = 1800
"""Of the 910B2 on which it was measured."""

HEAD, QUERIES, KEYS, TILE = 128, 128, 128, 512
"""Elements of a head, queries of a block, keys of a product and of a tile."""

PARTS = TILE // KEYS
"""Products of a tile; in so many slices a vector core takes its rows."""

AHEAD, SLOTS = 4, 8
"""Tiles of scores that are computed ahead, and slots of what is handed over."""

ROWS = QUERIES // 2
SLICE = ROWS // PARTS
SCORES, WEIGHTS, RESULTS, FREE = 0, 2, 4, 1
"""Flags between the cores: ready, and slots that are free again."""

OUT, TILES, LEVELS, TMP, HALVES = 0, (0x8000, 0x10000), 0x18000, 0x18800, (0x1A000, 0x1E000)
"""In UB: the result, two tiles, a few numbers a row, a tile's maxima, weights in f16."""


class _Memory:
    """Addresses in GM of a block."""

    def __init__(self, queries: int, keys: int, block: int) -> None:
        slot = block % CUBE_CORES
        base = 512
        self.q = base + block * QUERIES * HEAD * 2
        self.k = base + queries * HEAD * 2
        self.v = self.k + keys * HEAD * 2
        shared = self.v + keys * HEAD * 2
        sizes = (QUERIES * TILE * 4, QUERIES * TILE * 2, QUERIES * HEAD * 4)
        firsts = [shared]
        for size in sizes:
            firsts.append(firsts[-1] + CUBE_CORES * SLOTS * size)
        self.scores, self.weights, self.results = (
            [first + (slot * SLOTS + i) * size for i in range(SLOTS)]
            for first, size in zip(firsts[:3], sizes, strict=True)
        )
        self.out = firsts[3] + block * QUERIES * HEAD * 4
        self.end = firsts[3] + queries * HEAD * 4


class _Cube:
    """The cube core of a block."""

    def __init__(self, s: Stream, memory: _Memory, tiles: int) -> None:
        self.s, self.memory, self.tiles = s, memory, tiles
        self.loads = [0, 0]
        self.l0 = self.accumulator = 0

    def whole(self) -> None:
        s = self.s
        s.lend(MTE1, M, 2)
        s.lend(MTE2, MTE1, 4)
        s.lend(M, FIX, 2)
        for tile in range(min(AHEAD, self.tiles)):
            for part in range(PARTS):
                self.accumulator ^= 1
                self.scores(tile, part)
        for tile in range(self.tiles):
            for part in range(PARTS):
                if tile + AHEAD < self.tiles:
                    self.scores(tile + AHEAD, part)
                self.results(tile, part)
        s.collect(MTE1, M, 2)
        s.collect(MTE2, MTE1, 4)
        s.collect(M, FIX, 2)

    def product(self, a: int, b: int, event: int, first: bool, accumulator: int) -> None:
        s = self.s
        s.flag(MTE2, MTE1)
        s.wait(M, MTE1, self.l0)
        place = self.l0 * 0x8000
        s.emit("load_cbuf_to_ca.f16", dst=place, src=a, src_stride=1, repeat=64)
        s.emit("load_cbuf_to_cb.f16", dst=place, src=b, src_stride=1, repeat=64)
        s.set(MTE1, MTE2, event)
        s.flag(MTE1, M, self.l0)
        if first:
            s.wait(FIX, M, accumulator)
        sizes = {"m": QUERIES, "k": HEAD, "n": KEYS}
        c = accumulator * 0x10000
        s.emit("mad.f162f32", c=c, a=place, b=place, init=int(first), **sizes)
        s.set(M, MTE1, self.l0)
        self.l0 ^= 1

    def leave(self, address: int, flag: int, last: bool, accumulator: int) -> None:
        """128 x 128 f32 from L0C."""
        s = self.s
        s.flag(M, FIX)
        sizes = {"n_size": 128, "m_size": 128, "dst_stride": 128, "src_stride": 128}
        s.emit("fixpipe.f32", dst=address, src=accumulator * 0x10000, nz2nd=1, **sizes)
        s.set(FIX, M, accumulator)
        if last:
            s.emit("ffts_cross_core_sync", pipe=FIX, mode=2, flag=flag)

    def scores(self, tile: int, part: int) -> None:
        """Q K for 128 keys."""
        s, memory = self.s, self.memory
        if part == 0 and tile >= SLOTS:
            s.emit("wait_flag_dev", flag=FREE)
        event = self.loads[0] % 2
        self.loads[0] += 1
        k = 0x8000 + event * 0x8000
        s.wait(MTE1, MTE2, event)
        if tile == part == 0:
            nd2nz(s, 0, memory.q, QUERIES, HEAD, HEAD)
        nd2nz(s, k, memory.k + (tile * TILE + part * KEYS) * HEAD * 2, KEYS, HEAD, HEAD)
        self.product(0, k, event, True, self.accumulator)
        place = memory.scores[tile % SLOTS] + part * QUERIES * KEYS * 4
        self.leave(place, SCORES, part == PARTS - 1, self.accumulator)

    def results(self, tile: int, part: int) -> None:
        """Weights by V for 128 keys; a tile's are summed up in L0C."""
        s, memory = self.s, self.memory
        if part == 0:
            s.emit("wait_flag_dev", flag=WEIGHTS)
        event = self.loads[1] % 2
        self.loads[1] += 1
        p, v = 0x18000 + event * 0x8000, 0x28000 + event * 0x8000
        s.wait(MTE1, MTE2, 2 + event)
        nd2nz(s, v, memory.v + (tile * TILE + part * KEYS) * HEAD * 2, KEYS, HEAD, HEAD)
        nd2nz(s, p, memory.weights[tile % SLOTS] + part * QUERIES * KEYS * 2, QUERIES, KEYS, KEYS)
        self.product(p, v, 2 + event, part == 0, 1 - self.accumulator)
        if part == PARTS - 1:
            self.leave(memory.results[tile % SLOTS], RESULTS, True, 1 - self.accumulator)


class _Vector:
    """A vector core of a block."""

    def __init__(self, s: Stream, memory: _Memory, tiles: int, half: int) -> None:
        self.s, self.memory, self.tiles, self.half = s, memory, tiles, half
        self.turn = 0

    def whole(self) -> None:
        s = self.s
        s.lend(MTE2, V, 2)
        s.lend(V, MTE3, 2)
        for tile in range(min(AHEAD, self.tiles)):
            for part in range(PARTS):
                self.weights(tile, part)
        for tile in range(self.tiles):
            if tile + AHEAD < self.tiles:
                for part in range(PARTS):
                    self.weights(tile + AHEAD, part)
            self.results(tile)
        s.collect(MTE2, V, 2)
        s.collect(V, MTE3, 2)

    def of(self, name: str, repeat: int, dst: int, *sources: int, **fields: int) -> None:
        """A vector instruction on rows of 64 numbers one after the other."""
        names = ("src",) if len(sources) == 1 else ("src0", "src1")
        places = dict(zip(names, sources, strict=True))
        strides = dict.fromkeys((f"{n}_rep_stride" for n in ("dst", *names)), 8)
        self.s.emit(name, dst=dst, repeat=repeat, **places, **{**strides, **fields})

    def barrier(self) -> None:
        self.s.emit("pipe_barrier", pipe=V)

    def of_rows(self, name: str, dst: int, src: int) -> None:
        """Sums or maxima of 16 rows of 512, as PTO has them for this size."""
        for repeat, to, at in ((128, TMP, src), (16, TMP, TMP), (2, dst, TMP)):
            self.of(name, repeat, to, at, dst_rep_stride=1)
            self.barrier()

    def by_rows(self, name: str, tile: int, rows: int, columns: int, numbers: int) -> None:
        """Each row of a tile with its number."""
        self.s.emit(
            "vbrcb.b32", dst=TMP, src=numbers, repeat=rows // 8, dst_blk_stride=1, dst_rep_stride=8
        )
        self.barrier()
        row = columns // 8
        for column in range(columns // 64):
            place = tile + 256 * column
            strides = {"dst_rep_stride": row, "src0_rep_stride": row}
            one = {"src1_blk_stride": 0, "src1_rep_stride": 1}
            self.of(name, rows, place, place, TMP, **strides, **one)

    def weights(self, tile: int, part: int) -> None:
        """16 rows of a tile: their maxima, exponentials and sums."""
        s, memory, turn = self.s, self.memory, self.turn % 2
        self.turn += 1
        x, half = TILES[turn], HALVES[turn]
        rows = (self.half * ROWS + part * SLICE) * KEYS
        s.wait(V, MTE2, turn)
        if part == 0:
            s.emit("wait_flag_dev", flag=SCORES)
        for i in range(PARTS):
            at = memory.scores[tile % SLOTS] + (i * QUERIES * KEYS + rows) * 4
            burst = {"n_burst": SLICE, "len_burst": KEYS // 8, "dst_gap": (TILE - KEYS) // 8}
            s.emit("copy_gm_to_ubuf", dst=x + i * KEYS * 4, src=at, **burst)
        if part == PARTS - 1 and tile + SLOTS < self.tiles:
            s.emit("ffts_cross_core_sync", pipe=MTE2, mode=2, flag=FREE)
        s.flag(MTE2, V)
        s.wait(MTE3, V, turn)
        most, least, total, factor = (LEVELS + 0x100 * i for i in range(4))
        self.of_rows("vcgmax.f32", most, x)
        if tile:
            for name, sources in (("vmax", (most, least)), ("vsub", (least, most))):
                self.of(f"{name}.f32", 1, factor, *sources)
                self.barrier()
            self.of("vmuls.f32", 1, least, most)
            self.barrier()
        self.by_rows("vsub.f32", x, SLICE, TILE, most)
        repeats = SLICE * TILE // 64
        if tile:
            self.of("vmuls.f32", 1, factor, factor)
        self.of("vmuls.f32", repeats, x, x)
        if tile:
            self.of("vexp.f32", 1, factor, factor)
        self.of("vexp.f32", repeats, x, x)
        self.of("vconv_f322f16", repeats, half, x, dst_rep_stride=4)
        self.barrier()
        if tile:
            self.of("vmul.f32", 1, total, total, factor)
        self.of_rows("vcgadd.f32", least, x)
        if tile:
            self.of("vadd.f32", 1, total, total, least)
        s.set(V, MTE2, turn)
        s.flag(V, MTE3)
        for i in range(PARTS):
            to = memory.weights[tile % SLOTS] + (i * QUERIES * KEYS + rows) * 2
            burst = {"n_burst": SLICE, "len_burst": KEYS // 16, "src_gap": (TILE - KEYS) // 16}
            s.emit("copy_ubuf_to_gm", dst=to, src=half + i * KEYS * 2, **burst)
        if part == PARTS - 1:
            s.emit("ffts_cross_core_sync", pipe=MTE3, mode=2, flag=WEIGHTS)
        s.set(MTE3, V, turn)

    def results(self, tile: int) -> None:
        """What a tile adds to the result, scaled down before."""
        s, memory, turn = self.s, self.memory, self.turn % 2
        self.turn += 1
        size = ROWS * HEAD * 4
        s.wait(V, MTE2, turn)
        s.emit("wait_flag_dev", flag=RESULTS)
        at = memory.results[tile % SLOTS] + self.half * size
        place = TILES[turn] if tile else OUT
        s.emit("copy_gm_to_ubuf", dst=place, src=at, n_burst=1, len_burst=size // 32)
        s.flag(MTE2, V)
        if tile:
            self.by_rows("vmul.f32", OUT, ROWS, HEAD, LEVELS)
            self.of("vadd.f32", size // 256, OUT, OUT, place)
        last = tile == self.tiles - 1
        if last:
            self.by_rows("vdiv.f32", OUT, ROWS, HEAD, LEVELS)
        s.set(V, MTE2, turn)
        if last:
            s.flag(V, MTE3)
            to = memory.out + self.half * size
            s.emit("copy_ubuf_to_gm", dst=to, src=OUT, n_burst=1, len_burst=size // 32)


def attention(queries: int, keys: int) -> float:
    """Microseconds of so many queries and keys; Q, K and V are in the L2, as the host puts them."""
    target = device(_Memory(queries, keys, 0).end)

    def cube(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream = Stream(core)
        _Cube(stream, _Memory(queries, keys, block), keys // TILE).whole()
        stream.flush()

    def vector(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream = Stream(core)
        memory = _Memory(queries, keys, block)
        _Vector(stream, memory, keys // TILE, core.sub_block).whole()
        stream.flush()

    def fetch(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream, size = Stream(core), (queries + 2 * keys) * HEAD * 2 // blocks
        for at in range(0, size, 0x8000):
            source = 512 + block * size + at
            stream.emit("copy_gm_to_ubuf", dst=0, src=source, n_burst=1, len_burst=0x400)
        stream.flush()

    target.launch("fetched", {"AIV": fetch}, [], CUBE_CORES)
    cores = queries // QUERIES
    profile = target.launch("measured", {"AIC": cube, "AIV": vector}, [], cores)
    return profile.cycles / MHZ + head(cores)


LENGTHS = ((1024, 20.96), (2048, 32.46), (4096, 88.9), (8192, 292.6))
"""Queries and keys, and microseconds."""

FITTED = (4096, 8192)
"""Those that were in view when the L2 got shares of its own for reads and writes."""

MISSING = (
    "what the same kernel takes from one publication to the next: 1,024 queries and keys are 20.96 "
    "us here and 19.44 in the grid below, 2,048 32.46 and 36.06. At 4,096 the second round has 8 "
    "blocks on 24 cores; when those begin is not published, nor are the tiles"
)


def pto_attention(lengths: Sequence[tuple[int, float]] = LENGTHS) -> Iterator[Row]:
    """PTO: f16, one head of 128, no mask."""
    for keys, measured in lengths:
        name = f"{keys} queries and keys: task"
        key = evidence("l2.separate_writes" if keys in FITTED else "")
        yield Row(GROUP, name, "us", measured, attention(keys, keys), 0.15, MISSING, key)


GRID = {
    128: (19.200, 23.420, 38.317, 68.778),
    512: (18.603, 24.787, 41.475, 74.903),
    1024: (19.439, 26.221, 43.127, 76.855),
    2048: (23.424, 36.055, 59.690, 107.780),
}
"""Of the published grid, measured with an aarch64 host, by queries: microseconds at `GRID_KEYS`.
Which queries was chosen before one was simulated; 256, and an x86-64 host, are kept aside."""

IN_STEP = (
    "a part of what cores cost each other that read the same keys and values in step. From 4,096 "
    "to 8,192 keys the board takes 0.95 us for 128 of them on 1 core, 1.04 on 4, 1.05 on 8 and "
    "1.50 on 16; here 0.95 on 1 to 4, 1.02 on 8 and 1.16 on 16: requests for one line pass one "
    "after the other at the rate that V5 has. At 1.4 times the time the four rows of 16 cores are "
    "within 9 %, but V5 takes 40 % more than measured (below): so it is no other rate. "
    "Bandwidth is not it: 24 cores that have several blocks each, and so drift apart, take 1.16 "
    "(32,768 queries, the publication of the group before)"
)

GRID_KEYS = (1024, 2048, 4096, 8192)
GRID_GROUP = "PTO attention, grid"


def grid(cases: Mapping[int, Sequence[float]] = GRID) -> Iterator[Row]:
    """PTO: the same kernel by number of cores, each of which has 128 queries, and of keys."""
    for queries, times in cases.items():
        for keys, measured in zip(GRID_KEYS, times, strict=False):
            name = f"{queries} queries, {keys} keys: task"
            time = attention(queries, keys)
            yield Row(GRID_GROUP, name, "us", measured, time, 0.15, IN_STEP)

"""catlass, its guide to tuning: products in two shapes of tiles, or in two orders of blocks
(docs/hardware.md d); and msKL, which tunes catlass: one product in 12 and in 15 shapes.

On cards of 20 and of 24 cube cores. The program is that of the public templates: blocks of C in
turn to the cores, k in tiles that a transfer brings to one of two buffers in L1, and parts of those
that take turns in L0A and L0B.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hand_written import Stream, run
from published import (
    FIX,
    INDEPENDENT,
    MACHINE,
    MTE1,
    MTE2,
    M,
    Row,
    device,
    head,
    microseconds,
    nd2nz,
)
from published_products import PIXELS
from published_split import MACHINE_B3

from davinci.machine import Machine
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

GROUP = "catlass products by tiles"
B_EVENT = 2
"""Events of the buffers of B in L1; those of A are before them."""


@dataclass(frozen=True)
class Tiles:
    """A product by a template.

    Attributes:
        size: rows, columns and depth.
        tile: rows, columns and elements of k of a block in L1.
        k: elements of k in L0A and L0B.
        b: how B lies: "columns" with k along its rows, "rows" with n along its rows, "fractals" as
            zN.
        itemsize: bytes of an element of A, B and C.
        machine: that runs it.
        swizzle: so many blocks along the rows, or along the columns if `across`, are done before
            the others of their columns.
        all_cores: whether cores are launched that have no block.
    """

    size: tuple[int, int, int]
    tile: tuple[int, int, int]
    k: int
    b: str = "columns"
    itemsize: int = 2
    machine: Machine = MACHINE_B3
    swizzle: int = 3
    across: bool = True
    all_cores: bool = False

    @property
    def launched(self) -> int:
        """Cores that the task has."""
        cores = self.machine.cores
        return cores if self.all_cores else min(cores, len(self.corners()))

    @property
    def places(self) -> tuple[int, int, int, int]:
        """In global memory: A, B, C, the end."""
        height, width, depth = self.size
        b = 512 + self.itemsize * height * depth
        c = b + self.itemsize * (width + -width % SIDE) * depth
        return 512, b, c, c + self.itemsize * height * width

    def corners(self) -> list[tuple[int, int]]:
        """First row and column of each block of C, in the order in which cores take them."""
        (height, width, _), (m, n, _) = self.size, self.tile
        down, across = ceil_div(height, m), ceil_div(width, n)
        outer, inner = (across, down) if self.across else (down, across)
        found = []
        for task in range(down * across):
            band, place = divmod(task, self.swizzle * inner)
            wide = min(self.swizzle, outer - band * self.swizzle)
            along = place // wide
            one, other = (
                band * self.swizzle + place % wide,
                inner - along - 1 if band % 2 else along,
            )
            row, column = (other, one) if self.across else (one, other)
            found.append((row * m, column * n))
        return found


class Core:
    """The stream of one core."""

    def __init__(self, s: Stream, how: Tiles) -> None:
        self.s, self.how = s, how
        self.brought = self.mads = 0
        m, _, k = how.tile
        self.b_l1 = 2 * how.itemsize * (m + -m % SIDE) * k

    def blocks(self, first: int) -> None:
        """Every block of the core, whose first one has that number."""
        s = self.s
        for event in (0, B_EVENT):
            for slot in range(2):
                s.set(MTE1, MTE2, event + slot)
        s.lend(MTE1, M, 2)
        s.lend(M, FIX)
        for corner in self.how.corners()[first :: self.how.machine.cores]:
            self.block(*corner)
        s.collect(M, FIX)
        s.collect(MTE1, M, 2)
        for event in (0, B_EVENT):
            for slot in range(2):
                s.wait(MTE1, MTE2, event + slot)

    def block(self, row: int, column: int) -> None:
        """One block of C: a tile along k is brought while the one before is multiplied."""
        s, how = self.s, self.how
        (height, width, depth), (m, n, k) = how.size, how.tile
        rows, columns = min(m, height - row), min(n, width - column)
        steps = ceil_div(depth, k)
        self.bring(row, column, rows, columns, 0)
        for step in range(steps):
            if step + 1 < steps:
                self.bring(row, column, rows, columns, step + 1)
            self.multiply(rows, columns, min(k, depth - step * k), step == 0, step == steps - 1)
        kind = "fixpipe.f322f16" if how.itemsize == 2 else "fixpipe.f32"
        place = how.places[2] + how.itemsize * (width * row + column)
        padded = rows + -rows % SIDE
        sizes = {"n_size": columns, "m_size": rows, "dst_stride": width, "src_stride": padded}
        s.flag(M, FIX)
        s.emit(kind, dst=place, src=0, nz2nd=1, **sizes)
        s.set(FIX, M)

    def bring(self, row: int, column: int, rows: int, columns: int, step: int) -> None:
        """A tile of A and one of B to the buffers in L1 whose turn it is."""
        s, how = self.s, self.how
        (_, width, depth), (m, n, k) = how.size, how.tile
        size, slot = how.itemsize, self.brought % 2
        self.brought += 1
        at, deep = step * k, min(k, depth - step * k)
        words = f"b{8 * size}"
        a, b, *_ = how.places
        s.wait(MTE1, MTE2, slot)
        place = slot * size * (m + -m % SIDE) * k
        nd2nz(s, place, a + size * (row * depth + at), rows, deep, depth, words)
        s.set(MTE2, MTE1, slot)
        s.wait(MTE1, MTE2, B_EVENT + slot)
        place = self.b_l1 + slot * size * n * k
        if how.b == "columns":
            nd2nz(s, place, b + size * (column * depth + at), columns, deep, depth, words)
        elif how.b == "rows":
            nd2nz(s, place, b + size * (at * width + column), deep, columns, width, words)
        else:
            s.emit(
                "copy_gm_to_cbuf",
                dst=place,
                src=b + BLOCK_BYTES * (column // SIDE * depth + at),
                n_burst=ceil_div(columns, SIDE),
                len_burst=deep,
                src_gap=depth - deep,
            )
        s.set(MTE2, MTE1, B_EVENT + slot)

    def multiply(self, rows: int, columns: int, deep: int, first: bool, last: bool) -> None:
        """The tile brought last but one, or the last one of a block, part after part."""
        s, how = self.s, self.how
        m, n, k = how.tile
        size = how.itemsize
        slot = (self.brought - (1 if last else 2)) % 2
        padded, wide = rows + -rows % SIDE, columns + -columns % SIDE
        s.wait(MTE2, MTE1, slot)
        s.wait(MTE2, MTE1, B_EVENT + slot)
        for at in range(0, deep, how.k):
            part = min(how.k, deep - at)
            turn = self.mads % 2
            self.mads += 1
            s.wait(M, MTE1, turn)
            half = turn * how.machine.buffers.L0A.bytes // 2
            source = slot * size * (m + -m % SIDE) * k + at * size * padded
            if size == 2:
                # Nz to Zz in one instruction: a row of pixels with k channels, windows of one.
                s.emit("set_fmatrix", l1_w=padded, l1_h=1)
                sizes = {"k_extension": part, "m_extension": padded}
                s.emit("img2colv2_cbuf_to_ca.f16", dst=half, src=source, **sizes, **PIXELS)
            else:
                for line in range(padded // SIDE):
                    fractals = part * size // BLOCK_BYTES
                    place = half + line * fractals * FRACTAL_BYTES
                    at_line = source + line * FRACTAL_BYTES
                    sizes = {"src_stride": padded // SIDE, "repeat": fractals}
                    s.emit("load_cbuf_to_ca.f32", dst=place, src=at_line, **sizes)
            source = self.b_l1 + slot * size * n * k + at * size * wide
            fractals = wide * part * size // FRACTAL_BYTES
            kind = f"load_cbuf_to_cb.f{8 * size}"
            s.emit(kind, dst=half, src=source, src_stride=1, repeat=fractals)
            s.flag(MTE1, M, turn)
            begins = first and at == 0
            if begins:
                s.wait(FIX, M)
            kind = f"mad.f{8 * size}2f32"
            s.emit(kind, c=0, a=half, b=half, m=padded, k=part, n=wide, init=int(begins))
            s.set(M, MTE1, turn)
        s.set(MTE1, MTE2, slot)
        s.set(MTE1, MTE2, B_EVENT + slot)


def simulated(how: Tiles) -> float:
    """Microseconds of the task."""

    def body(s: Stream, block: int) -> None:
        Core(s, how).blocks(block)

    profile = run(device(how.places[3] + (1 << 20), how.machine), body, "AIC", how.launched)
    return microseconds(profile.cycles, how.machine) + head(how.launched, how.machine)


WIDE, TALL = (128, 256, 256), (256, 128, 256)
BALANCED, SHALLOW = (32, 320, 128), 32
FLOATS = Tiles((1, 768, 5120), (128, 128, 256), 64, itemsize=4, machine=MACHINE)
IN_FRACTALS = Tiles((20, 6144, 16384), WIDE, 64, b="fractals")
IN_ROWS = replace(IN_FRACTALS, b="rows")
IN_ORDER = Tiles((160, 6144, 2048), WIDE, 64, b="fractals")

SMALL = (256, 512, 1024)
"""The product of the guide to msKL, which tunes the templates (chapters on kernels and on
programs): B in rows, all cores launched, 20 as its script has it."""


def of_small(
    measured: Sequence[tuple[tuple[int, int, int], int, float]],
) -> list[tuple[str, Tiles, float]]:
    """Its versions: blocks in L1, elements of k in L0A and L0B, microseconds."""
    how = Tiles(SMALL, WIDE, 64, b="rows", all_cores=True)
    return [
        (f"{m} x {n} x {k} by {part}", replace(how, tile=(m, n, k), k=part), time)
        for (m, n, k), part, time in measured
    ]


TILES: dict[str, list[tuple[str, Tiles, float]]] = {
    "1024 x 576 x 6144 f16": [
        ("128 x 256 x 256", Tiles((1024, 576, 6144), WIDE, 64), 72.5),
        ("256 x 128 x 256", Tiles((1024, 576, 6144), TALL, 64), 48.6),
    ],
    "20 x 6144 x 16384 f16, B in fractals": [
        ("128 x 256 x 256", IN_FRACTALS, 181.4),
        ("32 x 320 x 128", replace(IN_FRACTALS, tile=BALANCED, k=SHALLOW), 139.6),
    ],
    "20 x 6144 x 16384 f16, B in rows": [
        ("128 x 256 x 256", IN_ROWS, 238.8),
        ("32 x 320 x 128", replace(IN_ROWS, tile=BALANCED, k=SHALLOW), 252.4),
    ],
    "1 x 768 x 5120 f32": [
        ("128 x 128 x 256", FLOATS, 36.3),
        ("16 x 32 x 1024", replace(FLOATS, tile=(16, 32, 1024), k=256), 15.5),
    ],
    "160 x 6144 x 2048 f16, B in fractals": [
        ("three blocks across", IN_ORDER, 40.6),
        ("four blocks across", replace(IN_ORDER, swizzle=4), 35.3),
    ],
    "256 x 512 x 1024 f16": of_small(
        [
            (WIDE, 64, 22.562),
            ((128, 256, 128), 64, 22.109),
            ((128, 128, 256), 64, 17.778),
            ((64, 128, 128), 128, 15.378),
            ((64, 128, 256), 128, 14.982),
            ((64, 128, 512), 128, 15.671),
            ((64, 64, 128), 128, 19.592),
            ((64, 64, 256), 128, 18.340),
            ((64, 64, 512), 128, 18.541),
            ((128, 128, 128), 128, 20.652),
            ((128, 128, 256), 128, 17.728),
            ((128, 128, 512), 128, 17.637),
        ]
    ),
    "256 x 512 x 1024 f16, timed by its host": of_small(
        [
            (WIDE, 64, 64.081),
            (TALL, 64, 68.041),
            ((128, 128, 256), 64, 60.701),
            ((128, 128, 512), 64, 61.121),
            ((64, 256, 128), 64, 62.361),
            ((64, 256, 256), 64, 60.661),
            ((64, 128, 256), 64, 58.261),
            ((128, 128, 256), 128, 62.381),
            ((128, 128, 512), 128, 62.621),
            ((64, 128, 256), 128, 57.501),
            ((64, 128, 512), 128, 59.281),
            ((128, 64, 512), 128, 65.041),
            ((64, 64, 256), 256, 63.561),
            ((64, 64, 512), 256, 65.121),
            ((64, 64, 1024), 256, 65.081),
        ]
    ),
}
"""Products; of each, names of versions, the versions, and measured microseconds."""


def tiles(problem: str) -> Iterator[Row]:
    """The versions of a product."""
    for name, how, measured in TILES[problem]:
        time = simulated(how)
        yield Row(f"{GROUP}, {problem}", name, "us", measured, time, 0.15, "", INDEPENDENT)

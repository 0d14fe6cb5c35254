"""A row of C that the cube adds to sums: columns beside B, times rows of ones beside A.

    f32     GM [n] -> UB -> columns (`cube_columns`) -> L1 -> L0B [1][n / 16]
    digits  GM [t][n / 16][16][32] -> L1 -> L0B, times rows of what digits count

for each tile, before it leaves.
"""

from __future__ import annotations

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.operators.quantize import DIGITS, weights_of_digits
from davinci.passes.ascend_to_cce.products.cube_columns import PAIRS, ColumnBuffers
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, RowRing
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import IndexLike, alloc, reshaped, restride, subview, viewed
from davinci.schedule.products.events import Add, Leave
from davinci.schedule.products.product import ProductSchedule
from davinci.units import FRACTAL_SIDE as SIDE


class RowColumn:
    """Buffers of the row, and of ones in L0A."""

    def __init__(self, schedule: ProductSchedule) -> None:
        f16, size = ir.F16Type.get(), schedule.tile.n * SIDE
        self.raw = RowRing(2, size * 4)
        self.other = alloc([size], ir.F32Type.get(), "UB")
        self.columns = ColumnBuffers(size)
        self.l1 = [alloc([size * SIDE], f16, "L1") for _ in range(2)]
        self.l0b = alloc([size * SIDE], f16, "L0B")
        self.ones = self._ones(schedule.tile.m)

    @staticmethod
    def _ones(rows: int) -> ir.Value:
        f16 = ir.F16Type.get()
        ub, l1 = (alloc([FRACTAL], f16, memory) for memory in ("UB", "L1"))
        l0a: ir.Value = alloc([rows * FRACTAL], f16, "L0A")
        cce.vector_dup(scalar("f16", 1.0), ub)
        cce.copy_l1(ub, l1)
        shape = [rows, 1, SIDE, SIDE]
        cce.load2d(restride(l1, shape, [0, FRACTAL, SIDE, 1]), reshaped(l0a, shape))
        return l0a

    def came(self, event: Leave) -> ir.Value:
        """Where a tile's part of the row comes to."""
        return self.raw.at(event.turn, event.tile.n.size * SIDE, ir.F32Type.get())

    def ready(self, event: Leave) -> None:
        """What came to L1, as columns."""
        came, count = self.came(event), event.tile.n.size * SIDE
        cce.vmuls(came, scalar("f32", 1 / PAIRS), came)
        self.columns.split(came, self.other, count)
        size = [count * SIDE]
        made, there = self.columns.fractals, self.l1[event.turn]
        cce.copy_l1(restride(made, size, [1]), restride(there, size, [1]))

    def add(self, event: Add, sums: ir.Value, false: ir.Value) -> None:
        """Adds it to a tile in L0C."""
        n, m = event.tile.n.size, event.tile.m.size
        b = reshaped(self.l0b, [1, n, SIDE, SIDE])
        cce.load2d(reshaped(self.l1[event.turn], [1, n, SIDE, SIDE]), b)
        ones = reshaped(self.ones, [m, 1, SIDE, SIDE])
        cce.mad(ones, b, reshaped(sums, [n, m, SIDE, SIDE]), false)


class ByteColumn:
    """Buffers of a row of digits, and of what they count in L0A.

    Args:
        blocks: of 32 digits.
        gm: the digits, [blocks][n / 16][16][32].
    """

    def __init__(self, schedule: ProductSchedule, blocks: int, gm: ir.Value) -> None:
        self.blocks, self.gm = blocks, gm
        size = blocks * schedule.tile.n * SIDE * DIGITS
        byte = ir.IntegerType.get_signless(8)
        self.l1 = [alloc([size], byte, "L1") for _ in range(2)]
        self.l0b = alloc([size], byte, "L0B")
        self.weights = self._weights(schedule.tile.m, blocks)

    @staticmethod
    def _weights(rows: int, blocks: int) -> ir.Value:
        """[rows][blocks][16][32] in L0A, each row what digits count."""
        byte, word = (ir.IntegerType.get_signless(bits) for bits in (8, 16))
        size = SIDE * DIGITS
        ub, l1 = (alloc([size], byte, memory) for memory in ("UB", "L1"))
        l0a: ir.Value = alloc([rows * blocks * size], byte, "L0A")
        words = viewed(ub, [size // 2], word)
        # Two bytes are filled at once, which all digits but the first of a row are alike for.
        low, high, *_, alike = (int(x) for x in weights_of_digits(DIGITS))
        cce.vector_dup(scalar("s16", alike | alike << 8), words)
        first = restride(words, [SIDE, SIDE], [SIDE, 1])
        cce.vector_dup(scalar("s16", low | high << 8), first, first_lane=0, lanes=1)
        cce.copy_l1(ub, l1)
        shape = [rows, blocks, SIDE, DIGITS]
        cce.load2d(restride(l1, shape, [0, 0, DIGITS, 1]), reshaped(l0a, shape))
        return l0a

    def bring(self, event: Leave, column: IndexLike) -> None:
        """A tile's digits to L1; `column`: its first, in fractals."""
        n = event.tile.n.size
        shape = [self.blocks, n, SIDE, DIGITS]
        here = subview(self.gm, [0, column, 0, 0], shape)
        cce.copy(here, reshaped(self.l1[event.turn], shape))

    def add(self, event: Add, sums: ir.Value, false: ir.Value) -> None:
        """Adds the row to a tile in L0C."""
        n, m = event.tile.n.size, event.tile.m.size
        shape = [self.blocks, n, SIDE, DIGITS]
        b = reshaped(self.l0b, shape)
        cce.load2d(reshaped(self.l1[event.turn], shape), b)
        weights = reshaped(self.weights, [m, self.blocks, SIDE, DIGITS])
        cce.mad(weights, b, reshaped(sums, [n, m, SIDE, SIDE]), false)

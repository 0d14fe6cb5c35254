"""Masks with a number for each key as columns beside K, which the cube adds to scores of f32.

row of f32 in GM -> UB    added up, no less than `attention.HIDDEN`
                 -> L1    as columns of K (`cube_columns`)

A mask that hides all keys by a number in
which scores of f32 are lost makes all weights equal, so Q is zero then: it is multiplied by
max(0, 1 - the least of max(0, -mask / `attention.LOST`)).
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.operators.vector_program import Value
from davinci.passes.ascend_to_cce.moves.matrix_rows import MatrixPiece, load_rows
from davinci.passes.ascend_to_cce.products.cube_columns import PAIRS, ColumnBuffers
from davinci.passes.ascend_to_cce.products.rows import FRACTAL, fill_zeros
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import IndexLike, alloc, reshaped, restride
from davinci.schedule.attention.attention import (
    HIDDEN,
    LOST,
    STAGES,
    Attention,
    AttentionSchedule,
)
from davinci.schedule.attention.blocks import LOWEST
from davinci.schedule.attention.cost import column_slots
from davinci.schedule.attention.fold import kept
from davinci.schedule.attention.lines import LinesOfUnits
from davinci.schedule.products.events import FractalSpan
from davinci.units import BLOCK_BYTES, REPEAT_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

LANES = BLOCK_BYTES // 4
"""Elements of f32 in a block."""

MOST = REPEAT_BYTES // 2
"""Elements of f16 of which one instruction finds the least."""


class KeyColumns:
    """Buffers of columns, and the factor of Q.

    Args:
        gm: of each extra of the chain, [1][rows][keys].
    """

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        gm: Sequence[ir.Value],
        machine: Machine,
    ) -> None:
        self.attention, self.machine = attention, machine
        self.gm = dict(zip((x.value for x in attention.chain.extras), gm, strict=True))
        self.size = size = schedule.block * SIDE
        f16, f32 = ir.F16Type.get(), ir.F32Type.get()
        self.total, self.other = (alloc([size], f32, "UB") for _ in range(2))
        self.found = alloc([SIDE], f16, "UB")
        fill_zeros(self.found)
        self.parts = alloc([2 * size], f16, "UB")
        self.columns = ColumnBuffers(size)
        self.least, self.most = (alloc([LANES], f32, "UB") for _ in range(2))
        for buffer, number in ((self.least, HIDDEN / PAIRS), (self.most, -HIDDEN / PAIRS)):
            cce.vector_dup(scalar("f32", number), buffer)
        slots = column_slots(attention)
        self.l1 = [alloc([size * SIDE], f16, "L1") for _ in range(slots)]
        self.factors = [alloc([SIDE * SIDE], f16, "UB") for _ in range(slots)]
        self.l0a = [alloc([schedule.tile * FRACTAL], f16, "L0A") for _ in range(STAGES)]
        self.slot, self.loads = 0, 0
        if slots == 1:
            self._bring(dict.fromkeys(self.gm, 0))

    @property
    def factor(self) -> ir.Value:
        """What Q is multiplied with, in 16 lanes."""
        return restride(self.factors[self.slot], [SIDE], [1])

    def bring(self, rows: dict[Value, IndexLike]) -> None:
        """The columns of a unit, by the rows of masks that it takes."""
        if len(self.l1) > 1:
            self.slot = (self.slot + 1) % len(self.l1)
            self._bring(rows)

    def load(self, tile: FractalSpan) -> ir.Value:
        """Columns of a tile of keys to L0A."""
        self.loads += 1
        shape, l0a = [tile.size, 1, SIDE, SIDE], self.l0a[self.loads % len(self.l0a)]
        steps = [FRACTAL, FRACTAL, SIDE, 1]
        source = restride(self.l1[self.slot], shape, steps, tile.start * FRACTAL)
        place: ir.Value = reshaped(l0a, shape)
        cce.load2d(source, place)
        return place

    def _bring(self, rows: dict[Value, IndexLike]) -> None:
        self._add_up(rows)
        self._find_factor(self.factors[self.slot])
        flat = [self.size // LANES, LANES]
        total = restride(self.total, flat, [LANES, 1])
        cce.vmuls(total, scalar("f32", 1 / (PAIRS * self.attention.chain.factor)), total)
        for limit, build in ((self.least, cce.vmax), (self.most, cce.vmin)):
            build(total, restride(limit, flat, [0, 1]), total)
        self.columns.split(self.total, self.other)
        cce.copy_l1(self.columns.fractals, self.l1[self.slot])

    def _add_up(self, rows: dict[Value, IndexLike]) -> None:
        """Adds all masks into `total`, which gets the lowest number where there are no keys."""
        keys = self.attention.keys
        for number, (value, gm) in enumerate(self.gm.items()):
            place = self.other if number else self.total
            if keys < self.size:
                cce.vector_dup(scalar("f32", LOWEST["f32"] if not number else 0.0), place)
            load_rows(MatrixPiece(gm, 0, rows[value], 0, 1, keys), reshaped(place, [1, self.size]))
            if number:
                cce.vadd(self.total, self.other, self.total)

    def _find_factor(self, there: ir.Value) -> None:
        """Zero if all keys are hidden by so much that scores do not matter, else what Q is
        multiplied with anyway."""
        cce.vmuls(self.total, scalar("f32", -1 / LOST), self.other)
        cce.vrelu(self.other, self.other)
        cce.vconv(self.other, restride(self.parts, [self.size], [1]))
        count, start = self.size, 0
        while count > MOST:
            half, result = max(kept(count), MOST), self.size - start
            a, b, c = (
                restride(self.parts, [half], [1], at)
                for at in (start, start + count - half, result)
            )
            cce.vmin(a, b, c)
            count, start = half, result
        found = restride(self.found, [1, 2], [2, 1])
        cce.vcmin(restride(self.parts, [1, count], [count, 1], start), found)
        block = restride(self.found, [SIDE, 1, SIDE], [0, SIDE, 1])
        cce.vnchwconv(block, restride(there, [SIDE, 1, SIDE], [SIDE, SIDE, 1]))
        lanes, scale = restride(there, [SIDE], [1]), self.attention.scale
        cce.vmuls(lanes, scalar("f16", -scale), lanes)
        cce.vadds(lanes, scalar("f16", scale), lanes)
        cce.vrelu(lanes, lanes)


def is_common(attention: Attention, line: LinesOfUnits) -> bool:
    """Whether the units of a line take the same rows of all masks."""
    return all(line.alike(extra.turn.each) for extra in attention.chain.extras)

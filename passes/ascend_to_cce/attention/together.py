"""The kernel of attention where the units of a line are worked on together.

    scores     tile by tile, of all units of a matrix; what these share of K is loaded once
    maxima     of all units of a matrix
    weights    the first half of the tiles of all units, tile by tile: they share V; then what is
               left unit by unit, so that these end one after the other
    O          of a unit, behind its last weights

Each of these is less instructions than unit by unit, and less of it waits for what is before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.attention.kernel import AttentionKernel
from davinci.passes.ascend_to_cce.attention.masks import KeyBlock
from davinci.passes.ascend_to_cce.attention.units import AttentionArrays, Unit
from davinci.passes.ascend_to_cce.products.rows import FRACTAL
from davinci.passes.builder import restride
from davinci.schedule.attention.attention import Attention, AttentionSchedule
from davinci.schedule.attention.members import Members
from davinci.schedule.products.events import FractalSpan
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import row_major


@dataclass(frozen=True)
class UnitOfLine:
    """A unit among those of a line: fractals of rows above its own."""

    unit: Unit
    above: int


def part_of(whole: ir.Value, tile: FractalSpan, above: int, rows: int) -> ir.Value:
    """Some rows of a tile in UB."""
    return restride(whole, [rows * tile.size * FRACTAL], [1], above * tile.size * FRACTAL)


class TogetherKernel(AttentionKernel):
    """Builds the kernel from a schedule that says `together`."""

    def __init__(
        self,
        attention: Attention,
        schedule: AttentionSchedule,
        gm: AttentionArrays,
        machine: Machine,
        members: Members,
    ) -> None:
        super().__init__(attention, schedule, gm, machine, members)
        self.in_l0b: list[tuple[int, int] | None] = []
        self.loaded_k = self.loaded_v = 0

    def build(self, units: Sequence[Unit]) -> None:
        keys = KeyBlock(0, self.attention.keys, self.sizes.keys)
        tiles = self.tiles_of(keys)
        self.tiles = len(tiles)
        self.begun.clear()
        self.there.clear()
        self.in_l0b = [None] * len(self.l0b_v)
        above = accumulate((unit.fractals for unit in units[:-1]), initial=0)
        rows = [UnitOfLine(*each) for each in zip(units, above, strict=True)]
        groups = [[*each] for _, each in groupby(rows, key=lambda each: each.unit.matrix)]
        places = [self.find_scores(group, keys, tiles) for group in groups]
        for unit in units:
            self.bring(unit, keys)
        for group, scores in zip(groups, places, strict=True):
            self.find_weights(group, keys, tiles, scores)

    def find_scores(
        self, rows: Sequence[UnitOfLine], keys: KeyBlock, tiles: Sequence[FractalSpan]
    ) -> list[ir.Value]:
        """Scores of units of a matrix in UB, tile by tile."""
        first, height = rows[0], sum(each.unit.fractals for each in rows)
        scores = self.softmax.next_scores(height, tiles)
        for number, (tile, place) in enumerate(zip(tiles, scores, strict=True)):
            l0c, slot = self.l0c_s[number], self.l0a_k[self.loaded_k % len(self.l0a_k)]
            self.loaded_k += 1
            self.begin(first.unit)
            of_line = first.unit.matrix * len(tiles) + number
            l0a = self.load_k(first.unit, keys, tile, of_line, slot)
            for each in rows:
                self.begin(each.unit)
                self.multiply(each.unit, tile, l0a, l0c, each.above * tile.size * FRACTAL)
            # The first tiles unit by unit, so that the vector unit has something to do early.
            parts = [(each.above, each.unit.fractals) for each in rows]
            for above, size in parts if number < len(tiles) // 2 else [(first.above, height)]:
                shape = [size, tile.size, SIDE, SIDE]
                source = restride(l0c, shape, row_major(shape), above * tile.size * FRACTAL)
                part = part_of(place, tile, above - first.above, size)
                self.softmax.take(source, part)
                self.softmax.hide(part, size, keys, tile)
        return scores

    def find_weights(
        self,
        rows: Sequence[UnitOfLine],
        keys: KeyBlock,
        tiles: Sequence[FractalSpan],
        scores: Sequence[ir.Value],
    ) -> None:
        """Weights of units of a matrix, and their O."""
        first, height = rows[0], sum(each.unit.fractals for each in rows)
        self.softmax.find_highest(scores, height, tiles, first.above)
        half = len(tiles) // 2
        order = [(number, each) for number in range(half) for each in rows]
        order += [(number, each) for each in rows for number in range(half, len(tiles))]
        for number, each in order:
            unit, tile, above = each.unit, tiles[number], each.above - first.above
            part = part_of(scores[number], tile, above, unit.fractals)
            p = self.p[unit.turn]
            self.softmax.weights(part, unit.fractals, p, tiles, tile, each.above)
            self.weigh(unit, keys, tile, number)
            if number == len(tiles) - 1:
                self.exit.copy(self.sums(unit), unit.fractals)
                self.exit.leave(unit.batch, unit.rows)

    def load_v(self, unit: Unit, keys: KeyBlock, tile: FractalSpan, turn: int) -> ir.Value:
        """Units of a matrix that follow each other share what is in L0B."""
        wanted = unit.matrix, turn
        if wanted not in self.in_l0b:
            slot = self.loaded_v % len(self.l0b_v)
            self.in_l0b[slot], self.loaded_v = wanted, self.loaded_v + 1
            super().load_v(unit, keys, tile, slot)
        return self.l0b_v[self.in_l0b.index(wanted)]

"""Builds moves of elements that are no whole blocks, see `davinci.schedule.moves.word_moves`."""

from __future__ import annotations

import math
from typing import Any

from davinci.dialects.cce import build as cce
from davinci.mlir import ir
from davinci.passes.ascend_to_cce.moves.transfers import Arrays
from davinci.passes.ascend_to_cce.tiles import AlikeWork, portion_parts, unflatten, with_slots
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.ascend_to_cce.vector.row_statistics import build_steps
from davinci.passes.builder import IndexLike, alloc, mul, reshaped, restride, subview
from davinci.schedule.moves.word_moves import STORED, WordMove, loaded
from davinci.units import row_major

Buffers = dict[str, Any]


class WordsBuilder:
    """Builds the tiles of one move.

    Args:
        looped: whether its tiles follow each other, so that they share buffers and what pads them
            is filled in once.
    """

    def __init__(self, way: WordMove, arrays: Arrays, result: ir.Value, looped: bool) -> None:
        self.way, self.result, self.looped = way, result, looped
        self.sources = [arrays[piece.array] for piece in way.move.pieces]
        self.element = ir.MemRefType(result.type).element_type
        self.walks = way.walks
        self.numbers = way.loading
        self.buffers: Buffers = {}
        if looped:
            self.buffers = self._scratch()
            build_steps(way.filled(), self.buffers)

    def _moved(self) -> Buffers:
        """Buffers of what is loaded and stored, on which tiles of a block take turns."""
        way = self.way
        sizes = {loaded(number): way.loaded_elements(number) for number in self.numbers}
        sizes[STORED] = way.stored_elements
        slots = way.slots if self.looped else 1
        return {
            name: with_slots(alloc([count], self.element, "UB"), slots)
            for name, count in sizes.items()
        }

    def _scratch(self) -> Buffers:
        """Buffers of blocks, which the vector unit has for itself."""
        sizes = self.way.scratch.items()
        return {name: alloc([count], element_type("s32"), "UB") for name, count in sizes}

    def parts(self) -> list[AlikeWork]:
        way = self.way
        if way.carrier is None:
            return [AlikeWork(1, lambda _: self._whole())]
        walks = math.prod(self.walks)
        return portion_parts(way.portions, lambda i, start, _: self._tile(i, start), walks)

    def _begin(self) -> None:
        """Makes the buffers of a tile; a tile that is the only one of its block has its own
        scratch, too."""
        scratch = self.buffers if self.looped else self._scratch()
        self.buffers = {**scratch, **self._moved()}

    def _whole(self) -> None:
        self._begin()
        for number in self.numbers:
            source = self.sources[number]
            total = math.prod(source.type.shape)
            held = restride(self.buffers[loaded(number)], [total], [1])
            cce.copy(restride(source, [total], [1]), held, round_up=True)
        self._compute()
        total = math.prod(self.way.move.shape)
        held = restride(self.buffers[STORED], [total], [1])
        cce.copy(held, restride(self.result, [total], [1]), round_up=True)

    def _tile(self, walk: IndexLike, start: IndexLike) -> None:
        way, move = self.way, self.way.move
        carrier = way.carrier
        assert carrier is not None, "tiles are cut along a carrier"
        if start == move.shape[carrier] - way.tile:
            self.way = way.last
        at = unflatten(walk, self.walks)
        self._begin()
        for number in self.numbers:
            self._load(number, at, start)
        self._compute()
        strides = row_major(move.shape)
        sizes = [move.shape[e] for e in way.runs]
        gm = restride(
            self.result,
            [*self.walks, *sizes, move.shape[carrier] * way.pitch],
            [*(strides[e] for e in (*way.walked, *way.runs)), 1],
            move.first,
        )
        tile = [*sizes, way.tile * way.pitch]
        held = reshaped(self.buffers[STORED], tile)
        cce.copy(held, self._piece(gm, at, mul(start, way.pitch), tile))
        self.way = way

    def _load(self, number: int, at: list[IndexLike], start: IndexLike) -> None:
        way, load, piece = self.way, self.way.loads[number], self.way.move.pieces[number]
        carrier = way.carrier
        assert carrier is not None, "tiles are cut along a carrier"
        outer = [*way.walked, *load.runs]
        strides = [piece.strides[e] for e in outer]
        sizes = [*self.walks, *(piece.sizes[e] for e in load.runs)]
        runs = [piece.sizes[e] for e in load.runs]
        first, points = piece.offset - load.lead, piece.sizes[carrier]
        if isinstance(start, int):  # in front of the array there is nothing
            first, points, start = first + start * piece.strides[carrier], way.tile, 0
        held = self.buffers[loaded(number)]
        if load.dense:
            tile = [*runs, way.tile * load.pitch]
            gm = restride(self.sources[number], [*sizes, points * load.pitch], [*strides, 1], first)
            cce.copy(self._piece(gm, at, mul(start, load.pitch), tile), reshaped(held, tile))
            return
        tile = [*runs, way.tile, load.pitch]
        step = piece.strides[carrier]
        gm = restride(
            self.sources[number], [*sizes, points, load.pitch], [*strides, step, 1], first
        )
        cce.copy(self._piece(gm, at, start, tile, 1), reshaped(held, tile))

    def _piece(
        self, gm: ir.Value, at: list[IndexLike], start: IndexLike, tile: list[int], behind: int = 0
    ) -> ir.Value:
        """The tile of an array, `start` being its place in the last dimension but `behind`."""
        runs = len(tile) - 1 - behind
        places = [*at, *[0] * runs, start, *[0] * behind]
        return subview(gm, places, [*[1] * len(at), *tile], drop=range(len(at)))

    def _compute(self) -> None:
        """Bytes become numbers of 16 bits for it."""
        work = self.way.steps()
        if not self.looped:  # once the loads are on their way
            build_steps(self.way.filled(), self.buffers)
        if self.way.move.itemsize > 1:
            build_steps(work, self.buffers)
            return
        half = ir.F16Type.get()
        wide = dict(self.buffers)
        for name in (STORED, *map(loaded, self.numbers)):
            wide[name] = alloc(self.buffers[name].type.shape, half, "UB")
        for name in map(loaded, self.numbers):
            cce.vconv(self.buffers[name], wide[name])
        build_steps(work, wide)
        cce.vconv(wide[STORED], self.buffers[STORED])

"""Which tiles of which units each block of cube and vector cores takes, where units have different
numbers of them."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.band import Tiling, tiling_of
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

WIDTHS = {"first": 1, "last": 1, "pattern": 15, "tile": 15, "block": 15, "matrix": 16}
"""Bits of the fields of a step as one number, the lowest ones first."""


@dataclass(frozen=True)
class ListedStep:
    """A step of a block.

    Attributes:
        matrix: of O.
        block: which unit of the matrix.
        tile: which tile of keys.
        pattern: one more than the number of the pattern that masks it, 0 if none does.
        first, last: whether it is the first tile of its unit, and the last.
    """

    matrix: int
    block: int
    tile: int
    pattern: int
    first: bool
    last: bool

    @property
    def packed(self) -> int:
        """It as one number."""
        number, shift = 0, 0
        for name, width in WIDTHS.items():
            field = int(getattr(self, name))
            assert field < 1 << width, f"{name} of a step has {width} bits"
            number, shift = number | field << shift, shift + width
        return number


def tiling(attention: Attention, schedule: SplitAttentionSchedule) -> Tiling:
    """The tiles of the units of an attention whose mask is a band."""
    assert attention.band is not None, "only of masks that are known"
    return tiling_of(attention.band, schedule.unit_rows * SIDE, schedule.tile * SIDE)


def dealt(
    attention: Attention, schedule: SplitAttentionSchedule, blocks: int
) -> list[list[ListedStep]]:
    """The steps of each block: units of many tiles are dealt first, to whoever has fewest."""
    assert attention.band is not None, "only of masks that are known"
    tiles, turn = tiling(attention, schedule).tiles, attention.band.turn
    units = [
        (matrix, block, own)
        for matrix in range(attention.batch)
        for block, own in enumerate(tiles[turn.of(matrix)])
    ]
    found: list[list[ListedStep]] = [[] for _ in range(blocks)]
    waiting = [(0, number) for number in range(blocks)]
    for matrix, block, own in sorted(units, key=lambda unit: -len(unit[2])):
        steps, number = heapq.heappop(waiting)
        for place, tile in enumerate(own):
            pattern = 0 if tile.pattern is None else tile.pattern + 1
            ends = place == 0, place == len(own) - 1
            found[number].append(ListedStep(matrix, block, tile.number, pattern, *ends))
        heapq.heappush(waiting, (steps + len(own), number))
    return found


def ring_places(attention: Attention, schedule: SplitAttentionSchedule, blocks: int) -> int:
    """Places of the rings of a launch: no more than a block has steps."""
    if attention.band is not None:
        most = max(map(len, dealt(attention, schedule, blocks)))
    else:
        each = schedule.tiles(attention) // schedule.shares
        most = ceil_div(schedule.units(attention), blocks) * each
    return min(schedule.ring, most)


def table_of(steps: Sequence[Sequence[ListedStep]]) -> npt.NDArray[np.int64]:
    """Where the steps of each block begin in the table, and where the last one's end; behind that
    all steps, packed."""
    starts = np.cumsum([len(steps) + 1, *map(len, steps)])
    packed = [step.packed for own in steps for step in own]
    return np.array([*starts, *packed], np.int64)


def masks_of(
    patterns: Tiling, fill: float, keys: int, dtype: str, joined: int = 1
) -> npt.NDArray[np.floating]:
    """Bounds of scores for each pattern, as scores lie, [patterns][rows / 16][keys][16]: the
    number `fill` for what a row does not see, else infinity.

    Args:
        joined: keys that are one long row, see `split.long_rows`.
    """
    where = np.arange(keys).reshape(-1, SIDE, joined).swapaxes(1, 2).reshape(-1, 1)
    found = []
    for first, last in patterns.patterns:
        first, last = (end.reshape(-1, 1, SIDE) for end in (first, last))
        found.append(np.where((first <= where) & (where < last), np.inf, fill))
    return np.array(found).astype(np.float16 if dtype == "f16" else np.float32)

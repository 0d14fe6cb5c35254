"""Masks of attention that are known when a kernel is made: of each row the keys between two ends.

Tiles of keys of which no row of a unit sees any are left out, those that all rows see whole are
taken without a mask, and for the others the kernel has a constant for each *pattern*, which units
share that lie alike on their tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt

from davinci.operators.band import FIELDS, ends_of
from davinci.schedule.attention.turn import Turn
from davinci.units import ceil_div

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class KeyBand:
    """A mask that leaves of each row of scores the keys between two ends.

    Attributes:
        runs: the ends, as `davinci.operators.band` writes them.
        turn: which of its matrices a matrix of scores has.
        fill: what scores of other keys are.
        rows, keys: of a matrix.
    """

    runs: tuple[int, ...]
    turn: Turn
    fill: float
    rows: int
    keys: int

    @staticmethod
    def of(
        runs: tuple[int, ...], each: int, fill: float, batch: int, shape: tuple[int, int]
    ) -> KeyBand:
        """The band of an operator on `batch` matrices of scores of that shape."""
        count = sum(runs[::FIELDS]) // shape[0]
        return KeyBand(runs, Turn(each if count > 1 else batch, count), fill, *shape)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The first key that each row sees and the one behind the last, [matrices, rows]."""
        first, last = ends_of(self.runs, self.keys)
        return first.reshape(-1, self.rows), last.reshape(-1, self.rows)

    @property
    def hides_rows(self) -> bool:
        """Whether there are rows that see no key."""
        first, last = self.ends
        return bool((first == last).any())


@dataclass(frozen=True)
class SeenTile:
    """A tile of keys that a unit takes.

    Attributes:
        number: of the tile.
        pattern: which of the patterns masks it, None if all of its rows see all of its keys.
    """

    number: int
    pattern: int | None


@dataclass(frozen=True)
class Tiling:
    """What units see of a band that is cut in tiles.

    Attributes:
        tiles: of each unit of each matrix of the band.
        patterns: of the rows of a unit, the first key of the tile that each sees and the one behind
            the last; rows behind those of the matrix see all.
    """

    tiles: tuple[tuple[tuple[SeenTile, ...], ...], ...]
    patterns: tuple[tuple[Integers, Integers], ...]


@lru_cache(maxsize=256)
def tiling_of(band: KeyBand, rows: int, keys: int) -> Tiling:
    """The tiles of units of so many rows; `keys`: of a tile."""
    known: dict[bytes, int] = {}
    patterns: list[tuple[Integers, Integers]] = []
    matrices = []
    for first, last in zip(*band.ends, strict=True):
        units = []
        for start in range(0, band.rows, rows):
            own = first[start : start + rows], last[start : start + rows]
            tiles = []
            for number in range(*_seen(*own, keys, band.keys)):
                above = number * keys
                size = min(keys, band.keys - above)
                ends = [np.full(rows, end) for end in (0, keys)]
                for end, found in zip(ends, own, strict=True):
                    end[: len(found)] = np.clip(found - above, 0, size)
                there = len(own[0])
                if not ends[0].any() and (ends[1][:there] == size).all():
                    tiles.append(SeenTile(number, None))
                    continue
                key = b"".join(end.tobytes() for end in ends)
                if key not in known:
                    known[key] = len(patterns)
                    patterns.append((ends[0], ends[1]))
                tiles.append(SeenTile(number, known[key]))
            units.append(tuple(tiles))
        matrices.append(tuple(units))
    return Tiling(tuple(matrices), tuple(patterns))


def _seen(first: Integers, last: Integers, keys: int, total: int) -> tuple[int, int]:
    """The first tile of which rows see keys, and the one behind the last. A row that sees none
    weighs all keys alike, so that all are taken."""
    if (first == last).any():
        return 0, ceil_div(total, keys)
    return int(first.min()) // keys, ceil_div(int(last.max()), keys)


@lru_cache(maxsize=4096)
def counts_of(band: KeyBand, rows: int, keys: int) -> tuple[tuple[int, ...], ...]:
    """How many tiles each unit of each matrix of a band takes; as of `tiling_of`."""
    found = []
    for first, last in zip(*band.ends, strict=True):
        starts = range(0, band.rows, rows)
        own = ((first[start : start + rows], last[start : start + rows]) for start in starts)
        seen = (_seen(*ends, keys, band.keys) for ends in own)
        found.append(tuple(end - start for start, end in seen))
    return tuple(found)

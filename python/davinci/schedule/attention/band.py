"""Masks of attention that are known when a kernel is made: of each row the keys between two ends.

Tiles of keys of which no row of a unit sees any are left out, those that all rows see whole are
taken without a mask, and for the others the kernel has a constant for each *pattern*, which units
share that lie alike on their tiles.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
import numpy.typing as npt

from davinci.operators.band import FIELDS, ends_of
from davinci.schedule.attention.turn import MatrixTurn
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
    turn: MatrixTurn
    fill: float
    rows: int
    keys: int

    @staticmethod
    def of(
        runs: tuple[int, ...], each: int, fill: float, batch: int, shape: tuple[int, int]
    ) -> KeyBand:
        """The band of an operator on `batch` matrices of scores of that shape."""
        count = sum(runs[::FIELDS]) // shape[0]
        return KeyBand(runs, MatrixTurn(each if count > 1 else batch, count), fill, *shape)

    @cached_property
    def ends(self) -> tuple[Integers, Integers]:
        """The first key that each row sees and the one behind the last, [matrices, rows]."""
        first, last = ends_of(self.runs, self.keys)
        return first.reshape(-1, self.rows), last.reshape(-1, self.rows)

    def of_all(self, counts: Integers, batch: int) -> int:
        """The sum over `batch` matrices of scores of what is counted for those of the band."""
        each = counts.sum(axis=1)
        return sum(int(each[self.turn.of(matrix)]) for matrix in range(batch))

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


@dataclass(frozen=True)
class Counts:
    """The numbers of tiles of keys that each unit of rows takes, [matrices of the band][units].

    Attributes:
        tiles: those of which some row sees a key.
        masked: of these, those of which some row does not see all keys.
    """

    tiles: Integers
    masked: Integers


@lru_cache(maxsize=4096)
def counts_of(band: KeyBand, rows: int, keys: int) -> Counts:
    """The tiles of units of so many rows, as `tiling_of` has them; `keys`: of a tile."""
    lowest, highest, latest, earliest, empty = _bounds_of_units(band, rows)
    total = ceil_div(band.keys, keys)
    first = np.where(empty, 0, lowest // keys)
    last = np.where(empty, total, -(-highest // keys))
    # Of the last tile those rows see all that see the last key.
    whole = np.where(earliest == band.keys, total, earliest // keys)
    clear = np.where(empty, 0, np.maximum(whole - -(-latest // keys), 0))
    return Counts(last - first, last - first - clear)


@lru_cache(maxsize=64)
def _bounds_of_units(band: KeyBand, rows: int) -> tuple[Integers, ...]:
    """Of each unit the lowest first key of its rows and the highest last one, the highest first and
    the lowest last, and whether a row sees nothing."""
    first, last = band.ends
    starts = np.arange(0, band.rows, rows)
    most, least = (
        partial(ufunc.reduceat, indices=starts, axis=1) for ufunc in (np.maximum, np.minimum)
    )
    empty = np.logical_or.reduceat(first == last, starts, axis=1)
    return least(first), most(last), most(first), least(last), empty

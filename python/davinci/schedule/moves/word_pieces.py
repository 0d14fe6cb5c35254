"""What a move by words puts together, and what it loads of it."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.schedule.moves.index_maps import ValueBox

WORD_BYTES = 2


@dataclass(frozen=True)
class RowsOfPieces:
    """An array in rows, made of pieces.

    Attributes:
        shape: of the result.
        pieces: that come from arrays; positions along a dimension are equally far apart.
        totals: elements of the array that each piece comes from.
        itemsize: bytes of an element, in GM.
        number: bits of the elements outside of the pieces, of bytes those of the f16 number; None:
            there are none.
        first: where in the array in GM the result begins.
    """

    shape: tuple[int, ...]
    pieces: tuple[ValueBox, ...]
    totals: tuple[int, ...]
    itemsize: int
    number: int | None = None
    first: int = 0

    @property
    def words(self) -> int:
        """Words of an element in UB."""
        return max(1, self.itemsize // WORD_BYTES)


@dataclass(frozen=True)
class WordLoad:
    """What of an array is loaded for a tile.

    Attributes:
        runs: dimensions that lie outside of the carrier there, each a run.
        pitch: elements that a point takes in UB.
        lead: elements in front of those that are wanted.
        dense: whether points follow each other without gaps in GM too.
        last_lead: the same of the last tile along the carrier, so that it ends with the array.
    """

    runs: tuple[int, ...]
    pitch: int
    lead: int
    dense: bool
    last_lead: int = 0

"""How far the blocks of a round have come with their bytes, by cycle.

Cube and vector cores of one block wait for each other: what these read those have made before.
Which transfers of a round are at the same time is known from a time line made before: a first one
as if the L2 held nothing, then one with what the L2 has by that. Between two of its cycles each
block moves what it moves there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci.native import Floats, Ints
from davinci.simulator.timing.layout import TimelineColumn
from davinci.simulator.timing.timeline import Timeline


@dataclass(frozen=True)
class Pace:
    """Bytes that a block has moved by some cycles of its launch, evenly between them."""

    cycles: Floats
    moved: Floats

    @classmethod
    def of(cls, timeline: Timeline, begin: int) -> Pace:
        """The pace of a program whose time line has kept its rows.

        Args:
            timeline: of the program, to its end.
            begin: cycle of the launch at which it began.
        """
        rows = timeline.kept_rows
        sizes = timeline.tables.moved_bytes(timeline.steps()[rows[:, TimelineColumn.INDEX]])
        rows, sizes = rows[sizes > 0], sizes[sizes > 0]
        starts = rows[:, TimelineColumn.START]
        spans = np.maximum(rows[:, TimelineColumn.FREE] - starts, 1)
        return cls.between(begin + starts, spans, sizes)

    @classmethod
    def between(cls, starts: Ints, spans: Ints, sizes: Ints) -> Pace:
        """The pace of transfers, those of several pipes at the same time.

        Args:
            starts, spans: when each starts, and for how many cycles it moves.
            sizes: bytes of each.
        """
        at = np.concatenate([starts, starts + spans]).astype(np.float64)
        order = np.argsort(at, kind="stable")
        at, rates = at[order], np.cumsum(np.concatenate([sizes / spans, -sizes / spans])[order])
        moved = np.cumsum(np.diff(at) * rates[:-1])
        return cls(at, np.concatenate([np.zeros(min(at.size, 1)), moved]))

    def by(self, cycles: Floats) -> Floats:
        """Bytes moved by each of some cycles."""
        if not self.cycles.size:
            return np.zeros(cycles.size)
        return np.interp(cycles, self.cycles, self.moved)


@dataclass(frozen=True)
class Paces:
    """The paces of the blocks of a round."""

    blocks: Sequence[Pace]

    def cut(self, parts: int) -> Floats:
        """Bytes that each block has moved at the ends of parts in which all blocks together move
        the same, [parts + 1, blocks]; the first end is the beginning."""
        cycles = np.unique(np.concatenate([block.cycles for block in self.blocks]))
        if not cycles.size:
            return np.zeros((parts + 1, len(self.blocks)))
        together = np.sum([block.by(cycles) for block in self.blocks], axis=0)
        ends = np.interp(together[-1] * np.arange(parts + 1) / parts, together, cycles)
        ends[-1] = cycles[-1]
        return np.stack([block.by(ends) for block in self.blocks], axis=1)

"""The schedule of a group on the vector unit: plain data, whoever decided it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from davinci.operators.vector_program import Value
from davinci.schedule.choices import TileChoice
from davinci.schedule.vector.chunks import Chunks, TileRun
from davinci.schedule.vector.row_siblings import Beside
from davinci.schedule.vector.tile_layout import VectorTile


@dataclass(frozen=True)
class VectorSchedule:
    """The schedule of a vector group: its tiles, the cores that share them, and their buffers.

    Attributes:
        cut: the axis that is cut.
        whole: whether axes outside it are whole, not walked.
        tile: sizes of a full tile.
        runs: the tiles along the cut axis.
        overlap: whether the last tile goes over elements of the one before; both are of one core.
        cores: blocks of the launch.
        slots: buffers of what is loaded or stored.
        slots_held: buffers of what stays in UB: tiles that the vector unit works on in turn.
        tables: values of a row that lie in UB once for each row of a tile.
        beside: values that lie beside each other in one buffer, see `row_parts`.
        ragged: lanes of the innermost axis behind its last whole block; rows then end in a block
            that repeats lanes of the one before.
        cycles: estimated.
        spare: bytes of UB that each statistic may take to lie where it is used fastest.
        chunks: how reduced axes are gone through of which UB holds no part worth keeping.
        scalar: whether the scalar unit moves elements of a tile.
        turned: whether short rows are lanes.
    """

    cut: int
    whole: bool
    tile: VectorTile
    runs: tuple[TileRun, ...]
    overlap: bool
    cores: int
    slots: int
    slots_held: int
    tables: frozenset[Value]
    beside: tuple[Beside, ...]
    ragged: int
    cycles: int
    spare: int = 0
    chunks: Chunks | None = None
    scalar: bool = False
    turned: bool = False

    @property
    def choice(self) -> TileChoice:
        """The choice that the schedule was made of."""
        form: Literal["tiles", "chunks", "turned"] = "tiles" if self.chunks is None else "chunks"
        if self.turned:
            form = "turned"
        size = self.runs[0].size
        return TileChoice(form=form, cut=self.cut, whole=self.whole, size=size, slots=self.slots)

    @property
    def uses(self) -> int:
        """How often rows are combined with a statistic: once, in the tile that it is made of."""
        return 1

    def __str__(self) -> str:
        sizes = [f"i{axis}: {size}" for axis, size in enumerate(self.tile.sizes)]
        sizes[self.cut] += " of " + " + ".join(f"{r.count} x {r.size}" for r in self.runs)
        if self.chunks is not None:
            runs = " + ".join(f"{r.count} x {r.size}" for r in self.chunks.runs)
            sizes[self.chunks.axis] += f" in chunks of {runs}"
        if self.turned:
            sizes[-1] += " rows as lanes"
        return f"{', '.join(sizes)}; {self.cores} cores, {self.slots} slots"

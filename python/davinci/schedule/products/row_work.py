"""What the vector unit of a core does to whole rows of a product's result in front of memory.

    L0C    a part of C: some rows, all of its columns
    UB     its fractals, then some of its rows at a time (`staged_rows`): what follows the product
    GM     the results

The operators are those that vector cores beside a cube core would do (`behind`), and the vector
unit does them in the same way as in a kernel of its own: reductions of rows, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.isa.core import DTYPES
from davinci.machine import Machine
from davinci.operators.vector_program import DTYPE_OF
from davinci.schedule.graph import KeyedGraph
from davinci.schedule.products.staged_rows import StagedRows
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div


@dataclass(frozen=True)
class RowWork:
    """Operators that follow a product, on whole rows of C in UB.

    Attributes:
        known: their graph, whose first input is C.
        machine: that has the vector unit.
        rows, width: rows and columns of each matrix of C.
        kept: whether C leaves the kernel as well.
    """

    known: KeyedGraph
    machine: Machine
    rows: int
    width: int
    kept: bool = False

    @property
    def dtype(self) -> str:
        """Element type of C."""
        graph = self.known.graph
        return DTYPE_OF[graph.arrays[graph.inputs[0]].element]

    @property
    def row_bytes(self) -> int:
        """Bytes of GM that come and leave for a row of C."""
        graph = self.known.graph
        values = (*graph.inputs[0 if self.kept else 1 :], *graph.outputs)
        arrays = [graph.arrays[value] for value in values]
        return sum(array.bytes_each * self.width for array in arrays if array.count >= self.count)

    @property
    def count(self) -> int:
        """Elements of C."""
        graph = self.known.graph
        return graph.arrays[graph.inputs[0]].count

    def staged(self, height: int, block: int) -> StagedRows:
        """The rows of a part of so many, in fractals, for tiles whose rows end with such blocks."""
        return StagedRows(ceil_div(height, SIDE) * SIDE, self.width, block, self.dtype)

    def stage_bytes(self, rows: int) -> int:
        """Bytes of UB for the fractals of a part of so many rows, and for what moves the ends of
        these."""
        each: int = DTYPES[self.dtype].itemsize
        staged = self.staged(rows, SIDE)
        ends = staged.ended()
        scratch = 0 if ends is None else ends.scratch_bytes
        return staged.elements * each + scratch

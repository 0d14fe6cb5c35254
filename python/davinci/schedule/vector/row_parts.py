"""Parts of rows: windows of one array that lie beside each other, and together in one buffer in UB.

    GM    | x0 x1 .. x31 | x32 .. x63 |       two windows [rows, 32] of an array [rows, 64]
    UB    | x0 x1 .. x31 | x32 .. x63 |       one buffer, one transfer; steps read and write its
          | ..           | ..         |       halves, whose rows are 64 lanes apart

Short rows of GM cost as much as whole lines, so one transfer of whole rows takes less time than one
for each part. Steps that do the same to each part are one for all of them (`row_siblings`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set

from davinci.operators.vector_program import Value
from davinci.schedule.graph import Graph
from davinci.schedule.vector.row_siblings import Beside, Siblings, contiguous_values
from davinci.schedule.vector.space import IterationSpace
from davinci.schedule.vector.tile_layout import VectorTile
from davinci.schedule.vector.tile_program import TileProgram


def beside_each_other(graph: Graph, space: IterationSpace, program: TileProgram) -> list[Beside]:
    """What can be loaded or stored together wherever tiles have whole rows, and what is computed of
    it part by part; brings the program's steps into the order for that."""
    contiguous = contiguous_values(program)
    moves = Counter((*program.loads.values(), *program.stores.values()))
    lanes = space.axes[program.lane].size
    found = []
    for row in graph.rows():
        held = program.loads if row[0] in program.loads else program.stores
        own = tuple(held[number] for number in row)
        whole = all(
            space.strides(number).get(program.lane) == 1 and graph.arrays[number].shape[-1] == lanes
            for number in row
        )
        apart = not contiguous.intersection(own) and all(moves[v] == 1 for v in own)
        if len(row) > 1 and whole and apart:
            found.append(own)
    return found and Siblings(program, found).joined()


def in_tile(
    found: Sequence[Beside], tile: VectorTile, lanes: int, block: int, tables: Set[Value]
) -> list[Beside]:
    """Those of which a tile has whole rows of whole blocks.

    Args:
        lanes: of a row.
        block: lanes that are whole blocks of every value: a step that reads parts of rows writes
            rows of its own, of another type perhaps, with the same lanes.
    """
    if tile.sizes[-1] < lanes or tile.pitch != lanes or lanes % block:
        return []
    return [row for row in found if tables.isdisjoint(row) and row[0].dtype != "s64"]

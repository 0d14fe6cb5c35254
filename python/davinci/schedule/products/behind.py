"""What follows a product whose cube cores have no vector unit, on the vector cores beside them.

    cube core       a part of C to memory, where the L2 keeps it
    vector cores    half of its rows each, a few at a time: to UB, what follows, to the results

While cube cores are at the next part, vector cores are at this one; what is left behind the product
is the last part. What follows may reduce rows of C, as softmax and layer norm do: then parts have
whole rows (`Product.whole_rows`), as where rows end inside a block.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from davinci.machine import Machine, prices
from davinci.schedule.graph import Graph, Node, Scalar
from davinci.schedule.products.estimate import shares_of
from davinci.schedule.products.product import Product, ProductSchedule
from davinci.schedule.products.row_pieces import plan_of_rows
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.space import NoSpace, space_of
from davinci.schedule.vector.step_costs import moving_cycles
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

SUMS, ELEMENTS = ("f16", "f32", "i32"), ("f16", "f32")
"""Element types of what a product makes, and of all else that lies in memory."""

PIECES = 2
"""Pieces, at least, in which a vector core takes its rows of a part: one comes while another is
computed."""


@dataclass(frozen=True)
class Behind:
    """The operators of a group that follow its product.

    Attributes:
        graph: its first input is what the product makes, its outputs those of the group but for
            that.
        inputs: of the group's inputs, those that it takes behind the first.
        made: what the product makes, by number in the group: its result, or that and a row.
        whole_rows: whether parts of C have whole rows, because these are reduced or end inside a
            block.
    """

    graph: Graph
    inputs: tuple[int, ...]
    made: int
    whole_rows: bool

    @property
    def reduces(self) -> bool:
        """Whether rows of C are reduced."""
        return any(node.name == "reduce" for node in self.graph.nodes)


def add_followers(made: Graph, graph: Graph, known: dict[int, int]) -> tuple[int, ...]:
    """Adds to a graph all that the outputs of a group need, whether it stands behind a product or
    in front of it; which of the group's inputs that takes.

    Args:
        known: values of the group that the graph has already, by their numbers in both.
    """
    needed, behind = set(graph.outputs), list[Node]()
    for other in reversed(graph.nodes):
        if other.result in needed and other.result not in known:
            needed.update(other.values)
            behind.insert(0, other)
    inputs = tuple(value for value in graph.inputs if value in needed)
    known = {**known, **{value: made.add(graph.arrays[value]) for value in inputs}}
    for other in behind:
        operands = tuple(x if isinstance(x, Scalar) else known[x] for x in other.operands)
        known[other.result] = made.add(graph.arrays[other.result])
        made.nodes.append(replace(other, operands=operands, result=known[other.result]))
    made.inputs += [known[value] for value in inputs]
    made.outputs = [known[value] for value in graph.outputs]
    return inputs


def behind_of(graph: Graph, number: int) -> Behind:
    """What follows the value `number` of a group, which its product makes, to be done part by part.

    Raises:
        NoSpace: several cores would need the same part, or rows of different ones come together.
    """
    made = Graph(lanes_apart=True)
    c = made.add(graph.arrays[number])
    made.inputs = [c]
    inputs = add_followers(made, graph, {number: c})
    made.outputs = [value for value in made.outputs if value != c]
    stored = [made.arrays[value] for value in (*made.inputs, *made.outputs)]
    others = {array.element for array in stored if array is not made.arrays[c]}
    if any(array.layout for array in stored) or not others <= set(ELEMENTS):
        raise NoSpace("what follows a product in fractals, or of other elements than floats")
    if made.arrays[c].element not in SUMS:
        raise NoSpace(f"what follows a product that makes {made.arrays[c].element}")
    space = space_of(made)
    *_, lanes = space.axes
    axes = tuple(range(len(space.axes)))
    ways = (axes, axes[:-1]) if lanes.reduced else (axes,)
    left = all(space.order[value] in ways for value in made.outputs)
    if len(axes) not in (2, 3) or space.order[c] != axes or not left:
        raise NoSpace("what follows a product of other axes than matrices, rows and columns")
    if any(axis.reduced for axis in space.axes[:-1]):
        raise NoSpace("what reduces columns, or matrices, of a product part by part")
    whole_rows = lanes.reduced or made.arrays[c].shape[-1] % SIDE > 0
    return Behind(made, inputs, number, whole_rows)


def plan_of_parts(behind: Behind, machine: Machine, rows: int, columns: int) -> VectorPlan:
    """How vector cores do what follows, in pieces of parts of at most so many rows and columns.

    Args:
        machine: of the vector cores.

    Raises:
        NoSpace: not even a row of a part fits UB.
    """
    known, room = behind.graph.keyed(), machine.buffers.UB.bytes
    return plan_of_rows(known, machine, (ceil_div(rows, 2), columns), room, PIECES)


def cycles_with(
    behind: Behind,
    product: Product,
    schedule: ProductSchedule,
    cycles: float,
    cores: int,
    machine: Machine,
) -> float:
    """Cycles of a product and what follows it on the vector cores beside so many cores: those are
    as long as the product and its last parts, or as its first parts and all that follows.

    Args:
        cycles: of the product.
        machine: of the vector cores.

    Raises:
        NoSpace: not even a row of a part fits UB.
    """
    columns, rows = schedule.part
    tile, share = schedule.tile, schedule.share
    of_tile = ceil_div(tile.m, rows) * ceil_div(tile.n, columns)
    tiles = share.batch * ceil_div(share.m, tile.m) * ceil_div(share.n, tile.n)
    count = ceil_div(shares_of(product, schedule), cores) * tiles * of_tile
    together = min(count, math.prod(schedule.beside) * of_tile)
    rows, columns = min(product.m, rows * SIDE), min(product.n, columns * SIDE)
    plan = plan_of_parts(behind, machine, rows, columns)
    height, layout = plan.schedule.tile.sizes[-2], plan.layout(plan.schedule.tile)
    pieces, graph = ceil_div(ceil_div(rows, 2), height), behind.graph
    read = moving_cycles(graph.inputs, layout, machine.cores, True, known=graph.inputs)
    write = moving_cycles(graph.outputs, layout, machine.cores, False)
    longest = max(plan.schedule.cycles, read, write)
    ends = prices.ends(machine) + plan.schedule.cycles + read + write - longest
    last, every = (ends + longest * pieces * number for number in (together, count))
    return max(cycles + last, cycles * together / count + every)

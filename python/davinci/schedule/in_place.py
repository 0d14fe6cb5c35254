"""Outputs of a group that may lie where an input lies, whatever schedule computes the group.

The kernel reads each tile of the input before it writes the same tile of the output, no core reads
what is another's, and nothing is read twice:

    a product       writes each part of C once, in fractals or in rows of whole blocks, and reads
                    the part of a residual that it adds before; A and B, which many tiles read, stay
    vector unit     elementwise operators on rows of whole blocks: tiles do not overlap, and those
                    of values of one shape are the same elements

Reductions go over their operands more than once, and are not asked. An output that is not computed
from the input is written whenever it is ready, perhaps before the tile of the input is read.
"""

from __future__ import annotations

import math

from davinci.operators import OPERATORS
from davinci.operators.tensors import NZ, Tensor
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import moves_only
from davinci.schedule.pools.group import is_pool
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.side_by_side import parts_of
from davinci.schedule.vector.space import NoSpace
from davinci.units import BLOCK_BYTES
from davinci.units import FRACTAL_SIDE as SIDE


def shareable(graph: Graph) -> list[tuple[int, int]]:
    """Pairs of places, among the outputs and the inputs of a group, of an output and an input that
    may be the same bytes. Each is in one pair at most."""
    try:
        products = sum(map(is_product, graph.nodes))
        if products == 1:
            return _of_product(graph)
        if products or any(map(is_pool, graph.nodes)) or moves_only(graph):
            return []
        return _elementwise(graph)
    except NoSpace:  # said where it is lowered
        return []


def _of_product(graph: Graph) -> list[tuple[int, int]]:
    """The pairs of `shareable` for a product: an output may be where an array beside C is."""
    group = read_group(graph)
    extras = [v for v in group.extras if v not in group.factors]
    outputs = [v for v in group.outputs if not _is_ragged(graph.arrays[v])]
    return _alike(graph, extras, outputs)


def _is_ragged(c: Tensor) -> bool:
    """Whether rows of C end within a block or a fractal, so that parts may be written twice."""
    columns = c.shape[-1]
    return c.layout != NZ and (columns % SIDE > 0 or columns * c.bytes_each % BLOCK_BYTES > 0)


def _elementwise(graph: Graph) -> list[tuple[int, int]]:
    """Of operators of the vector unit. Parts of a group that only read the same values run on
    different cores."""
    plain = [n for n in graph.nodes if n.name in OPERATORS and OPERATORS[n.name].elementwise]
    others = [node for node in graph.nodes if node not in plain]
    if any(node.name != "broadcast" for node in others) or len(parts_of(graph)) > 1:
        return []
    spread = {value for node in others for value in node.values}
    rows = {v: math.prod(graph.arrays[v].stored_shape[-1:]) for v in graph.outputs}
    outputs = [v for v, lanes in rows.items() if lanes % BLOCK_BYTES == 0]
    return _alike(graph, [v for v in graph.inputs if v not in spread], outputs)


def _alike(graph: Graph, sources: list[int], outputs: list[int]) -> list[tuple[int, int]]:
    """Pairs of outputs and inputs of the same shape, type and layout, each in one pair at most; the
    output is computed from the input."""
    found: list[tuple[int, int]] = []
    left = list(dict.fromkeys(sources))
    for place, value in enumerate(graph.outputs):
        needed = _needed_for(graph, value)
        fits = [v for v in left if v in needed and graph.arrays[v] == graph.arrays[value]]
        if value in outputs and value not in graph.inputs and fits:
            left.remove(fits[0])
            found.append((place, graph.inputs.index(fits[0])))
    return found


def _needed_for(graph: Graph, value: int) -> set[int]:
    """The values that a value is computed from, itself among them."""
    needed = {value}
    for node in reversed(graph.nodes):
        if node.result in needed:
            needed.update(node.values)
    return needed

"""A group of operators around one reduction over windows, as a `Pool` with an epilogue."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.operators.conv import geometry
from davinci.operators.tensors import NZ
from davinci.schedule.followers import Followers
from davinci.schedule.graph import Graph, Node
from davinci.schedule.pools.pool import Pool
from davinci.schedule.products.epilogue import PAIR, Epilogue
from davinci.schedule.vector.space import NoSpace
from davinci.units import FRACTAL_SIDE

POOL = "pool"


@dataclass(frozen=True)
class PoolGroup:
    """A reduction over windows, and the group's values that it takes and makes, by number.

    Attributes:
        image: what windows lie on.
        extras: what the epilogue combines windows with, in its order.
        outputs: what it makes, in its order.
        members: the reduction, by its number in the kernel.
    """

    pool: Pool
    image: int
    extras: tuple[int, ...]
    outputs: tuple[int, ...]
    members: tuple[int, ...] = ()


def is_pool(node: Node) -> bool:
    """Whether an operator reduces windows of images."""
    return node.name == POOL


def read_pool(graph: Graph) -> PoolGroup:
    """The reduction of a group.

    Raises:
        NoSpace: it is not one reduction of an image in fractals with what can be done behind it.
    """
    pools = [node for node in graph.nodes if is_pool(node)]
    if len(pools) != 1:
        raise NoSpace(f"{len(pools)} reductions over windows")
    (node,) = pools
    (x,) = node.values
    image = graph.arrays[x]
    if x not in graph.inputs or image.layout != NZ:
        raise NoSpace("windows of what is no image in fractals")
    reader = Followers(graph, node)
    for other in graph.nodes:
        reader.known[other.result] = reader.sums if other is node else reader.record(other)
    outputs = reader.outputs()
    extras = list(reader.extras.values())
    end = Epilogue.of(reader.program, reader.sums, extras, True, pairs=True)
    n, _, channels = image.shape
    taken = any(extra.value in end.paired for extra in end.extras)
    if taken or (end.paired and channels % (PAIR * FRACTAL_SIDE)):
        raise NoSpace("bytes beside windows, or parts of fractals of bytes")
    kind = node.attributes["kind"]
    pool = Pool(geometry(node.attributes), kind, n, channels, image.element, end)
    extras_of = tuple(number for number, _ in reader.extras)
    return PoolGroup(pool, x, extras_of, outputs, node.members)

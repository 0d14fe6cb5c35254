"""Groups of operators that become one kernel each, with several tiles on one core.

The sizes leave tails, and make the tiles of a core take turns on several buffers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from random_graph_steps import gelu, normalised, rotary, softmax_of
from random_graphs import Graph, Value


@dataclass(frozen=True)
class GroupModel:
    """A network of one group, as `sync_mutation.record` takes networks.

    Attributes:
        proto: its StableHLO.
    """

    proto: str
    arguments: tuple[npt.NDArray[np.float32], ...]

    def inputs(self, seed: int) -> dict[str, npt.NDArray[np.float32]]:
        """Its inputs, which are the same for any seed."""
        return {f"arg{i}": data for i, data in enumerate(self.arguments)}


def softmax(g: Graph, rows: int) -> Value:
    return softmax_of(g, g.argument((rows, 333)), [1])


def layer_norm(g: Graph, rows: int) -> Value:
    x = g.add(g.argument((rows, 384)), g.argument((rows, 384)))
    return normalised(g, x, [1], centred=True)


def gelu_with_bias(g: Graph, rows: int) -> Value:
    x = g.argument((rows, 600))
    return gelu(g, g.add(x, g.spread(g.argument((600,)), x.shape, (1,))))


def rotary_embedding(g: Graph, rows: int) -> Value:
    y = rotary(g, g.argument((3, rows, 64)))
    assert y is not None
    return y


def product_with_epilogue(g: Graph, rows: int) -> Value:
    y = g.product(g.argument((rows, 96)), g.argument((96, 200)))
    y = g.add(y, g.spread(g.argument((200,)), y.shape, (1,)))
    return g.add(gelu(g, y), g.argument(y.shape))


def product_in_fractals(g: Graph, rows: int) -> Value:
    """Between two others; its last rows pad a fractal, which it has to clear."""
    y = g.product(g.argument((rows, 96)), g.argument((96, 112)))
    y = gelu(g, g.product(y, g.argument((112, 160))))
    return g.product(y, g.argument((160, 48)))


def statistics_of_columns(g: Graph, rows: int) -> Value:
    """Of the first dimension, so that rows are added up."""
    return softmax_of(g, g.argument((rows, 515)), [0])


MAKERS: dict[Callable[[Graph, int], Value], int] = {
    softmax: 150,
    layer_norm: 130,
    gelu_with_bias: 61,
    rotary_embedding: 61,
    product_with_epilogue: 61,
    product_in_fractals: 61,
    statistics_of_columns: 61,
}
"""Rows that make several tiles for one core, where the compiler makes several of such arrays."""


def group_models(rows: int = 0) -> dict[str, GroupModel]:
    """The groups by name, of arrays of `rows` rows; 0: as many as `MAKERS` says."""
    found = {}
    for make, many in MAKERS.items():
        g = Graph(seed=1)
        g.finish([make(g, rows or many)])
        found[make.__name__] = GroupModel(g.text, tuple(g.inputs))
    return found

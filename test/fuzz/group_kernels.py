"""Groups of operators that become one kernel each, most with several tiles on one core.

The sizes leave tails, and make the tiles of a core take turns on several buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from random_graph_steps import attention_of, gelu, normalised, rotary, softmax_of
from random_graphs import Graph, Value


@dataclass(frozen=True)
class GroupModel:
    """A network of one group, as `sync_mutation.record` takes networks.

    Attributes:
        proto: its StableHLO.
        cores: that its kernels are for.
    """

    proto: str
    cores: int
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


def product_with_ragged_rows(g: Graph, rows: int) -> Value:
    """Rows of operands and result end inside a block, where the scalar unit helps."""
    y = g.product(g.argument((rows, 35)), g.argument((35, 37)))
    y = g.add(y, g.spread(g.argument((37,)), y.shape, (1,)))
    return g.add(gelu(g, y), g.argument(y.shape))


def vector_by_matrix(g: Graph, rows: int) -> Value:
    return g.product(g.argument((1, rows)), g.argument((rows, 333)))


def attention_of_heads(g: Graph, rows: int) -> Value:
    q, k, v = (g.argument((rows, 64)) for _ in range(3))
    return attention_of(g, q, k, v, heads=2)


def attention(g: Graph, rows: int) -> Value:
    """Scores stay on the core; the next unit's are computed beside this one's softmax."""
    return attention_over(g, g.argument((2, rows, 32)), keys=50)


def attention_by_blocks(g: Graph, rows: int) -> Value:
    """Of more keys than UB holds scores of."""
    return attention_over(g, g.argument((1, rows, 32)), keys=4500)


def attention_over(g: Graph, q: Value, keys: int) -> Value:
    k, v = (g.argument((q.shape[0], keys, 32)) for _ in range(2))
    scores = g.product(q, g.transpose(k, (0, 2, 1)))
    return g.product(softmax_of(g, scores, [2]), v)


def statistics_of_columns(g: Graph, rows: int) -> Value:
    """Of the first dimension, so that rows are added up."""
    return softmax_of(g, g.argument((rows, 515)), [0])


def softmax_in_phases(g: Graph, rows: int) -> Value:
    """Of rows longer than UB."""
    return softmax_of(g, g.argument((rows, 40003)), [1])


def norm_in_phases(g: Graph, rows: int) -> Value:
    return normalised(g, g.argument((rows, 70001)), [1], centred=True)


def side_by_side(g: Graph, rows: int) -> Sequence[Value]:
    """Two groups in one launch, and a third that cores share."""
    return [
        softmax_of(g, g.argument((rows, 333)), [1]),
        gelu(g, g.argument((rows, 200))),
        normalised(g, g.argument((rows, 130)), [1], centred=True),
    ]


MAKERS: dict[Callable[[Graph, int], Value | Sequence[Value]], tuple[int, int]] = {
    softmax: (150, 1),
    layer_norm: (130, 1),
    gelu_with_bias: (61, 1),
    rotary_embedding: (61, 1),
    product_with_epilogue: (61, 1),
    product_in_fractals: (61, 1),
    product_with_ragged_rows: (61, 1),
    vector_by_matrix: (131, 1),
    attention_of_heads: (61, 1),
    attention: (61, 1),
    attention_by_blocks: (17, 1),
    statistics_of_columns: (61, 1),
    softmax_in_phases: (2, 1),
    norm_in_phases: (1, 3),
    side_by_side: (31, 4),
}
"""Rows, that make several tiles for a core where the compiler makes several of such arrays, and
cores."""


def group_models(rows: int = 0) -> dict[str, GroupModel]:
    """The groups by name, of arrays of `rows` rows; 0: as many as `MAKERS` says."""
    found = {}
    for make, (many, cores) in MAKERS.items():
        g = Graph(seed=1)
        made = make(g, rows or many)
        g.finish([made] if isinstance(made, Value) else made)
        found[make.__name__] = GroupModel(g.text, cores, tuple(g.inputs))
    return found

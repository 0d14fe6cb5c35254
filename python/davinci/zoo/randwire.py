"""RandWire: stages whose nodes are wired as a random graph (Xie, Kirillov, Girshick and He,
"Exploring Randomly Wired Neural Networks for Image Recognition", 2019)."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from davinci.zoo.graph import require
from davinci.zoo.layers import ImageNetwork, Images

NEIGHBOURS = 4
"""Nodes that each node of the ring is joined to before edges are moved, K of WS(K, P)."""

MOVED = 0.75
"""Probability that an edge of the ring is moved, P of WS(K, P)."""

LAST = 1280
"""Channels of the convolution in front of the classifier."""


@dataclass(frozen=True)
class Randwire(ImageNetwork):
    """RandWire-WS(4, 0.75), by default of the small regime with 78 channels.

    Parameters besides: channels of the first random stage, nodes of a stage, and whether there are
    four random stages, the first of half as many nodes, as in the regular regime, instead of three.
    The seed also draws the graphs.
    """

    channels: int = 78
    nodes: int = 32
    regular: int = 0

    def layers(self, images: Images) -> str:
        enough = self.nodes > 2 * NEIGHBOURS
        message = f"parameter 'nodes' must be more than {2 * NEIGHBOURS}"
        require(type(self).__name__.lower(), enough, message, self.nodes)
        images = images.conv(self.channels // 2, 3, 2)
        sizes = [(self.nodes, self.channels * times) for times in (1, 2, 4)]
        if self.regular:
            sizes = [(self.nodes // 2, self.channels)]
            sizes += [(self.nodes, self.channels * times) for times in (2, 4, 8)]
        else:
            images = images.relu().conv(self.channels, 3, 2)
        rng = np.random.default_rng(self.seed)
        for number, (nodes, channels) in enumerate(sizes):
            with images.graph.scope(f"stage{number}"):
                images = wired(images, channels, small_world(nodes, rng), rng)
        return images.relu().conv(LAST, 1).relu().classified(self.classes)


def small_world(nodes: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Edges of a random graph of Watts and Strogatz, each from the lower number to the higher.

    Nodes are joined to their neighbours on a ring; then each edge is, by chance, moved to another
    end. Numbers are places on the ring, which the paper makes the order of nodes.
    """
    joined: set[frozenset[int]] = {
        frozenset((node, (node + step) % nodes))
        for step in range(1, NEIGHBOURS // 2 + 1)
        for node in range(nodes)
    }
    for step in range(1, NEIGHBOURS // 2 + 1):
        for node in range(nodes):
            if rng.random() >= MOVED:
                continue
            ends = [
                end for end in range(nodes) if end != node and frozenset((node, end)) not in joined
            ]
            joined.discard(frozenset((node, (node + step) % nodes)))
            joined.add(frozenset((node, ends[rng.integers(len(ends))])))
    return sorted((min(edge), max(edge)) for edge in joined)


def wired(
    images: Images, channels: int, edges: list[tuple[int, int]], rng: np.random.Generator
) -> Images:
    """A stage: nodes without another in front of them halve the sides of images, and the results
    of those without another behind them are averaged."""
    made: list[Images] = []
    for node in range(1 + max(end for _, end in edges)):
        before = [made[begin] for begin, end in edges if end == node]
        stride = 1 if before else 2
        joined = weighed(before, rng) if before else images
        alone = joined.relu().conv(joined.channels, 3, stride, groups=joined.channels)
        made.append(alone.conv(channels, 1))
    ends = {begin for begin, _ in edges}
    last = [each for node, each in enumerate(made) if node not in ends]
    total = functools.reduce(Images.plus, last)
    return total.then("Mul", total.graph.scalar(1 / len(last)))


def weighed(images: list[Images], rng: np.random.Generator) -> Images:
    """The sum of images by weights from 0 to 1 that were learnt."""
    if len(images) == 1:
        return images[0]
    weights = 1 / (1 + np.exp(-rng.standard_normal(len(images))))
    parts = [
        each.then("Mul", each.graph.scalar(float(weight)))
        for each, weight in zip(images, weights, strict=True)
    ]
    return functools.reduce(Images.plus, parts)

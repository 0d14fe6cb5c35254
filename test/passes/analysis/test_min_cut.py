"""Cheapest cuts against all cuts of small networks."""

from __future__ import annotations

from itertools import pairwise, product

from hypothesis import given, settings
from hypothesis import strategies as st

from davinci.passes.analysis.min_cut import NEVER, FlowNetwork

Edges = list[tuple[int, int, int]]


def network(nodes: int, edges: Edges) -> FlowNetwork:
    found = FlowNetwork()
    for _ in range(nodes):
        found.node()
    for edge in edges:
        found.edge(*edge)
    return found


def cost(side: set[int], edges: Edges) -> int:
    return sum(price for tail, head, price in edges if tail in side and head not in side)


def cheapest(nodes: int, edges: Edges) -> tuple[int, int]:
    """Cost of the best cut, and the fewest nodes such a cut leaves with the source."""
    found = []
    for chosen in product((False, True), repeat=nodes):
        side = {0} | {i + 2 for i, taken in enumerate(chosen) if taken}
        found.append((cost(side, edges), len(side)))
    return min(found)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, Edges]:
    nodes = draw(st.integers(0, 6))
    ends = st.integers(0, nodes + 1)
    prices = st.sampled_from([0, 1, 2, 3, 7, NEVER])
    return nodes, draw(st.lists(st.tuples(ends, ends, prices), max_size=20))


@settings(max_examples=300, deadline=None)
@given(cases())
def test_no_cut_is_cheaper(case: tuple[int, Edges]) -> None:
    nodes, edges = case
    edges = [edge for edge in edges if edge[0] != edge[1]]
    side = network(nodes, edges).source_side()
    assert 0 in side and 1 not in side
    assert (cost(side, edges), len(side)) == cheapest(nodes, edges)


def test_a_long_chain() -> None:
    """10,000 nodes, cut where it is cheapest."""
    chain = FlowNetwork()
    nodes = [FlowNetwork.SOURCE, *(chain.node() for _ in range(10_000)), FlowNetwork.SINK]
    for i, (tail, head) in enumerate(pairwise(nodes)):
        chain.edge(tail, head, 3 if i == 7_000 else 5)
    assert chain.source_side() == {0, *nodes[1:7_001]}

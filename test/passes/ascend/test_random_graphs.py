"""Random networks, fused and not, on several machines, against StableHLO's interpreter.

benchmarks/proofs/fuzz_graphs.py runs many more, and larger ones.
"""

from __future__ import annotations

import pytest

from fuzz.graph_fuzz import findings
from random_graph_steps import STEPS, part, product_of_halves, reshaped
from random_graphs import Graph

LENGTH, MOST_ELEMENTS = 6, 3000


def graph(seed: int) -> Graph:
    made = Graph(seed, MOST_ELEMENTS)
    made.walk(LENGTH, STEPS)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_random_graph(seed: int) -> None:
    found = list(findings(seed, LENGTH, MOST_ELEMENTS, 1))
    assert not found, "\n".join([f"{one.way}: {one.what}" for one in found] + [found[0].text])


@pytest.mark.parametrize("seed", (2, 3, 4, 13))
def test_products_of_joined_values_and_sums_of_products(seed: int) -> None:
    """One machine each."""
    steps = {product_of_halves: 9, part: 1, reshaped: 1}
    found = list(findings(seed, 2, 8000, 1, steps))
    assert not found, "\n".join([f"{one.way}: {one.what}" for one in found] + [found[0].text])


def test_every_step_is_taken() -> None:
    taken = {name for seed in range(60) for name in graph(seed).steps}
    assert taken == {step.__name__ for step in STEPS}

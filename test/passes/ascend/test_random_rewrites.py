"""Random networks of what rewrites replace, with all rewrites and with none, against StableHLO's
interpreter in f64.

benchmarks/proofs/random_rewrites.py runs many more.
"""

from __future__ import annotations

from collections import Counter

import pytest

import davinci
from fuzz.graph_fuzz import Way, differences
from random_graphs import Graph
from random_rewrite_steps import REWRITTEN, STEPS

LENGTH, MOST_ELEMENTS = 7, 2000


def graph(seed: int) -> Graph:
    made = Graph(seed, MOST_ELEMENTS)
    made.walk(LENGTH, STEPS)
    return made


@pytest.mark.parametrize("seed", range(3))
def test_networks_are_right_with_and_without_rewrites(seed: int) -> None:
    ways = [Way("ascend910", 1 + 7 * (seed % 2), rewrites=names) for names in ("all", "none")]
    found = list(differences(graph(seed), seed, ways))
    assert not found, "\n".join([f"{one.way}: {one.what}" for one in found] + [found[0].text])


def test_every_step_is_taken_and_most_rewrites_apply() -> None:
    taken = {name for seed in range(60) for name in graph(seed).steps}
    assert taken >= {step.__name__ for step in REWRITTEN}
    applied = Counter[str]()
    for seed in (1, 3, 17):
        applied.update(davinci.compile(graph(seed).text, timing_only=True).details["rewrites"])
    assert {"fold-scales", "divisions-to-products", "drop-identities"} <= applied.keys()

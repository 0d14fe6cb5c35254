"""Some random scans of JAX on the machine; `benchmarks/proofs/loops.py` draws more."""

from __future__ import annotations

import pytest

pytest.importorskip("jax", reason="JAX is an optional dependency")

from random_loops import RandomLoop


@pytest.mark.parametrize("seed", [2, 3, 4, 6, 7])
def test_random_loop(seed: int) -> None:
    assert RandomLoop(seed).check(cores=2)


def test_a_state_that_no_step_reads() -> None:
    loop = RandomLoop(10)
    assert (len(loop.states), len(loop.parts), len(loop.fixed)) == (1, 2, 2)
    loop.work, loop.following, loop.outputs = [("tanh", 1, 1)], [5], []
    assert loop.check(cores=2)


def test_an_output_that_no_operator_of_a_step_takes() -> None:
    loop = RandomLoop(5299)
    assert (len(loop.states), len(loop.parts), len(loop.work)) == (1, 2, 6)
    loop.steps, loop.outputs = 3, [0, 4]
    loop.parts = tuple(part[:3] for part in loop.parts)
    assert loop.check(cores=2)

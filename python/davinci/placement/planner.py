"""Algorithms by name, and the best of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from davinci.errors import InputError, did_you_mean
from davinci.placement.baselines import queued, serial, single
from davinci.placement.greedy import heft, top_k
from davinci.placement.hope import integer_parts
from davinci.placement.problem import Placement, PlacementProblem, best_of

ALGORITHMS: Mapping[str, Callable[[PlacementProblem], Placement]] = {
    "single": single,
    "serial": serial,
    "dmdar": queued,
    "heft": heft,
    "hope:gs": top_k,
    "hope:lp": integer_parts,
}
"""Algorithms of placement by the names that `npu-run --place` takes."""

BEST = "best"
"""The name of the choice that tries all algorithms."""


def place(problem: PlacementProblem, algorithm: str = BEST) -> Placement:
    """The plan of an algorithm, or the fastest of all of them.

    Raises:
        InputError: there is no such algorithm, or it needs a package that is not installed.
    """
    if algorithm == BEST:
        return best_of([place(problem, name) for name in ALGORITHMS])
    if algorithm not in ALGORITHMS:
        raise InputError(
            "no such algorithm of placement",
            where="--place",
            found=repr(algorithm),
            expected=", ".join((*ALGORITHMS, BEST)),
            hint=did_you_mean(algorithm, [*ALGORITHMS, BEST]),
        )
    began = time.perf_counter()
    plan = ALGORITHMS[algorithm](problem)
    return replace(plan, seconds=time.perf_counter() - began)

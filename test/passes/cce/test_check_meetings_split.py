"""What `check-meetings` says of kernels with programs for cube and vector cores, which have flags
for each other, against what the simulator says of them; and of compiled networks."""

from __future__ import annotations

import numpy as np

import davinci
from davinci import zoo
from fuzz.core_flags import Kernel, Row, judge, step
from fuzz.talking_mutation import judged_before_running


def test_mutants() -> None:
    tally = judged_before_running(45, np.random.default_rng(2), every=6)
    assert tally.wrong == []
    kinds = {kind for kind, outcome in tally.counts if outcome == "unsafe, refused"}
    assert kinds >= {"flag", "number", "core set", "placement", "order"}
    assert any(outcome == "safe, accepted" for kind, outcome in tally.counts if kind == "order")


def test_kernels_with_certain_faults() -> None:
    """Each is named by both."""
    taken, made = step("set", "MTE2", 2, False), step("set", "FIX", 1, False)
    store, load = step("store", Row(0, 1)), step("load", Row(0, 1))
    kernels = {
        "a deadlock": ((step("wait", 2), store, made), (step("wait", 1), load, taken)),
        "sets of flag 1 that may come in": ((store, made, step("set", "MTE2", 1, False)), (load,)),
        "flags between cores that are left": ((store, made, made), (step("wait", 1), load)),
        "flag 1 of vector core 0 of group 0 that may count": (
            (made,) * 16,
            (step("wait", 1),) * 16,
        ),
        "a race": ((store,), (load,)),
    }
    parts = [
        Kernel(1, 1, (("AIC", ((), cube, ())), ("AIV", ((), vector, ()))))
        for cube, vector in kernels.values()
    ]
    for said, judged in zip(kernels, judge(parts), strict=True):
        assert judged.said.startswith(said)
        assert judged.found


def test_a_launch_of_two_kinds_of_cores_is_proven() -> None:
    made = davinci.compile(
        zoo.build("mlp"),
        machine="ascend910b",
        launches="joined",
        check_launches=True,
        timing_only=True,
    )
    (line,) = made.details["checked_launches"]
    assert line.startswith("launch 1 at @cast_f16_16x256: 7 phases, 12 cores, 12 waits")
    assert line.endswith(": proven")

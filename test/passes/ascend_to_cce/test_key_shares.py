"""Attention of few rows on the 910B, as heads of a decode step that share keys have it: one kernel,
in which keys of a matrix may be shared among blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import davinci
from attention_support import Attention
from davinci import zoo
from davinci.machine import Machine
from davinci.reference import check
from davinci.schedule.attention import attention, choice, split
from davinci.schedule.attention.split import SplitAttentionSchedule
from pairs import in_turn

MACHINE = "ascend910b"


@pytest.fixture
def shares(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Only schedules with so many shares of the keys are tried."""
    wanted, given = int(request.param), split.shared

    def some(
        of: attention.Attention, schedule: SplitAttentionSchedule, machine: Machine
    ) -> Iterator[SplitAttentionSchedule]:
        yield from (each for each in given(of, schedule, machine) if each.shares == wanted)

    monkeypatch.setattr(split, "shared", some)
    choice._best.cache_clear()
    yield wanted
    choice._best.cache_clear()


FEW: list[dict[str, Any]] = [
    {"rows": 5, "keys": 777, "heads": 3},
    {"rows": 16, "keys": 130, "heads": 2, "depth": 32, "scores": "f16"},
    {"rows": 1, "keys": 400, "heads": 7, "result": "f32", "spread": 4.0},
    {"rows": 4, "keys": 333, "batch": 2, "mask": "key", "depth": 16},
    {"rows": 3, "keys": 200, "batch": 2, "mask": "key", "hidden": 0.9, "result": "f32"},
]


@pytest.mark.parametrize(
    ("options", "shares", "cores"),
    [(options, *own) for options, own in in_turn(FEW, [(2, 3), (3, 6)])],
    indirect=["shares"],
    ids=str,
)
def test_shares_are_put_together(options: dict[str, Any], shares: int, cores: int) -> None:
    """Blocks have several units each, of other matrices or of other shares."""
    rounded = options.get("result") != "f32"
    executable = Attention(**options, rounded=rounded).check(None, machine=MACHINE, cores=cores)
    (kernel,) = (k for k in executable.profile["kernels"] if k["name"].startswith("attention"))
    assert f"in {shares} shares" in kernel["schedule"]


@pytest.mark.parametrize("shares", [2], indirect=True)
def test_blocks_without_work_only_meet(shares: int) -> None:
    """Kernels whose cores meet are phases of launches with more blocks than they have work for."""
    model = zoo.build(
        "llama,layers=1,hidden=64,heads=4,kv_heads=1,intermediate=1024,seq=1,past=300,kept=1"
    )
    inputs = model.inputs(np.random.default_rng(1))
    executable = davinci.compile(model.proto, machine=MACHINE)
    found = executable.run(inputs)
    check.require(check.compare(found, check.reference_onnx(model.proto, inputs)), "mixed")
    assert executable.profile["launches"] == 1
    kernels = executable.profile["kernels"]
    (attention,) = (k for k in kernels if k["name"].startswith("attention"))
    assert "in 2 shares" in attention["schedule"]
    assert attention["blocks"] > attention["choices"][0]["cores"]


def test_few_matrices_keep_more_cores_busy() -> None:
    """Of one matrix with many keys, shares are chosen because they take less time."""
    given = Attention(rows=4, keys=6000, heads=1, depth=64)
    executable = given.check(None, machine=MACHINE, cores=4)
    (kernel,) = (k for k in executable.profile["kernels"] if k["name"].startswith("attention"))
    assert kernel["blocks"] == 4
    assert "shares" in kernel["schedule"]

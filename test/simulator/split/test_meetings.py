"""Meetings between the phases of a launch that are met again are as those that run as a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import davinci
from davinci.simulator.split import meetings
from davinci.simulator.timing.l2 import Served

TEXT = """
func.func @main(%a: tensor<300x70xf32>) -> tensor<70xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %b = stablehlo.transpose %a, dims = [1, 0] : (tensor<300x70xf32>) -> tensor<70x300xf32>
  %c = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0]
      : (tensor<70x300xf32>, tensor<300x70xf32>) -> tensor<70x70xf32>
  %d = stablehlo.dot_general %c, %c, contracting_dims = [1] x [0]
      : (tensor<70x70xf32>, tensor<70x70xf32>) -> tensor<70x70xf32>
  %e = stablehlo.dot_general %d, %c, contracting_dims = [1] x [0]
      : (tensor<70x70xf32>, tensor<70x70xf32>) -> tensor<70x70xf32>
  %s = stablehlo.reduce(%e init: %0) applies stablehlo.add across dimensions = [0]
      : (tensor<70x70xf32>, tensor<f32>) -> tensor<70xf32>
  return %s : tensor<70xf32>
}
"""


class Other(Served):
    """What the L2 did, told from all else."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("data", [True, False])
def test_as_if_all_of_them_ran(monkeypatch: pytest.MonkeyPatch, data: bool) -> None:
    executable = davinci.compile(TEXT, launches="joined", timing_only=not data)
    a = np.random.default_rng(0).standard_normal((300, 70)).astype(np.float32) / 40

    def met() -> list[Any]:
        """Cycles and blocks of the meetings of two runs, as profiles have them."""
        found = []
        for _ in range(2):
            executable.run(a)
            found += [each.meeting for each in executable.launches if each.meeting is not None]
        return [replace(each, recording=None) for each in found]

    ran: list[int] = []
    run = meetings.TalkingLaunch.run
    monkeypatch.setattr(
        meetings.TalkingLaunch, "run", lambda self, checks: (ran.append(1), run(self, checks))[1]
    )
    known = met()
    few = len(ran)
    launch = executable._host.device._l2.launch
    monkeypatch.setattr(
        executable._host.device._l2,
        "launch",
        lambda *rounds: Other(*vars(launch(*rounds)).values()),
    )
    assert met() == known
    assert few < len(known) == len(ran) - few

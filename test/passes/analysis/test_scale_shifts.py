"""What scales of values may be changed by."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from davinci.passes.analysis.scale_shifts import ScaledGraph, ShiftLimits


@pytest.mark.parametrize(
    ("now", "delta", "may"), [(2, 1, True), (2, 2, False), (2, -2, True), (2, -3, False)]
)
def test_a_constant_is_read_with_scales_within_its_limits(now: int, delta: int, may: bool) -> None:
    shifts: Any = SimpleNamespace(
        graph=SimpleNamespace(nodes=[None, SimpleNamespace(operands=(0,))]),
        limits=[ShiftLimits(0, 3)],
        plan=SimpleNamespace(reads={(1, 0): now}),
        is_fixed=lambda number: True,
    )
    assert ScaledGraph.edge_may_shift(shifts, 1, 0, delta) == may

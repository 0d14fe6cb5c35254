"""Tests of how long tiles take that share buffers in turn."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.machine import prices
from davinci.schedule.vector.step_costs import turn_cycles

MACHINE = machines.load("ascend910")
LOAD = prices.reading(MACHINE).start_cycles
STORE = prices.writing(MACHINE).start_cycles


@pytest.mark.parametrize("slots", [2, 3])
def test_small_tiles_wait_for_the_latency_of_their_buffers(slots: int) -> None:
    assert turn_cycles(MACHINE, 50, 64, 0, slots) == pytest.approx((LOAD + 114) / slots)
    assert turn_cycles(MACHINE, 50, 0, 40, slots) == pytest.approx((STORE + 90) / slots)


def test_large_tiles_wait_for_the_slowest_unit() -> None:
    assert turn_cycles(MACHINE, 100, 2000, 300, 3) == 2000
    assert turn_cycles(MACHINE, 900, 0, 0, 3) == 900

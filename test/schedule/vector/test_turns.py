"""Tests of how long tiles take that share buffers in turn."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.machine import prices
from davinci.schedule.vector.step_costs import turns_cycles

MACHINE = machines.load("ascend910")
LOAD = prices.reading(MACHINE).start_cycles
STORE = prices.writing(MACHINE).start_cycles


@pytest.mark.parametrize("slots", [2, 3])
def test_small_tiles_wait_for_the_latency_of_their_buffers(slots: int) -> None:
    found = turns_cycles(MACHINE, 101, 50, 64, 0, slots)
    assert found == pytest.approx(64 * slots + (101 - slots) * (LOAD + 114) / slots)


def test_the_first_tiles_find_free_buffers() -> None:
    assert turns_cycles(MACHINE, 3, 50, 64, 40, 3) == 3 * 64


def test_stores_hold_buffers_too() -> None:
    assert turns_cycles(MACHINE, 3, 50, 0, 40, 2) == 150 + (STORE + 90) / 2 - 50


def test_large_tiles_wait_for_the_slowest_unit() -> None:
    assert turns_cycles(MACHINE, 10, 100, 2000, 300, 3) == 20000
    assert turns_cycles(MACHINE, 10, 900, 0, 0, 3) == 9000

"""The L2 and the shares of the bandwidth, apart from the rest."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.isa.core import Access, Space
from davinci.simulator.gm_model import L2, Share, Touched, Traffic, rates_of, touched
from davinci.simulator.regions import Region

MACHINE = machine.load("ascend910")
LINES = MACHINE.l2.bytes // 512


def stream(first: int, count: int, written: bool = False) -> Touched:
    return Touched(np.arange(first, first + count), np.full(count, written))


@pytest.fixture
def l2() -> L2:
    return L2(MACHINE, 1 << 28)


def test_what_was_read_is_there_until_it_is_pushed_out(l2: L2) -> None:
    assert l2.launch([[stream(1, 100)]]).read_hit_rate == 0
    assert l2.launch([[stream(1, 100)]]).read_hit_rate == 1
    assert l2.launch([[stream(51, 100)]]).read_hit_rate == 0.5
    l2.launch([[stream(1000, LINES)]])
    assert l2.launch([[stream(1, 100)]]).read_hit_rate == 0
    l2.flush()
    assert l2.launch([[stream(1000, 10)]]).read_hit_rate == 0


def test_what_was_written_is_read_from_the_l2(l2: L2) -> None:
    assert l2.launch([[stream(1, 100, True)]]).write_back_rate == 0
    assert l2.launch([[stream(1, 100)]]).read_hit_rate == 1


def test_written_lines_go_to_memory_when_they_leave(l2: L2) -> None:
    l2.launch([[stream(1, LINES, True)]])
    again = l2.launch([[stream(1 + LINES, LINES, True)]])
    assert again == Traffic(0, LINES * 512, 0.0, 1.0)


def test_blocks_share_what_they_read(l2: L2) -> None:
    assert l2.launch([[stream(1, 100)] * 4]).read_hit_rate == 0.75


def test_concurrent_blocks_push_each_other_out(l2: L2) -> None:
    """Each block reads its part twice; one part fits, all of them do not."""
    part = LINES // 4
    blocks = []
    for i in range(8):
        lines = np.tile(np.arange(1 + i * part, 1 + (i + 1) * part), 2)
        blocks.append(Touched(lines, np.zeros(lines.size, bool)))
    assert l2.launch([blocks]).read_hit_rate < 0.01
    l2.flush()
    assert l2.launch([[block] for block in blocks]).read_hit_rate == 0.5


def test_touched_lines() -> None:
    dtype = np.dtype(np.uint8)
    rows = Region(Access(Space.GM, 0, ((3, 2048),), 600, dtype))
    byte = Region(Access(Space.GM, 0, (), 1, dtype))
    found = touched([(rows, 512 + 500, True), (byte, 0, False)], 512)
    assert found.lines.tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11, 0]
    assert found.writes.tolist() == [True] * 9 + [False]
    assert touched([], 512).lines.size == 0


def test_idle_time_is_caught_up_with_but_not_all_of_it() -> None:
    rates = rates_of(MACHINE, MACHINE.cores)
    share = Share(rates)
    assert share.claim(10, 32, 0) == 11
    # Its share of the last cycles is not used up: nothing delays it.
    assert share.claim(1000, 3200, 0) == 111
    credit = rates.idle_credit_cycles
    assert share.claim(10_000, 32 * credit, 0) == 10_000
    assert share.claim(10_000, 32, 32) == 10_002


def test_rates_lie_between_memory_and_l2() -> None:
    whole = MACHINE.cores
    assert rates_of(MACHINE, whole).read == 1 / 32
    assert rates_of(MACHINE, whole, Traffic(1, 1, 1.0, 0.0)).read == pytest.approx(1 / 110)
    assert rates_of(MACHINE, whole, Traffic(1, 1, 1.0, 0.0)).write == pytest.approx(1 / 86)
    assert rates_of(MACHINE, whole / 2).read == 1 / 64

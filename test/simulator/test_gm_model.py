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
    size = 512 * count
    lines = np.arange(first, first + count)
    return Touched(lines, np.full(count, written), 0 if written else size, size if written else 0)


@pytest.fixture
def l2() -> L2:
    return L2(MACHINE, 1 << 28)


def test_what_was_read_is_there_until_it_is_pushed_out(l2: L2) -> None:
    assert l2.launch([[stream(1, 100)]]).miss_rate == 1
    assert l2.launch([[stream(1, 100)]]).miss_rate == 0
    assert l2.launch([[stream(51, 100)]]).miss_rate == 0.5
    l2.launch([[stream(1000, LINES)]])
    assert l2.launch([[stream(1, 100)]]).miss_rate == 1
    l2.flush()
    assert l2.launch([[stream(1000, 10)]]).miss_rate == 1


def test_what_was_written_is_read_from_the_l2(l2: L2) -> None:
    assert l2.launch([[stream(1, 100, True)]]).write_back_rate == 0
    assert l2.launch([[stream(1, 100)]]).miss_rate == 0


def test_written_lines_go_to_memory_when_they_leave(l2: L2) -> None:
    l2.launch([[stream(1, LINES, True)]])
    again = l2.launch([[stream(1 + LINES, LINES, True)]])
    assert again == Traffic(0, LINES * 512, 0, LINES * 512)


def test_blocks_share_what_they_read(l2: L2) -> None:
    assert l2.launch([[stream(1, 100)] * 4]).miss_rate == 0.25


def test_concurrent_blocks_push_each_other_out(l2: L2) -> None:
    """Each block reads its part twice; one part fits, all of them do not."""
    part = LINES // 4
    blocks = []
    for i in range(8):
        lines = np.tile(np.arange(1 + i * part, 1 + (i + 1) * part), 2)
        blocks.append(Touched(lines, np.zeros(lines.size, bool), lines.size * 512, 0))
    assert l2.launch([blocks]).miss_rate > 0.99
    l2.flush()
    assert l2.launch([[block] for block in blocks]).miss_rate == 0.5


def test_touched_lines() -> None:
    dtype = np.dtype(np.uint8)
    rows = Region(Access(Space.GM, 0, ((3, 2048),), 600, dtype))
    byte = Region(Access(Space.GM, 0, (), 1, dtype))
    found = touched([(rows, 512 + 500, True), (byte, 0, False)], 512)
    assert found.lines.tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11, 0]
    assert found.writes.tolist() == [True] * 9 + [False]
    assert (found.read_bytes, found.write_bytes) == (1, 1800)
    assert touched([], 512).lines.size == 0


def test_idle_time_is_caught_up_with_but_not_all_of_it() -> None:
    rates = rates_of(MACHINE, MACHINE.cores)
    share = Share(rates)
    assert share.claim(0, 10, 32, 0) == 11
    # Its share of the last cycles is not used up: nothing delays it.
    assert share.claim(0, 1000, 3200, 0) == 111
    credit = rates.idle_credit_cycles
    assert share.claim(0, 10_000, 32 * credit, 0) == 10_000
    assert share.claim(0, 10_000, 32, 0) == 10_001


def test_transfers_use_what_those_of_other_pipes_left() -> None:
    share = Share(rates_of(MACHINE, MACHINE.cores))
    assert share.claim(0, 10, 32, 0) == 11
    assert share.claim(0, 5000, 6400, 0) == 3200
    # Issued later, but earlier in time: it fits before, or goes on behind.
    assert share.claim(1, 3000, 0, 3200) == 1100
    assert share.claim(1, 4900, 0, 6400) == 3300


def test_blocks_that_read_the_same_lines_wait() -> None:
    l2 = L2(MACHINE, 1 << 28)
    apart = l2.launch([[stream(1, 100), stream(101, 100)]])
    half = l2.launch([[stream(1, 100), stream(51, 100)]])
    same = l2.launch([[stream(1, 100), stream(1, 100)]])
    assert [t.common_share for t in (apart, half, same)] == [0, 0.5, 1]
    assert rates_of(MACHINE, MACHINE.cores, same).read == pytest.approx(1.2 / 110)


def test_rates_lie_between_memory_and_l2() -> None:
    whole = MACHINE.cores
    assert rates_of(MACHINE, whole).read == 1 / 32
    assert rates_of(MACHINE, whole, Traffic(1, 1, 0, 0)).read == pytest.approx(1 / 110)
    assert rates_of(MACHINE, whole, Traffic(1, 1, 0, 0)).write == pytest.approx(1 / 86)
    assert rates_of(MACHINE, whole / 2).read == 1 / 64

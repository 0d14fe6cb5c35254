"""How far blocks have come with their bytes by cycle, and the L2 as it serves them so."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.simulator.timing.l2 import L2, Touched
from davinci.simulator.timing.pace import Pace, Paces

MACHINE = machine.load("ascend910b")
LINE = MACHINE.gm.line_bytes


def pace(*transfers: tuple[int, int, int]) -> Pace:
    """The pace of transfers: start, cycles, bytes."""
    starts, spans, sizes = np.array(transfers, dtype=np.int64).reshape(-1, 3).T
    return Pace.between(starts, spans, sizes)


def test_transfers_of_two_pipes_at_the_same_time_add_up() -> None:
    both = pace((0, 100, 1000), (50, 100, 200))
    found = both.by(np.array([0.0, 50, 100, 150, 1000]))
    assert found == pytest.approx([0, 500, 1100, 1200, 1200])


def test_without_transfers_nothing_is_moved() -> None:
    nothing = pace()
    assert nothing.by(np.array([0.0, 10])).tolist() == [0, 0]
    assert Paces([nothing, nothing]).cut(4).tolist() == [[0, 0]] * 5


def test_in_each_part_all_blocks_together_move_the_same() -> None:
    ends = Paces([pace((0, 100, 1000)), pace((200, 50, 3000))]).cut(8)
    assert ends[0].tolist() == [0, 0]
    assert ends[-1] == pytest.approx([1000, 3000])
    assert np.diff(ends, axis=0).sum(axis=1) == pytest.approx([500] * 8)
    # The second block begins when the first one has ended.
    assert ends[2] == pytest.approx([1000, 0])


def test_what_a_block_reads_behind_the_one_that_writes_it_is_in_the_l2() -> None:
    count = 64
    lines = np.arange(count, dtype=np.int64)
    writes = Touched(lines, np.full(count, 1, np.uint8), (0, count * LINE, 0, 0))
    reads = Touched(lines[::-1].copy(), np.zeros(count, np.uint8), (count * LINE, 0, 0, 0))
    size = count * LINE
    behind = Paces([pace((0, 100, size)), pace((100, 100, size))])
    at_once = Paces([pace((0, 100, size)), pace((0, 100, size))])
    l2 = L2(MACHINE, count * LINE)
    for paces, missing in ((behind, 0.0), (at_once, 0.5)):
        cuts = [paces.cut]
        told = l2.foretell([[writes, reads]], cuts)
        assert told.traffic.missing == pytest.approx(missing, abs=0.05)
        assert l2.foretell([[writes, reads]], cuts).traffic == told.traffic
    assert l2.launch([[writes, reads]], [behind.cut]).traffic.missing == 0

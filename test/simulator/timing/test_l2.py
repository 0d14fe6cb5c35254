"""The L2, apart from the rest."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.simulator.timing.l2 import DIRECT, L2, WRITTEN, Touched, Traffic

MACHINE = machine.load("ascend910")
LINES = MACHINE.l2.bytes // 512


def stream(first: int, count: int, kind: int = 0) -> Touched:
    lines = np.arange(first, first + count)
    sizes = [0, 0, 0, 0]
    sizes[kind] = 512 * count
    return Touched(lines, np.full(count, kind, np.uint8), (sizes[0], sizes[1], sizes[2], sizes[3]))


def both(*streams: Touched) -> Touched:
    """One after the other."""
    sizes = np.sum([s.sizes for s in streams], axis=0).tolist()
    lines = np.concatenate([s.lines for s in streams])
    return Touched(lines, np.concatenate([s.kinds for s in streams]), tuple(sizes))


@pytest.fixture
def l2() -> L2:
    return L2(MACHINE, 1 << 28)


def pass_through(l2: L2, *blocks: Touched) -> Traffic:
    return l2.launch([blocks]).traffic


def test_what_was_read_is_there_until_it_is_pushed_out(l2: L2) -> None:
    assert pass_through(l2, stream(1, 100)).miss_rate == 1
    assert pass_through(l2, stream(1, 100)).miss_rate == 0
    assert pass_through(l2, stream(51, 100)).miss_rate == 0.5
    pass_through(l2, stream(1000, LINES))
    assert pass_through(l2, stream(1, 100)).miss_rate == 1
    l2.flush()
    assert pass_through(l2, stream(1000, 10)).miss_rate == 1


def test_what_was_used_last_stays_longest(l2: L2) -> None:
    pass_through(l2, stream(1, LINES // 2))
    pass_through(l2, stream(LINES, LINES // 2))
    pass_through(l2, stream(1, LINES // 2))
    pass_through(l2, stream(2 * LINES, LINES // 2))
    assert pass_through(l2, stream(1, LINES // 2)).miss_rate == 0
    assert pass_through(l2, stream(LINES, LINES // 2)).miss_rate == 1


def test_what_does_not_fit_is_never_there(l2: L2) -> None:
    """Reading more than it holds again and again hits nothing, as on boards."""
    for _ in range(3):
        assert pass_through(l2, stream(1, LINES + LINES // 4)).miss_rate == 1


def test_what_was_written_is_read_from_the_l2(l2: L2) -> None:
    assert pass_through(l2, stream(1, 100, WRITTEN)).write_back_rate == 0
    assert pass_through(l2, stream(1, 100)).miss_rate == 0


def test_written_lines_go_to_memory_when_they_leave(l2: L2) -> None:
    pass_through(l2, stream(1, LINES, WRITTEN))
    again = pass_through(l2, stream(1 + LINES, LINES, WRITTEN))
    assert (again.filled_bytes, again.written_back_bytes) == (0, LINES * 512)
    # They are written once.
    assert pass_through(l2, stream(1 + 2 * LINES, 10)).written_back_bytes == 10 * 512
    assert pass_through(l2, stream(1, 10)).written_back_bytes == 10 * 512


def test_transfers_that_bypass_leave_the_l2_to_others(l2: L2) -> None:
    pass_through(l2, stream(1, LINES // 2, WRITTEN))
    past = pass_through(l2, stream(LINES, LINES, DIRECT))
    assert (past.filled_bytes, past.written_back_bytes, past.missing) == (LINES * 512, 0, 1)
    assert pass_through(l2, stream(1, LINES // 2)).miss_rate == 0
    assert pass_through(l2, stream(LINES, 100)).miss_rate == 1


def test_transfers_that_bypass_see_what_the_l2_has(l2: L2) -> None:
    pass_through(l2, stream(1, 100))
    assert pass_through(l2, stream(1, 100, DIRECT)).miss_rate == 0
    assert pass_through(l2, stream(1, 100, DIRECT | WRITTEN)).write_back_rate == 0
    # Written through to the memory where it is not there.
    assert pass_through(l2, stream(101, 100, DIRECT | WRITTEN)).write_back_rate == 1
    assert pass_through(l2, stream(101, 100)).miss_rate == 1


def test_short_rows_that_bypass_read_only_their_bytes(l2: L2) -> None:
    lines = np.arange(1, 101)
    kinds = np.full(100, DIRECT, np.uint8)
    assert pass_through(l2, Touched(lines, kinds, (0, 0, 12_800, 0))).filled_bytes == 12_800
    assert pass_through(l2, Touched(lines, 0 * kinds, (12_800, 0, 0, 0))).filled_bytes == 51_200


def test_blocks_share_what_they_read(l2: L2) -> None:
    assert pass_through(l2, *[stream(1, 100)] * 4).miss_rate == 0.25


def test_concurrent_blocks_push_each_other_out(l2: L2) -> None:
    """Each block reads its part twice; one part fits, all of them do not."""
    part = LINES // 4
    blocks = []
    for i in range(8):
        once = stream(1 + i * part, part)
        blocks.append(both(once, once))
    assert pass_through(l2, *blocks).miss_rate > 0.99
    l2.flush()
    assert l2.launch([[block] for block in blocks]).traffic.miss_rate == 0.5


def test_parts_of_a_launch(l2: L2) -> None:
    """Read twice: the first half misses, the second hits."""
    once = stream(1, LINES // 2)
    served = l2.launch([[both(once, once)]])
    (parts,) = served.rounds
    assert len(parts) == 8
    assert [part.miss_rate for part in parts] == [1] * 4 + [0] * 4
    assert sum(part.read_bytes for part in parts) == served.traffic.read_bytes


def test_blocks_that_read_the_same_lines() -> None:
    l2 = L2(MACHINE, 1 << 28)
    apart = pass_through(l2, stream(1, 100), stream(101, 100))
    half = pass_through(l2, stream(1, 100), stream(51, 100))
    same = pass_through(l2, *[stream(1, 100)] * 4)
    assert [t.others for t in (apart, half, same)] == [0, 0.5, 3]

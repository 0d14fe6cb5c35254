"""The shares of the bandwidth and the port of L1, apart from the rest."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.simulator.core.forms import Decoder
from davinci.simulator.core.tables import Tables
from davinci.simulator.timing.gm_model import Rates, competing, nearest, rates_of
from davinci.simulator.timing.l2 import UNCACHED, LaunchTraffic
from davinci.simulator.timing.layout import LIBRARY, MISSING
from davinci.simulator.timing.timeline import Timeline

MACHINE = machine.load("ascend910")
WHOLE = MACHINE.cores
TABLES = Tables(MACHINE, Decoder(MACHINE, "AICORE"))


class Share:
    """A time line's share of global memory, and its port of L1."""

    def __init__(self, rates: Rates) -> None:
        self._timeline = Timeline(TABLES, False, rates)

    def claim(self, pipe: int, start: int, read: int, write: int) -> int:
        return self._call("claim", pipe, start, read, write)

    def fill(self, start: int, end: int, size: int) -> None:
        self._call("fill", start, end, size)

    def stalls(self, start: int, cycles: int) -> int:
        return self._call("stalls", start, cycles)

    @property
    def missing(self) -> float:
        return float(self._timeline.doubles[MISSING])

    def _call(self, name: str, *arguments: int) -> int:
        timeline = self._timeline
        return int(LIBRARY.call(name, timeline.state, timeline.doubles, *arguments))


HITS = LaunchTraffic(1, 1, 0, 0, missing=0)
READS_MISS = LaunchTraffic(1, 1, 1, 0)


def test_idle_time_is_caught_up_with_but_not_all_of_it() -> None:
    rates = rates_of(MACHINE, WHOLE)
    share = Share(rates)
    assert share.claim(0, 10, 32, 0) == 11
    # Its share of the last cycles is not used up: nothing delays it.
    assert share.claim(0, 1000, 3200, 0) == 111
    credit = rates.idle_credit_cycles
    assert share.claim(0, 10_000, 32 * credit, 0) == 10_000
    assert share.claim(0, 10_000, 32, 0) == 10_001


def test_transfers_use_what_those_of_other_pipes_left() -> None:
    share = Share(rates_of(MACHINE, WHOLE))
    assert share.claim(0, 10, 32, 0) == 11
    assert share.claim(0, 5000, 6400, 0) == 3200
    # Issued later, but earlier in time: it fits before, or goes on behind.
    assert share.claim(1, 3000, 0, 3200) == 1100
    assert share.claim(1, 4900, 0, 6400) == 3300


def test_reads_of_the_memory_and_writes_to_the_l2_pass_at_the_same_time() -> None:
    share = Share(rates_of(MACHINE, WHOLE, READS_MISS))
    assert share.claim(0, 0, 3200, 0) == 100
    # What is read passes the L2 too, but soon.
    assert share.claim(1, 0, 0, 860) == 30 + 10
    assert share.claim(1, 0, 0, 860) == 30 + 20
    assert share.claim(0, 0, 3200, 0) == 200


def test_parts_of_a_launch_have_their_own_rates() -> None:
    share = Share(rates_of(MACHINE, WHOLE, UNCACHED, [UNCACHED, HITS], [11_000, 22_000]))
    assert share.claim(0, 0, 11_000, 0) == pytest.approx(11_000 / 32, abs=1)
    assert share.missing == 1
    begin = 100_000
    rates = MACHINE.gm.idle_credit_cycles
    assert share.claim(0, begin, 11_000, 0) == begin - rates + 100
    assert share.missing == 0


def test_a_transfer_in_several_parts() -> None:
    """A half in the first one, a quarter each in two that the L2 has."""
    parts, ends = [UNCACHED, HITS, HITS, UNCACHED], [10_000, 20_000, 30_000, 40_000]
    share = Share(rates_of(MACHINE, WHOLE, UNCACHED, parts, ends))
    assert share.claim(0, 0, 5_000, 0) == pytest.approx(5_000 / 32, abs=1)
    before = 5_000 / 32
    assert share.claim(0, 0, 20_000, 0) == pytest.approx(before + 5_000 / 32, abs=1)
    assert share.missing == 0.25
    # Behind the last part its rates hold.
    share.claim(0, 0, 5_000, 0)
    share.claim(0, 0, 20_000, 0)
    assert share.missing == 1


def test_what_leaves_for_reads_is_written_meanwhile() -> None:
    both = LaunchTraffic(512, 0, 512, 512, 512)
    (part,) = rates_of(MACHINE, WHOLE, both).parts
    assert part.memory == (1 / 32 + 1 / 32, 0)


def test_parts_without_reads_or_writes_have_the_rates_beside_them() -> None:
    assert nearest([False, True, False, False, True]) == [1, 1, 1, 1, 4]
    assert nearest([False, False]) == [0, 1]
    reads, writes = LaunchTraffic(1, 0, 1, 0), LaunchTraffic(0, 1, 0, 0.5)
    first, second = rates_of(MACHINE, WHOLE, UNCACHED, [writes, reads], [50, 100]).parts
    assert first.memory == second.memory == (1 / 32, 0.5 / 32)


def test_cores_that_read_the_same_lines_wait_for_each_other() -> None:
    three = rates_of(MACHINE, WHOLE, LaunchTraffic(1, 1, 0, 0, others=3))
    assert three.stretch == pytest.approx(1 + 3 * MACHINE.gm.same_line_percent / 100)


def test_rates_of_memory_and_l2() -> None:
    (part,) = rates_of(MACHINE, WHOLE).parts
    assert part.memory == (1 / 32, 1 / 32)
    assert part.l2 == pytest.approx((1 / 110, 1 / 86))
    assert rates_of(MACHINE, WHOLE).needs == (True, False)
    assert rates_of(MACHINE, WHOLE, HITS).needs == (False, True)
    assert rates_of(MACHINE, WHOLE, READS_MISS).needs == (True, True)
    assert rates_of(MACHINE, WHOLE / 2).parts[0].memory == (1 / 64, 1 / 64)


def test_a_core_that_moves_less_competes_for_less_time() -> None:
    assert competing(100, [100] * 4) == 4
    # Half of the cores leave after half of its time.
    assert competing(100, [100, 100, 50, 50]) == 3
    assert competing(50, [100, 100, 50, 50]) == 4
    assert competing(100, [100, 0]) == 1


def test_what_comes_into_l1_takes_cycles_from_loads() -> None:
    port = Share(rates_of(MACHINE, WHOLE))
    assert MACHINE.mte1.stall_bytes == 640
    assert port.stalls(0, 100) == 0
    port.fill(100, 200, 12_800)  # 20 cycles of 100
    assert port.stalls(0, 100) == 0
    assert port.stalls(100, 80) == 20
    assert port.stalls(150, 80) == 10
    assert port.stalls(50, 90) == 10
    assert port.stalls(200, 80) == 0

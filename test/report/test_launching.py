"""What launching takes, by the host and queued on the device."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.machine.host import HostLink
from davinci.report.launching import HOST, QUEUED, gaps_us, link_waits_us
from davinci.simulator import LaunchProfile
from davinci.simulator.timing.profile import BlockProfile, Fetch

A2 = machine.load("ascend910b")


def on(*places: int) -> LaunchProfile:
    """A launch on these cores: of each three the first is a cube core."""
    blocks = [BlockProfile(place, block, 1, {}) for block, place in enumerate(places)]
    return LaunchProfile("k", len(places), cores=len(places), per_block=blocks)


VECTORS = [place for place in range(72) if place % 3]


def test_small_vector_kernels_follow_each_other() -> None:
    """Measured: about 2.15 us back to back."""
    first, second = gaps_us(A2, [on(1), on(1)], QUEUED)
    assert second == pytest.approx(2.15, rel=0.25)
    assert first > 10


def test_all_cores_launched_by_the_host() -> None:
    """Measured: 20 to 21 us, 1 to 5 more on cube and vector cores."""
    (alone,) = gaps_us(A2, [on(*VECTORS)], HOST)
    (mixed,) = gaps_us(A2, [on(*range(72))], HOST)
    assert alone == pytest.approx(20.5, rel=0.2)
    assert 1 <= mixed - alone <= 5


def test_the_host_launches_once_what_is_queued() -> None:
    launches = [on(*VECTORS[:24])] * 5
    queued, host = gaps_us(A2, launches, QUEUED), gaps_us(A2, launches, HOST)
    assert queued[0] == host[0] and len(set(host)) == 1
    assert len(set(queued[1:])) == 1 and queued[1] == pytest.approx(0.55 + 1 + 3.5)


def test_transfers_use_the_link_one_after_the_other() -> None:
    """Of 100 us each: the second begins behind the first, the third when its place is free."""
    link = HostLink(gigabytes_per_second=1.0, latency_us=20.0)
    described = A2.model_copy(update={"host_link": link})
    launches = [[on(1)] for _ in range(4)]
    for number, behind in ((0, 0), (1, 0), (3, 2)):
        launches[number][0].fetches = (Fetch(80_000, behind),)
    waits = link_waits_us(described, launches, times=[10.0] * 4, gaps=[5.0] * 4)
    # 100: the first is there, its launch is over at 110; 200: the second; 210 and 225: ends;
    # the third comes from 210 to 310, where launch 3 could have begun at 230.
    assert waits == [95.0, 85.0, 0.0, 80.0]

"""Launches whose cores meet: judged without running them as the simulator judges them.

`benchmarks/proofs/launch_mutations.py` does the same for thousands of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from davinci import zoo
from fuzz.flag_meetings import FlagMeetings, random_launch
from fuzz.talking_kernels import talking
from fuzz.talking_launches import OVER_LINES, Launch, Op, fault, judge, load, poll, post, write
from fuzz.talking_mutation import Tally, judge_compiled, judged, judged_by_flags
from talking_support import Talking

MEETING: Launch = tuple((write(i, i), post(i, 1), poll(0, 2, 1), load(1 - i, 0)) for i in range(2))


def test_random_launches_with_one_thing_changed(new_asm: Callable[[], Any]) -> None:
    tally = judged(100, np.random.default_rng(3), new_asm)
    assert tally.wrong == []
    kinds = {kind for kind, outcome in tally.counts if outcome == "unsafe, refused"}
    assert kinds >= {"flag", "count", "core set", "placement", "order"}
    assert any(outcome == "safe, accepted" for kind, outcome in tally.counts if kind == "order")


def test_meetings_by_flags_with_one_thing_changed(new_asm: Callable[[], Any]) -> None:
    """Each kind of change is found where it matters, and is let be where it does not."""
    tally = judged_by_flags(150, np.random.default_rng(1), new_asm, every=25)
    assert tally.wrong == []
    kinds = {kind for kind, outcome in tally.counts if outcome == "unsafe, refused"}
    assert kinds >= {"flag", "number", "core set", "placement", "order"}
    assert any(outcome == "safe, accepted" for kind, outcome in tally.counts if kind == "order")


def test_a_meeting_without_a_core_or_by_another_flag(new_asm: Callable[[], Any]) -> None:
    rig = FlagMeetings(new_asm)
    launch = next(
        found
        for found in map(random_launch, map(np.random.default_rng, range(20)))
        if {member.seat.kind for member in found} == {"AIC", "AIV"}
    )
    assert (rig.judge(launch), rig.fault(launch)) == ("", "")
    for i, member in enumerate(launch):
        missing = (*launch[:i], replace(member, ops=()), *launch[i + 1 :])
        assert rig.judge(missing) and rig.fault(missing)
        ops = tuple(Op("await", (3,)) if op.name == "await" else op for op in member.ops)
        other = (*launch[:i], replace(member, ops=ops), *launch[i + 1 :])
        assert rig.judge(other) and rig.fault(other)


def test_compiled_cores_that_share_lanes() -> None:
    tally = Tally()
    for kernel in talking(zoo.build("lstm,steps=2,features=16,hidden=256"), 4):
        judge_compiled(kernel, tally, every=80)
    assert (tally.kernels, tally.wrong) == (1, [])
    assert tally.counts["flag", "unsafe, refused"] > 5


@pytest.mark.parametrize(
    ("unit", "message", "said"),
    [
        (write(OVER_LINES, 5), "race", "race between cores"),
        (load(OVER_LINES, 1), "", ""),
        (poll(0, 2, 2), "deadlock", "deadlock"),
        (poll(0, 3, 1), "deadlock", "deadlock"),
        (post(0, 1), "flags or counters", "a counter that other blocks wait for does not grow"),
        ((), "", ""),
    ],
)
def test_what_is_wrong_is_found_both_ways(
    new_asm: Callable[[], Any], unit: Any, message: str, said: str
) -> None:
    rig = Talking(new_asm)
    launch = ((*MEETING[0], unit), MEETING[1])
    assert (judge(rig, launch, new_asm), fault(rig, launch)) == (message, said)


@pytest.mark.parametrize("ordered", [True, False])
def test_what_a_look_loads_is_behind_the_counters(
    new_asm: Callable[[], Any], ordered: bool
) -> None:
    rig = Talking(new_asm)
    launch = tuple((*MEETING[i][:2], poll(0, 2, 1, 1 - i, 0, int(ordered))) for i in range(2))
    expected = ("", "") if ordered else ("race", "race between cores")
    assert (judge(rig, launch, new_asm), fault(rig, launch)) == expected


def test_more_blocks_than_cores_never_all_come(new_asm: Callable[[], Any]) -> None:
    rig = Talking(new_asm)
    launch: Launch = tuple((post(i, 1), poll(0, 33, 1)) for i in range(33))
    assert judge(rig, launch, new_asm) == "more blocks than cores"
    assert fault(rig, launch).startswith("blocks that wait for each other do not all run")

"""Lost cycles and critical paths: they add up, and they name what was waited for."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import pytest

from davinci.report.critical import BARRIER, FLAG, ISSUE, RUN, critical_path
from davinci.report.waits import Wait, waits
from davinci.simulator import LaunchProfile
from report_support import (
    DEPTH,
    MTE2,
    MTE3,
    Line,
    M,
    S,
    V,
    busy_program,
    copy_in,
    dup,
    flag,
    launch,
    mad,
)

PROGRAMS: dict[str, list[Line]] = {
    "busy": busy_program(),
    "one": [dup(5)],
    "scalar": [dup(100), *flag(V, S), dup(3)],
    "queue": [*[dup(78)] * (DEPTH + 4), mad(16)],
    "early wait": [("wait_flag", flag(M, V)[1][1]), dup(9), mad(64), flag(M, V)[0]],
    "barriers": [dup(9), ("pipe_barrier", {"pipe": int(V)}), dup(9), mad(64)],
}


@pytest.fixture(params=PROGRAMS)
def profile(request: pytest.FixtureRequest) -> LaunchProfile:
    return launch("k", PROGRAMS[request.param])


def test_each_pipe_is_booked_to_the_last_cycle(profile: LaunchProfile) -> None:
    sums: dict[str, int] = defaultdict(int)
    for wait, cycles in waits(profile.rows, profile.cycles).items():
        assert cycles >= 0
        sums[wait.pipe] += cycles
    assert set(sums) == {row.pipe for row in profile.rows}
    assert set(sums.values()) == {profile.cycles}


def test_critical_path_is_whole(profile: LaunchProfile) -> None:
    path = critical_path(profile.rows)
    assert path[-1].end == profile.cycles
    assert path[0].start == 0
    for before, after in pairwise(path):
        assert before.end == after.start


def test_no_rows_have_no_path() -> None:
    assert critical_path([]) == []


def test_a_flag_is_blamed_on_what_it_waited_for() -> None:
    profile = launch("k", [copy_in(), *flag(MTE2, V), dup(10), *flag(V, MTE3), dup(4)])
    found = waits(profile.rows, profile.cycles)
    held = {row.pipe: row.free - row.start for row in profile.rows if row.mnemonic == "wait_flag"}
    copy = Wait("PIPE_V", "flag", "PIPE_MTE2", "copy_gm_to_ubuf", "k.mlir:7:3", 0)
    assert found[copy] == held["PIPE_V"] > 265
    fill = Wait("PIPE_MTE3", "flag", "PIPE_V", "vector_dup.f32", "k.mlir:7:3", 0)
    assert found[fill] == held["PIPE_MTE3"] > found[copy]
    kinds = [segment.kind for segment in critical_path(profile.rows)]
    assert kinds[:4] == [ISSUE, RUN, FLAG, RUN]


def test_a_full_queue_is_blamed_on_the_instruction_in_it() -> None:
    profile = launch("k", PROGRAMS["queue"])
    found = waits(profile.rows, profile.cycles)
    held = {w: c for w, c in found.items() if (w.pipe, w.kind) == ("PIPE_M", "queue")}
    assert {w.mnemonic for w in held} == {"vector_dup.f32"}
    assert sum(held.values()) > 200


def test_a_barrier_is_on_the_path() -> None:
    profile = launch("k", [dup(200), ("pipe_barrier", {"pipe": int(V)}), dup(9)])
    kinds = [segment.kind for segment in critical_path(profile.rows)]
    assert kinds == [ISSUE, RUN, BARRIER, RUN]
    found = waits(profile.rows, profile.cycles)
    assert {w.kind for w in found} - {"done"} == {"issue", "run", "barrier"}


def test_the_scalar_unit_holds_up_the_others() -> None:
    profile = launch("k", [dup(100), *flag(V, S), mad(16)])
    found = waits(profile.rows, profile.cycles)
    held = {w: c for w, c in found.items() if (w.pipe, w.kind) == ("PIPE_M", "scalar")}
    assert {w.mnemonic for w in held} == {"vector_dup.f32"}


@pytest.mark.parametrize(("blocks", "longer"), [(1, False), (32, True)])
def test_shared_bandwidth_is_booked_apart(blocks: int, longer: bool) -> None:
    """8 KB take 64 cycles through a core's port, longer when 32 cores share the memory."""
    profile = launch("k", [copy_in()], blocks=blocks)
    rows = [row for row in profile.rows if row.block == 0]
    found = waits(rows, profile.per_block[0].cycles)
    kinds = {wait.kind: cycles for wait, cycles in found.items()}
    assert (kinds.get("memory", 0) > 0) == longer
    assert kinds["run"] == 64

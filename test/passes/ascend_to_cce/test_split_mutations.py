"""Mutants of kernels whose cube and vector cores run programs of their own: a part of what
`benchmarks/proofs/split_mutations.py` judges."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from davinci.isa.core import Space
from fuzz.hivm_mutation import HivmOutcomes, MutatedLaunch, judge
from fuzz.recorded_launches import RecordedLaunch, record_launches
from fuzz.slot_mutation import judge_slots, reads_unwritten, results, shifted, shifts
from fuzz.split_kernels import made


def launches(name: str) -> list[RecordedLaunch]:
    executable, inputs = made(name)
    return record_launches(name, lambda: executable.run(inputs))


@pytest.mark.parametrize(
    "name", ["product-split-k", "product-laid-out", "product-stream-k-followed", "product-followed"]
)
def test_missing_synchronisation_is_reported(name: str) -> None:
    outcomes = HivmOutcomes()
    for launch in launches(name):
        judge(MutatedLaunch(launch), outcomes, every=97)
    assert not outcomes.wrong
    assert outcomes.total("reported") > 0


@pytest.fixture(scope="module")
def attention() -> Iterator[MutatedLaunch]:
    (launch,) = launches("attention-rings")
    yield MutatedLaunch(launch)


def test_other_slots_of_rings_are_reported(attention: MutatedLaunch) -> None:
    """In memories of a core, and in global memory, where cores hand tiles to each other."""
    outcomes = HivmOutcomes()
    judge_slots(attention, outcomes, every=389)
    assert not outcomes.wrong
    assert outcomes.total("reported") > outcomes.mutants // 3
    assert {Space.GM, Space.L1, Space.UB} <= {space for space, *_ in shifts(attention)}


def test_what_a_simulator_does_not_report_escapes(
    attention: MutatedLaunch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MutatedLaunch, "fault", lambda self, programs: "")
    outcomes = HivmOutcomes()
    judge_slots(attention, outcomes, every=389)
    assert outcomes.total("escaped") and "escaped" in outcomes.wrong[0]


def test_reads_of_what_nobody_wrote_are_found(attention: MutatedLaunch) -> None:
    """Without the transfers to L1 its loads find nothing."""
    assert not reads_unwritten(attention)
    mutant = copy.copy(attention)
    mutant.steps = [
        [step for step in steps if all(part.space != Space.L1 for part in step.writes)]
        for steps in attention.steps
    ]
    assert reads_unwritten(mutant)


def test_another_slot_gives_another_result(attention: MutatedLaunch) -> None:
    """One operand of one instruction is elsewhere, and the launch itself is as it was."""
    before = results(attention)
    space, (core, i, word), address = next(x for x in shifts(attention) if x[0] == Space.L1)
    mutant = shifted(attention, (core, i, word), address)
    assert mutant.streams[core][i, word] == address != attention.streams[core][i, word]
    places = [(a.space, a.address) for part in mutant.steps[core][i].accesses for a in part]
    assert (space, address) in places
    assert results(mutant) != before == results(attention)

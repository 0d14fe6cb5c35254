"""Flags and barriers of kernels of AscendNPU-IR removed or moved; the whole of it is
benchmarks/proofs/hivm_mutations.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import davinci
from davinci.frontends.hivm import launch
from fuzz.hivm_mutation import HivmOutcomes, MutatedLaunch, judge, table
from fuzz.recorded_launches import RecordedLaunch, record_launches
from reported_kernels import Report, inputs_of


def recorded(name: str) -> RecordedLaunch:
    """The correct twin of a reported kernel as it ran."""
    report = Report(Path(__file__).parent / "reports" / f"{name}.txt")
    module = launch(report.text(twin=True), [report.grid], report.given)
    executable = davinci.compile(module, machine="ascend910b")
    (found,) = record_launches(name, lambda: executable.run(inputs_of(report)))
    return found


@pytest.mark.parametrize(
    ("name", "every"), [("ptoas_934", 1), ("ptoas_1519", 5), ("ptoas_564", 7), ("tilelang_1665", 9)]
)
def test_mutants_are_reported_if_and_only_if_they_are_wrong(name: str, every: int) -> None:
    outcomes = HivmOutcomes()
    judge(MutatedLaunch(recorded(name)), outcomes, every)
    assert outcomes.wrong == []
    assert outcomes.total("reported") and outcomes.total("redundant")
    assert table(outcomes)[-1].split()[:2] == ["all", str(outcomes.mutants)]


def test_a_simulator_that_reports_nothing_lets_mutants_escape(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MutatedLaunch, "fault", lambda self, programs: "")
    outcomes = HivmOutcomes()
    judge(MutatedLaunch(recorded("ptoas_934")), outcomes)
    assert outcomes.total("escaped") and "escaped" in outcomes.wrong[0]


def test_a_simulator_that_reports_everything_raises_false_alarms(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MutatedLaunch, "fault", lambda self, programs: "race: always")
    outcomes = HivmOutcomes()
    judge(MutatedLaunch(recorded("ptoas_934")), outcomes)
    assert "as it is: false alarm" in outcomes.wrong[0]

"""Races and deadlocks that people reported of kernels for this hardware, rebuilt from their
descriptions: each is found, with the lines of both instructions, and its correct twin runs.

What goes wrong in each is in the first lines of its file in `reports/`.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.errors import DeviceFault
from davinci.frontends.hivm import launch
from reported_kernels import Report, inputs_of

REPORTS = sorted((Path(__file__).parent / "reports").glob("*.txt"))


def run(report: Report, twin: bool, **scalars: int) -> dict[str, np.ndarray]:
    module = launch(report.text(twin), [report.grid], report.given, where=report.path.name)
    executable = davinci.compile(module, machine="ascend910b")
    changed = {name: np.int32(value) for name, value in scalars.items()}
    return executable.run({**inputs_of(report), **changed})


@pytest.mark.parametrize("path", REPORTS, ids=[path.stem for path in REPORTS])
def test_reported(path: Path) -> None:
    report = Report(path)
    (fault,) = report.said("fault")
    with pytest.raises(DeviceFault, match=fault) as raised:
        run(report, twin=False)
    named = {int(n) for n in re.findall(rf"{re.escape(path.name)}:(\d+):", str(raised.value))}
    assert report.marked <= named, str(raised.value)
    if fault == "race":
        assert named == report.marked


@pytest.mark.parametrize("path", REPORTS, ids=[path.stem for path in REPORTS])
def test_correct_twin(path: Path) -> None:
    report = Report(path)
    outputs = run(report, twin=True)
    for line in report.said("expect"):
        name, _, expression = line.partition(" = ")
        values = {**inputs_of(report), "np": np}
        np.testing.assert_array_equal(outputs[name], eval(expression, values), err_msg=name)


def test_a_loop_without_iterations_and_one_with_some() -> None:
    """Only the first lacks the order: who tests with one iteration never sees it."""
    report = Report(Path(__file__).parent / "reports" / "ptoas_533.txt")
    run(report, twin=False, n=1)

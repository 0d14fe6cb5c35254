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


HANDED_OVER = """in x f32 16
out s f32 8
out y f32 16
core aic
l1 a 0 f32 1x1x16x16
await MTE2 1
core aiv
sub half
ub a 0 f32 8
for i 2
- load x[half*8] a
+ load x[i*8] a
set MTE2 MTE3 0
wait MTE2 MTE3 0
store a s !
set MTE3 MTE2 0
wait MTE3 MTE2 0
end
signal MTE3 1
barrier ALL
"""


def test_both_vector_cores_may_hand_over_the_same(tmp_path: Path) -> None:
    """As the other compiler does with a scalar for the cube core; not two different ones."""
    path = tmp_path / "handed_over.txt"
    path.write_text(HANDED_OVER.replace("for i 2\n", "").replace("end\n", "").replace("i*8", "0"))
    report = Report(path)
    assert np.array_equal(run(report, twin=True)["s"], inputs_of(report)["x"][:8])
    with pytest.raises(DeviceFault, match="race between cores: AIV 1 of block 0 writes"):
        run(report, twin=False)
    path.write_text(HANDED_OVER)
    with pytest.raises(DeviceFault, match="race between cores"):
        run(report, twin=True)

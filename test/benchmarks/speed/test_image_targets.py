"""The table of what is wanted of networks of images: figures of a record, and which are good."""

from __future__ import annotations

from typing import Any

import pytest

RECORD = {
    "total_cycles": 2000,
    "clock_mhz": 1000,
    "ops": {"total": 3},
    "limits": {"macs_f16": 8192},
    "kernels": [{"work": {"macs": 4096000}, "launches": 2}, {"work": {}, "launches": 1}],
}


@pytest.mark.parametrize(
    ("figure", "wanted"),
    [("cycles", 2000), ("launches", 3), ("ms", 0.002), ("images/s", 8e6), ("cube", 0.5)],
)
def test_figures(figure: str, wanted: float, benchmark_script: Any) -> None:
    found = benchmark_script("image_targets").of_record(RECORD, figure, batch=16)
    assert found == pytest.approx(wanted)


def test_rows(benchmark_script: Any) -> None:
    targets = benchmark_script("image_targets")
    least = targets.Row("resnet18,batch=16", "ascend310", 2, "images/s", 1510)
    most = targets.Row("resnet18", "ascend310", 2, "ms", 1.27)
    assert least.good(1511) and not least.good(1509)
    assert most.good(1.2) and not most.good(1.3)
    assert targets.batch_of(least.name) == 16 and targets.batch_of(most.name) == 1


def test_a_small_network(benchmark_script: Any) -> None:
    targets = benchmark_script("image_targets")
    row = targets.Row("mlp,layers=2,features=64,hidden=64", "ascend910", 4, "launches", 2, "fp16")
    assert row.found() == 2

"""Rows of the table of tuned kernels: what is computed, and from which state of the L2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from davinci.errors import DavinciError


@pytest.fixture(scope="module")
def tuned(benchmark_script: Any) -> Any:
    return benchmark_script("tuned")


def row_named(tuned: Any, name: str) -> Any:
    return next(row for row in tuned.ROWS if row.name == name)


@pytest.mark.parametrize("name", ["layer norm", "RMS norm", "causal attention"])
def test_small_sizes_are_right(tuned: Any, name: str) -> None:
    row = row_named(tuned, name)
    small = (1, 64, 64) if "attention" in name else (16, 256)
    tuned.compared(replace(row, small=small))


def test_wrong_numbers_are_found(tuned: Any) -> None:
    row = row_named(tuned, "softmax")
    wrong = replace(row.operators, values=lambda x: 1.1 * row.operators.values(x))
    with pytest.raises(DavinciError):
        tuned.compared(replace(row, operators=wrong, small=(16, 64)))


def test_warm_takes_less_than_cold(tuned: Any) -> None:
    row = replace(row_named(tuned, "gelu"), sizes=(96, 1024))
    cold, warm = (tuned.cycles(replace(row, state=state)) for state in ("cold", "warm"))
    assert 0 < warm < cold

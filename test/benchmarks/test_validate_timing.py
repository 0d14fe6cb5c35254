"""The simulator stays within the published measurements; the long rows are left to the script."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def published() -> Iterator[Any]:
    sys.path.insert(0, str(BENCHMARKS))
    yield importlib.import_module("published")
    sys.path.remove(str(BENCHMARKS))


@pytest.mark.parametrize("group", ["chained_mads", "transfers"])
def test_single_instructions(published: Any, group: str) -> None:
    for row in getattr(published, group)():
        assert row.good or row.missing, row


@pytest.mark.parametrize("group", ["isolated", "bank_conflicts", "addition_times"])
def test_vector_unit(published: Any, group: str) -> None:
    vector = importlib.import_module("published_vector")
    for row in getattr(vector, group)():
        assert row.good or row.missing, row


def test_products_of_one_core(published: Any) -> None:
    products = importlib.import_module("published_products")
    for _, how, columns, measured in products.PRODUCTS[:2]:
        times = products.product(how, columns // 2)
        found = (times.cube, times.mte1, times.mte2, times.longest)
        for real, simulated, target in zip(measured, found, products.TARGETS, strict=True):
            assert simulated == pytest.approx(real, rel=target)


def test_reading_tiles(published: Any) -> None:
    for rows, columns, measured in ((64, 64, 220.8), (64, 1024, 202.7)):
        time = published.reading(published.VECTOR_CORES, rows, columns, parts=4)
        assert time == pytest.approx(measured, rel=0.15)


def test_the_page_is_made_from_the_rows(published: Any) -> None:
    sys.path.insert(0, str(BENCHMARKS))
    script = importlib.import_module("validate_timing")
    rows = list(published.transfers())
    page = script.PAGE.read_text(encoding="utf-8")
    for line in script.table(rows):
        assert line.strip() in page

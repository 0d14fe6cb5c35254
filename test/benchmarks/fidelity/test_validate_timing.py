"""The simulator stays within the published measurements; the long rows are left to the script."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import pytest


@pytest.fixture(scope="module")
def published(benchmark_script: Any) -> Any:
    return benchmark_script("published")


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
        columns = zip(products.NAMES, measured, times.columns, products.TARGETS, strict=True)
        for pipe, real, simulated, target in columns:
            assert pipe == "fixpipe" or simulated == pytest.approx(real, rel=target)


def test_memory(published: Any) -> None:
    """The rows that take little time to simulate, on a part of the data."""
    memory = importlib.import_module("published_memory")
    for name, measured, how, _ in memory.READINGS:
        if name.startswith(("to UB, tiles of 64", "to L1, tiles of 64")):
            time = memory.reading(dataclasses.replace(how, parts=4))
            assert time == pytest.approx(measured, rel=0.15), name


def test_inputs_past_the_l2(published: Any) -> None:
    memory = importlib.import_module("published_memory")
    double = memory.one_after_the_other(32 * published.KB, 2)
    time = memory.addition(48, 32 * published.KB, double, bypass=memory.BYPASS)
    assert time == pytest.approx(187.7, rel=0.15)


def test_the_page_is_made_from_the_rows(published: Any) -> None:
    script = importlib.import_module("validate_timing")
    rows = list(published.transfers())
    page = script.PAGE.read_text(encoding="utf-8")
    for line in script.table(rows):
        assert line.strip() in page


def test_marks_name_keys_of_the_machine_file(published: Any) -> None:
    """And rows that exist."""
    products = importlib.import_module("published_products")
    memory = importlib.import_module("published_memory")
    vector = importlib.import_module("published_vector")
    versions = {name.split(",")[0] for name, *_ in products.PRODUCTS}
    for name, pipe in (row for rows in products.FITTED.values() for row in rows):
        assert name in versions and pipe in products.NAMES
    marks = [published.evidence(keys) for keys in products.FITTED]
    marks += [published.evidence(keys) for *_, keys in memory.READINGS]
    marks += [mark for *_, mark in (*vector.SINGLE, *vector.FITS)]
    marks += [scenario[2] for scenario in vector.SCENARIOS]
    for mark in marks:
        kind, _, keys = mark.partition(": ")
        assert kind in published.MARKS
        section = ""
        for key in filter(None, keys.split(", ")):
            section, name = key.split(".") if "." in key else (section, key)
            assert name in type(getattr(published.MACHINE, section)).model_fields, mark


def test_rows_are_counted_by_mark(published: Any) -> None:
    script = importlib.import_module("validate_timing")
    good = published.Row("g", "a", "us", 100, 101, 0.05)
    bad = published.Row("g", "b", "us", 100, 120, 0.05, evidence=published.evidence("gm.bytes"))
    _, _, *counts, said = script.summary([good, bad])
    assert counts == [
        "| fitted | 1 | 1 | 0 |",
        "| seen | 1 | 1 | 1 |",
        "| independent | 0 | 0 | 0 |",
        "| all | 2 | 2 | 1 |",
    ]
    assert said.endswith("; 1 rows are outside.")


def test_a_product_with_k_split(published: Any) -> None:
    """Its cube and vector cores end, and parts of k are as many as steps or cores."""
    split = importlib.import_module("published_split")
    assert [how.parts for how, _ in split.MEASURED] == [2, 4, 8, 16, 20, 5]
    for how, measured in (split.MEASURED[3], split.MEASURED[4]):
        assert split.task(how) == pytest.approx(measured, rel=0.15)
        steps = [step for part in range(how.parts) for step in how.steps(part)]
        assert steps == list(range(how.depth // split.STEP_K))


def test_attention_of_a_decode_step(published: Any) -> None:
    """It has the published sizes, and a kernel on one core takes longer than on all of them."""
    kernels = importlib.import_module("published_kernels")
    split, alone = (k for k in kernels.ON_910 if k.operator == kernels.ATTENTION)
    assert split.shapes == alone.shapes == ((1, 6, 256), (1, 4097, 256), (1, 4097, 256))
    rows = [kernels.row("g", kernel, "ascend910", "") for kernel in (split, alone)]
    assert rows[1].simulated > 3 * rows[0].simulated
    assert all(row.good or row.missing for row in rows)


def test_the_round_before_is_beside_what_is_foretold(published: Any) -> None:
    foretelling = importlib.import_module("foretelling")
    assert set(foretelling.BEFORE) == set(foretelling.GROUPS)
    assert foretelling.before(foretelling.V4) == "7.0% | 79.0%"
    assert foretelling.before("another group") == "- | -"

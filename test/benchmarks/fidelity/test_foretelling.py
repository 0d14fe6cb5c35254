"""The machine file that is made without a group of measurements."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def script(benchmark_script: Any) -> Any:
    return benchmark_script("foretelling")


def test_numbers_are_those_of_the_file(script: Any) -> None:
    data = script.published.MACHINE.model_dump()
    for number in script.NUMBERS:
        new = number.key == ("vector", "cycles_per_repeat", "vexp.f16")
        assert new or script._value(data, number.key) is not None, number.key
        assert number.groups and set(number.groups) <= set(script.GROUPS)
        choice = number.key == ("l2", "separate_writes")
        found = script._value(script.with_number(data, number.key, 7), number.key)
        assert found == (1 if choice else 7)


def test_a_number_is_found_again_from_other_rows(script: Any) -> None:
    data = script.published.MACHINE.model_dump()
    (number,) = [n for n in script.NUMBERS if n.key[-1] == "vdiv"]
    wrong = script.with_number(data, number.key, 60)
    found = script.fitted(wrong, number, [script.single("TDIV f32")])
    assert script._value(found, number.key) == pytest.approx(29, abs=1)
    assert data == script.published.MACHINE.model_dump(), "nothing else changes"


def test_a_group_without_its_numbers(script: Any) -> None:
    data, changed = script.without(script.SEVERAL)
    assert list(script.changes(data, changed)) == [
        "`vector.overlap_cycles` 7 → 0",
        "`vector.copy_bytes_per_cycle` 32 → 256",
        "`vector.copy_bursts_at_once` 8 → 1",
        "`sync.barrier_cycles` 2 → 14",
        "`vector.fixed_cycles_of` of 3 instructions → none",
    ]
    (before, *_), (after, *_) = (
        script.rows_on(d, script.GROUPS[script.SEVERAL])
        for d in (script.published.MACHINE.model_dump(), data)
    )
    assert after.simulated > before.simulated


def test_groups_that_gave_no_number_are_foretold_as_they_stand(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "GROUPS", {})
    rows = [
        script.Row("a group", name, "us", 100, found, 0.1)
        for name, found in (("a", 90), ("b", 120))
    ]
    *_, line = script.foretold(rows)
    assert line == "| a group | 2 | none | 15.0% | 20.0% | 15.0% | 20.0% | - | - |"

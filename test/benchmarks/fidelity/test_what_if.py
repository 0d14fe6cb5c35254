"""The script that holds what is foretold against a changed machine file changes what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from davinci import machine as machines


@pytest.fixture(scope="module")
def script(benchmark_script: Any) -> Any:
    return benchmark_script("what_if")


def test_one_number_of_the_file_changes(script: Any, tmp_path: Path) -> None:
    old = machines.load("ascend910").model_dump()
    for key, _, times in script.CHANGES:
        new = machines.load(str(script.changed_file("ascend910", key, times, tmp_path)))
        section, number = key.split(".")
        expected = {**old, section: {**old[section], number: round(old[section][number] * times)}}
        assert new.model_dump() == expected


def test_a_saved_program_runs_on_the_changed_machine(script: Any, tmp_path: Path) -> None:
    model = tmp_path / "product.mlir"
    model.write_text(script.PRODUCT.replace("512", "16").replace("768", "16"))
    executable = script.compiled(str(model), "ascend910")
    before, saved = script.cycles_of(executable), tmp_path / "program.davinci"
    executable.save(saved)
    path = script.changed_file("ascend910", "mte3.start_cycles", 0, tmp_path)
    (row,) = executable.what_if("mte3.start_cycles=0")
    after = script.cycles_of(script.on_another_machine(saved, path))
    assert after == row["cycles"] < before

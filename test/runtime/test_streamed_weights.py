"""Weights that the host brings while kernels run: the same numbers in fewer bytes, later."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci import zoo
from davinci.arrays import random_inputs
from davinci.errors import CompileError, InputError
from davinci.runtime import saved


def compiled(weights: str = "streamed", machine: str = "ascend310", **options: Any) -> Any:
    return davinci.compile(zoo.build("mlp"), machine=machine, weights=weights, **options)


def answers(executable: Any) -> list[Any]:
    return list(executable.run(random_inputs(executable.inputs, seed=3)).values())


@pytest.fixture(scope="module")
def resident() -> Any:
    executable = compiled("resident", launches="many")
    return answers(executable), executable.profile


def same(found: list[Any], wanted: list[Any]) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(found, wanted, strict=True))


def test_the_same_numbers_in_fewer_bytes(resident: Any) -> None:
    """Twice, as the place of weights holds other values at the end of a run."""
    executable = compiled()
    for _ in range(2):
        assert same(answers(executable), resident[0])
    memory, before = executable.profile["memory"], resident[1]["memory"]
    assert 0 < memory["streamed_bytes"] <= memory["weights_bytes"] == before["weights_bytes"]
    held = memory["weights_bytes"] - memory["streamed_bytes"] + memory["arena_bytes"]
    assert held < before["weights_bytes"] + before["arena_bytes"]
    brought = [value for value in memory["arena"] if value.get("weights")]
    assert brought and all(value["nodes"] for value in brought)


def test_nothing_else_is_in_the_place_of_weights_while_they_come(resident: Any) -> None:
    executable = compiled(plan="sequential")
    executable.poison = True
    assert same(answers(executable), resident[0])


def test_saved_and_loaded(resident: Any, tmp_path: Path) -> None:
    path = tmp_path / "mlp.davinci"
    compiled().save(path)
    assert same(answers(saved.load(path)), resident[0])


def test_launches_wait_for_the_link(resident: Any, tmp_path: Path) -> None:
    """A link that is ever so fast costs nothing, one of a tenth of the rate ten times the time."""
    text = (machines.DIRECTORY / "ascend310.toml").read_text()
    records = {}
    for rate in ("0.1", "1", "100000"):
        path = tmp_path / f"{rate}.toml"
        changed = text.replace("gigabytes_per_second = 3.94 ", f"gigabytes_per_second = {rate} ")
        changed = changed.replace("latency_us = 10 ", "latency_us = 0 ")
        assert changed != text
        path.write_text(changed)
        executable = compiled(machine=str(path), timing_only=True)
        executable.run()
        records[rate] = executable.profile
    waits = {rate: record["memory"]["link_wait_us"] for rate, record in records.items()}
    assert waits["0.1"] > 5 * waits["1"] > 0
    assert waits["100000"] == pytest.approx(0, abs=1)
    for record in records.values():
        parts = record["total_cycles"] / record["clock_mhz"] + record["launch_overhead_us"]
        assert record["time_us"] == pytest.approx(parts + record["memory"]["link_wait_us"])
        assert record["launches_list"][-1]["end_us"] == pytest.approx(record["time_us"])


def test_a_limit_of_memory_holds_for_weights_too() -> None:
    with pytest.raises(CompileError) as error:
        compiled(timing_only=True, memory_limit="1KB")
    assert "weights of" in str(error.value)


def test_refused_by_name() -> None:
    with pytest.raises(InputError, match="ascend910 has no link to the host"):
        compiled(machine="ascend910")
    with pytest.raises(InputError, match="not between the phases of one"):
        compiled(launches="joined")

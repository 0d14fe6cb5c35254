"""Choices: of each a schedule that is legal, or a reason; files of them, read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci.errors import CompileError, InputError
from davinci.operators import Tensor
from davinci.schedule import schedule_file
from davinci.schedule.choices import (
    Choices,
    PartChoice,
    PieceChoice,
    TileChoice,
    key_of,
    of_data,
    to_data,
)
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.schedule import plan, plans
from davinci.schedule.vector.space import NoSpace

MACHINE = machines.load("ascend910")
CHOICES: Choices = (
    PartChoice(cores=30, choice=TileChoice(cut=0, size=24, slots=2)),
    PartChoice(cores=2, choice=PieceChoice(size=2048, keep=True)),
)
TEXT = """func.func @main(%x: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32> {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<{m}x{n}xf32>, tensor<f32>) -> tensor<{m}xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<{m}xf32>) -> tensor<{m}x{n}xf32>
  %y = stablehlo.subtract %x, %b : tensor<{m}x{n}xf32>
  return %y : tensor<{m}x{n}xf32>
}}"""
"""Rows without their maximum."""


def rows(m: int, n: int) -> Graph:
    """The same as a graph."""
    graph = Graph()
    x, low = graph.add(Tensor((m, n), "f32")), graph.add(Tensor((m,), "f32"))
    wide, y = graph.add(Tensor((m, n), "f32")), graph.add(Tensor((m, n), "f32"))
    graph.nodes = [
        Node("reduce", (x,), low, {"kind": "max", "dims": [1]}),
        Node("broadcast", (low,), wide, {"dims": [0]}),
        Node("sub", (x, wide), y),
    ]
    graph.inputs, graph.outputs = [x], [y]
    return graph


@pytest.mark.parametrize("shape", [(6144, 512), (16, 32768), (1, 100000), (64, 100), (300, 17)])
def test_a_choice_gives_its_schedule_again(shape: tuple[int, int]) -> None:
    graph = rows(*shape)
    found = plans(graph, MACHINE, 32)
    assert plan(graph, MACHINE, 32).schedule in found
    for schedule in found:
        assert plan(graph, MACHINE, 32, schedule.choice).schedule == schedule


@pytest.mark.parametrize(
    "choice",
    [
        TileChoice(cut=0, size=6145, slots=1),
        TileChoice(cut=0, size=6144, slots=1),
        TileChoice(cut=1, size=256, slots=1),
        TileChoice(cut=2, size=1, slots=1),
        PieceChoice(size=512, keep=True),
    ],
)
def test_a_choice_that_is_none(choice: TileChoice | PieceChoice) -> None:
    with pytest.raises(NoSpace):
        plan(rows(6144, 512), MACHINE, 32, choice)


def test_data() -> None:
    assert of_data(to_data(CHOICES)) == CHOICES


@pytest.mark.parametrize(
    "data",
    [
        "",
        {},
        [{"cores": 0, "choice": {"form": "pieces", "size": 1, "keep": True}}],
        [{"cores": 1, "choice": {"form": "rings", "size": 1, "keep": True}}],
        [{"cores": 1, "choice": {"form": "pieces", "size": 1.5, "keep": True}}],
        [{"cores": 1, "choice": {"form": "pieces", "size": 1, "keep": True, "more": 1}}],
        [{"cores": 1, "choice": {"form": "tiles", "cut": -1, "size": 1, "slots": 1}}],
    ],
)
def test_data_that_is_no_choice(data: Any) -> None:
    with pytest.raises(NoSpace, match="cannot be read"):
        of_data(data)


def test_keys() -> None:
    key = key_of(rows(64, 100), MACHINE, 32)
    assert key == key_of(rows(64, 100), MACHINE, 32)
    others = [
        key_of(rows(64, 101), MACHINE, 32),
        key_of(rows(64, 100), MACHINE, 31),
        key_of(rows(64, 100), machines.load("ascend310"), 2),
    ]
    assert len({key, *others}) == 4


def compiled(shape: tuple[int, int], **options: Any) -> Any:
    m, n = shape
    return davinci.compile(TEXT.format(m=m, n=n), **options)


def changed(path: Path, executable: Any, **choice: Any) -> str:
    """A file with the executable's schedules, all of them changed."""
    found = json.loads(executable.schedules())
    for kernel in found["kernels"]:
        for part in kernel["choices"]:
            part["choice"] |= choice
    path.write_text(json.dumps(found))
    return str(path)


@pytest.mark.parametrize(("size", "slots"), [(1, 1), (3, 2), (2, 3), (17, 1)])
def test_a_file_decides(tmp_path: Path, size: int, slots: int) -> None:
    shape = (300, 100)
    path = changed(tmp_path / "s.json", compiled(shape), size=size, slots=slots)
    executable = compiled(shape, schedules=path)
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (y,) = executable.run(x).values()
    np.testing.assert_array_equal(y, x - x.max(axis=1, keepdims=True))
    (kernel,) = executable.profile["kernels"]
    (part,) = kernel["choices"]
    wanted = {"form": "tiles", "cut": 0, "whole": False, "size": size, "slots": slots}
    assert part["choice"] == wanted
    (saved,) = schedule_file.read(path).kernels
    assert (saved.key, saved.kernel) == (kernel["key"], kernel["name"])


def test_a_file_with_what_cannot_be(tmp_path: Path) -> None:
    path = changed(tmp_path / "s.json", compiled((300, 100)), size=301)
    with pytest.raises(CompileError, match="cut to 301"):
        compiled((300, 100), schedules=path)


def test_a_file_of_another_model(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(compiled((300, 100)).schedules())
    with pytest.raises(InputError, match="no kernel of this model"):
        compiled((300, 101), schedules=path)


@pytest.mark.parametrize("text", ["", "[]", '{"schema_version": 2}', "\0", '{"kernels": 1}'])
def test_a_file_that_is_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"s\.json"):
        compiled((3, 4), schedules=path)
    with pytest.raises(InputError, match="cannot read"):
        compiled((3, 4), schedules=tmp_path / "none.json")


def test_a_cache_knows_the_files_text(tmp_path: Path) -> None:
    path, cache = tmp_path / "s.json", tmp_path / "cache"
    changed(path, compiled((300, 100)), size=3)
    states = []
    for size in (3, 3, 4):
        changed(path, compiled((300, 100)), size=size)
        executable = compiled((300, 100), schedules=path, cache=cache)
        states.append(executable.details["cache"])
    assert states == ["miss", "hit", "miss"]

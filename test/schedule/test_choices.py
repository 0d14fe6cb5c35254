"""Choices: of each a schedule that is legal, or a reason; files of them, read and written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import frontends, zoo
from davinci import machine as machines
from davinci.compiler import lower
from davinci.errors import InputError
from davinci.mlir import make_context
from davinci.operators import Tensor
from davinci.passes.pipeline import pipelines
from davinci.report.tables import given_text
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
from davinci.tuning.kernels import tunable

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


@pytest.mark.parametrize(
    "shape", [(6144, 512), (16, 32768), (1, 100000), (64, 100), (300, 17), (5000, 9)]
)
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
    place = f"{path}: kernel .*, key [0-9a-f]{{16}}: the kernel cannot be computed by this schedule"
    with pytest.raises(InputError, match=f"{place}; found axis 0 cut to 301"):
        compiled((300, 100), schedules=path)


PRODUCT = """
func.func @main(%a: tensor<1024x512xf16>, %b: tensor<512x1024xf16>) -> tensor<1024x1024xf16> {
  %c = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<1024x512xf16>, tensor<512x1024xf16>) -> tensor<1024x1024xf16>
  return %c : tensor<1024x1024xf16>
}"""


@pytest.mark.parametrize("text", [TEXT.format(m=300, n=100), PRODUCT], ids=["rows", "product"])
@pytest.mark.parametrize("cores", [1, 3, 33])
def test_cores_of_a_file_are_blocks_of_the_launch(text: str, cores: int, tmp_path: Path) -> None:
    path, chosen = tmp_path / "s.json", davinci.compile(text)
    found = json.loads(chosen.schedules())
    for kernel in found["kernels"]:
        kernel["choices"][0]["cores"] = cores
    path.write_text(json.dumps(found))
    if cores > 32:
        with pytest.raises(InputError, match="for 33 "):
            davinci.compile(text, schedules=path)
        return
    executable, random = davinci.compile(text, schedules=path), np.random.default_rng(0)
    inputs = [random.standard_normal(s.shape).astype(s.dtype) for s in executable.inputs]
    wanted, given = chosen.run(*inputs), executable.run(*inputs)
    for name, array in wanted.items():
        np.testing.assert_array_equal(given[name], array)
    (before,), (after,) = (each.profile["kernels"] for each in (chosen, executable))
    assert before["blocks"] > after["blocks"] == cores
    assert after["cycles"] > before["cycles"]


def test_a_file_for_another_machine(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(compiled((300, 100), machine="ascend310").schedules())
    with pytest.raises(InputError, match="another machine; found ascend310; expected ascend910"):
        compiled((300, 100), schedules=path)


def test_a_file_with_two_schedules_for_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    found = json.loads(compiled((300, 100)).schedules())
    (kernel,) = found["kernels"]
    other = json.loads(json.dumps(kernel))
    found["kernels"] = [kernel, kernel]
    path.write_text(json.dumps(found))
    assert compiled((300, 100), schedules=path).details["given_schedules"]["used"] == 1
    other["choices"][0]["cores"] = 2
    found["kernels"] = [kernel, other]
    path.write_text(json.dumps(found))
    with pytest.raises(InputError, match=f"two schedules for one kernel; found .*{kernel['key']}"):
        compiled((300, 100), schedules=path)


def test_schedules_of_no_kernel_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    found = json.loads(compiled((300, 100)).schedules())
    found["kernels"].append(found["kernels"][0] | {"key": "0" * 16})
    path.write_text(json.dumps(found))
    executable = compiled((300, 100), schedules=path)
    said = {"file": str(path), "kernels": 2, "used": 1}
    assert executable.details["given_schedules"] == said
    assert given_text(said) == f"1 of 2 in {path}; the others are for no kernel of this model"
    assert given_text(said | {"used": 2}) == f"2 of 2 in {path}"


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


NETWORKS = ("bert-tiny", "lstm,hidden=32,steps=4", "squeezenet,resolution=32")


@pytest.mark.parametrize("network", NETWORKS)
def test_every_kernel_is_made_again_from_a_file(network: str, tmp_path: Path) -> None:
    model = zoo.build(network).proto
    chosen = davinci.compile(model, timing_only=True)
    chosen.run()
    path = tmp_path / "s.json"
    path.write_text(chosen.schedules())
    kernels = {launch.name: chosen.kernels[launch.name] for launch in chosen.launches}
    computed = {name for name, kernel in kernels.items() if kernel.unit != "scalar"}
    assert {kernel.kernel for kernel in schedule_file.read(str(path)).kernels} == computed
    given = davinci.compile(model, timing_only=True, schedules=str(path))
    given.run()
    said = given.details["given_schedules"]
    assert said["used"] == said["kernels"] == len(computed)
    assert [launch.cycles for launch in given.launches] == [
        launch.cycles for launch in chosen.launches
    ]


WINDOWS = """
func.func @main(%x: tensor<1x32x20x20xf16>) -> tensor<1x32x10x10xf16> {
  %low = stablehlo.constant dense<0xFC00> : tensor<f16>
  %y = "stablehlo.reduce_window"(%x, %low) ({
    ^bb0(%a: tensor<f16>, %b: tensor<f16>):
      %m = stablehlo.maximum %a, %b : tensor<f16>
      stablehlo.return %m : tensor<f16>
  }) {window_dimensions = array<i64: 1, 1, 2, 2>, window_strides = array<i64: 1, 1, 2, 2>}
      : (tensor<1x32x20x20xf16>, tensor<f16>) -> tensor<1x32x10x10xf16>
  return %y : tensor<1x32x10x10xf16>
}"""


def given(text: str, tmp_path: Path, form: str, change: dict[str, Any]) -> Any:
    """The executable of a file in which the kernel of a form is changed."""
    path, found = tmp_path / "s.json", json.loads(davinci.compile(text).schedules())
    (part,) = next(
        kernel["choices"]
        for kernel in found["kernels"]
        if kernel["choices"][0]["choice"]["form"] == form
    )
    part["choice"] |= change
    path.write_text(json.dumps(found))
    return davinci.compile(text, schedules=str(path))


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_tiles_of_windows_are_given(rows: int, tmp_path: Path) -> None:
    executable = given(WINDOWS, tmp_path, "windows", {"planes": 1, "rows": rows, "slots": 1})
    x = np.random.default_rng(0).standard_normal((1, 32, 20, 20)).astype(np.float16)
    (y,) = executable.run(x).values()
    np.testing.assert_array_equal(y, x.reshape(1, 32, 10, 2, 10, 2).max(axis=(3, 5)))
    kernels = [k for k in executable.profile["kernels"] if k["op"] == "pool"]
    assert [k["choices"][0]["choice"]["rows"] for k in kernels] == [rows]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"planes": 3, "rows": 1, "slots": 1}, "tiles of 3 planes and 1 rows, 1 slots"),
        ({"planes": 1, "rows": 11, "slots": 1}, "tiles of 1 planes and 11 rows, 1 slots"),
    ],
)
def test_tiles_of_windows_that_cannot_be(
    change: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"cannot be computed by this schedule; found {reason}"):
        given(WINDOWS, tmp_path, "windows", change)


@pytest.mark.parametrize("network", ["bert-tiny", "lstm,hidden=32,steps=4"])
def test_a_schedule_of_another_kind(network: str, tmp_path: Path) -> None:
    model, path = zoo.build(network).proto, tmp_path / "s.json"
    found = json.loads(davinci.compile(model, timing_only=True).schedules())
    forms = {kernel["choices"][0]["choice"]["form"] for kernel in found["kernels"]}
    for form in sorted(forms):
        changed = json.loads(json.dumps(found))
        kernel = next(k for k in changed["kernels"] if k["choices"][0]["choice"]["form"] == form)
        other = {"form": "windows", "planes": 1, "rows": 1, "slots": 1}
        kernel["choices"][0]["choice"] = other
        path.write_text(json.dumps(changed))
        with pytest.raises(InputError, match="cannot be computed by this schedule"):
            davinci.compile(model, timing_only=True, schedules=str(path))


def test_ways_of_all_kinds_are_ranked() -> None:
    forms = set()
    for network in ("bert-tiny", "squeezenet,resolution=64"):
        module = frontends.load(zoo.build(network).proto, make_context(), None)
        stages = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
        lower(module, pipelines.Options(), lambda text: None, stages)
        for kernel in tunable(module, MACHINE, MACHINE.cores):
            assert len(set(kernel.candidates)) == len(kernel.candidates) > 1
            forms |= {part.choice.form for part in kernel.candidates[0]}
    assert forms >= {"tiles", "product", "attention", "windows", "moves"}


def test_a_sort_is_given(tmp_path: Path) -> None:
    sort = """func.func @main(%x: tensor<16x64xf32>) -> tensor<16x64xf32> {
      %y = "stablehlo.sort"(%x) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %c = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
      }) {dimension = 1 : i64} : (tensor<16x64xf32>) -> tensor<16x64xf32>
      return %y : tensor<16x64xf32>
    }"""
    executable = given(sort, tmp_path, "sort", {})
    x = np.random.default_rng(0).standard_normal((16, 64)).astype(np.float32)
    (y,) = executable.run(x).values()
    np.testing.assert_array_equal(y, np.sort(x, axis=1))
    path, found = tmp_path / "s.json", json.loads(compiled((30, 100)).schedules())
    found["kernels"][0]["choices"][0]["choice"] = {"form": "sort"}
    path.write_text(json.dumps(found))
    with pytest.raises(InputError, match="a sort for a group that does not sort"):
        compiled((30, 100), schedules=str(path))

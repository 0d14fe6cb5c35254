"""Launches in phases, between which all their cores meet: what they compute, and what they take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci import zoo
from davinci.errors import CompileError
from davinci.passes.ascend import product_grouping
from davinci.reference.check import reference_onnx
from davinci.runtime.executable import Executable
from davinci.schedule.meetings import meeting_cycles

CHAIN = """
func.func @main(%a: tensor<{m}x{k}xf32>, %b: tensor<{k}x{n}xf32>, %c: tensor<{n}x{k}xf32>)
    -> (tensor<{m}x{k}xf32>, tensor<{m}xf32>) {{
  %x = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>) -> tensor<{m}x{n}xf32>
  %y = stablehlo.dot_general %x, %c, contracting_dims = [1] x [0]
      : (tensor<{m}x{n}xf32>, tensor<{n}x{k}xf32>) -> tensor<{m}x{k}xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<{m}x{k}xf32>, tensor<f32>) -> tensor<{m}xf32>
  return %y, %z : tensor<{m}x{k}xf32>, tensor<{m}xf32>
}}
"""
"""Two products, of which the second one waits for all of the first, and sums of what they give."""

GATE = """
func.func @main(%x: tensor<1x96x96x32xf32>, %w: tensor<1x1x32x32xf32>) -> tensor<1x96x96x32xf32> {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x96x96x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x96x96x32xf32>
  %l = stablehlo.logistic %y : tensor<1x96x96x32xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%l init: %zero) applies stablehlo.add across dimensions = [1, 2]
      : (tensor<1x96x96x32xf32>, tensor<f32>) -> tensor<1x32xf32>
  %pixels = stablehlo.constant dense<9216.0> : tensor<1x32xf32>
  %m = stablehlo.divide %s, %pixels : tensor<1x32xf32>
  %b = stablehlo.broadcast_in_dim %m, dims = [0, 3]
      : (tensor<1x32xf32>) -> tensor<1x96x96x32xf32>
  %g = stablehlo.multiply %l, %b : tensor<1x96x96x32xf32>
  %c = stablehlo.convolution(%g, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x96x96x32xf32>, tensor<1x1x32x32xf32>) -> tensor<1x96x96x32xf32>
  return %c : tensor<1x96x96x32xf32>
}
"""
"""Channels scaled by their means, between convolutions."""

PHASES = """
module {{
  memref.global "private" @counters : memref<4x8xi32> = dense<0>
  func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {{ascend.output}})
      attributes {{ascend.entry}} {{
    %lines = memref.get_global @counters : memref<4x8xi32>
    %number = arith.constant 0 : i64
    {calls}
    return
  }}
  func.func private @work(memref<64xf32>, memref<64xf32>)
      attributes {{ascend.launch = @kernels::@work}}
  func.func private @meet(memref<4x8xi32>, i64) attributes {{ascend.launch = @kernels::@meet}}
  module @kernels {{
    func.func @work(%x: memref<64xf32>, %y: memref<64xf32>) attributes {{ascend.kernel}} {{
      return
    }}
    func.func @meet(%lines: memref<4x8xi32>, %number: i64) attributes {{ascend.kernel}} {{
      return
    }}
  }}
}}
"""
"""A host function by hand."""

WORK = "call @work(%x, %y) {{ascend.blocks = {0} : i64}} : (memref<64xf32>, memref<64xf32>) -> ()"
MEET = (
    "call @meet(%lines, %number) {{ascend.blocks = 4 : i64, ascend.meeting = {0} : i64}}"
    " : (memref<4x8xi32>, i64) -> ()"
)


def inputs(executable: Executable, seed: int = 1) -> list[Any]:
    random = np.random.default_rng(seed)
    return [random.standard_normal(spec.shape).astype(np.float32) for spec in executable.inputs]


def pair(text: str, **options: Any) -> tuple[Executable, Executable]:
    """A program in many launches, and with them joined."""
    many = davinci.compile(text, launches="many", **options)
    return many, davinci.compile(text, launches="joined", **options)


def meetings(executable: Executable) -> list[int]:
    """Cycles of the meetings of the last run."""
    return [each.meeting.cycles for each in executable.launches if each.meeting is not None]


@pytest.mark.parametrize(
    ("size", "machine", "cores"),
    [
        ((1, 15, 17), "ascend910", 3),
        ((1, 15, 17), "ascend910b", 24),
        ((33, 64, 1), "ascend910", 1),
        ((33, 64, 1), "ascend910", 32),
        ((33, 64, 1), "ascend910b", 3),
        ((257, 129, 300), "ascend910", 3),
        ((257, 129, 300), "ascend910b", 24),
    ],
)
def test_kernels_compute_the_same_in_one_launch(
    size: tuple[int, int, int], machine: str, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same kernels on as many cores, the reduction apart from its product; a second run counts
    on."""
    monkeypatch.setattr(product_grouping, "rows_pay", lambda *_: False)
    m, k, n = size
    text = CHAIN.format(m=m, k=k, n=n)
    many, joined = pair(text, machine=machine, cores=cores, core_choice="all")
    joined.poison = True
    for seed in range(2):
        arrays = inputs(many, seed)
        wanted, found = many.run(*arrays), joined.run(*arrays)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
    ops = many.profile["ops"]["total"]
    assert many.profile["launches"] == ops == joined.profile["ops"]["total"]
    launches = joined.profile["launches"]
    assert launches <= 2  # a kernel whose scalar unit loads begins one
    assert len(meetings(joined)) == len(joined.launches) - launches > 0


def test_counters_are_saved_as_they_begin(tmp_path: Path) -> None:
    """The numbers that a loaded program's cores count to begin with one again."""
    executable = davinci.compile(CHAIN.format(m=64, k=256, n=128), launches="joined")
    _, before = executable.image()
    arrays = inputs(executable)
    wanted = executable.run(*arrays)
    executable.run(*arrays)
    _, after = executable.image()
    assert before.keys() == after.keys()
    for name, data in before.items():
        np.testing.assert_array_equal(after[name], data)
    executable.save(tmp_path / "net.davinci")
    found = davinci.load(tmp_path / "net.davinci").run(*arrays)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array)


def test_a_launch_in_phases_takes_less_time() -> None:
    text = CHAIN.format(m=64, k=256, n=128)
    many, joined = pair(text)
    arrays = inputs(many)
    (y, z), a = joined.run(*arrays).values(), [array.astype(np.float64) for array in arrays]
    np.testing.assert_allclose(y, a[0] @ a[1] @ a[2], atol=1)
    np.testing.assert_allclose(z, y.sum(axis=1), rtol=0.01, atol=0.1)
    many.run(*arrays)
    assert joined.profile["time_us"] < many.profile["time_us"]


def test_what_is_in_front_of_phases() -> None:
    """The launch once, on all cores that take part, and a meeting of them before each other one."""
    _, joined = pair(CHAIN.format(m=64, k=256, n=128))
    joined.run(*inputs(joined))
    record, machine = joined.profile, joined.machine
    most = max(each.blocks for each in joined.launches)
    assert {each.launch_cores for each in joined.launches} == {most}
    launching = machine.launch.us(most / machine.cores, by_host=True)
    met = sum(meetings(joined)) / machine.clock_mhz
    assert record["launch_overhead_us"] == pytest.approx(launching + met)
    assert record["meetings"] == len(meetings(joined)) == len(joined.launches) - 1
    assert record["meeting_cycles"] == sum(meetings(joined))
    assert f"in 1 launch, whose cores meet {record['meetings']} time" in str(joined)
    ends = 0.0
    for entry in record["launches_list"]:
        assert entry["start_us"] > ends
        ends = entry["end_us"]
    assert ends == pytest.approx(record["time_us"], abs=1e-3)


def test_network_against_its_reference() -> None:
    network = zoo.find("bert,layers=1,hidden=64,heads=2,seq=17")
    executable = davinci.compile(network, launches="joined")
    arrays = network.inputs(0)
    found = executable.run(arrays)
    wanted = davinci.compile(network, launches="many").run(arrays)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, atol=0.02)
    assert executable.profile["launches"] < executable.profile["ops"]["total"] / 4


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_a_decode_step_writes_its_cache_in_place_in_one_launch(machine: str) -> None:
    """The scalar unit loads where a cache is written from a constant, which needs no launch of its
    own."""
    sizes = "hidden=64,heads=4,kv_heads=2,intermediate=96,seq=1,past=15,batch=3"
    network = zoo.find(f"llama,{sizes},kept=1")
    executable = davinci.compile(network, machine=machine)
    arrays = network.inputs(0)
    wanted = reference_onnx(
        zoo.build(f"llama,{sizes}").proto,
        {k: v[:, :, :15].astype(np.float32) if k != "x" else v for k, v in arrays.items()},
    )
    found = executable.run(arrays)
    for name, array in wanted.items():
        np.testing.assert_allclose(found[name], array, atol=0.02)
    assert all(state["in_place"] for state in executable.profile["state"])
    assert executable.profile["launches"] == 1


def test_one_launch_after_the_other_where_that_is_asked_for() -> None:
    text = CHAIN.format(m=64, k=256, n=128)
    for options in ({"plan": "sequential"}, {"launches": "many"}):
        executable = davinci.compile(text, timing_only=True, **options)
        executable.run()
        profile = executable.profile
        assert (profile["launches"], profile["meetings"]) == (profile["ops"]["total"], 0)


def test_times_without_data_are_the_same() -> None:
    text = CHAIN.format(m=64, k=256, n=128)
    joined = davinci.compile(text, launches="joined")
    joined.run(*inputs(joined))
    timed = davinci.compile(text, launches="joined", timing_only=True)
    timed.run()
    assert timed.profile["time_us"] == joined.profile["time_us"]


def test_processes_and_files(tmp_path: Path) -> None:
    text = CHAIN.format(m=64, k=256, n=128)
    joined = davinci.compile(text, launches="joined")
    arrays = inputs(joined)
    wanted = joined.run(*arrays)
    time_us = joined.profile["time_us"]
    joined.save(tmp_path / "net.davinci")
    loaded = davinci.load(tmp_path / "net.davinci")
    joined.processes = 2
    for executable in (joined, loaded, loaded):
        found = executable.run(*arrays)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)
        assert executable.profile["time_us"] == time_us


def test_cores_of_two_kinds_meet_by_flags() -> None:
    """All kernels are phases of one launch on cube cores and their vector cores, which pays its
    price once; each meeting takes what the schedules expect."""
    many, joined = pair(CHAIN.format(m=64, k=256, n=128), machine="ascend910b")
    arrays = inputs(joined)
    (y, z), a = joined.run(*arrays).values(), [array.astype(np.float64) for array in arrays]
    np.testing.assert_allclose(y, a[0] @ a[1] @ a[2], atol=1)
    np.testing.assert_allclose(z, y.sum(axis=1), rtol=0.01, atol=0.1)
    many.run(*arrays)
    record, machine = joined.profile, joined.machine
    assert record["time_us"] < many.profile["time_us"]
    assert record["launches"] == 1 < record["ops"]["total"]
    kinds = {kind for each in joined.launches for kind in each.launch_kinds}
    assert kinds == {"AIC", "AIV"} == joined.launches[0].launch_kinds
    (cores,) = {each.launch_cores for each in joined.launches}
    assert cores >= max(each.cores for each in joined.launches)
    assert cores % 3 == 0
    launching = machine.launch.us(cores / (3 * machine.cores), True) + machine.launch.mixed_us
    met = meetings(joined)
    assert record["launch_overhead_us"] == pytest.approx(launching + sum(met) / machine.clock_mhz)
    assert met == pytest.approx([meeting_cycles(machine, cores // 3)] * len(met), rel=1 / 6)


def test_cores_meet_in_a_phase_by_flags() -> None:
    """The cores that share the pixels of a mean meet in a phase of the launch of cube and vector
    cores, in which those without work only meet, and the launch is proven to come through."""
    executable = davinci.compile(GATE, machine="ascend910b", launches="joined", check_launches=True)
    x, w = (array / 4 for array in inputs(executable))
    (found,) = executable.run(x, w).values()
    y = 1 / (1 + np.exp(-(x @ w[0, 0])))
    np.testing.assert_allclose(found, y * y.mean((1, 2), keepdims=True) @ w[0, 0], atol=0.01)
    record = executable.profile
    assert record["launches"] == 1
    (mean,) = (each for each in record["kernels"] if "which meet" in each["schedule"])
    assert mean["unit"] == "vector"
    assert mean["cycles"] < 8_000
    (line,) = executable.details["checked_launches"]
    assert line.endswith(": proven")


def test_cores_that_share_k_meet_in_a_phase_by_flags() -> None:
    """A product of few rows whose k the cores share is a phase between others, of which one has
    fewer cores; the launch is proven to come through."""
    text = CHAIN.format(m=64, k=4096, n=256)
    executable = davinci.compile(text, machine="ascend910b", launches="joined", check_launches=True)
    a, b, c = (array / 16 for array in inputs(executable))
    found, _ = executable.run(a, b, c).values()
    np.testing.assert_allclose(found, a.astype(np.float64) @ b @ c, atol=0.05)
    record = executable.profile
    assert record["launches"] == 1
    assert any("which meet" in each["schedule"] for each in record["kernels"])
    (line,) = executable.details["checked_launches"]
    assert line.endswith(": proven")


def test_weights_are_loaded_before_meetings() -> None:
    """What a product of one row loads first comes while vector cores have a phase of their own, in
    one kernel with it. Its operators, and what was decided for them, are known as before."""
    network = zoo.find("mlp,batch=1,features=512,hidden=3072,layers=3")
    executable = davinci.compile(network, machine="ascend910b", launches="joined")
    arrays = network.inputs(0)
    found = executable.run(arrays)
    for name, array in reference_onnx(network.proto, arrays).items():
        np.testing.assert_allclose(found[name], array, atol=0.01)
    assert executable.profile["launches"] == 1
    (chain,) = {each.label: each for each in executable.kernels.values() if each.phases}.values()
    assert chain.label == (
        "cast 1x512 f32 -> f16, then matmul 1x3072x512 f16, add relu, "
        "then matmul 1x3072x3072 f16, add relu"
    )
    first = executable.launches[0]
    operators = ["cast", "matmul", "add", "relu", "cast", "matmul", "add", "relu", "cast"]
    assert [member.op for member in chain.members] == operators
    assert len(first.members) == len(chain.members)
    kept = executable.schedules()
    assert all(phase["key"] in kept for phase in chain.phases)


def test_phases_of_vector_cores_alone() -> None:
    text = """
    func.func @main(%a: tensor<70x300xf32>) -> (tensor<300x70xf32>, tensor<70xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %b = stablehlo.transpose %a, dims = [1, 0] : (tensor<70x300xf32>) -> tensor<300x70xf32>
      %c = stablehlo.exponential %b : tensor<300x70xf32>
      %d = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0]
          : (tensor<300x70xf32>, tensor<f32>) -> tensor<70xf32>
      return %c, %d : tensor<300x70xf32>, tensor<70xf32>
    }"""
    _, joined = pair(text, machine="ascend910b", fusion="none", core_choice="all")
    arrays = inputs(joined)
    c, d = joined.run(*arrays).values()
    np.testing.assert_allclose(c, np.exp(arrays[0].T), rtol=1e-4)
    np.testing.assert_allclose(d, np.exp(arrays[0]).sum(axis=1), rtol=1e-3)
    assert joined.profile["launches"] == 1 < joined.profile["ops"]["total"]
    assert {each.launch_kinds for each in joined.launches} == {frozenset({"AIV"})}
    met = meetings(joined)
    seen = machines.for_vector(joined.machine)
    assert met == pytest.approx([meeting_cycles(seen, 48)] * len(met), rel=1 / 6)


@pytest.mark.parametrize("cores", [2, 3, 8, 31])
def test_price_of_meetings(cores: int) -> None:
    """What schedules take meetings for is within a sixth of what they take."""
    joined = davinci.compile(
        CHAIN.format(m=512, k=512, n=512),
        launches="joined",
        core_choice="all",
        cores=cores,
        timing_only=True,
    )
    joined.run()
    machine, met = machines.load("ascend910"), meetings(joined)
    assert met
    for launch in joined.launches:
        if launch.meeting is not None:
            price = meeting_cycles(machine, launch.launch_cores)
            assert launch.meeting.cycles == pytest.approx(price, rel=1 / 6)


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ((MEET.format(1),), "no phase of a launch stands in front of"),
        ((WORK.format(2), MEET.format(1), MEET.format(1)), "no phase of a launch stands in front"),
        ((WORK.format(2), MEET.format(2)), "no argument of the number ascend.meeting; found 2"),
        ((WORK.format(2), MEET.format(1), WORK.format(5)), "on more cores; found 5 blocks"),
        ((WORK.format(2), MEET.format(1)), "has a meeting behind which no phase comes"),
    ],
)
def test_phases_that_cannot_be(calls: tuple[str, ...], message: str) -> None:
    with pytest.raises(CompileError, match=message):
        davinci.compile(PHASES.format(calls="\n    ".join(calls)))


SPLIT_PHASES = """
module {{
  func.func @main(%x: memref<64xf32>, %y: memref<64xf32> {{ascend.output}})
      attributes {{ascend.entry}} {{
    {calls}
    return
  }}
  func.func private @cube(memref<64xf32>, memref<64xf32>)
      attributes {{ascend.launch = @kernels::@cube}}
  func.func private @vector(memref<64xf32>, memref<64xf32>)
      attributes {{ascend.launch = @kernels::@vector}}
  func.func private @meet() attributes {{ascend.launch = [@kernels::@cubes, @kernels::@vectors]}}
  func.func private @vectors_meet() attributes {{ascend.launch = @kernels::@vectors}}
  module @kernels {{
    func.func @cube(%x: memref<64xf32>, %y: memref<64xf32>)
        attributes {{ascend.kernel, ascend.core = "aic"}} {{
      return
    }}
    func.func @vector(%x: memref<64xf32>, %y: memref<64xf32>)
        attributes {{ascend.kernel, ascend.core = "aiv"}} {{
      return
    }}
    func.func @cubes() attributes {{ascend.kernel, ascend.core = "aic"}} {{
      return
    }}
    func.func @vectors() attributes {{ascend.kernel, ascend.core = "aiv"}} {{
      return
    }}
  }}
}}
"""


def on(kernel: str, blocks: int) -> str:
    """A call of a kernel of `SPLIT_PHASES`."""
    return (
        f"call @{kernel}(%x, %y) {{ascend.blocks = {blocks} : i64}}"
        " : (memref<64xf32>, memref<64xf32>) -> ()"
    )


def meet_by(kernel: str, number: int = -1) -> str:
    """A call of a meeting of four of its cores."""
    marks = f"{{ascend.blocks = 4 : i64, ascend.meeting = {number} : i64}}"
    return f"call @{kernel}() {marks} : () -> ()"


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ((on("cube", 4), meet_by("meet"), on("vector", 8)), ""),
        ((on("cube", 4), meet_by("meet"), on("vector", 9)), "more cores; found 9 blocks of vector"),
        ((on("cube", 5), meet_by("meet"), on("vector", 8)), "more cores; found 5 blocks of cube"),
        ((on("vector", 4), meet_by("vectors_meet"), on("cube", 4)), "on other kinds of cores; fo"),
        (
            (on("vector", 1), meet_by("vectors_meet"), on("vector", 1), meet_by("meet")),
            "behind which no phase comes",
        ),
        ((on("cube", 4), meet_by("meet", 0), on("cube", 4)), "no argument of the number"),
    ],
)
def test_phases_of_two_kinds_of_cores(calls: tuple[str, ...], message: str) -> None:
    text = SPLIT_PHASES.format(calls="\n    ".join(calls))
    if not message:
        executable = davinci.compile(text, machine="ascend910b", timing_only=True)
        executable.run()
        assert executable.profile["launches"] == 1
        return
    with pytest.raises(CompileError, match=message):
        davinci.compile(text, machine="ascend910b")


def test_auto_is_many_where_launches_cost_nothing(tmp_path: Path) -> None:
    """Else as joined, with the price of a launch as the machine file has it."""
    text = CHAIN.format(m=64, k=256, n=128)
    _, joined = pair(text)
    auto = davinci.compile(text, launches="auto")
    free = tmp_path / "free.toml"
    file = machines.DIRECTORY / "ascend910.toml"
    cost = r"(overhead_us|switch_us|head_us|head_of_all_cores_us) *= [0-9.]+"
    edited = re.sub(cost, r"\1 = 0", file.read_text())
    free.write_text(re.sub(r"all_cores_us_range = \[.*?\]", "all_cores_us_range = [0]", edited))
    cheap = davinci.compile(text, launches="auto", machine=str(free))
    for executable in (joined, auto, cheap):
        executable.run(*inputs(executable))
    assert auto.profile["time_us"] == joined.profile["time_us"]
    assert cheap.profile["launches"] == cheap.profile["ops"]["total"]


@pytest.mark.parametrize("launches", ["many", "joined"])
def test_no_cores_meet_without_an_event_id_for_it(launches: str, tmp_path: Path) -> None:
    """Products, loops and launches are made as where cores never meet."""
    text = (machines.DIRECTORY / "ascend910.toml").read_text()
    path = tmp_path / "one.toml"
    path.write_text(text.replace("event_ids = 4 ", "event_ids = 1 "))
    for network in ("lstm,steps=3,features=32,hidden=64", "mlp"):
        options = {"machine": str(path), "launches": launches, "timing_only": True}
        executable = davinci.compile(zoo.build(network), **options)
        executable.run()
        assert executable.profile["meetings"] == 0

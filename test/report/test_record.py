"""What the record says: its keys, the model's nodes, limits of what operators mean, idle cores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine, zoo
from davinci.isa import Pipe
from davinci.report.idle import idle_of
from davinci.report.limits import bound_cycles, limits
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.record import build, busiest_pipe, waits_of_busiest
from davinci.report.tables import summary_rows
from davinci.simulator import LaunchProfile
from davinci.simulator.timing.profile import BlockProfile
from report_support import busy_program, launch

MACHINE = machine.load("ascend910")
CONTRACT = {
    *("schema_version", "davinci_version", "launches_list", "model", "machine", "precision"),
    *("clock_mhz", "cores", "total_cycles", "time_us", "bound_cycles", "ops", "pipes", "kernels"),
    *("memory", "compile_seconds", "simulate_seconds"),
}
KERNEL_CONTRACT = {
    *("name", "op", "unit", "launches", "blocks", "cycles", "bound_cycles", "gm_read_bytes"),
    *("gm_write_bytes", "instructions", "operators", "label"),
}
CONVOLUTION = """
func.func @main(%x: tensor<1x4x6x6xf32>, %w: tensor<8x4x3x3xf32>) -> tensor<1x8x4x4xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1],
      window = {reverse = [true, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x6x6xf32>, tensor<8x4x3x3xf32>) -> tensor<1x8x4x4xf32> loc("/stem/Conv")
  return %0 : tensor<1x8x4x4xf32>
}"""


def record_of(model: Any, **options: Any) -> dict[str, Any]:
    executable = davinci.compile(model, **options)
    rng = np.random.default_rng(0)
    executable.run(
        {spec.name: rng.random(spec.shape).astype(spec.dtype) for spec in executable.inputs}
    )
    found: dict[str, Any] = executable.profile
    return found


@pytest.fixture(scope="module")
def mlp() -> dict[str, Any]:
    return record_of(zoo.build("mlp").proto, launches="many")


def test_keys_of_the_contract(mlp: dict[str, Any]) -> None:
    assert set(mlp) >= CONTRACT
    assert all(set(row) >= KERNEL_CONTRACT for row in mlp["kernels"])
    assert set(mlp["ops"]) == {"total", "cube", "vector", "scalar"}
    assert all(set(pipe) == {"busy_cycles", "ratio"} for pipe in mlp["pipes"].values())
    assert mlp["davinci_version"] == davinci.__version__
    assert mlp["schema_version"] == 1


def test_times_for_each_cost_of_a_launch(mlp: dict[str, Any]) -> None:
    """The time grows with it, and is the run's where it is the machine file's own."""
    unit, rows = MACHINE.launch, mlp["launch_range"]
    assert [row["all_cores_us"] for row in rows] == unit.all_cores_us_range
    assert [row["time_us"] for row in rows] == sorted({row["time_us"] for row in rows})
    own = unit.switch_us + unit.head_us + unit.head_of_all_cores_us
    (same,) = [row for row in rows if row["all_cores_us"] == pytest.approx(own)]
    assert same["time_us"] == pytest.approx(mlp["time_us"])


def test_launches_lie_one_after_the_other(mlp: dict[str, Any]) -> None:
    launches, unit = mlp["launches_list"], MACHINE.launch
    assert len(launches) == mlp["ops"]["total"]
    begin, gap = 0.0, unit.overhead_us
    for one in launches:
        assert gap < one["start_us"] - begin <= gap + unit.head_of_all_cores_us + 1e-3
        begin, gap = one["end_us"], unit.switch_us + unit.head_us
    assert begin == pytest.approx(mlp["time_us"], abs=1e-3)
    took = {row["name"]: row["cycles"] for row in mlp["kernels"] if row["launches"] == 1}
    for one in launches:
        if one["kernel"] in took:
            cycles = (one["end_us"] - one["start_us"]) * mlp["clock_mhz"]
            # Times are rounded to tenths of a nanosecond.
            assert cycles == pytest.approx(took[one["kernel"]], abs=0.2)


def test_launches_and_kernels_name_the_nodes_of_the_model(mlp: dict[str, Any]) -> None:
    nodes = {node.name or "" for node in zoo.build("mlp").proto.graph.node}
    assert all(one["operators"] for one in mlp["launches_list"])
    for row in mlp["kernels"]:
        mine = [one for one in mlp["launches_list"] if one["kernel"] == row["name"]]
        assert set(row["operators"]) == {name for one in mine for name in one["operators"]}
    named = {name for one in mlp["launches_list"] for name in one["operators"]}
    assert named <= nodes or nodes == {""}, "nodes without a name are named by the frontend"
    assert any(name.startswith(("MatMul", "Gemm")) for name in named)


def test_a_convolution_on_the_scalar_unit_shows_what_it_could_be() -> None:
    """8 * 4 * 4 results of 36 products each, on a core of 4,096 a cycle."""
    record = record_of(CONVOLUTION, cores=1)
    (row,) = record["kernels"]
    assert row["unit"] == "scalar" and row["operators"] == ["/stem/Conv"]
    assert row["label"] == "convolution 1x4x6x6 * 8x4x3x3 f32"
    assert row["work"]["macs"] == 8 * 4 * 4 * 36
    read_bytes = 4 * (4 * 36 + 8 * 36)
    rates = limits(MACHINE, 1)
    by_memory = read_bytes / rates["l2_read_bytes"]
    assert row["bound_cycles"] == np.ceil(max(8 * 4 * 4 * 36 / 4096, by_memory))
    assert 1 <= row["bound_cycles"] < row["cycles"] / 100


@pytest.mark.parametrize(
    ("work", "cycles"),
    [
        ({"macs": 4096 * 1000, "factor_bits": 16}, 1000),
        ({"macs": 8192 * 1000, "factor_bits": 8}, 1000),
        ({"vector_repeats": 1234}, 1234),
        ({"read_bytes": 10**6}, 10**6 / limits(MACHINE, 1)["l2_read_bytes"]),
        ({"write_bytes": 10**6}, 10**6 / limits(MACHINE, 1)["l2_write_bytes"]),
    ],
)
def test_limits_of_work(work: dict[str, int], cycles: float) -> None:
    """What the kernel did (a million repeats) does not count."""
    profile = LaunchProfile("k", 1, vector_repeats=10**6)
    kernel = Kernel("k", "scalar", (4,), work=work)
    assert bound_cycles(profile, kernel, MACHINE, 1) == np.ceil(cycles)


def test_kernels_by_hand_mean_what_they_do() -> None:
    profile = LaunchProfile("k", 1, vector_repeats=1000)
    assert bound_cycles(profile, Kernel("k", "vector"), MACHINE, 1) == 1000


def test_few_cores_get_more_than_their_share_of_memory() -> None:
    one, all_ = limits(MACHINE, 1), limits(MACHINE, 32)
    assert one["gm_read_bytes"] > all_["gm_read_bytes"] / 32
    assert one["macs_f16"] == all_["macs_f16"] / 32


@pytest.mark.parametrize(
    ("blocks", "idle", "half_idle"),
    [
        ({0: [100]}, 3 * 100, 100),
        ({0: [100], 1: [100]}, 2 * 100, 100),
        ({0: [100], 1: [100], 2: [40]}, 60 + 100, 60),
        ({0: [50, 50], 1: [100], 2: [100], 3: [30]}, 70, 0),
        ({i: [100] for i in range(4)}, 0, 0),
    ],
)
def test_idle_cores(blocks: dict[int, list[int]], idle: int, half_idle: int) -> None:
    """Of 4 cores, in a launch of 100 cycles."""
    parts = [BlockProfile(core, i, c, {}) for core, cs in blocks.items() for i, c in enumerate(cs)]
    profile = LaunchProfile("k", len(parts), cores=len(blocks), cycles=100, per_block=parts)
    (found,) = idle_of([profile], MACHINE, 4)
    assert (found.core_cycles, found.idle_core_cycles, found.half_idle_cycles) == (
        400,
        idle,
        half_idle,
    )


@pytest.mark.parametrize(
    ("busy", "useful", "spared", "half_spared"),
    [(1, 0, 0, 0), (1, 4, 300, 100), (1, 2, 100, 0), (3, 4, 100, 0), (2, 3, 100, 100)],
)
def test_cores_left_out(busy: int, useful: int, spared: int, half_spared: int) -> None:
    """Of 4 cores some are busy for all 100 cycles, others would be if they were for nothing."""
    parts = [BlockProfile(core, core, 100, {}) for core in range(busy)]
    profile = LaunchProfile("k", busy, cores=busy, cycles=100, per_block=parts)
    (found,) = idle_of([profile], MACHINE, 4, useful)
    assert (found.spared_core_cycles, found.half_spared_cycles) == (spared, half_spared)


def test_idle_of_a_run() -> None:
    profile = launch("k", busy_program(), blocks=8)
    record = build(
        [profile, profile], ProgramFacts({"k": Kernel("k", "vector")}, 0, 0, 0), MACHINE, 32
    )
    assert record["idle"]["ratio"] == pytest.approx(24 / 32, abs=0.05)
    assert record["idle"]["half_idle_ratio"] == 1


def test_waits_are_what_the_rows_say() -> None:
    """Cycle by cycle: waits and barriers while nothing is under way in the pipe."""
    profile = launch("k", busy_program())
    assert any(profile.flag_cycles.values()) and any(profile.barrier_cycles.values())
    everything = [row for row in profile.rows if row.fields.get("pipe") == int(Pipe.ALL)]
    for pipe in set(profile.pipes) - {"PIPE_S"}:
        held: dict[str, set[int]] = {"wait_flag": set(), "pipe_barrier": set(), "work": set()}
        for row in [*(row for row in profile.rows if row.pipe == pipe), *everything]:
            kind = row.mnemonic if row.mnemonic in held else "work"
            if row.mnemonic != "set_flag":
                held[kind] |= set(range(row.start, row.end))
        assert profile.pipes[pipe] == len(held["work"])
        assert profile.flag_cycles[pipe] == len(held["wait_flag"] - held["work"])
        barriers = held["pipe_barrier"] - held["work"] - held["wait_flag"]
        assert profile.barrier_cycles[pipe] == len(barriers)


def test_a_kernel_says_its_schedule_and_the_flags_it_was_short_of() -> None:
    profile = launch("k", busy_program())
    kernel = Kernel("k", "vector", schedule="i0: 8; 1 cores, 1 slots", sync_merged=3)
    row = build([profile, profile], ProgramFacts({"k": kernel}, 0, 0, 0), MACHINE, 32)
    assert row["kernels"][0]["schedule"] == kernel.schedule
    assert row["sync"] == {"merged": 3, "degraded": 0, "kernels": 1}
    assert dict(summary_rows(row))["event ids"] == "3 flags merged, in 1 kernel"
    shares = waits_of_busiest(row["kernels"][0])
    name = busiest_pipe(row["kernels"][0])
    assert name == max(profile.pipes, key=lambda pipe: profile.pipes[pipe])
    assert shares["flags"] == profile.flag_cycles[name] / profile.cycles


def test_groups_say_what_they_hold(mlp: dict[str, Any]) -> None:
    fused = [row for row in mlp["kernels"] if len(row["operators"]) > 1]
    assert any(row["schedule"] for row in fused)
    assert all(row["label"] and row["bound_by"] and row["bottleneck"] for row in mlp["kernels"])

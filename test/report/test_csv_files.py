"""The vendor's file and column names, with numbers that agree with the profiles."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.errors import InputError
from davinci.report.csv_files import csv_files, write_csv
from davinci.simulator import LaunchProfile
from report_support import busy_program, launch

MACHINE = machine.load("ascend910")
SPLIT = Path(__file__).parents[2] / "examples" / "split_matmul_add.mlir"
RECORD = {"kernels": [{"name": "k", "label": "add 8 f32", "op": "add", "unit": "vector"}]}
FILES = {
    "op_summary.csv",
    "OpBasicInfo.csv",
    "PipeUtilization.csv",
    "ArithmeticUtilization.csv",
    "Memory.csv",
    "MemoryL0.csv",
    "MemoryUB.csv",
    "ResourceConflictRatio.csv",
    "L2Cache.csv",
}


@pytest.fixture(scope="module")
def profile() -> LaunchProfile:
    found = launch("k", busy_program(), blocks=3, timeline_blocks=1)
    found.operators = ("/a/Add", "/b/Add")
    return found


@pytest.fixture(scope="module")
def tables(profile: LaunchProfile) -> dict[str, list[dict[str, str]]]:
    files = csv_files(MACHINE, RECORD, [profile, profile])
    return {name: list(csv.DictReader(text.splitlines())) for name, text in files.items()}


def test_files(tables: dict[str, list[dict[str, str]]]) -> None:
    assert set(tables) == FILES
    lines = {name: len(rows) for name, rows in tables.items()}
    assert lines.pop("op_summary.csv") == lines.pop("OpBasicInfo.csv") == 2
    assert lines.pop("ResourceConflictRatio.csv") == lines.pop("L2Cache.csv") == 2
    assert set(lines.values()) == {6}


@pytest.mark.parametrize("name", ["op_summary.csv", "OpBasicInfo.csv"])
def test_what_a_launch_computes(name: str, tables: dict[str, list[dict[str, str]]]) -> None:
    row = tables[name][0]
    assert (row["label"], row["operators"]) == ("add 8 f32", "/a/Add;/b/Add")


def test_op_summary(tables: dict[str, list[dict[str, str]]], profile: LaunchProfile) -> None:
    row = tables["op_summary.csv"][0]
    assert float(row["Task Duration(us)"]) == profile.cycles / MACHINE.clock_mhz
    assert int(row["Block Dim"]) == 3
    assert int(row["total_cycles"]) == sum(block.cycles for block in profile.per_block)
    busy = sum(block.pipes["PIPE_M"] for block in profile.per_block)
    assert float(row["aic_mac_time(us)"]) == pytest.approx(busy / 3 / MACHINE.clock_mhz, abs=1e-3)


def test_pipe_utilization(tables: dict[str, list[dict[str, str]]], profile: LaunchProfile) -> None:
    for row, block in zip(tables["PipeUtilization.csv"], profile.per_block, strict=False):
        assert int(row["aic_total_cycles"]) == block.cycles
        for name, pipe in (("cube", "M"), ("vec", "V"), ("mte2", "MTE2"), ("scalar", "S")):
            share = block.pipes[f"PIPE_{pipe}"] / block.cycles
            assert float(row[f"aic_{name}_ratio"]) == pytest.approx(share, abs=1e-4)
        assert "aic_fixpipe_ratio" not in row, "ascend910 has no fixpipe"


def test_arithmetic(tables: dict[str, list[dict[str, str]]], profile: LaunchProfile) -> None:
    row, block = tables["ArithmeticUtilization.csv"][0], profile.per_block[0]
    share = block.unit_cycles["mad.f162f32"] / block.cycles
    assert float(row["aic_cube_fp16_ratio"]) == pytest.approx(share, abs=1e-4)
    vector = block.unit_cycles["vadd.f32"] + block.unit_cycles["vector_dup.f32"]
    assert float(row["aic_vec_fp32_ratio"]) == pytest.approx(vector / block.cycles, abs=1e-4)
    assert float(row["aic_vec_fp16_ratio"]) == 0


def test_memory(tables: dict[str, list[dict[str, str]]]) -> None:
    row = tables["Memory.csv"][0]
    assert float(row["GM_to_UB_datas(KB)"]) == 16
    assert float(row["UB_to_GM_datas(KB)"]) == 0.25
    assert float(tables["MemoryL0.csv"][0]["L1_to_L0A_datas(KB)"]) == 32


def test_waits_are_at_most_all(tables: dict[str, list[dict[str, str]]]) -> None:
    row = tables["ResourceConflictRatio.csv"][0]
    ratios = [float(value) for name, value in row.items() if name.endswith("_wait_ratio")]
    assert max(ratios) > 0.3 and max(ratios) <= 1


def test_written_into_a_new_folder(profile: LaunchProfile, tmp_path: Path) -> None:
    write_csv(str(tmp_path / "a" / "b"), MACHINE, RECORD, [profile])
    assert {path.name for path in (tmp_path / "a" / "b").iterdir()} == FILES


def test_folder_that_is_a_file(profile: LaunchProfile, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="cannot make the folder"):
        write_csv(str(tmp_path / "f"), MACHINE, RECORD, [profile])


@pytest.fixture(scope="module")
def split_tables() -> dict[str, list[dict[str, str]]]:
    """Of a launch of two blocks, each on a cube core and its two vector cores."""
    executable = davinci.compile(str(SPLIT), machine="ascend910b")
    inputs = {spec.name: np.ones(spec.shape, spec.dtype) for spec in executable.inputs}
    executable.run(inputs, timeline="first")
    files = csv_files(executable.machine, executable.profile, executable.launches)
    return {name: list(csv.DictReader(text.splitlines())) for name, text in files.items()}


def test_kinds_of_cores_have_columns_of_their_own(
    split_tables: dict[str, list[dict[str, str]]],
) -> None:
    rows = split_tables["PipeUtilization.csv"]
    assert [row["sub_block_id"] for row in rows] == ["cube0", "vector0", "vector1"] * 2
    for row in rows:
        mine, other = ("aic", "aiv") if row["sub_block_id"] == "cube0" else ("aiv", "aic")
        assert float(row[f"{mine}_time(us)"]) > 0 and float(row[f"{mine}_mte2_ratio"]) > 0
        assert {value for name, value in row.items() if name.startswith(other)} == {""}
    assert "aic_vec_ratio" not in rows[0] and "aiv_cube_ratio" not in rows[0]
    assert "aiv_vec_fp32_ratio" in split_tables["ArithmeticUtilization.csv"][0]
    assert "aiv_vec_wait_ratio" in split_tables["ResourceConflictRatio.csv"][0]


def test_no_core_is_at_work_longer_than_the_launch(
    split_tables: dict[str, list[dict[str, str]]],
) -> None:
    (row,) = split_tables["op_summary.csv"]
    assert row["Task Type"] == "MIX_AIC"
    assert (int(row["Block Dim"]), int(row["Mix Block Dim"])) == (2, 4)
    duration = float(row["Task Duration(us)"])
    assert 0 < float(row["aicore_time(us)"]) < float(row["aiv_time(us)"]) <= duration
    blocks = split_tables["PipeUtilization.csv"]
    for prefix in ("aic", "aiv"):
        cycles = [int(block[f"{prefix}_total_cycles"] or 0) for block in blocks]
        assert int(row[f"{prefix}_total_cycles"]) == sum(cycles)

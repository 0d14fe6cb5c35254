"""All files of one run of npu-run, as its user gets them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from davinci.errors import EXIT_BAD_INPUT, EXIT_OK
from davinci.report.trace import LAUNCHES
from davinci.tools import npu_run
from report_support import check_as_read, check_flows, check_format, check_lanes, of

FILES = ("r.html", "t.json", "a.json")


def run(model: str, folder: Path, *more: str) -> None:
    report, trace, record = (str(folder / name) for name in FILES)
    files = ["--report", report, "--trace", trace, "--json", record, "--csv", str(folder / "csv")]
    assert npu_run.main([model, *files, *more]) == EXIT_OK


def test_network(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("zoo:mlp", tmp_path)
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    check_format(events)
    check_lanes(events)
    check_flows(events)
    check_as_read(events)
    drawn = [event for event in of(events, "X") if event["pid"] > 0]
    assert {event["pid"] for event in drawn} == {1}, "more than block 0 is drawn"
    assert {event["args"]["block"] for event in drawn} == {0}
    record = json.loads((tmp_path / "a.json").read_text())
    launches = [
        event["name"] for event in of(events, "X") if event["tid"] == LAUNCHES and not event["pid"]
    ]
    assert len(launches) == record["ops"]["total"]
    page = (tmp_path / "r.html").read_text()
    assert all(f'data-kernel="{row["name"]}"' in page for row in record["kernels"])
    assert len(list((tmp_path / "csv").iterdir())) == 9
    capsys.readouterr()
    paths = [str(tmp_path / "a.json")] * 2
    assert npu_run.main(["--compare", *paths]) == EXIT_OK
    assert "1.000" in capsys.readouterr().out


def test_all_blocks_and_launches(tmp_path: Path) -> None:
    run("zoo:mlp", tmp_path, "--timeline", "all")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    check_lanes(events)
    check_as_read(events)
    assert len({event["pid"] for event in events}) > 2


def test_split_machine(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "split_matmul_add.mlir"
    run(str(example), tmp_path, "--machine", "ascend910b")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    check_format(events)
    check_lanes(events)
    check_flows(events)
    reading = check_as_read(events)
    between = [(a["pid"], b["pid"]) for a, b in reading.arrows if b["name"] == "wait_flag_dev"]
    assert between == [(1, 2), (1, 3)], "from the cube core to its vector cores"
    lanes = reading.lanes
    assert {core for core, _ in lanes} == {"NPU", "core 0 AIC", "core 0 AIV0", "core 0 AIV1"}
    assert {core for core, lane in lanes if lane == "FIXP"} == {"core 0 AIC"}
    assert {core for core, lane in lanes if lane == "VECTOR"} == {"core 0 AIV0", "core 0 AIV1"}


def test_folder_is_checked_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert npu_run.main(["zoo:mlp", "--csv", str(tmp_path / "file")]) == EXIT_BAD_INPUT
    captured = capsys.readouterr()
    assert "cannot make the folder" in captured.err and not captured.out

"""Two records side by side."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from davinci import machine
from davinci.errors import EXIT_BAD_INPUT, EXIT_OK, InputError
from davinci.report.compare import MOST_KEYS, changes, load_record, print_comparison
from davinci.report.comparison import comparison
from davinci.report.record import digest_of, machine_values
from davinci.tools import npu_run


def record(**cycles: int) -> dict[str, Any]:
    total = sum(cycles.values())
    return {
        "schema_version": 1,
        "machine": "ascend910",
        "total_cycles": total,
        "launch_overhead_us": 10,
        "time_us": total / 1000 + 10,
        "kernels": [{"name": name, "cycles": count} for name, count in cycles.items()],
    }


def shown(before: dict[str, Any], after: dict[str, Any]) -> str:
    text = io.StringIO()
    print_comparison(before, after, Console(file=text, width=120))
    return text.getvalue()


def test_changes() -> None:
    found = changes(record(a=100, b=50, gone=7), record(a=50, b=50, new=80))
    assert [change.name for change in found] == ["new", "a", "gone", "b"]
    assert [change.ratio for change in found] == [None, 0.5, None, 1]


def test_table() -> None:
    text = shown(record(a=1000, gone=7), record(a=500, new=80))
    lines = {line.split()[1]: line.split() for line in text.splitlines() if line.startswith("│")}
    assert lines["a"][3:8:2] == ["1,000", "500", "-500"] and "0.500" in lines["a"]
    assert "only before" in " ".join(lines["gone"]) and "only after" in " ".join(lines["new"])
    assert "-7" in lines["gone"] and "+80" in lines["new"]
    assert "0.576" in lines["total_cycles"]
    assert "machine" not in text


def test_equal_kernels_are_counted() -> None:
    text = shown(record(a=1000, b=5, c=7), record(a=500, b=5, c=7))
    assert "2 kernels with the same cycles in both" in text
    assert "│ b " not in text and "-500" in text
    assert "1 kernel with the same" in shown(record(a=1), record(a=1))


def test_times_have_two_digits() -> None:
    text = shown(record(a=1234), record(a=1235))
    assert "11.23" in text and "+0.00" in text and "+1 " in text


def test_other_machine_is_said() -> None:
    other = record(a=1) | {"machine": "ascend310"}
    assert "machine: ascend910 before, ascend310 after" in shown(record(a=1), other)


def test_kernel_of_no_cycles() -> None:
    assert changes(record(a=0), record(a=5))[0].ratio is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[]", "no object"),
        ("{}", "no total_cycles"),
        (json.dumps(record(a=1) | {"kernels": [3]}), "kernels without names"),
        (json.dumps(record(a=1) | {"kernels": [{"name": "a"}]}), "no cycles of kernel a"),
        (json.dumps(record(a=1) | {"time_us": "long"}), "totals that are no numbers"),
        (json.dumps(record(a=1) | {"time_us": float("nan")}), "totals that are no numbers"),
        (json.dumps(record(a=1) | {"kernels": [{"name": "a", "cycles": 1e999}]}), "no cycles"),
    ],
)
def test_other_files(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        load_record(str(path))


@pytest.mark.parametrize(
    ("change", "found"), [({}, "found no schema_version"), ({"schema_version": 7}, "version 7")]
)
def test_records_of_other_versions(change: dict[str, int], found: str, tmp_path: Path) -> None:
    old = record(a=1)
    del old["schema_version"]
    path = tmp_path / "old.json"
    path.write_text(json.dumps(old | change))
    with pytest.raises(InputError, match=f"another version.*{found}; expected schema_version 1"):
        load_record(str(path))


def test_kernels_are_shown_by_what_they_compute() -> None:
    before, after = record(a=1000, b=5, c=7), record(a=500, b=6, c=8)
    for one in (before, after):
        for row in one["kernels"]:
            row["label"] = "matmul 8x8x8 f16" if row["name"] == "a" else "add 8 f32"
    text = shown(before, after)
    assert "│ matmul 8x8x8 f16 " in text and "│ a " not in text
    assert "│ b " in text and "│ c " in text, "two of one label are told apart by their names"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path, cycles in zip(paths, (100, 200), strict=True):
        Path(path).write_text(json.dumps(record(a=cycles)))
    assert npu_run.main(["--compare", *paths]) == EXIT_OK
    assert "2.000" in capsys.readouterr().out
    assert npu_run.main(["--compare", paths[0], str(tmp_path / "none.json")]) == EXIT_BAD_INPUT
    assert "none.json" in capsys.readouterr().err
    assert npu_run.main(["zoo:mlp", "--compare", *paths]) == EXIT_BAD_INPUT


def product(name: str, cycles: int, k: int, **more: Any) -> dict[str, Any]:
    work = {"macs": 128 * 256 * k}
    return {"name": name, "label": "matmul 128x256 f16", "cycles": cycles, "work": work, **more}


def test_products_of_one_label_are_paired_by_their_work() -> None:
    before, after = record(), record()
    before["kernels"] = [product("matmul", 100, 256), product("matmul_1", 300, 1024)]
    after["kernels"] = [product("matmul", 290, 1024), product("matmul_1", 90, 256)]
    found = {change.macs: (change.before, change.after) for change in changes(before, after)}
    assert found == {128 * 256 * 256: (100, 90), 128 * 256 * 1024: (300, 290)}
    after["kernels"] = [product("matmul", 290, 1024)]
    before["kernels"] = [product("matmul", 100, 256)]
    assert {(c.before, c.after) for c in changes(before, after)} == {(100, None), (None, 290)}
    assert "matmul (8,388,608 MACs)" in shown(before, after)


def test_products_of_other_work_are_paired_by_their_nodes() -> None:
    """The same nodes in bytes: another label and work, but as many multiplications."""
    before, after = record(), record()
    nodes = ["MatMul_1", "Add_2"]
    before["kernels"] = [product("matmul_add", 100, 256, operators=nodes)]
    bytes_now = product("matmul_mul", 60, 256, operators=nodes) | {"label": "matmul 128x256 i8"}
    bytes_now["work"] = {"macs": 128 * 256 * 256, "read_bytes": 5}
    after["kernels"] = [bytes_now]
    (change,) = changes(before, after)
    assert (change.before, change.after) == (100, 60)
    assert change.label == "matmul 128x256 f16 -> matmul 128x256 i8"
    after["kernels"] = [bytes_now | {"operators": ["MatMul_1"]}]
    assert len(changes(before, after)) == 2, "another node less is another kernel"
    after["kernels"] = [bytes_now | {"work": {"macs": 7}}]
    assert len(changes(before, after)) == 2, "other multiplications are another kernel"


def test_kernels_of_one_label_are_told_apart_by_their_nodes() -> None:
    before, after = record(), record()
    before["kernels"] = [
        product(f"matmul_{n}", 100 * n, 256 * n, operators=[f"/layer.{n}/MatMul", "Add"])
        for n in (1, 2)
    ]
    after["kernels"] = [row | {"cycles": row["cycles"] + 7} for row in before["kernels"]]
    text = shown(before, after)
    assert "matmul 128x256 f16 (/layer.1/MatMul +1)" in text.replace("\n", "")
    names = [line.name for line in comparison(before, after).lines]
    assert "matmul 128x256 f16 (/layer.2/MatMul +1)" in names


def test_machine_files_of_one_name_are_told_apart() -> None:
    one, other = ({**record(a=1), "machine_digest": digest} for digest in "ab")
    assert "two files called ascend910" in shown(one, other)
    assert "two files" not in shown(one, one) + shown(one, record(a=1))


def test_keys_of_machine_files_are_named() -> None:
    own = machine.load("ascend910")
    other = own.model_copy(update={"clock_mhz": 700})
    one, two = (
        {
            **record(a=1),
            "machine_digest": digest_of(each),
            "machine_file": machine_values(each),
        }
        for each in (own, other)
    )
    text = shown(one, two)
    assert f"  clock_mhz: {own.clock_mhz} before, 700 after" in text
    assert text.count(" before, ") == 1
    section = comparison(one, two).about
    assert (
        f"Two files called ascend910 that say different things: clock_mhz: {own.clock_mhz}"
        in section
    )
    changed = {key: [value] for key, value in one["machine_file"].items()}
    many = shown(one, {**two, "machine_file": changed})
    assert many.count(" before, ") == MOST_KEYS
    assert f"and {len(changed) - MOST_KEYS} more keys" in many
    without = {name: value for name, value in two["machine_file"].items() if name != "clock_mhz"}
    assert "clock_mhz: 850 before, nothing after" in shown(one, {**two, "machine_file": without})


def test_machine_values() -> None:
    values = machine_values(machine.load("ascend310"))
    assert values["buffers.UB.bytes"] == machine.load("ascend310").buffer("UB").bytes
    assert not any(isinstance(value, dict) for value in values.values())


def test_a_record_knows_what_its_machine_file_says() -> None:
    own = machine.load("ascend310")
    assert digest_of(own) == digest_of(machine.load("ascend310"))
    assert digest_of(own) != digest_of(own.model_copy(update={"clock_mhz": 700}))

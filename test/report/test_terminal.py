"""Tables on terminals of any width: no line is too long, no word is broken."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

from davinci import machine
from davinci.report.compare import print_comparison
from davinci.report.program import Kernel, ProgramFacts
from davinci.report.record import build
from davinci.report.tables import gains_table, print_tables, quantization_table
from davinci.report.terminal import Heading, fit, lines_of
from report_support import busy_program, launch

MACHINE = machine.load("ascend910")
LABELS = (
    "matmul 64x256x128 f16, add tanh",
    "conv 1x512x14x14 * 512x512x3x3 -> 1x512x14x14 f16, add relu and more",
    "sub mul compare add and more 1x32 i32",
)
NODE = "/encoder/layer.0/attention/self/query/MatMul_18"


def record(labels: tuple[str, ...] = LABELS) -> dict[str, Any]:
    kernels, launches = {}, []
    for number, label in enumerate(labels):
        name = f"kernel_{number}"
        schedule = "share 1x1x2, tile 1x2x4, outer m, a 8x1 by 1, 4 together, 1 slots, parts 1x2"
        kernels[name] = Kernel("matmul", "cube", (4,), label, schedule=schedule)
        launches.append(launch(name, busy_program(), timeline=False))
        launches[-1].operators = (NODE, "Add_2")
    return build(launches, ProgramFacts(kernels, 0, 0, 0), MACHINE, 32)


def printed(table: Any, width: int) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    if callable(table):
        table(console)
    else:
        console.print(table)
    return text.getvalue().splitlines()


def words(lines: list[str]) -> set[str]:
    found = {word for line in lines for word in line.replace("\u2502", " ").split()}
    return {word.strip(",;") for word in found if not set(word) & set("\u2503\u2501\u2500")}


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_word_of_a_run_is_broken(width: int) -> None:
    found = record()
    found["what_if"] = [
        {"change": "mte2.port=2x", "saved_us": 1.5, "saved_ratio": 0.1, "cycles": 12}
    ]
    lines = printed(lambda console: print_tables(found, console, 20), width)
    assert max(map(len, lines)) <= width
    everything = words(printed(lambda console: print_tables(found, console, 20), 400))
    assert words(lines) <= everything | words(["no room for --json has all"])
    for label in LABELS:
        assert {word.strip(",;") for word in label.split()} <= words(lines)


def test_a_narrow_terminal_says_what_it_leaves_out() -> None:
    text = "\n".join(printed(lambda console: print_tables(record(), console, 20), 80))
    assert "no room for" in text and "held by" in text
    for title in ("kernel", "launches", "cycles", "share", "bottleneck"):
        assert f" {title} " in text


@pytest.mark.parametrize("width", [50, 80])
def test_other_tables(width: int) -> None:
    row = {"layer": NODE, "operator": "MatMul", "kept": False, "cosine": 0.9999999}
    layers = [{**row, "own_db": 41.25, "total_db": 38.0}]
    gains = [{"change": f"kernel=matmul_{'x' * 40}:v=2x", "saved_us": 1.0, "saved_ratio": 0.5}]
    gains[0]["cycles"] = 1000
    other = record(LABELS[:2])
    tables = [
        quantization_table({"layers": layers}, 5, width),
        gains_table(gains, 5, width),
        lambda console: print_comparison(record(), other, console),
    ]
    for table in tables:
        assert max(map(len, printed(table, width))) <= width


def test_a_comparison_keeps_its_cycles() -> None:
    long = tuple(f"{label} {'and more ' * 3}" for label in LABELS)
    lines = printed(lambda console: print_comparison(record(), record(long), console), 80)
    assert "cycles before" in lines[1] and "cycles after" in lines[1]


def test_a_word_without_room_ends_in_an_ellipsis() -> None:
    assert lines_of("one verylongword two", 8) == ["one", "verylon\u2026", "two"]
    assert lines_of("", 8) == [""]


def test_columns_of_least_worth_are_left_out() -> None:
    headings = (Heading("name", True, 3), Heading("first", worth=1), Heading("second", worth=2))
    assert fit(headings, [("a" * 12, "12345", "123456")], 80).left_out == ()
    assert fit(headings, [("a" * 12, "12345", "123456")], 30).left_out == (1,)
    assert sum(fit(headings, [("a" * 90, "1", "2")], 40).widths.values()) <= 40

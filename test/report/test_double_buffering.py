"""A double-buffered matmul by hand: all pipes at once, and a critical path that can be read.

    UPDATE_GOLDEN=1 pytest test/report/test_double_buffering.py

writes the figures of the example in docs/reports.md anew.
"""

from __future__ import annotations

import os
import re
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.report.critical import critical_path
from davinci.report.timeline import steps, timelines
from davinci.simulator import LaunchProfile

ROOT = Path(__file__).parents[2]
FILE = ROOT / "examples" / "double_buffered_matmul.mlir"
DOCS = ROOT / "docs" / "reports.md"
PIPES = ["PIPE_MTE2", "PIPE_MTE1", "PIPE_M", "PIPE_V", "PIPE_MTE3"]


def nz(matrix: np.ndarray) -> np.ndarray:
    """Fractals of 16x16 in columns: [n / 16][m / 16][16][16]."""
    m, n = matrix.shape
    return matrix.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3).copy()


def run(text: str) -> LaunchProfile:
    executable = davinci.compile(text)
    random = np.random.default_rng(0)
    a = random.integers(-3, 4, (128, 128)).astype(np.float16)
    b = random.integers(-3, 4, (128, 512)).astype(np.float16)
    outputs = executable.run({"a": nz(a), "b": nz(b)}, timeline="first")
    np.testing.assert_array_equal(outputs["c"], nz(a @ b))
    profile: LaunchProfile = executable.launches[0]
    return profile


@pytest.fixture(scope="module")
def launch() -> LaunchProfile:
    return run(str(FILE))


def test_all_pipes_are_at_work_at_once(launch: LaunchProfile) -> None:
    busy = np.zeros((len(PIPES), launch.cycles), dtype=bool)
    for row in launch.rows:
        if row.mnemonic not in ("set_flag", "wait_flag", "pipe_barrier"):
            busy[PIPES.index(row.pipe), row.start : row.end] = True
    assert busy.all(axis=0).any()
    assert (busy.sum(axis=0) >= 3).mean() > 0.5


def test_critical_path_passes_flags_of_every_pipe(launch: LaunchProfile) -> None:
    path = critical_path(launch.rows)
    assert sum(segment.end - segment.start for segment in path) == launch.cycles
    rows = {row.index: row for row in launch.rows}
    assert {rows[s.index].pipe for s in path if s.kind == "run"} == set(PIPES)
    listed = [what for _, _, what, _, _ in steps(path, rows)]
    for flag in ("MTE2 to MTE1", "MTE1 to CUBE", "CUBE to VECTOR", "VECTOR to MTE3"):
        assert f"flag from {flag}, event" in " ".join(listed)


FREE_FLAG = '      "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = %d : i64} : () -> ()\n'


def flags_first(text: str) -> str:
    """The kernel with three of the buffers of B declared free before A is loaded.

    The flag for A takes the number of the fourth, whose buffer is free when A has been loaded.
    """
    first = "".join(FREE_FLAG % event for event in range(3))
    load, rest = text.split("      // A: columns", 1)
    head, sep, tail = rest.partition('"cce.load2d"')
    assert first in tail and head.count("event = 0") == 2
    head = head.replace("event = 0", "event = 3")
    return f"{load}{first}      // A: columns{head}{sep}{tail.replace(first, '', 1)}"


def test_what_the_report_blames_can_be_gained(launch: LaunchProfile) -> None:
    """MTE1 waits for a copy of B that waits for flags behind A's load: they are set first."""
    (kernel,) = timelines(machine.load("ascend910"), launch, 10_000)
    mte1 = next(pipe for pipe in kernel["waits"] if pipe["lane"] == "MTE1")
    lost = next(cycles for _, source, cycles in mte1["causes"] if ":74:" in source)
    gained = launch.cycles - run(flags_first(FILE.read_text())).cycles
    assert 0.9 * lost < gained <= lost


def example(launch: LaunchProfile) -> str:
    """The figures of the example: neighbours of a kind on the critical path as one, lost cycles."""
    (kernel,) = timelines(machine.load("ascend910"), launch, 10_000)
    cycles, line = kernel["cycles"], "{:>7,} {:>7,} {:>6.1%}  {:<50} {}".format
    texts = ["   from  cycles  share  critical path                                      line"]
    for what, group in groupby(kernel["path"], key=lambda step: step[2]):
        stretch = list(group)
        start, end, times = stretch[0][0], stretch[-1][1], sum(step[4] for step in stretch)
        places = dict.fromkeys(step[3].split(":")[-2] for step in stretch)
        name = what if times == 1 else f"{what} x {times}"
        texts.append(line(start, end - start, (end - start) / cycles, name, ", ".join(places)))
    texts.append("")
    texts.append("         cycles  share  MTE1 spent on                                      line")
    mte1 = next(pipe for pipe in kernel["waits"] if pipe["lane"] == "MTE1")
    kinds = mte1["kinds"]
    spent = [
        ["at work", "", kinds["run"]],
        *mte1["causes"],
        ["nothing left to do", "", kinds["done"]],
    ]
    for what, source, count in spent:
        place = source.split(":")[-2] if source else ""
        texts.append(line(0, count, count / cycles, what, place).replace("      0", " " * 7, 1))
    improved = run(flags_first(FILE.read_text())).cycles
    texts.append(f"\n{cycles:,} cycles; with the flags set first {improved:,}")
    return "\n".join(text.rstrip() for text in texts)


def test_example_in_the_docs(launch: LaunchProfile) -> None:
    text = DOCS.read_text(encoding="utf-8")
    found = re.search(r"### An example\n.*?```\n(.*?)\n```", text, re.DOTALL)
    assert found, "no figures below the heading"
    if os.environ.get("UPDATE_GOLDEN"):
        DOCS.write_text(text[: found.start(1)] + example(launch) + text[found.end(1) :], "utf-8")
        return
    assert found[1] == example(launch), "see the top of this file for how to write them anew"

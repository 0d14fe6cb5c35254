"""A double-buffered matmul by hand: all pipes at once, and a critical path that can be read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import davinci
from davinci.report.timeline import steps
from davinci.simulator import LaunchProfile
from davinci.simulator.critical import critical_path

FILE = Path(__file__).parents[2] / "examples" / "double_buffered_matmul.mlir"
PIPES = ["PIPE_MTE2", "PIPE_MTE1", "PIPE_M", "PIPE_V", "PIPE_MTE3"]


def nz(matrix: np.ndarray) -> np.ndarray:
    """Fractals of 16x16 in columns: [n / 16][m / 16][16][16]."""
    m, n = matrix.shape
    return matrix.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3).copy()


@pytest.fixture(scope="module")
def launch() -> LaunchProfile:
    executable = davinci.compile(str(FILE))
    random = np.random.default_rng(0)
    a = random.integers(-3, 4, (128, 128)).astype(np.float16)
    b = random.integers(-3, 4, (128, 512)).astype(np.float16)
    outputs = executable.run({"a": nz(a), "b": nz(b)}, timeline="first")
    np.testing.assert_array_equal(outputs["c"], nz(a @ b))
    profile: LaunchProfile = executable.launches[0]
    return profile


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

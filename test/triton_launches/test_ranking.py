"""Configurations of autotuners ranked by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton", reason="needs pip install '.[triton]'")
pytest.importorskip("ascendnpuir", reason="needs pip install '.[triton]'")

import triton

import davinci.triton
import triton_kernels as kernels
from davinci.errors import CompileError, InputError
from davinci.triton.ranking import with_equals

BLOCKS = (64, 256, 1024, 1 << 16)
"""The last one does not fit UB."""
N = 3000


def tuned(ranking: davinci.triton.Ranking, blocks: tuple[int, ...] = BLOCKS) -> Any:
    configs = [triton.Config({"BLOCK": block}) for block in blocks]
    restore = davinci.triton.activate()
    try:
        prune = {"early_config_prune": ranking}
        return triton.autotune(configs, key=["n"], prune_configs_by=prune)(kernels.add)
    finally:
        restore()


def run(kernel: Any) -> None:
    x, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    davinci.triton.run(kernel, lambda meta: (triton.cdiv(N, meta["BLOCK"]),), x, x, out, N)
    np.testing.assert_array_equal(out, 2 * x)


def time_us(block: int) -> float:
    x = np.zeros(N, np.float32)
    grid = (triton.cdiv(N, block),)
    return davinci.triton.run(kernels.add, grid, x, x, np.zeros_like(x), N, BLOCK=block).time_us


def test_the_best_are_left_and_timed() -> None:
    ranking = davinci.triton.Ranking(lambda: kernel, keep=2)
    kernel = tuned(ranking)
    run(kernel)
    assert len(kernel.configs_timings) == 2
    rows = {row.config.kwargs["BLOCK"]: row for row in ranking.rows}
    assert list(rows) == sorted(rows, key=lambda block: rows[block].time_us)
    for block in BLOCKS[:-1]:
        assert rows[block].time_us == pytest.approx(time_us(block))
    assert "finds no room" in rows[BLOCKS[-1]].refused
    assert kernel.best_config is ranking.rows[0].config
    table = str(ranking).splitlines()
    assert len(table) == 1 + len(BLOCKS)
    assert [line.endswith("*") for line in table] == [False, True, True, False, False]
    assert "BLOCK: 65536" in table[-1] and "finds no room" in table[-1]


def test_several_processes_rank_alike() -> None:
    pytest.importorskip("distributed", reason="needs pip install '.[tune]'")

    def ranked(processes: int) -> list[tuple[int, float]]:
        ranking = davinci.triton.Ranking(lambda: kernel, keep=0.25, processes=processes)
        kernel = tuned(ranking)
        run(kernel)
        assert len(kernel.configs_timings) == 1
        return [(row.config.kwargs["BLOCK"], row.time_us) for row in ranking.rows]

    assert ranked(1) == ranked(2)


@pytest.mark.parametrize(
    ("times", "count", "kept"),
    [([3, 1, 2], 1, 1), ([2, 1, 2, 2], 2, 4), ([1, 1, 5], 1, 2), ([4, 4], 7, 2), ([], 1, 0)],
)
def test_what_takes_as_long_as_the_last_one_is_kept(
    times: list[float], count: int, kept: int
) -> None:
    assert with_equals(times, count) == kept


def test_no_configuration_can_run() -> None:
    ranking = davinci.triton.Ranking(lambda: kernel)
    kernel = tuned(ranking, (1 << 16, 1 << 17))
    with pytest.raises(CompileError, match=r"no configuration can run.*finds no room"):
        run(kernel)


def test_nothing_would_be_left() -> None:
    with pytest.raises(InputError, match="no configuration would be left; found keep=0"):
        davinci.triton.Ranking(lambda: kernels.add, keep=0)

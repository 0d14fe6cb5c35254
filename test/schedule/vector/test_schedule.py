"""Schedules of groups on the vector unit."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.operators import Tensor
from davinci.schedule.graph import Graph, Node
from davinci.schedule.vector.schedule import VectorSchedule, plan


@pytest.mark.parametrize("cores", [1, 32])
@pytest.mark.parametrize("count", [1000, 10_000_019, 12 * 4096 * 4096, 1 << 33])
def test_tiles_of_long_arrays_fit(count: int, cores: int) -> None:
    arrays = [Tensor((count,), "f32"), Tensor((count,), "f16")]
    graph = Graph(arrays, [Node("cast", (0,), 1, {})], [0], [1])
    schedule = plan(graph, machines.load("ascend910"), cores).schedule
    assert isinstance(schedule, VectorSchedule)
    assert sum(run.count * run.size for run in schedule.runs) >= count
    assert schedule.cores == min(cores, count // 128)

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


def test_a_further_tile_is_loaded_ahead_where_only_one_is_computed() -> None:
    """UB holds two rows of 4,096 in f32 and their squares once beside three tiles of f16, or twice
    beside two; the 910B's barriers cost too little for the latter."""
    rows, sums = (4096, 4096), (4096,)
    arrays = [Tensor(rows, "f16"), *(Tensor(rows, "f32"),) * 2, Tensor(sums, "f32")]
    arrays += [*(Tensor(rows, "f32"),) * 2, Tensor(rows, "f16")]
    nodes = [
        Node("cast", (0,), 1, {}),
        Node("mul", (1, 1), 2, {}),
        Node("reduce", (2,), 3, {"kind": "add", "dims": (1,)}),
        Node("broadcast", (3,), 4, {"dims": (0,)}),
        Node("mul", (1, 4), 5, {}),
        Node("cast", (5,), 6, {}),
    ]
    found = plan(Graph(arrays, nodes, [0], [6]), machines.load("ascend910b"), 48).schedule
    assert isinstance(found, VectorSchedule)
    assert (found.slots, found.slots_held) == (3, 1)

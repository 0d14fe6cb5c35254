"""UB that a gather of elements takes: `davinci.schedule.moves.element_gathers`."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.schedule.moves.element_gathers import NUMBERS, ElementGather, element_schedule
from davinci.units import BLOCK_BYTES

SHAPES = [
    (17, 119 * 17, 16 * 17),
    (1, 30_000, 1),
    (2, 6_001, 50_001),
    (3, 2_011, 7),
    (257, 513, 1_031),
    (4_001, 7, 3),
    (100_003, 1, 1),
]
"""Rows, elements of a row of the table, and of the result."""


@pytest.mark.parametrize("machine", ["ascend910", "ascend310", "ascend310p", "ascend910b"])
@pytest.mark.parametrize("element", ["i8", "f16", "f32", "i64"])
@pytest.mark.parametrize(("rows", "row", "count"), SHAPES)
def test_buffers_fit(machine: str, element: str, rows: int, row: int, count: int) -> None:
    """Buffers of all sizes of tiles fit UB in as many slots as there are, with the numbers."""
    description = machines.load(machine)
    for cores in (1, 2, 8):
        gather = ElementGather(rows, row, count, element)
        schedule = element_schedule(gather, description, cores)
        if schedule is None:
            assert gather.itemsize * (row + 16) > description.buffers.UB.bytes * 0.9
            continue
        held = schedule.slots * sum(schedule.buffers()) + NUMBERS * BLOCK_BYTES
        assert held <= description.buffers.UB.bytes

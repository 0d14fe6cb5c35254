"""Maxima of tiles of scores, and how sources that meet in banks are parted."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.schedule.attention.fold import FIRST, fold, gathered

MACHINE = machines.load("ascend910")
REPEATS_OF_INSTRUCTION = MACHINE.vector.price("vmax", "f16")[0]
"""Repeats in which both sources of an instruction meet, that make up for another instruction."""


@pytest.mark.parametrize("more", [-2, 2])
def test_tiles_are_combined_in_two_where_that_makes_up_for_an_instruction(more: int) -> None:
    repeats = (REPEATS_OF_INSTRUCTION + more) // 2 * 2
    steps = gathered(repeats // 2, (16, 16), "f16", MACHINE)
    assert len(steps) == (2 if more > 0 else 1)
    assert {step.operands[-1].buffer for step in steps} == {FIRST}


def test_a_slower_instruction_is_issued_less_often() -> None:
    """The number of repeats follows from the machine."""
    unit = MACHINE.vector
    slow = unit.model_copy(update={"fixed_cycles_of": {**unit.fixed_cycles_of, "vmax": 200}})
    slower = MACHINE.model_copy(update={"vector": slow})
    rows, tiles = REPEATS_OF_INSTRUCTION, (16, 16)
    ways = [len(fold(rows, tiles, "f16", each).steps) for each in (MACHINE, slower)]
    assert ways[0] == ways[1] + 1

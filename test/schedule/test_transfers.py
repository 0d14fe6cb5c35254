"""Transfers of pieces by runs."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.isa.strides import SharedDim
from davinci.schedule.moves.transfers import Transfer, runs_of


@pytest.mark.parametrize(("run", "found"), [(7, False), (8, True), (9, True)])
def test_runs_are_a_block_or_longer(run: int, found: bool) -> None:
    transfer = Transfer(0, 0, 0, (SharedDim(6, (32, 16)), SharedDim(run, (1, 1))), 4)
    assert (runs_of(transfer, machine.load("ascend910"), 1) is not None) == found


def test_tiles_of_a_core_take_turns() -> None:
    """Rows of 1 KB for four cores: several tiles each, of which one is loaded while another is
    stored."""
    described = machine.load("ascend910")
    transfer = Transfer(0, 0, 0, (SharedDim(512, (512, 1024)), SharedDim(512, (1, 1))), 2)
    way = runs_of(transfer, described, 4)
    assert way is not None
    each = way.units // 4
    assert each > 1 and way.slots == 2
    assert way.time(each) < 0.7 * each * way.cycles
    assert way.slots * way.chunk * 512 * 2 <= described.buffers.UB.bytes

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

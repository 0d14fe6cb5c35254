"""Rows that tiles are combined with, in UB."""

from __future__ import annotations

import pytest

from davinci import machine
from davinci.schedule.vector.row_tables import TableKind, best_table

ROOM = 1 << 16


@pytest.mark.parametrize(("hidden", "kind"), [(0, False), (1 << 20, True)])
def test_a_row_that_moves_while_nothing_else_is_there_costs_nothing(
    hidden: int, kind: bool
) -> None:
    found = best_table(100, 16, "f32", machine.load("ascend910"), uses=4, room=ROOM, hidden=hidden)
    assert (found.kind is TableKind.MOVED) == kind

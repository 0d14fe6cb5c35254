"""What follows the mads of tiles: nothing leaves or is used before it is there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from davinci.schedule.products.ends import Ends, Mads, Timed, after_tiles, before_tiles
from davinci.schedule.products.events import (
    MATRIX,
    PART,
    ROWS,
    Add,
    Ask,
    FractalSpan,
    Leave,
    TileOfC,
    TurnRows,
)
from davinci.schedule.products.extras import BUFFERS, Company

EVERYTHING = Company(apart=True, rows=True, batch=True, added=True, columns=3)
STEPS = 4


def tiles(columns: int, rows: int) -> list[TileOfC]:
    """Of 8 rows and 8 columns of fractals, those of a column one after the other."""
    places = [(i * 8, j * 8) for j in range(columns) for i in range(rows)]
    return [
        TileOfC(0, FractalSpan(m, m + 8), FractalSpan(n, n + 8), number % 2)
        for number, (m, n) in enumerate(places)
    ]


def mads_of(count: int) -> list[Mads]:
    """Of tiles that are multiplied one after the other, in two buffers of L0C."""
    starts = [number * STEPS for number in range(count + 2)]
    starts[-1] = starts[-2]
    return [Mads(starts[i], starts[i + 1] - 1, starts[i + 2]) for i in range(count)]


def flow(company: Company, columns: int = 3, rows: int = 2, part: int = 2) -> list[Timed]:
    found = tiles(columns, rows)
    return after_tiles(found, mads_of(len(found)), Ends((part, 8), 2, 4, company))


COMPANIES = [
    Company(),
    Company(rows=True),
    Company(rows=True, added=True),
    Company(rows=True, added=True, digits=True),
    Company(rows=True, added=True, columns=1),
    EVERYTHING,
    replace(EVERYTHING, columns=8),
]


@pytest.mark.parametrize("company", COMPANIES, ids=str)
@pytest.mark.parametrize("part", [1, 2, 8])
def test_all_of_a_tile_leaves_once_and_complete(company: Company, part: int) -> None:
    added: dict[TileOfC, int] = {}
    left: dict[TileOfC, int] = {}
    steps = []
    for at, event in flow(company, part=part):
        steps.append(at)
        if isinstance(event, Add):
            assert event.n.start == added.get(event.tile, 0)
            added[event.tile] = event.n.stop
        elif isinstance(event, Leave):
            assert event.n.start == left.get(event.tile, 0)
            left[event.tile] = event.n.stop
            assert added.get(event.tile, 0) >= event.n.stop or not company.added
    assert steps == sorted(steps)
    assert set(left.values()) == {8} and len(left) == 6
    assert set(added.values()) == ({8} if company.added else set())


@pytest.mark.parametrize("company", COMPANIES, ids=str)
def test_what_is_used_has_come_and_is_not_overwritten(company: Company) -> None:
    rows: dict[int, FractalSpan] = {}
    turned: dict[int, FractalSpan] = {}
    matrices: dict[int, TileOfC] = {}
    parts: dict[int, tuple[TileOfC, FractalSpan]] = {}
    for _, event in flow(company):
        if isinstance(event, Ask):
            tile, part = event.part.tile, event.part
            if event.kind == ROWS:
                rows[part.turn] = tile.n
            elif event.kind == MATRIX:
                matrices[part.slot] = tile
            else:
                assert event.kind == PART
                parts[part.slot] = tile, part.n
        elif isinstance(event, TurnRows):
            assert rows[event.part.turn] == event.part.tile.n
            turned[event.part.turn] = event.part.tile.n
        elif isinstance(event, Add):
            assert (rows if company.early else turned)[event.turn] == event.tile.n
            assert not company.columns or matrices[event.held] == event.tile
        elif isinstance(event, Leave):
            assert not company.rows or turned[event.turn] == event.tile.n
            assert not company.apart or parts[event.slot] == (event.tile, event.n)


def test_rows_come_once_for_a_column_of_tiles() -> None:
    asks = [e for _, e in flow(EVERYTHING, 3, 4) if isinstance(e, Ask) and e.kind == ROWS]
    assert len(asks) == 3


def test_columns_of_a_matrix_lie_between_mads() -> None:
    """Those of the first tile are added while the second one is multiplied."""
    first = tiles(3, 2)[0]
    company = replace(EVERYTHING, columns=2)
    found = [(at, e) for at, e in flow(company) if isinstance(e, Add) and e.tile == first]
    assert [at for at, _ in found] == [STEPS, STEPS + 1, STEPS + 2, STEPS + 3]
    assert [e.slot for _, e in found] == [i % BUFFERS for i in range(4)]


def test_digits_are_added_behind_the_first_mad_of_a_tile() -> None:
    """To the first tile behind its last, so that its mads do not wait for them."""
    company = Company(rows=True, added=True, digits=True)
    adds = [at for at, event in flow(company) if isinstance(event, Add)]
    assert adds == [STEPS, *(number * STEPS + 1 for number in range(1, 6))]


@pytest.mark.parametrize("tables", [1, 2])
@pytest.mark.parametrize("rows", [1, 3])
def test_mads_begin_with_rows_that_are_there(tables: int, rows: int) -> None:
    """A tile's first mad has its columns of the row in its buffer of the bias table, and what comes
    to L1 overwrites nothing that has still to go there."""
    own, company = tiles(4, rows), Company(tables=tables)
    mads = mads_of(len(own))
    found, places = before_tiles(own, mads, Ends((8, 8), 2, 3, company))
    assert [at for at, _ in found] == sorted(at for at, _ in found)
    assert found[0][0] == -1
    came, held = dict[int, FractalSpan](), dict[int, FractalSpan]()
    for number, tile in enumerate(own):
        while found and found[0][0] <= mads[number].first:
            _, event = found.pop(0)
            if isinstance(event, Ask):
                assert event.part.turn not in came
                came[event.part.turn] = event.part.tile.n
            else:
                assert isinstance(event, TurnRows)
                held[event.part.turn % tables] = came.pop(event.part.turn)
        assert held[places[tile]] == tile.n
    assert not found

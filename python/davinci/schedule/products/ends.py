"""What stands around the mads of tiles: rows that they begin with come to the bias table, the cube
adds to their sums, parts of them leave L0C.

What these are combined with comes ahead of that.

    Add     a matrix a few columns at a time, between the mads of the next tile: loads of the matrix
            and of the next tile's factors take turns, so the cube waits for neither
            a row when its tile is complete; digits, which need no other unit first, behind the
            first mad, so that nothing waits for them
    Leave   a part when its columns are complete, the others of its tile one mad later each
    Ask     a matrix once its buffer in L1 is free, with the parts of the last tile but one; rows if
            they are others than the tile before has, once the last tile but one has left; what has
            C's shape so many parts ahead as there are buffers
    Turn    rows with the last part of the tile before

Rows that mads begin with are asked for that many mads before the tile that has others than the one
before it, as soon as their buffer in L1 is free, and turn to the bias table before its first mad.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from davinci.schedule.products.events import (
    MATRIX,
    PART,
    ROWS,
    Add,
    Ask,
    Event,
    FractalSpan,
    Leave,
    TileOfC,
    TurnRows,
    spans,
)
from davinci.schedule.products.extras import BUFFERS, Company


@dataclass(frozen=True)
class Mads:
    """The first and the last mad of a tile, and the one before which its buffer has to be free."""

    first: int
    last: int
    latest: int


class Ends(NamedTuple):
    """How tiles end.

    Attributes:
        part: columns and rows of a part.
        loads: buffers of what has C's shape and comes part by part.
        ahead: mads that the first of what is asked for comes ahead.
    """

    part: tuple[int, int]
    loads: int
    ahead: int
    company: Company


Timed = tuple[int, Event]
"""An event and the mad before which it comes."""


def after_tiles(tiles: Sequence[TileOfC], mads: Sequence[Mads], ends: Ends) -> list[Timed]:
    """What follows the mads of tiles, in the order of issue."""
    company, turns = ends.company, _turns(tiles, ends.company)
    works = [_after(tile, mads[i], ends, i % BUFFERS, turns[i]) for i, tile in enumerate(tiles)]
    if not works:
        return []
    begin = max(0, works[0][0][0] - ends.ahead)
    found: list[Timed] = []

    def whole(number: int, slot: int = 0) -> Leave:
        tile = tiles[number]
        everything = FractalSpan(0, tile.n.size), FractalSpan(0, tile.m.size)
        return Leave(tile, *everything, slot, turns[number])

    def ask_matrix(number: int, at: int) -> None:
        if company.columns and number < len(tiles):
            found.append((at, Ask(whole(number, number % BUFFERS), MATRIX)))

    def other(number: int) -> bool:
        """Whether a tile's rows are others than the tile before has."""
        if not company.rows or number >= len(tiles):
            return False
        return number == 0 or turns[number] != turns[number - 1]

    asked: list[int] = []  # of each tile, what comes before its rows are asked for

    def ask_rows(number: int, at: int) -> None:
        if other(number):
            found.append((at, Ask(whole(number), ROWS)))
        asked.append(len(found))

    ask_matrix(0, begin)
    ask_rows(0, begin)
    if other(0):
        found.append((begin, TurnRows(whole(0))))
    ask_rows(1, begin)
    at = 0
    for number, work in enumerate(works):
        leaves = [i for i, (_, event) in enumerate(work) if isinstance(event, Leave)]
        adds = [i for i, (_, event) in enumerate(work) if isinstance(event, Add)]
        if number == 0:
            ask_matrix(1, work[0][0])
        for i, (step, event) in enumerate(work):
            at = max(at, step)
            if i == leaves[-1] and other(number + 1):
                found.append((at, TurnRows(whole(number + 1))))
            found.append((at, event))
            if i == leaves[-1]:
                ask_rows(number + 2, at)
            if adds and i == adds[-1]:
                ask_matrix(number + 2, at)
    if company.early:
        found = _with_digits(found, tiles, mads, list(zip(asked, turns, strict=False)))
    return _with_asks(found, begin, ends.loads) if company.apart else found


def before_tiles(
    tiles: Sequence[TileOfC], mads: Sequence[Mads], ends: Ends
) -> tuple[list[Timed], dict[TileOfC, int]]:
    """The events by which rows that mads begin with come, in the order of issue, and the buffer of
    the bias table from which each tile begins; what has place -1 comes before all other events."""
    company = ends.company
    turns = _turns(tiles, company)
    changes = [n for n in range(len(tiles)) if n == 0 or turns[n] != turns[n - 1]]
    found: list[tuple[int, int, Event]] = []
    for number, change in enumerate(changes):
        tile, first = tiles[change], mads[change].first
        everything = FractalSpan(0, tile.n.size), FractalSpan(0, tile.m.size)
        whole = Leave(tile, *everything, 0, turns[change])
        free = mads[changes[number - BUFFERS]].first if number >= BUFFERS else -1
        # A buffer is asked for again behind the turn of what it has.
        found.append((max(free, first - ends.ahead, -1), 1, Ask(whole, ROWS)))
        found.append((first, 0, TurnRows(whole)))
    found.sort(key=lambda each: each[:2])
    places = {tile: turn % company.tables for tile, turn in zip(tiles, turns, strict=True)}
    return [(at, event) for at, _, event in found], places


def _turns(tiles: Sequence[TileOfC], company: Company) -> list[int]:
    """The buffers of each tile's rows: the other one whenever rows change."""
    found: list[int] = []
    for number, tile in enumerate(tiles):
        before = tiles[number - 1]
        same = tile.n == before.n and (tile.batch == before.batch or not company.batch)
        found.append(0 if number == 0 else found[-1] if same else 1 - found[-1])
    return found


def _after(
    tile: TileOfC,
    mads: Mads,
    ends: Ends,
    held: int,
    turn: int,
) -> list[Timed]:
    """What the cube adds to a tile, and its parts; slots of those are still to be found."""
    company = ends.company
    groups = spans(tile.n.size, company.columns) if company.columns else []
    steps = min(len(groups), mads.last + 1 - mads.first)
    found: list[tuple[int, int, Event]] = []
    ready: list[int] = []
    for number, group in enumerate(groups):
        at = min(mads.last + 1 + number * steps // len(groups), mads.latest)
        found.append((at, group.start, Add(tile, group, number % BUFFERS, held, turn)))
        ready.append(at)
    if company.added and not groups and not company.early:
        at = min(mads.last + 2, mads.latest)
        found.append((at, 0, Add(tile, FractalSpan(0, tile.n.size), 0, held, turn)))
    for number, (n, m) in enumerate(parts_of(tile, ends.part)):
        at = mads.last + 2 + number
        if groups:
            at = max(mads.last + 2, ready[(n.stop - 1) // company.columns] + 1)
        found.append((min(at, mads.latest), n.stop, Leave(tile, n, m, 0, turn)))
    found.sort(key=lambda each: each[:2])
    return [(at, event) for at, _, event in found]


def _with_digits(
    found: Sequence[Timed],
    tiles: Sequence[TileOfC],
    mads: Sequence[Mads],
    rows: Sequence[tuple[int, int]],
) -> list[Timed]:
    """With rows of digits, added behind the first mad of each tile; to the first tile, whose mads
    they would hold up, behind the last.

    Args:
        rows: of each tile, how many events come before its rows do, and the buffers of these.
    """
    made, start = list[Timed](), 0
    times = [at for at, _ in found]
    for number, (tile, own, (came, turn)) in enumerate(zip(tiles, mads, rows, strict=False)):
        at = (own.first if number and own.first < own.last else own.last) + 1
        stop = max(start, came, bisect_left(times, at))
        made += found[start:stop]
        start = stop
        at = max([at, *times[stop - 1 : stop]])
        made.append((at, Add(tile, FractalSpan(0, tile.n.size), 0, 0, turn)))
    return made + list(found[start:])


def parts_of(tile: TileOfC, part: tuple[int, int]) -> list[tuple[FractalSpan, FractalSpan]]:
    """Columns and rows of the parts in which a tile leaves L0C."""
    columns, rows = part
    return [(n, m) for m in spans(tile.m.size, rows) for n in spans(tile.n.size, columns)]


def _with_asks(found: Sequence[Timed], begin: int, loads: int) -> list[Timed]:
    """With what has C's shape, in front of each part for a later one, so that all buffers are in
    use; the first ask some steps before."""
    ahead = loads - 1
    parts = [event for _, event in found if isinstance(event, Leave)]
    parts = [part._replace(slot=i % loads) for i, part in enumerate(parts)]
    made: list[Timed] = [(begin, Ask(part, PART)) for part in parts[:ahead]]
    number = 0
    for at, event in found:
        if not isinstance(event, Leave):
            made.append((at, event))
            continue
        made += [(at, Ask(part, PART)) for part in parts[number + ahead : number + ahead + 1]]
        made.append((at, parts[number]))
        number += 1
    return made

"""Orders of products as loops: written out again they are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from davinci.schedule.products.events import Event
from davinci.schedule.products.order import order
from davinci.schedule.products.product import (
    Pieces,
    Product,
    ProductOperand,
    ProductResult,
    ProductSchedule,
    Share,
    Tile,
)
from davinci.schedule.products.rolls import (
    WRITTEN,
    Edges,
    EventLine,
    RolledLoop,
    count_mads,
    form,
    lines_of,
    mads_of,
    position,
)

SCHEDULE = ProductSchedule(
    Share(1, 32, 16),
    Tile(8, 4, 16),
    "m",
    (2, 1),
    2,
    Pieces(32, 8, 4, 1, 4),
    Pieces(4, 16, 1, 2, 4),
    (16, 2),
)


def product(m: int, k: int, n: int, batch: int = 1) -> Product:
    return Product(
        batch,
        m,
        k,
        n,
        ProductOperand(False, 2, False),
        ProductOperand(False, 2, True),
        ProductResult(False, 2),
    )


def written_out(
    lines: Sequence[EventLine | RolledLoop], turns: tuple[int, ...] = ()
) -> Iterator[tuple[Event, tuple[int, ...]]]:
    """Events and where they are at work."""
    for line in lines:
        if isinstance(line, RolledLoop):
            for turn in range(line.count):
                yield from written_out(line.body, (*turns, turn))
            continue
        for event, moves in line.events:
            place = position(event)
            for move, turn in zip(moves, turns, strict=True):
                steps = [step * turn for step in move]
                place = tuple(map(sum, zip(place, steps, strict=True)))  # type: ignore[assignment]
            yield event, place


CASES = [
    (product(2048, 4096, 256), replace(SCHEDULE, share=Share(1, 128, 16))),
    (product(1024, 4096, 512), replace(SCHEDULE, share=Share(1, 64, 32))),
    (product(1000, 4096, 500), replace(SCHEDULE, share=Share(1, 63, 32))),
    (product(128, 1024, 256, 20), replace(SCHEDULE, share=Share(20, 8, 16), beside=(1, 1))),
    (product(16, 16 * 1001, 16), replace(SCHEDULE, share=Share(1, 1, 1), beside=(1, 1))),
]


@pytest.mark.parametrize(("product", "schedule"), CASES, ids=str)
def test_written_out_they_are_the_order(product: Product, schedule: ProductSchedule) -> None:
    assert count_mads(product, schedule) > WRITTEN
    lines = lines_of(schedule.share, product, schedule)
    given = [event for step in order(schedule.share, product, schedule).steps for event in step]
    found = list(written_out(lines))
    assert [form(event, Edges()) for event, _ in found] == [form(e, Edges()) for e in given]
    assert [place for _, place in found] == [position(event) for event in given]


def test_loops_are_short() -> None:
    """A long share of a regular product is written in less than a fifth of its mads."""
    found, schedule = CASES[0]
    assert mads_of(lines_of(schedule.share, found, schedule)) <= count_mads(found, schedule) // 5


def test_few_steps_are_written_out() -> None:
    small = product(256, 256, 256)
    schedule = replace(SCHEDULE, share=Share(1, 16, 16), a=replace(SCHEDULE.a, k=16))
    assert len(lines_of(schedule.share, small, schedule)) == 1

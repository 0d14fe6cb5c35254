"""Schedules of products on machines whose memories are small."""

from __future__ import annotations

from dataclasses import replace

import pytest

from davinci import machine as machines
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.choice import PLAYED, candidates, choose
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.estimate import LeastCycles, estimate_of, least_on
from davinci.schedule.products.footprint import footprint
from davinci.schedule.products.play import played
from davinci.schedule.products.product import Product, ProductOperand, ProductResult, Share, Tile
from davinci.schedule.products.rolls import MOST_WRITTEN, count_mads

ROWS = ProductOperand(False, 2, False), ProductOperand(False, 2, True)
"""Factors A and B of f16, both stored in rows and not transposed."""


def small(ub: int, l1: int) -> machines.Machine:
    """A machine with so many bytes of UB and L1."""
    machine = machines.load("ascend910")
    buffers = machine.buffers
    changed = {
        name: getattr(buffers, name).model_copy(update={"bytes": size})
        for name, size in (("UB", ub), ("L1", l1))
    }
    return machine.model_copy(update={"buffers": buffers.model_copy(update=changed)})


@pytest.mark.parametrize("sizes", [(5, 500, 2), (16, 501, 7), (1, 4096, 1), (100, 1000, 100)])
@pytest.mark.parametrize("itemsize", [2, 4])
@pytest.mark.parametrize("ub", [65536, 32768])
def test_deep_products_fit_small_memories(
    sizes: tuple[int, int, int], itemsize: int, ub: int
) -> None:
    """Of rows of f32 of all of a deep mad there is no room in UB, so a mad takes less."""
    m, k, n = sizes
    rows = ProductOperand(False, itemsize, False), ProductOperand(False, itemsize, True)
    product = Product(1, m, k, n, *rows, ProductResult(False, 4))
    machine = small(ub, 131072)
    for cores in (1, 32):
        schedule = choose(product, machine, cores, Wanted())
        assert not footprint(product, schedule).excess(machine)


@pytest.mark.parametrize("columns", [20, 49, 196, 209])
@pytest.mark.parametrize("cores", [1, 32])
def test_last_columns_of_ragged_rows_leave_with_others(columns: int, cores: int) -> None:
    """Less than a block of them would leave element by element."""
    product = Product(
        1,
        384,
        196,
        columns,
        ProductOperand(True, 2, False),
        ProductOperand(True, 2, True),
        ProductResult(False, 2),
    )
    schedule = choose(product, machines.load("ascend910"), cores, Wanted())
    cuts = schedule.share.n, schedule.tile.n, schedule.part[0]
    assert product.narrow(1) and not product.narrow(*cuts)


@pytest.mark.parametrize("cores", [2, 32])
def test_what_is_left_out_early_is_not_among_the_best(cores: int) -> None:
    machine = machines.load("ascend910")
    given = Product(1, 768, 640, 512, *ROWS, ProductResult(False, 2))
    costs, every = ProductCosts(given, machine), Candidates(given, machine, cores, Wanted()).all()
    cycles = {schedule: estimate_of(costs, schedule, cores) for schedule in every}
    least = LeastCycles(costs, cores)
    assert all(least_on(costs, cores) <= least.of(each) <= cycles[each] for each in cycles)
    all_of_them, _ = candidates(given, machine, cores, Wanted(), len(cycles))
    few, _ = candidates(given, machine, cores, Wanted(), 8)
    assert len(few) <= len(all_of_them) < len(cycles)
    assert few[:8] == all_of_them[:8]


def test_tiles_that_share_what_comes_are_kept() -> None:
    """Of three rows of fractals and sixteen columns: four tiles beside each other read each block
    of A once, and no tile by itself would be among the best."""
    product = Product(1, 512, 4096, 512, *ROWS, ProductResult(False, 2))
    ways = Candidates(product, machines.load("ascend910"), 32, Wanted())
    assert Tile(3, 16, 4) in ways.tiles(Share(1, 3, 16))


def test_tiles_that_leave_a_factor_for_the_next_one_are_kept() -> None:
    """A part of k of 64 x 8192 x 64: rows of fractals take turns at a B that stays in L0B."""
    product = Product(16, 64, 512, 64, *ROWS, ProductResult(True, 4))
    ways = Candidates(product, machines.load("ascend910"), 32, Wanted())
    assert Tile(1, 16, 4) in ways.tiles(Share(1, 2, 4))


def test_cores_that_meet_keep_a_flag_of_rows_that_come() -> None:
    machine = machines.load("ascend910")
    product = Product(16, 64, 512, 64, *ROWS, ProductResult(True, 4))
    inboxes = [
        {each.inbox for each in Candidates(given, machine, 32, Wanted()).all()}
        for given in (product, replace(product, at_work=32))
    ]
    assert inboxes == [{machine.sync.event_ids}, {machine.sync.event_ids - 1}]


def test_fastest_schedule_without_loops_where_none_repeats_itself() -> None:
    """269 fractals of k are no whole steps, so loops are not looked for beyond the first ways."""
    machine = machines.load("ascend910")
    product = Product(1, 2638, 4304, 2243, *ROWS, ProductResult(False, 2))
    best = choose(product, machine, 32, Wanted())
    ways, count = candidates(product, machine, 32, Wanted(), PLAYED)
    straight = [each for each in ways[:count] if count_mads(product, each) <= MOST_WRITTEN]
    assert straight and count_mads(product, best) <= MOST_WRITTEN
    least = min(played(product, each, machine, 32) for each in straight)
    assert played(product, best, machine, 32) <= least


def test_ends_of_ragged_rows_are_those_of_the_busiest_core() -> None:
    """The core that has the last columns has the ends of all its rows, however many cores share C;
    only parts beside each other in its own share do without."""
    machine = machines.load("ascend910")
    product = Product(1, 2568, 81, 1129, *ROWS, ProductResult(False, 2))
    costs = ProductCosts(product, machine)
    schedule = choose(product, machine, 32, Wanted())
    columns = schedule.part[0]

    def left(parts: int) -> float:
        share = replace(schedule.share, n=columns * parts)
        return costs.leave(replace(schedule, share=share, ragged="")).mte3

    whole = replace(product, n=product.fractals.n * 16)
    plain = ProductCosts(whole, machine).leave(schedule).mte3
    assert left(1) - plain > 1.5 * (left(2) - plain) > 0

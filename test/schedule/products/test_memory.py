"""What passes the L2: nothing twice that it holds, and again what was touched too long ago."""

from __future__ import annotations

from dataclasses import replace

import pytest

from davinci import machine
from davinci.machine import Machine
from davinci.operators.vector_program import VectorProgram
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.epilogue import Epilogue
from davinci.schedule.products.estimate import CoreTraffic, tiles_of, traffic_of
from davinci.schedule.products.extras import Extra
from davinci.schedule.products.memory import goes_backwards
from davinci.schedule.products.product import (
    Pieces,
    Product,
    ProductOperand,
    ProductResult,
    ProductSchedule,
    Share,
    Tile,
)

ASCEND310 = machine.load("ascend310")
CORES = 2
IMAGES = Product(
    16,
    784,
    512,
    512,
    ProductOperand(True, 2, False),
    ProductOperand(True, 2, True),
    ProductResult(True, 2),
    matrices=1,
)
MEGABYTE = 1 << 20
A, B, C = (size / MEGABYTE for size in (16 * 784 * 512 * 2, 512 * 512 * 2, 16 * 784 * 512 * 2))
SCHEDULE = ProductSchedule(
    Share(8, 49, 32),
    Tile(7, 8, 8),
    "m",
    (1, 1),
    1,
    Pieces(8, 7, 8, 7, 4),
    Pieces(8, 8, 1, 8, 4),
    (4, 7),
)


def traffic(schedule: ProductSchedule, described: Machine = ASCEND310) -> CoreTraffic:
    costs = ProductCosts(IMAGES, described)
    return traffic_of(costs, schedule, CORES, tiles_of(IMAGES, schedule))


def megabytes(schedule: ProductSchedule, described: Machine = ASCEND310) -> float:
    rate = described.gm.read_bytes_per_cycle * described.cores
    return traffic(schedule, described).memory * rate / MEGABYTE


WIDE_L2 = ASCEND310.model_copy(
    update={"l2": ASCEND310.l2.model_copy(update={"bytes": 256 * MEGABYTE})}
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, A + B + C),  # the 4 rounds over a tile's rows of A meet it in the L2
        ({"outer": "n"}, 4 * A + B + C),  # rounds over all rows of 8 images do not
        ({"share": Share(16, 49, 4)}, 4 * A + B + C),  # nor do turns at columns of all images
    ],
)
def test_reads_again_what_is_no_longer_there(change: dict[str, object], expected: float) -> None:
    schedule = replace(SCHEDULE, **change)
    assert megabytes(schedule) == pytest.approx(expected, rel=0.01)
    assert megabytes(schedule, WIDE_L2) == pytest.approx(A + B, rel=0.01)


ASCEND910 = machine.load("ascend910")
ROWS = Product(
    8,
    16,
    1424,
    2496,
    ProductOperand(False, 2, False, 8 * 1424),
    ProductOperand(False, 2, True),
    ProductResult(False, 4),
)
LINE = ASCEND910.gm.line_bytes


@pytest.mark.parametrize(
    ("change", "tile_bytes"),
    [
        ({}, 20 * 32),  # a row of the tile before was read when all cores had read 28 MB since
        ({"beside": (1, 2), "l0c": 2}, 0),  # the same rows of both tiles are read together
        ({"share": Share(1, 1, 20)}, 0),  # the other tile is another core's, at the same time
    ],
)
def test_lines_that_two_tiles_share_come_twice(change: dict[str, object], tile_bytes: int) -> None:
    """Unless the L2 still holds them, or they lie in fractals."""
    pieces = Pieces(48, 1, 3, 1, 4), Pieces(3, 20, 1, 3, 4)
    schedule = ProductSchedule(
        Share(1, 1, 39), Tile(1, 3, 20), "m", (1, 1), 1, *pieces, (10, 1), l0c=2
    )
    schedule = replace(schedule, **change)

    def moved(product: Product, described: Machine) -> float:
        costs = ProductCosts(product, described)
        found = traffic_of(costs, schedule, 32, tiles_of(product, schedule))
        return found.memory * described.gm.read_bytes_per_cycle * described.cores

    a, b, c = ROWS.operand_bytes("a"), ROWS.operand_bytes("b"), 8 * 16 * 2496 * 4
    ends = (LINE - 128) / tile_bytes if tile_bytes else 0  # rows of both begin at 128 bytes each
    assert moved(ROWS, ASCEND910) == pytest.approx(a + b * (1 + ends) + c)
    wide = ASCEND910.l2.model_copy(update={"bytes": 256 * MEGABYTE})
    assert moved(ROWS, ASCEND910.model_copy(update={"l2": wide})) == pytest.approx(a + b)
    fractals = replace(ROWS, b=ProductOperand(True, 2, True))
    assert moved(fractals, ASCEND910) == pytest.approx(a + b + c)


@pytest.mark.parametrize(("described", "expected"), [(ASCEND310, True), (WIDE_L2, False)])
def test_what_passes_the_l2_is_met_from_its_end_on(described: Machine, expected: bool) -> None:
    """Beside a residual, which was there before; of nothing else the end is the fresher."""
    program = VectorProgram()
    sums, residual = program.input("f32"), program.input("f16")
    program.output(program.convert(program.add(sums, program.convert(residual, "f32")), "f16"))
    epilogue = Epilogue.of(program, sums, [Extra(residual, row=False, batch=True)], nz=True)
    assert goes_backwards(replace(IMAGES, epilogue=epilogue), described) is expected
    assert not goes_backwards(IMAGES, described)


def test_memory_and_cores_work_side_by_side() -> None:
    both = traffic(SCHEDULE)
    assert both.memory < both.cycles(0.5 * both.memory) < 1.05 * both.memory
    assert both.memory < both.cycles(both.memory) < 1.3 * both.memory


def test_what_comes_again_comes_when_the_memory_is_done() -> None:
    """Of weights of 25 MB for 160 rows, whose two rows of tiles take all of B one after the other:
    the first brings it from the memory, the second has it from the L2."""
    described = machine.load("ascend910b")
    operands = ProductOperand(False, 2, False, True), ProductOperand(True, 2, True, True)
    product = Product(1, 160, 2048, 6144, *operands, ProductResult(False, 2))
    a, b = Pieces(48, 5, 1, 5, 2), Pieces(8, 8, 1, 8, 8)
    apart = ProductSchedule(Share(1, 10, 16), Tile(5, 8, 8), "n", (1, 2), 3, a, b, (8, 5), l0c=2)
    costs, cores = ProductCosts(product, described), described.cores

    def cycles(schedule: ProductSchedule) -> float:
        found = traffic_of(costs, schedule, cores, tiles_of(product, schedule))
        return found.cycles(found.memory)

    together = replace(apart, outer="m", beside=(2, 1))
    assert 1.2 * cycles(together) < cycles(apart) < 1.3 * cycles(together)
    best = choose(product, described, cores, Wanted())
    assert all(kind.new[1] for kind in tiles_of(product, best) if kind.fills[1])


def test_parts_of_k_share_the_l2_with_others() -> None:
    """What other cores read for other parts of k makes lines leave as well."""
    pieces = Pieces(50, 3, 2, 3, 2), Pieces(2, 16, 1, 2, 4)
    schedule = ProductSchedule(Share(1, 3, 47), Tile(3, 2, 16), "m", (1, 1), 1, *pieces, (16, 1))
    parts = replace(ROWS, batch=7, m=48, k=1136, n=3000)
    alone, beside = (
        traffic_of(ProductCosts(each, ASCEND910), schedule, 28, tiles_of(each, schedule)).memory
        for each in (parts, replace(parts, at_work=32))
    )
    assert beside * 28 / 32 > 1.5 * alone  # of the memory these 28 cores have 28 parts of 32

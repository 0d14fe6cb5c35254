"""Shares played on paper, against simulated cycles, and flags that event ids are too scarce for."""

from __future__ import annotations

from dataclasses import replace

import pytest

import davinci
from davinci import arrays, machine
from davinci.operators.vector_program import VectorProgram
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import candidates, choose
from davinci.schedule.products.cost import ProductCosts
from davinci.schedule.products.epilogue import Epilogue, Extra
from davinci.schedule.products.estimate import estimate, tiles_of, traffic_of
from davinci.schedule.products.order import order
from davinci.schedule.products.play import CERTAIN, Player, by_play, fastest, played
from davinci.schedule.products.played_buffers import PieceFlags
from davinci.schedule.products.product import Pieces, Product, ProductOperand, ProductResult

ASCEND910 = machine.load("ascend910")


def product(m: int, k: int, n: int) -> Product:
    """Of rows of f16."""
    return Product(
        1,
        m,
        k,
        n,
        ProductOperand(False, 2, False),
        ProductOperand(False, 2, True),
        ProductResult(False, 2),
    )


@pytest.mark.parametrize(
    ("m", "k", "n", "cores"), [(1, 256, 256, 2), (96, 256, 192, 1), (256, 256, 256, 4)]
)
def test_against_simulated_cycles(m: int, k: int, n: int, cores: int) -> None:
    a, b, c = (f"tensor<{x}x{y}xf16>" for x, y in ((m, k), (k, n), (m, n)))
    text = f"""
    func.func @main(%a: {a}, %b: {b}) -> {c} {{
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {c}
      return %0 : {c}
    }}"""
    built = davinci.compile(text, cores=cores, timing_only=True)
    built.run(arrays.random_inputs(built.inputs, 0))
    given = product(m, k, n)
    schedule = choose(given, ASCEND910, cores, Wanted())
    expected = built.profile["total_cycles"]
    assert played(given, schedule, ASCEND910, cores) == pytest.approx(expected, rel=0.05)


def test_chosen_is_not_slower_than_that_of_the_estimate() -> None:
    given = product(512, 768, 768)
    chosen = choose(given, ASCEND910, 32, Wanted())
    cycles = played(given, chosen, ASCEND910, 32)
    assert cycles < 1.2 * estimate(given, chosen, ASCEND910, 32)
    alone = replace(chosen, a=replace(chosen.a, slots=1), b=replace(chosen.b, slots=1))
    assert cycles < played(given, alone, ASCEND910, 32)


def with_residual(m: int, k: int, n: int) -> Product:
    """In fractals, plus a matrix that the cube adds, part by part while others leave."""
    program = VectorProgram()
    sums, residual = program.input("f32"), program.input("f16")
    program.output(program.convert(program.add(sums, program.convert(residual, "f32")), "f16"))
    extra = Extra(residual, row=False, batch=True, finite=True)
    end = Epilogue.of(program, sums, [extra], nz=True, cube=True)
    assert end.matrices
    operands = ProductOperand(True, 2, False), ProductOperand(True, 2, True)
    return Product(1, m, k, n, *operands, ProductResult(True, 2), epilogue=end)


def direct(m: int, k: int, n: int) -> Product:
    """A product whose operands are rows of f16 that become fractals on their way to L1."""
    plain = product(m, k, n)
    a, b = (replace(operand, direct=True) for operand in (plain.a, plain.b))
    return replace(plain, a=a, b=b)


ASCEND910B = machine.load("ascend910b")


@pytest.mark.parametrize(
    ("given", "on"),
    [
        (product(40, 700, 300), ASCEND910),
        (with_residual(200, 64, 256), ASCEND910),
        (direct(3000, 128, 128), ASCEND910B),
        (direct(200, 600, 320), ASCEND910B),
    ],
)
def test_nothing_is_over_before_it_is_expected_at_the_earliest(
    given: Product, on: machine.Machine
) -> None:
    ways, count = candidates(given, on, 2, Wanted(), 16)
    for schedule in ways[:count]:
        tiles = tiles_of(given, schedule)
        player = Player(schedule, traffic_of(ProductCosts(given, on), schedule, 2, tiles))
        player.foresee()
        foreseen = player.least
        work = order(schedule.share, given, schedule)
        player.expect(work)
        least = player.least
        assert 0.5 * least < foreseen < least * CERTAIN
        for step in work.steps:
            player.play(step)
            least = max(least, player.least)
        assert 0.8 * player.end < least < player.end * CERTAIN


@pytest.mark.parametrize("cores", [1, 32])
def test_the_fastest_is_found_without_playing_all_to_the_end(cores: int) -> None:
    given = product(512, 768, 768)
    ways, count = candidates(given, ASCEND910, cores, Wanted(), 64)
    found = fastest(given, ways[:count], ASCEND910, cores)
    assert found == by_play(given, ways[:count], ASCEND910, cores)[0]
    cycles = [played(given, way, ASCEND910, cores) for way in ways[:count]]
    limit = sorted(cycles)[count // 2]
    for way, whole in zip(ways[:count], cycles, strict=True):
        short = played(given, way, ASCEND910, cores, limit)
        assert short == whole if whole < limit else limit <= short <= whole


def test_the_worst_core_reads_more_lines() -> None:
    """Runs of 48 columns of f16 lie across two lines for some cores; those of 64 never do."""
    given = product(64, 768, 768)

    def longer(columns: int) -> float:
        pieces, shares = Pieces(8, columns, 1, 8, 4), 48 // columns
        own, worst = (ProductCosts(given, ASCEND910, shares={"b": n}) for n in (1, shares))
        return worst.fill("b", pieces, 8, columns).mte2 / own.fill("b", pieces, 8, columns).mte2

    assert longer(3) > 1.5
    assert longer(4) == 1


@pytest.mark.parametrize("cores", [8, 32])
def test_what_comes_from_the_memory_comes_as_fast_as_that_is(cores: int) -> None:
    """Of parts of a long k each core reads its own, so the last mads are behind the memory."""
    given = replace(product(64, 512, 64), batch=cores, c=ProductResult(True, 4))
    schedule = choose(given, ASCEND910, cores, Wanted())
    costs = ProductCosts(given, ASCEND910)
    traffic = traffic_of(costs, schedule, cores, tiles_of(given, schedule))
    player = Player(schedule, traffic)
    for step in order(schedule.share, given, schedule).steps:
        player.play(step)
    assert traffic.memory == pytest.approx(cores * 2 * 64 * 512 * 2 / (32 * 32))
    port = 2 * 64 * 512 * 2 / ASCEND910.mte2.port_bytes_per_cycle
    assert player.mte2 >= max(traffic.memory, port)
    assert player.end > player.mte2 + ASCEND910.mte2.start_cycles


def test_fractals_of_one_row_follow_each_other() -> None:
    """They come as one run, wherever k is cut."""
    operands = ProductOperand(True, 2, False), ProductOperand(True, 2, True)
    row, two = (Product(1, m, 512, 64, *operands, ProductResult(True, 2)) for m in (16, 32))
    row_costs, two_costs = (ProductCosts(each, ASCEND910, missing=1) for each in (row, two))
    pieces = Pieces(16, 1, 16, 1, 2)
    port = ASCEND910.mte2.port_bytes_per_cycle
    assert row_costs.fill("a", pieces, 16, 1).mte2 == pytest.approx(16 * 512 / port)
    assert two_costs.fill("a", pieces, 16, 1).mte2 > 1.5 * 16 * 512 / port


def test_flags_of_places_that_are_filled_again_are_known_to_be_clear() -> None:
    flags = PieceFlags(ASCEND910)
    for turn in range(20):
        place = "a", turn % ASCEND910.sync.event_ids
        assert flags.load(place, flags.fill(place, 1.0)) == 0


def test_more_flags_than_event_ids() -> None:
    flags, count = PieceFlags(ASCEND910), ASCEND910.sync.event_ids
    fills = [flags.fill(("a", slot), slot) for slot in range(count + 2)]
    found = [flags.load(("a", slot), fill) for slot, fill in enumerate(fills)]
    # One that is asked for tells of all that came before.
    assert found == [0] * count + [None, 0]


def test_a_flag_that_is_set_by_a_later_fill() -> None:
    flags, count = PieceFlags(ASCEND910), ASCEND910.sync.event_ids
    fills = [flags.fill(("a", slot), slot) for slot in range(count + 1)]
    found = [flags.load(("a", slot), fill) for slot, fill in enumerate(fills[:-1])]
    flags.fill(("a", 0), 77.0)
    assert [*found, flags.load(("a", count), fills[-1])] == [0] * count + [77.0]


def test_one_flag_for_what_came_before_it() -> None:
    flags, count = PieceFlags(ASCEND910), 2 * ASCEND910.sync.event_ids
    fills = [flags.fill(("a", slot), slot) for slot in range(count)]
    assert not any(flags.load(("a", slot), fills[slot]) for slot in reversed(range(count)))

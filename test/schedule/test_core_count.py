"""How many cores a kernel takes."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.operators import Tensor
from davinci.operators.tensors import NZ
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.groups import count_of
from davinci.schedule.core_count import Weighed, cheapest, counts
from davinci.schedule.graph import Graph, Node
from davinci.schedule.kernel_cores import cores_of
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.vector.space import NoSpace

MACHINE = machines.load("ascend910")


@pytest.mark.parametrize("work", [100, 2_000, 20_000, 150_000, 1e6, 1e8])
@pytest.mark.parametrize("cores", [1, 2, 5, 32])
def test_least_of_all(work: float, cores: int) -> None:
    """The search finds the least total that there is on any number it may try."""
    tried = []

    def weigh(count: int, most: float) -> Weighed:
        tried.append(count)
        return Weighed(500 + work / count, count)

    found = cheapest(LaunchPrice(MACHINE), cores, weigh)
    totals = {n: 500 + work / n + MACHINE.queued_cycles(n) for n in counts(cores)}
    assert found.total == min(totals.values()) == totals[found.cores]
    assert len(tried) == len(set(tried)) <= 7


def test_totals_with_two_low_places() -> None:
    """On few cores the pieces of a kernel may be other ones, that take less time."""

    def weigh(count: int, most: float) -> Weighed:
        return Weighed(4_000 if count in (3, 4) else 3_000 + 30_000 / count, count)

    assert cheapest(LaunchPrice(MACHINE), 32, weigh, uneven=True).cores == 3
    assert cheapest(LaunchPrice(MACHINE), 32, weigh).cores > 4


def test_work_that_few_numbers_share_evenly() -> None:
    """A product of 64 columns of blocks takes longer on 12 cores than on 8; 16 are found."""
    cycles = {32: 3050, 24: 3468, 16: 3445, 12: 5309, 8: 4917, 6: 6375, 4: 6766, 3: 9000, 2: 13000}

    def weigh(count: int, most: float) -> Weighed:
        return Weighed(cycles[count], count)

    assert cheapest(LaunchPrice(MACHINE, 2), 32, weigh).cores == 16


def test_loops_side_by_side_have_their_cores_each() -> None:
    assert Weighed(1, 64, beside=2).on(16) == 32
    assert Weighed(1, 24, beside=2).on(16) == 24


def test_cores_without_work_cost_nothing() -> None:
    found = cheapest(
        LaunchPrice(MACHINE), 32, lambda count, most: Weighed(1e6 / min(count, 5), min(count, 5))
    )
    assert found.total == 2e5 + MACHINE.queued_cycles(5)


def test_numbers_of_cores_without_a_kernel() -> None:
    def weigh(count: int, most: float) -> Weighed:
        if count < 12:
            raise NoSpace("more parts than cores")
        return Weighed(100, count)

    assert cheapest(LaunchPrice(MACHINE), 32, weigh).cores == 12


def test_no_kernel_at_all() -> None:
    def weigh(count: int, most: float) -> Weighed:
        raise NoSpace("none")

    with pytest.raises(NoSpace, match="none"):
        cheapest(LaunchPrice(MACHINE), 32, weigh)


def product(m: int, n: int, k: int) -> Graph:
    a, b, c = (Tensor(shape, "f16", NZ) for shape in ((m, k), (k, n), (m, n)))
    return Graph([a, b, c], [Node("matmul", (0, 1), 2)], [0, 1], [2])


def test_small_kernels_take_few_cores() -> None:
    assert cores_of(product(32, 128, 128), MACHINE, 32).cores <= 8
    assert cores_of(product(1024, 1024, 1024), MACHINE, 32).cores == 32
    array = Tensor((64, 64), "f32")
    assert cores_of(Graph([array, array], [Node("abs", (0,), 1)], [0], [1]), MACHINE, 32).cores <= 4
    assert cores_of(product(1024, 1024, 1024), MACHINE, 6).cores == 6


def test_cores_meet_in_phases_where_that_pays() -> None:
    """Cores that have flags for each other meet in a phase of a launch, too: to find the largest of
    40 million numbers, not that of 12,000."""
    machine = machines.for_vector(machines.load("ascend910b"))
    price = LaunchPrice(machine, phases=4)
    for rows, pays in ((40_000, True), (12, False)):
        arrays = [Tensor((rows, 1000), "f32"), Tensor((), "f32")]
        whole = Graph(arrays, [Node("reduce", (0,), 1, {"kind": "max", "dims": (0, 1)})], [0], [1])
        phase, free = (cores_of(whole, machine, 48, price=price, meets=m) for m in (False, True))
        assert not free.tried[free.cores].apart
        assert (free.total < phase.total) == pays


@pytest.mark.parametrize("rows", [1_000, 100_000])
def test_phases_read_what_the_l2_holds(rows: int) -> None:
    """A phase of a launch reads what phases in front of it wrote, at the pace of the L2 where that
    holds its arrays; a kernel with a launch of its own, or larger arrays, at the memory's."""
    array = Tensor((rows, 1000), "f32")
    graph = Graph([array, array], [Node("abs", (0,), 1)], [0], [1])
    first, phase = (
        count_of(graph, Target(MACHINE, MACHINE.cores, all_cores=False, phases=phases))
        for phases in (1, 8)
    )
    held = 2 * array.size_bytes <= MACHINE.l2.bytes
    assert held == (rows == 1_000)
    cycles = [count.tried[MACHINE.cores].cycles for count in (first, phase)]
    assert (cycles[1] < cycles[0]) == held

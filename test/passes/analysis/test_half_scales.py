"""Plans of f16 values and their scales."""

from __future__ import annotations

from davinci.passes.analysis.half_scales import NO_RANGE, TOO_FAR, plan_scales
from davinci.passes.analysis.scale_shifts import LARGEST_SCALE, LEAST, ScaledGraph
from davinci.passes.analysis.value_bounds import Bound
from davinci.passes.analysis.value_graph import ARGUMENT, KnownElements, ValueGraph, ValueNode

SHAPE = (4, 8)


class Builder:
    """Builds a graph node by node."""

    def __init__(self) -> None:
        self.nodes: list[ValueNode] = []
        self.ranges: dict[int, tuple[float, float]] = {}

    def input(self, low: float | None = None, high: float = 0.0) -> int:
        if low is not None:
            self.ranges[len(self.nodes)] = low, high
        return self.add(ARGUMENT)

    def number(self, value: float) -> int:
        known = KnownElements(value, value, abs(value), False)
        self.nodes.append(ValueNode("full", shape=SHAPE, known=known, fixed=True))
        return len(self.nodes) - 1

    def add(self, name: str, *operands: int) -> int:
        self.nodes.append(ValueNode(name, operands, SHAPE))
        return len(self.nodes) - 1

    def graph(self, *results: int) -> ValueGraph:
        return ValueGraph(self.nodes, results, self.ranges)


def extra_scalings(graph: ValueGraph) -> list[tuple[int, int]]:
    """Operands that are multiplied by a power of two on their own."""
    plan = plan_scales(graph).plan
    return [
        (number, place)
        for (number, place), exponent in plan.reads.items()
        if plan.exponents.get(graph.nodes[number].operands[place], exponent) != exponent
    ]


def test_scales_of_a_rational_function_cost_nothing() -> None:
    """(x (a x + b)) / (x (c x + d) + e): constants take the scales."""
    b = Builder()
    x = b.input(0.0, 255.0)

    def affine(scale: float, offset: float) -> int:
        return b.add("add", b.add("mul", x, b.number(scale)), b.number(offset))

    top = b.add("mul", x, affine(2.51, 0.03))
    bottom = b.add("add", b.add("mul", x, affine(2.43, 0.59)), b.number(0.14))
    graph = b.graph(b.add("div", top, bottom))
    found = plan_scales(graph)
    assert extra_scalings(graph) == []
    assert found.plan.exponents[top] == found.plan.exponents[bottom] == -3
    assert found.plan.exponents[graph.results[0]] == 0
    assert found.left == {}
    assert found.bounds[-1].most < 1.6


def test_joined_values_have_one_scale() -> None:
    """x x + y: y is scaled with the square, on its own."""
    b = Builder()
    x, y = b.input(-3e4, 3e4), b.input(0.0, 100.0)
    square = b.add("mul", x, x)
    root = b.add("sqrt", b.add("abs", y))
    graph = b.graph(b.add("add", square, root), root)
    found = plan_scales(graph)
    scale = found.plan.exponents[square]
    assert scale < -13
    assert found.plan.exponents[graph.results[0]] == scale
    assert found.plan.reads[graph.results[0], 1] == scale
    assert extra_scalings(graph) == [(graph.results[0], 1)]


def test_small_values_are_scaled_up() -> None:
    b = Builder()
    x = b.input(1e-6, 1e-5)
    graph = b.graph(b.add("mul", x, x))
    found = plan_scales(graph)
    scale = found.plan.exponents[graph.results[0]]
    assert 1e-12 * 2.0**scale > 2.0**-14
    assert found.bounds[-1].relative_error < 2.0**-8


def test_what_has_no_bound_stays_f32() -> None:
    b = Builder()
    x, free = b.input(-1.0, 1.0), b.input()
    quotient = b.add("div", x, x)
    sum_ = b.add("add", free, x)
    power = x2 = b.add("mul", b.number(3e4), x)
    for _ in range(3):
        power = b.add("mul", power, x2)
    bounded = b.add("tanh", sum_)
    read = b.add("mul", bounded, x)  # in f16: what is read in f32 only stays in it
    found = plan_scales(b.graph(quotient, sum_, power, read))
    assert found.left[quotient] == found.left[sum_] == NO_RANGE
    assert found.left[power] == TOO_FAR
    assert bounded in found.plan.exponents
    assert not {quotient, sum_, power} & set(found.plan.exponents)


def test_roots_have_even_scales() -> None:
    b = Builder()
    x = b.input(0.0, 3e5)
    graph = b.graph(b.add("sqrt", b.add("abs", x)))
    plan = plan_scales(graph).plan
    assert plan.reads[graph.results[0], 0] == 2 * plan.exponents[graph.results[0]]


def test_functions_read_unscaled_values() -> None:
    """exp of what f16 holds only scaled is computed in f32."""
    b = Builder()
    x = b.input(-1e6, 5.0)
    power = b.add("exp", b.add("neg", b.add("abs", x)))
    plan = plan_scales(b.graph(b.add("mul", power, power))).plan
    assert plan.exponents[power] == 0
    assert (power, 0) not in plan.reads


def test_what_is_computed_and_read_in_f32_only_stays_in_it() -> None:
    b = Builder()
    x = b.input(-1e6, 5.0)
    graph = b.graph(b.add("exp", b.add("neg", b.add("abs", x))))
    assert graph.results[0] not in plan_scales(graph).plan.exponents


def test_the_least_numbers_that_a_scale_lifts_have_one() -> None:
    b = Builder()
    lifted, lost = b.number(LEAST), b.number(LEAST / 2)
    graph = b.graph(lifted, lost)
    limits = ScaledGraph(graph, [Bound.of(LEAST, LEAST), Bound.of(LEAST / 2, LEAST / 2)]).limits
    assert [each and each.high for each in (limits[lifted], limits[lost])] == [LARGEST_SCALE, None]

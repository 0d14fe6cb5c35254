"""Bounds of operators: random operands in random intervals, and operands that are off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci.passes.analysis.bound_rules import RULES
from davinci.passes.analysis.value_analysis import HALF_ROUNDOFF, ScalePlan, bounds_of, overflows
from davinci.passes.analysis.value_bounds import UNKNOWN, Bound, aligned
from davinci.passes.analysis.value_graph import (
    ARGUMENT,
    KnownElements,
    OperandSums,
    ValueGraph,
    ValueNode,
)

FUNCTIONS: dict[str, tuple[Callable[..., Any], float]] = {
    "add": (np.add, -np.inf),
    "sub": (np.subtract, -np.inf),
    "mul": (np.multiply, -np.inf),
    "div": (np.divide, 0.1),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, -np.inf),
    "neg": (np.negative, -np.inf),
    "abs": (np.abs, -np.inf),
    "relu": (lambda a: np.maximum(a, 0), -np.inf),
    "sign": (np.sign, -np.inf),
    "exp": (np.exp, -np.inf),
    "expm1": (np.expm1, -np.inf),
    "log": (np.log, 0.1),
    "log1p": (np.log1p, 0.1),
    "sqrt": (np.sqrt, 0.0),
    "rsqrt": (lambda a: 1 / np.sqrt(a), 0.1),
    "cbrt": (np.cbrt, -np.inf),
    "sinh": (np.sinh, -np.inf),
    "asinh": (np.arcsinh, -np.inf),
    "tanh": (np.tanh, -np.inf),
    "logistic": (lambda a: 1 / (1 + np.exp(-a)), -np.inf),
    "sine": (np.sin, -np.inf),
    "cosine": (np.cos, -np.inf),
    "floor": (np.floor, -np.inf),
    "round": (np.round, -np.inf),
    "hard_swish": (lambda a: a * np.clip(a + 3, 0, 6) / 6, -np.inf),
}
"""What operators compute, and from where on they can."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_errors_stay_in_their_bounds(name: str) -> None:
    function, least = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    count = function.nin if isinstance(function, np.ufunc) else 1
    for _ in range(40):
        bounds, computed, exact = [], [], []
        for _ in range(count):
            low, high = np.sort(rng.uniform(-6, 6, 2))
            if least > -np.inf:
                low, high = least + abs(low), least + abs(low) + high - low
            off = float(rng.choice([0.0, 1e-3, 0.05]))
            values = np.concatenate([rng.uniform(low, high, 500), [low, high]])
            near = values + rng.uniform(-off, off, values.size)
            bounds.append(Bound.of(low, high, off))
            computed.append(values)
            exact.append(np.maximum(near, least) if least > -np.inf else near)
        found = RULES[name](ValueNode(name, tuple(range(count))), bounds)
        given, wanted = function(*computed), function(*exact)
        slack = 1e-12 * (1 + np.abs(given).max())
        assert found.least <= given.min() + slack
        assert given.max() <= found.most + slack
        assert np.abs(given - wanted).max() <= found.most_error + slack


@pytest.mark.parametrize("name", ["div", "log", "sqrt", "rsqrt"])
def test_what_has_no_bound_is_unknown(name: str) -> None:
    operands = [Bound.of(-1.0, 1.0)] * (2 if name == "div" else 1)
    assert not RULES[name](ValueNode(name, (0, 1)), operands).is_finite


def test_pieces_keep_functions_of_one_value_together() -> None:
    """x / (x + 1) stays below 1, which one interval for each does not show."""
    x = Bound.of(0.0, 100.0).in_pieces(root=0)
    apart = RULES["div"](ValueNode("div", (0, 1)), [Bound.of(0, 100), Bound.of(1, 101)])
    divisor = RULES["add"](ValueNode("add", (0, 1)), [x, Bound.of(1.0, 1.0)])
    assert apart.most == 100
    assert RULES["div"](ValueNode("div", (0, 1)), [x, divisor]).most < 1.2


def test_values_of_several_roots_are_joined() -> None:
    first, second = (Bound.of(0.0, 1.0).in_pieces(root) for root in range(2))
    assert {bound.pieces for bound in aligned([first, second])} == {1}


def test_rounding_keeps_signs_and_zeros() -> None:
    found = Bound.of(0.0, 1.0).rounded(0.5, 0.25)
    assert (found.least, found.most, found.most_error) == (0.0, 1.75, 0.75)
    assert Bound.of(0.0, 0.0).rounded(0.5, 0.25).most_error == 0


def graph(*nodes: ValueNode, results: tuple[int, ...], **ranges: tuple[float, float]) -> ValueGraph:
    return ValueGraph(
        list(nodes), results, {int(name[1:]): found for name, found in ranges.items()}
    )


ROW = (4, 8)


def test_a_softmax_lies_between_0_and_1() -> None:
    alike = {"shape": ROW}
    rows: dict[str, Any] = {"attributes": {"dims": [1], "kind": "max"}, "terms": 8, "shape": (4,)}
    sums: dict[str, Any] = {**rows, "attributes": {"dims": [1], "kind": "add"}}
    found = bounds_of(
        graph(
            ValueNode(ARGUMENT, **alike),
            ValueNode("reduce", (0,), **rows),
            ValueNode("broadcast", (1,), **alike, attributes={"dims": [0]}),
            ValueNode("sub", (0, 2), **alike),
            ValueNode("exp", (3,), **alike),
            ValueNode("reduce", (4,), **sums),
            ValueNode("broadcast", (5,), **alike, attributes={"dims": [0]}),
            ValueNode("div", (4, 6), **alike),
            results=(7,),
            x0=(-50.0, 50.0),
        )
    )
    assert found[3].most == 0
    assert (found[5].least, found[5].most) == (1, 8)
    assert (found[7].least, found[7].most) == (pytest.approx(0, abs=1e-9), 1)


def test_a_product_with_known_weights_is_bound_column_by_column() -> None:
    sums = OperandSums(1, np.array([3.0, 1.0]), np.array([-1.0, -5.0]), 4)
    found = bounds_of(
        graph(
            ValueNode(ARGUMENT),
            ValueNode("constant", known=KnownElements(-5, 3, 1, True)),
            ValueNode("matmul", (0, 1), terms=4, sums=sums),
            results=(2,),
            x0=(0.0, 10.0),
        )
    )
    assert (found[2].least, found[2].most) == (-50, 30)


def test_types_of_few_bits_have_a_range() -> None:
    nodes = [ValueNode(ARGUMENT, element=name) for name in ("ui8", "i8", "i1", "i32", "f32")]
    found = bounds_of(graph(*nodes, results=()))
    assert [(x.least, x.most) for x in found[:3]] == [(0, 255), (-128, 127), (0, 1)]
    assert [x.most for x in found[3:]] == [UNKNOWN.most] * 2


def test_a_plan_that_overflows_is_seen() -> None:
    tried = graph(ValueNode(ARGUMENT), ValueNode("mul", (0, 0)), results=(1,), x0=(0.0, 300.0))
    for exponent, lost in ((0, [1]), (-1, [])):
        plan = ScalePlan({1: exponent}, {(1, 0): 0, (1, 1): exponent})
        bounds = bounds_of(tried, plan)
        assert list(overflows(tried, plan, bounds)) == lost
        assert bounds[1].most_error >= 300**2 * HALF_ROUNDOFF


def test_a_normalised_value_is_no_larger_than_the_root_of_its_row() -> None:
    """x / sqrt(mean of x x + 1e-12), whose divisor alone tells nothing."""
    alike: dict[str, Any] = {"shape": ROW}
    rows: dict[str, Any] = {"attributes": {"dims": [1], "kind": "add"}, "terms": 8, "shape": (4,)}
    numbers = [
        ValueNode("full", shape=(4,), known=KnownElements(x, x, x, False)) for x in (1 / 8, 1e-12)
    ]
    found = bounds_of(
        graph(
            ValueNode(ARGUMENT, **alike),
            ValueNode("mul", (0, 0), **alike),
            ValueNode("reduce", (1,), **rows),
            *numbers,
            ValueNode("mul", (2, 3), shape=(4,)),
            ValueNode("add", (5, 4), shape=(4,)),
            ValueNode("rsqrt", (6,), shape=(4,)),
            ValueNode("broadcast", (7,), **alike, attributes={"dims": [0]}),
            ValueNode("mul", (0, 8), **alike),
            results=(9,),
            x0=(-50.0, 50.0),
        )
    )
    assert found[8].most == pytest.approx(1e6)
    assert 8**0.5 < found[9].most < 1.02 * 8**0.5


def test_the_maximum_of_another_row_bounds_nothing() -> None:
    square: dict[str, Any] = {"shape": (4, 4)}
    rows: dict[str, Any] = {"attributes": {"dims": [1], "kind": "max"}, "terms": 4, "shape": (4,)}
    for dims, most in (([0], 0), ([1], 2)):
        found = bounds_of(
            graph(
                ValueNode(ARGUMENT, **square),
                ValueNode("reduce", (0,), **rows),
                ValueNode("broadcast", (1,), **square, attributes={"dims": dims}),
                ValueNode("sub", (0, 2), **square),
                results=(3,),
                x0=(-1.0, 1.0),
            )
        )
        assert found[3].most == most

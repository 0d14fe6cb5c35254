"""What leads to a left factor comes before the rest of a loop's step."""

from __future__ import annotations

from davinci.operators.vector_program import Value, VectorProgram
from davinci.schedule.loops.step_order import factors_first


def order(p: VectorProgram, products: set[Value], lefts: set[Value]) -> list[Value]:
    return [step.result for step in factors_first(p.steps, products, lefts, {})]


def test_rest_is_behind_factors() -> None:
    """Steps of which no left factor is made are last, but for those that wait for no product."""
    p = VectorProgram()
    x, product = p.input("f32"), p.input("f32")
    early = p.mul(x, 2.0)
    gate = p.unary("vexp", product)
    kept = p.mul(gate, x)
    reset = p.add(gate, early)
    left = p.convert(reset, "f16")
    assert order(p, {product}, {left}) == [early, gate, reset, left, kept]
    assert order(p, {product}, set()) == [early, gate, kept, reset, left]


def test_sums_stay_behind_readers() -> None:
    """A step that adds into a value stays behind what reads that value."""
    p = VectorProgram()
    product = p.input("f32")
    begun = p.unary("vexp", product)
    read = p.mul(begun, 2.0)
    total = p.step("vmla", [begun, product, product])
    left = p.convert(total, "f16")
    assert order(p, {product}, {left}) == [begun, read, total, left]

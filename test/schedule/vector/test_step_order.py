"""Steps of independent chains are taken in turn, and bits seen as another type are not copied."""

from __future__ import annotations

import numpy as np

import davinci
from davinci import machine
from davinci.operators.vector_program import Value
from davinci.schedule.vector.bit_views import view_bits
from davinci.schedule.vector.interleaving import interleaved, waiting
from davinci.schedule.vector.multiply_adds import fuse_multiply_adds
from davinci.schedule.vector.tile_program import VIEW, TileProgram

COUNT = 8224
"""Elements of which the last of several tiles ends in the middle of a repeat."""


def chains(count: int) -> TileProgram:
    """A program of `count` inputs, each of which goes through three steps of its own."""
    p = TileProgram(lane=0)
    for number in range(count):
        x = p.load("f32", (0,))
        p.stores[number] = p.store(p.unary("vexp", p.unary("vabs", p.unary("vsqrt", x))), (0,))
    return p


def require_order(p: TileProgram) -> None:
    """Fails where a step comes before one that makes what it reads, or behind one that writes over
    that."""
    made, gone = {*p.inputs, *p.constants}, set()
    for step in p.steps:
        assert made.issuperset(step.sources) and gone.isdisjoint(step.sources), step
        gone |= {step.sources[0]} if step.accumulates else set()
        made.add(step.result)


def test_chains_take_turns() -> None:
    p = chains(2)
    assert waiting(p.steps) == 4
    found = interleaved(p)
    assert found is not None and waiting(found.steps) == 0
    require_order(found)
    assert sorted(s.result.number for s in found.steps) == [s.result.number for s in p.steps]
    assert interleaved(found) is None
    assert interleaved(chains(1)) is None  # nothing lies between its steps


def test_what_is_written_over_is_read_before() -> None:
    p = TileProgram(lane=0)
    x, y = (p.mul(p.load("f32", (0,)), -1.0) for _ in range(2))
    read = p.unary("vabs", p.unary("vexp", x))
    added = p.add(p.mul(y, 2.0), x)
    p.stores = {n: p.store(v, (0,)) for n, v in enumerate((read, p.unary("vexp", added)))}
    fuse_multiply_adds(p, machine.load("ascend910"))
    assert any(step.accumulates for step in p.steps)
    found = interleaved(p)
    assert found is not None
    require_order(found)


def bits_of(p: TileProgram, x: Value) -> Value:
    return p.step("vor", [x, x], "s32")


def test_views() -> None:
    p = TileProgram(lane=0)
    total = p.add(p.load("f32", (0,)), 1.5)
    bits = bits_of(p, total)
    p.stores = {0: p.store(p.mul(bits, 3), (0,)), 1: p.store(bits_of(p, p.mul(total, 2.0)), (0,))}
    view_bits(p)
    assert [step.name for step in p.steps] == ["vadds", VIEW, "vmul", "vmuls", "vor"]
    assert waiting(p.steps) == 2  # the product reads the sum through the view
    assert [step.name for step in p.steps if step.members] == []


def test_a_view_keeps_its_buffer() -> None:
    """A number and its bits are both read late, with other steps on tiles of their size between."""
    kind, whole = f"tensor<{COUNT}xf32>", f"tensor<{COUNT}xi32>"
    text = f"""
func.func @main(%x: {kind}) -> ({kind}, {whole}) {{
  %a = stablehlo.multiply %x, %x : {kind}
  %bits = stablehlo.bitcast_convert %a : ({kind}) -> {whole}
  %one = stablehlo.constant dense<1> : {whole}
  %b = stablehlo.sqrt %a : {kind}
  %c = stablehlo.exponential %b : {kind}
  %d = stablehlo.subtract %c, %a : {kind}
  %i = stablehlo.add %bits, %one : {whole}
  return %d, %i : {kind}, {whole}
}}"""
    x = np.random.default_rng(0).uniform(-3, 3, COUNT).astype(np.float32)
    executable = davinci.compile(text, core_choice="all")
    found, bits = executable.run(x).values()
    square = x * x
    np.testing.assert_array_equal(bits, square.view(np.int32) + 1)
    np.testing.assert_allclose(found, np.exp(np.sqrt(square)) - square, rtol=1e-5, atol=1e-5)


def test_a_last_tile_that_ends_within_a_repeat() -> None:
    """It takes as many instructions as the others, each of whole repeats."""
    kind = f"tensor<{COUNT}xf32>"
    text = f"""
func.func @main(%x: {kind}) -> {kind} {{
  %a = stablehlo.sqrt %x : {kind}
  %b = stablehlo.log %a : {kind}
  %c = stablehlo.tanh %b : {kind}
  return %c : {kind}
}}"""
    x = np.random.default_rng(0).uniform(0.5, 3, COUNT).astype(np.float32)
    executable = davinci.compile(text, core_choice="all")
    (found,) = executable.run(x).values()
    np.testing.assert_allclose(found, np.tanh(np.log(np.sqrt(x))), rtol=1e-5, atol=1e-6)
    *others, last = (block.cycles for block in executable.launches[-1].per_block)
    assert others and last <= max(others)

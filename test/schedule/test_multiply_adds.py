"""Which products and sums of a program become one instruction."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.operators.vector_program import Value
from davinci.schedule.vector.multiply_adds import fuse_multiply_adds
from davinci.schedule.vector.tile_program import TileProgram
from support import run_text

CHIP = machine.load("ascend910")


def program(*inputs: str) -> tuple[TileProgram, list[Value]]:
    """A program, and its inputs negated: values that may be written over."""
    p = TileProgram(lane=0)
    return p, [p.mul(p.load("f32", (0,)), -1.0) for _ in inputs]


def fused(p: TileProgram, *results: Value) -> list[str]:
    """Names of the steps behind the negations, once products and sums are fused."""
    p.stores = {number: p.store(value, (0,)) for number, value in enumerate(results)}
    fuse_multiply_adds(p, CHIP)
    return [step.name for step in p.steps if step.sources[0] not in p.inputs]


def test_in_the_place_of_an_operand() -> None:
    p, (x, y) = program("x", "y")
    assert fused(p, p.add(p.mul(x, 2.0), y)) == ["vaxpy"]
    p, (x, y) = program("x", "y")
    assert fused(p, p.sub(y, p.mul(x, 2.0))) == ["vaxpy"] and p.steps[-1].scalar == -2.0
    p, (x, y, z) = program("x", "y", "z")
    assert fused(p, p.add(p.mul(x, y), z)) == ["vmadd"]
    p, (x, y) = program("x", "y")
    assert fused(p, p.add(p.mul(x, y), 3.0)) == ["vmadd"] and 3.0 in p.constants.values()
    p, (x, y, z) = program("x", "y", "z")  # x and y are read again
    assert fused(p, p.add(p.mul(x, y), z), p.sub(x, y)) == ["vmla", "vsub"]


def test_what_is_needed_later_stays() -> None:
    p, (x, y) = program("x", "y")
    assert fused(p, p.add(p.mul(x, 2.0), y), p.sub(x, y)) == ["vmuls", "vadd", "vsub"]
    p, (x, y) = program("x", "y")
    product = p.mul(x, 2.0)
    assert fused(p, p.add(product, y), product) == ["vmuls", "vadd"]
    p = TileProgram(lane=0)
    loaded = p.load("f32", (0,))
    assert fused(p, p.add(p.mul(loaded, 2.0), loaded)) == ["vadd"]
    assert [step.name for step in p.steps] == ["vmuls", "vadd"]


def test_what_tiles_of_other_axes_read_stays() -> None:
    p = TileProgram(lane=1)
    row, rows = p.load("f32", (1,)), p.load("f32", (0, 1))
    base = p.mul(row, -1.0)
    product = p.mul(rows, base)
    p.stores = {0: p.store(product, (0, 1)), 1: p.store(p.add(p.mul(row, 2.0), base), (1,))}
    fuse_multiply_adds(p, CHIP)
    assert not any(step.accumulates for step in p.steps)


def test_a_second_time_changes_nothing() -> None:
    p, (x, y) = program("x", "y")
    first = fused(p, p.add(p.mul(p.add(p.mul(x, y), 3.0), y), 1.0))
    assert first == ["vmadd", "vmadd"]
    fuse_multiply_adds(p, CHIP)
    assert [step.name for step in p.steps[2:]] == first


def test_results_keep_their_bits() -> None:
    kind = "tensor<517xf32>"
    x, y = (np.random.default_rng(s).standard_normal(517).astype(np.float32) for s in (0, 1))
    (found,) = run_text(
        f"func.func @main(%x: {kind}, %y: {kind}) -> {kind} {{"
        f"%a = stablehlo.negate %x : {kind}\n%b = stablehlo.abs %y : {kind}\n"
        f"%c = stablehlo.multiply %a, %b : {kind}\n%d = stablehlo.add %c, %x : {kind}\n"
        f"%e = stablehlo.multiply %d, %b : {kind}\n%r = stablehlo.subtract %y, %e : {kind}\n"
        f"return %r : {kind} }}",
        x,
        y,
    )
    assert np.array_equal(found, y - (-x * np.abs(y) + x) * np.abs(y))


@pytest.mark.parametrize(("rows", "half"), [(16, 64), (37, 40), (3, 16)])
@pytest.mark.parametrize("name", ["ascend910", "ascend910b"])
def test_parts_that_are_stored_together(rows: int, half: int, name: str) -> None:
    """A rotary embedding: the halves of a row of the result lie beside each other, where only one
    of them is a product and a sum; it cannot lie in the place of an operand."""
    whole, part = f"tensor<{rows}x{2 * half}xf32>", f"tensor<{rows}x{half}xf32>"
    text = f"""func.func @main(%x: {whole}, %c: {part}, %s: {part}) -> {whole} {{
      %a = stablehlo.slice %x [0:{rows}, 0:{half}] : ({whole}) -> {part}
      %b = stablehlo.slice %x [0:{rows}, {half}:{2 * half}] : ({whole}) -> {part}
      %ac = stablehlo.multiply %a, %c : {part}
      %bs = stablehlo.multiply %b, %s : {part}
      %bc = stablehlo.multiply %b, %c : {part}
      %as = stablehlo.multiply %a, %s : {part}
      %u = stablehlo.subtract %ac, %bs : {part}
      %w = stablehlo.add %bc, %as : {part}
      %r = stablehlo.concatenate %u, %w, dim = 1 : ({part}, {part}) -> {whole}
      return %r : {whole}
    }}"""
    rng = np.random.default_rng(rows)
    x = rng.standard_normal((rows, 2 * half)).astype(np.float32)
    c, s = rng.standard_normal((2, rows, half)).astype(np.float32)
    (found,) = run_text(text, x, c, s, machine=name, precision="fp32")
    a, b = x[:, :half], x[:, half:]
    np.testing.assert_array_equal(found, np.concatenate([a * c - b * s, b * c + a * s], 1))

"""Slices, gathers, updates and scatters at computed indices, held against NumPy.

`benchmarks/proofs/blocks.py` draws many more of the random programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.machine import load
from random_blocks import random_program
from support import compile_text

MACHINES = ("ascend910", "ascend310", "ascend310p")


@pytest.mark.parametrize("seed", range(36))
def test_random_program(seed: int) -> None:
    """On all machines, on one core and on all."""
    program = random_program(seed)
    machine = MACHINES[seed % len(MACHINES)]
    cores = 1 if seed % 5 == 0 else load(machine).cores
    executable = compile_text(program.text, machine=machine, cores=cores)
    (found,) = executable.run(*program.inputs).values()
    np.testing.assert_array_equal(found, program.result)


UPDATE = """func.func @main(%x: tensor<{whole}>, %u: tensor<{part}>, %i: tensor<i32>)
    -> tensor<{whole}> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r = stablehlo.dynamic_update_slice %x, %u, {places} :
    (tensor<{whole}>, tensor<{part}>, {types}) -> tensor<{whole}>
  return %r : tensor<{whole}> }}"""


def update(shape: tuple[int, ...], axis: int, length: int, kind: str = "f32") -> str:
    """An update of `length` along one dimension, from a computed start on."""
    part = [*shape]
    part[axis] = length
    places = ["%z"] * len(shape)
    places[axis] = "%i"
    return UPDATE.format(
        whole="x".join(map(str, shape)) + f"x{kind}",
        part="x".join(map(str, part)) + f"x{kind}",
        places=", ".join(places),
        types=", ".join(["tensor<i32>"] * len(shape)),
    )


@pytest.mark.parametrize(
    ("shape", "axis", "length", "most"),
    [
        ((1, 4, 64, 32), 2, 1, 4000),
        ((1, 4, 64, 32), 2, 5, 4000),
        ((1, 4, 32, 64), 3, 1, 4000),
        ((1, 12, 1024, 64), 2, 1, 20000),
    ],
)
def test_one_step_into_a_cache(shape: tuple[int, ...], axis: int, length: int, most: int) -> None:
    """The argument is copied, since a run leaves it as it is, and then a part is overwritten."""
    executable = compile_text(update(shape, axis, length))
    random = np.random.default_rng(0)
    x = random.standard_normal(shape, dtype=np.float32)
    part = list(shape)
    part[axis] = length
    new = random.standard_normal(part, dtype=np.float32)
    for start in (0, shape[axis] - length, shape[axis] + 3, -2):
        (found,) = executable.run(x, new, np.int32(start)).values()
        first = min(max(start, 0), shape[axis] - length)
        wanted = x.copy()
        np.moveaxis(wanted, axis, 0)[first : first + length] = np.moveaxis(new, axis, 0)
        np.testing.assert_array_equal(found, wanted)
    assert executable.profile["total_cycles"] <= most
    units = {k["unit"] for k in executable.profile["kernels"]}
    assert units == {"vector"}


CHAIN = """func.func @main(%x: tensor<8x64xf32>, %u: tensor<1x64xf32>, %i: tensor<i32>,
    %j: tensor<i32>) -> ({results}) {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %a = stablehlo.add %x, %x : tensor<8x64xf32>
  %b = stablehlo.dynamic_update_slice %a, %u, %i, %z :
    (tensor<8x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
  %c = stablehlo.dynamic_update_slice %b, %u, %j, %z :
    (tensor<8x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
  {more}
  return {values} : {results} }}"""

ROWS = "tensor<8x64xf32>"


@pytest.mark.parametrize(
    ("values", "more", "copies"),
    [
        ("%c", "", 0),
        ("%c, %b", "", 1),
        ("%c, %a", "", 1),
        ("%c, %d", f"%d = stablehlo.abs %a : {ROWS}", 1),
        ("%c, %d", f"%d = stablehlo.subtract %b, %c : {ROWS}", 1),
    ],
    ids=["nothing else", "the value between", "the value before", "a reader", "both"],
)
def test_updates_in_place(values: str, more: str, copies: int) -> None:
    """What nothing needs any more is changed where it lies, everything else is copied first."""
    results = ", ".join([ROWS] * (values.count(",") + 1))
    executable = compile_text(
        CHAIN.format(results=results, values=values, more=more), fusion="none"
    )
    random = np.random.default_rng(1)
    x, u = (random.standard_normal(s, dtype=np.float32) for s in ((8, 64), (1, 64)))
    found = executable.run(x, u, np.int32(2), np.int32(7))
    a = x + x
    b, c = a.copy(), a.copy()
    b[2] = c[2] = c[7] = u[0]
    known: dict[str, Any] = {"%a": a, "%b": b, "%c": c, "%d": abs(a) if "abs" in more else b - c}
    for name, array in zip(values.split(", "), found.values(), strict=True):
        np.testing.assert_array_equal(array, known[name])
    copied = [k for k in executable.profile["kernels"] if k["op"] == "copy"]
    assert sum(k["launches"] for k in copied) == copies


def test_zeros_are_filled_where_they_are_changed() -> None:
    text = """func.func @main(%u: tensor<1x64xf32>, %i: tensor<i32>) -> tensor<8x64xf32> {
      %z = stablehlo.constant dense<0> : tensor<i32>
      %x = stablehlo.constant dense<0.0> : tensor<8x64xf32>
      %r = stablehlo.dynamic_update_slice %x, %u, %i, %z :
        (tensor<8x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<8x64xf32>
      return %r : tensor<8x64xf32> }"""
    executable = compile_text(text)
    u = np.ones((1, 64), np.float32)
    (found,) = executable.run(u, np.int32(3)).values()
    np.testing.assert_array_equal(found, np.arange(8)[:, None] * np.ones(64) == 3)
    assert executable.profile["memory"]["weights_bytes"] == 0

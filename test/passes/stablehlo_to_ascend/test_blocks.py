"""Slices, gathers, updates and scatters at computed indices, held against NumPy.

`benchmarks/proofs/blocks.py` draws many more of the random programs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.machine import load
from fuzz.group_kernels import SCATTER
from pairs import in_turn
from random_blocks import random_program
from support import compile_text

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


@pytest.mark.parametrize("seed", [*range(18), *range(19, 140, 7)])
def test_random_program(seed: int) -> None:
    """On all machines, on one core and on all."""
    program = random_program(seed)
    machine = MACHINES[seed // 5 % len(MACHINES)]
    cores = 1 if seed % 3 == 0 else load(machine).cores
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
    # The zeros are no constant; what there is are counters of cores that meet.
    assert executable.profile["memory"]["weights_bytes"] < found.nbytes // 8


@pytest.mark.parametrize(
    ("rows", "width", "lines", "most"),
    [(2000, 1, 1600, 12000), (50, 32, 200, 12000), (33, 3, 70, 5000), (7, 65537, 3, 70000)],
)
def test_additions_in_memory(rows: int, width: int, lines: int, most: int) -> None:
    """Sums of duplicates; numbers beside a line keep their bits, also a negative zero."""
    executable = compile_text(SCATTER.format(rows=rows, width=width, lines=lines, by="add"))
    random = np.random.default_rng(rows)
    x = random.integers(-3, 4, (rows, width)).astype(np.float32) * np.float32(-1)
    indices = random.integers(-2, rows + 2, (lines, 1)).astype(np.int32)
    updates = random.integers(-50, 50, (lines, width)).astype(np.float32)
    wanted = x.copy()
    inside = (indices[:, 0] >= 0) & (indices[:, 0] < rows)
    np.add.at(wanted, indices[inside, 0], updates[inside])
    (found,) = executable.run(x, indices, updates).values()
    np.testing.assert_array_equal(found, wanted)
    untouched = np.setdiff1d(np.arange(rows), indices)
    np.testing.assert_array_equal(np.signbit(found[untouched]), np.signbit(x[untouched]))
    assert executable.profile["total_cycles"] <= most
    assert {k["unit"] for k in executable.profile["kernels"]} == {"vector"}


@pytest.mark.parametrize("machine", ["ascend910", "ascend310"])
@pytest.mark.parametrize("by", ["multiply", "maximum", "minimum"])
@pytest.mark.parametrize(("rows", "width", "lines"), [(400, 1, 300), (50, 33, 60), (2, 900, 5)])
def test_rows_that_a_core_owns(machine: str, by: str, rows: int, width: int, lines: int) -> None:
    text = SCATTER.format(rows=rows, width=width, lines=lines, by=by)
    executable = compile_text(text, machine=machine)
    random = np.random.default_rng(rows)
    x, updates = (random.integers(-3, 4, (n, width)).astype(np.float32) for n in (rows, lines))
    x[random.random(x.shape) < 0.05] = np.nan
    indices = random.integers(0, rows, (lines, 1)).astype(np.int32)
    wanted = x.copy()
    getattr(np, by).at(wanted, indices[:, 0], updates)
    (found,) = executable.run(x, indices, updates).values()
    np.testing.assert_array_equal(found, wanted)
    assert {k["unit"] for k in executable.profile["kernels"]} == {"vector"}


STORED = {"f32": "f4", "i32": "i4", "f16": "f2", "i16": "i2", "ui8": "u1", "i8": "i1", "i64": "i8"}


WRITTEN = [*((kind, False) for kind in STORED), ("f32", True)]


@pytest.mark.parametrize(
    ("kind", "unique", "machine"),
    [(*one, machine) for one, machine in in_turn(WRITTEN, ["ascend910", "ascend310p"])],
)
def test_elements_are_written_as_differences(kind: str, unique: bool, machine: str) -> None:
    """The last of several for one place stays, bit for bit; those outside are left out."""
    count, size = 80, 300
    random = np.random.default_rng(2)
    table, updates = (
        np.frombuffer(random.bytes(n * np.dtype(STORED[kind]).itemsize), STORED[kind])
        for n in (size, count)
    )
    places = random.permutation(size)[:count] if unique else random.integers(-9, size // 3, count)
    text = f"""func.func @main(%t: tensor<{size}x{kind}>, %i: tensor<{count}x1xi32>,
        %u: tensor<{count}x{kind}>) -> tensor<{size}x{kind}> {{
      %0 = "stablehlo.scatter"(%t, %i, %u) <{{unique_indices = {str(unique).lower()},
        scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
      ^bb0(%a: tensor<{kind}>, %b: tensor<{kind}>):
        stablehlo.return %b : tensor<{kind}>
      }}) : (tensor<{size}x{kind}>, tensor<{count}x1xi32>, tensor<{count}x{kind}>)
        -> tensor<{size}x{kind}>
      return %0 : tensor<{size}x{kind}> }}"""
    executable = compile_text(text, machine=machine)
    arrays = (table, places.astype(np.int32)[:, None], updates)
    (found,) = executable.run(dict(zip(executable.input_names, arrays, strict=True))).values()
    wanted = table.copy()
    for place, update in zip(places, updates, strict=True):
        if place >= 0:
            wanted[place] = update
    assert found.tobytes() == wanted.tobytes()
    assert executable.profile["total_cycles"] < 14_000


ELEMENTS = """func.func @main(%x: tensor<{rows}x{columns}x{kind}>,
    %i: tensor<{rows}x{each}x{index}>) -> tensor<{rows}x{each}x{kind}> {{
  %j = stablehlo.reshape %i : (tensor<{rows}x{each}x{index}>) -> tensor<{rows}x{each}x1x{index}>
  %r = "stablehlo.gather"(%x, %j) <{{dimension_numbers = #stablehlo.gather<
    collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0],
    start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}}>
    : (tensor<{rows}x{columns}x{kind}>, tensor<{rows}x{each}x1x{index}>)
    -> tensor<{rows}x{each}x{kind}>
  return %r : tensor<{rows}x{each}x{kind}> }}"""


@pytest.mark.parametrize(
    ("rows", "columns", "each", "kind", "index", "held"),
    [
        (32, 257, 41, "f32", "i32", "of 4 rows in UB"),  # rows of a tile, which begin anywhere
        (150, 999, 9, "f16", "i64", "of 9 rows in UB"),  # of an array that UB does not hold
        (3, 50, 700, "i64", "i32", "of 2 rows in UB"),
        (33, 3, 31, "i8", "i32", "rows in UB"),
    ],
)
def test_elements_of_what_is_in_ub(
    rows: int, columns: int, each: int, kind: str, index: str, held: str
) -> None:
    """Single elements along rows, by the scalar unit from UB; indices outside are clamped."""
    executable = compile_text(ELEMENTS.format(**locals()))
    random = np.random.default_rng(2)
    x = random.integers(-100, 100, (rows, columns)).astype(
        {"f32": "f4", "f16": "f2", "i64": "i8", "i8": "i1"}[kind]
    )
    places = random.integers(-2, columns + 2, (rows, each)).astype(index.replace("i", "int"))
    (found,) = executable.run(x, places).values()
    wanted = np.take_along_axis(x, places.clip(0, columns - 1).astype(int), 1)
    np.testing.assert_array_equal(found, wanted)
    (kernel,) = (k for k in executable.profile["kernels"] if k["op"] == "gather_blocks")
    assert held in kernel["schedule"]
    assert kernel["unit"] == "vector"
    assert kernel["cycles"] < 80 * rows * each / kernel["blocks"] + 5000  # 119 an element in GM

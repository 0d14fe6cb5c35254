"""Reductions to the largest or smallest value and its place, held against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from support import compile_text

ARG_REDUCE = """func.func @main(%x: tensor<{shape}x{kind}>)
    -> (tensor<{left}{kind}>, tensor<{left}i32>) {{
  %p = stablehlo.iota dim = {dim} : tensor<{shape}xi32>
  %s = stablehlo.constant dense<{start}> : tensor<{kind}>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.reduce(%x init: %s), (%p init: %z) across dimensions = [{dim}] :
    (tensor<{shape}x{kind}>, tensor<{shape}xi32>, tensor<{kind}>, tensor<i32>)
    -> (tensor<{left}{kind}>, tensor<{left}i32>)
    reducer(%a: tensor<{kind}>, %c: tensor<{kind}>) (%b: tensor<i32>, %d: tensor<i32>) {{
      %gt = stablehlo.compare {better}, %a, %c : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
      %nan = stablehlo.compare NE, %a, %a : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
      %first = stablehlo.or %gt, %nan : tensor<i1>
      %eq = stablehlo.compare EQ, %a, %c : (tensor<{kind}>, tensor<{kind}>) -> tensor<i1>
      %lt = stablehlo.compare {tie}, %b, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %and = stablehlo.and %eq, %lt : tensor<i1>
      %or = stablehlo.or %first, %and : tensor<i1>
      %v = stablehlo.select %first, %a, %c : tensor<i1>, tensor<{kind}>
      %q = stablehlo.select %or, %b, %d : tensor<i1>, tensor<i32>
      stablehlo.return %v, %q : tensor<{kind}>, tensor<i32>
    }}
  return %r#0, %r#1 : tensor<{left}{kind}>, tensor<{left}i32> }}"""


INTEGERS = {
    "i1": np.bool_,
    "i8": np.int8,
    "ui8": np.uint8,
    "i32": np.int32,
    "ui32": np.uint32,
    "i64": np.int64,
}


def worst_of(kind: str, largest: bool) -> str:
    if kind == "f32":
        return "0xFF800000" if largest else "0x7F800000"
    if kind == "i1":
        return "false" if largest else "true"
    ends = np.iinfo(INTEGERS[kind])
    return str(ends.min if largest else ends.max)


def arg_reduce(shape: tuple[int, ...], dim: int, kind: str, largest: bool, tie: str = "LT") -> str:
    left = "".join(f"{n}x" for d, n in enumerate(shape) if d != dim)
    return ARG_REDUCE.format(
        shape="x".join(map(str, shape)),
        kind=kind,
        left=left,
        dim=dim,
        start=worst_of(kind, largest),
        better="GT" if largest else "LT",
        tie=tie,
    )


@pytest.mark.parametrize(
    ("shape", "dim", "kind", "machine", "largest"),
    [
        ((3, 17), 1, "f32", "ascend910", True),
        ((17, 5), 0, "f32", "ascend310", False),
        ((2, 33, 3), 1, "i32", "ascend910", True),
        ((2, 33, 3), 1, "i32", "ascend910", False),
        ((1,), 0, "f32", "ascend910", True),
        ((2, 32768), 1, "f32", "ascend910", False),
        ((16640,), 0, "f32", "ascend310p", True),
        ((3, 33), 1, "i1", "ascend910", False),
        ((3, 33), 1, "i1", "ascend910", True),
        ((33, 3), 0, "i8", "ascend310", True),
        ((33, 3), 0, "i8", "ascend310", False),
        ((3, 33), 1, "ui8", "ascend910b", True),
        ((2, 17), 1, "ui32", "ascend310p", False),
        ((2, 33), 1, "i64", "ascend910", True),
        ((1, 16640), 1, "i64", "ascend910", False),
    ],
)
def test_values_and_places(
    shape: tuple[int, ...], dim: int, kind: str, machine: str, largest: bool
) -> None:
    """Few different values, so that many are equal; also infinite ones and NaN."""
    executable = compile_text(arg_reduce(shape, dim, kind, largest), machine=machine)
    random = np.random.default_rng(sum(shape))
    x = random.integers(-3, 4, shape).astype(INTEGERS.get(kind, np.float32))
    for special in [None, *([np.inf, -np.inf, np.nan] if kind == "f32" else [])]:
        if special is not None:
            x[random.random(shape) < 0.02] = special
        value, place = executable.run(x).values()
        best = np.max if largest else np.min
        np.testing.assert_array_equal(value, best(x, dim))
        np.testing.assert_array_equal(place, (np.argmax if largest else np.argmin)(x, dim))
    lowest = (
        np.full(shape, -np.inf if largest else np.inf, x.dtype)
        if kind == "f32"
        else np.zeros_like(x)
    )
    assert not executable.run(lowest)["out1"].any()
    units = {k["unit"] for k in executable.profile["kernels"]}
    assert units == {"vector"} or (x.size == 1 and not units)


@pytest.mark.parametrize("kind", ["i8", "ui8"])
def test_bytes_are_reduced_by_the_vector_unit(kind: str) -> None:
    """Extremes as they are; sums and products keep the low byte."""
    reductions = {"add": "0", "multiply": "1", "maximum": worst_of(kind, True)}
    lines, names = [], []
    for name, start in reductions.items():
        lines.append(f"""
          %s_{name} = stablehlo.constant dense<{start}> : tensor<{kind}>
          %{name} = stablehlo.reduce(%x init: %s_{name}) applies stablehlo.{name}
            across dimensions = [1] : (tensor<3x37x{kind}>, tensor<{kind}>) -> tensor<3x{kind}>""")
        names.append(f"%{name}")
    types = ", ".join(f"tensor<3x{kind}>" for _ in names)
    text = f"""func.func @main(%x: tensor<3x37x{kind}>) -> ({types}) {{
      {"".join(lines)}
      return {", ".join(names)} : {types} }}"""
    executable = compile_text(text)
    dtype = INTEGERS[kind]
    ends = np.iinfo(dtype)
    x = np.random.default_rng(2).integers(ends.min, ends.max, (3, 37), endpoint=True).astype(dtype)
    x[1] = 2 * (x[1] // 2) + 1  # odd numbers, whose product is not 0
    total, product, largest = executable.run(x).values()
    np.testing.assert_array_equal(total, x.sum(1, dtype=dtype))
    np.testing.assert_array_equal(product, x.prod(1, dtype=dtype))
    np.testing.assert_array_equal(largest, x.max(1))
    assert all(k["unit"] == "vector" for k in executable.profile["kernels"])


def test_other_bodies_stay_what_they_are() -> None:
    """A body that keeps the last place of equal values is not converted to `argmax`."""
    executable = compile_text(arg_reduce((2, 9), 1, "f32", True, tie="GT"))
    x = np.array([[1, 3, 3, 0, 3, 2, 2, 1, 0], [5] * 9], np.float32)
    _, place = executable.run(x).values()
    np.testing.assert_array_equal(place, [4, 8])


def test_places_of_parts_are_copied() -> None:
    """Tiles of them are whole blocks, so the scalar unit does not bring them one by one."""
    text = arg_reduce((2, 128256), 1, "f32", True)
    executable = compile_text(text, timing_only=True)
    executable.run()
    kernels = executable.profile["kernels"]
    alone = [k for k in kernels if "which meet" not in k["schedule"]]  # others look at counters
    assert sum(k["scalar_accesses"] for k in alone) < 167
    assert len(kernels) - len(alone) <= 1

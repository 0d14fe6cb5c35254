"""Broadcasts of numbers along short rows: values on all machines, and kernels of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_values import build, values
from davinci import machine as machines
from davinci.mlir import ir
from davinci.passes.ascend.repeated_rows import split_rows
from davinci.passes.ascend.sums_of_exponentials import Chip
from davinci.passes.ascend.tensor_ops import TensorOps
from pairs import in_turn
from support import compile_text

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")

Case = tuple[tuple[int, ...], tuple[int, ...]]
CASES: list[Case] = [
    ((320, 224, 4), (1,)),
    ((672, 28, 7), (2,)),
    ((20, 30, 40, 3), (2,)),
    ((64, 64, 4, 3), (0, 2, 3)),
    ((20, 24, 24, 12), (0, 1, 2)),
    ((3, 1, 17), (1,)),
]


def added(shape: tuple[int, ...], dims: tuple[int, ...], element: str) -> str:
    """Sums with numbers that are repeated to a shape, and the greater of each sum and its number:
    two operators read what is repeated."""
    whole, part = ("x".join(map(str, [*s, element])) for s in (shape, [shape[d] for d in dims]))
    return f"""func.func @main(%x: tensor<{whole}>, %b: tensor<{part}>)
        -> (tensor<{whole}>, tensor<{whole}>) {{
      %r = stablehlo.broadcast_in_dim %b, dims = {list(dims)}
        : (tensor<{part}>) -> tensor<{whole}>
      %y = stablehlo.add %x, %r : tensor<{whole}>
      %z = stablehlo.maximum %y, %r : tensor<{whole}>
      return %y, %z : tensor<{whole}>, tensor<{whole}> }}"""


@pytest.mark.parametrize(
    ("case", "machine"), in_turn([*CASES, *CASES[1:], CASES[0]], MACHINES), ids=str
)
def test_values(machine: str, case: Case) -> None:
    shape, dims = case
    element = "f16" if len(dims) == 1 else "f32"
    executable = compile_text(added(shape, dims, element), machine=machine, precision="fp32")
    rng = np.random.default_rng(len(shape))
    kind = np.float16 if element == "f16" else np.float32
    x = rng.integers(-8, 9, shape).astype(kind)
    b = rng.integers(-8, 9, [shape[d] for d in dims]).astype(kind)
    sums, most = executable.run(x, b).values()
    spread = b.reshape([n if d in dims else 1 for d, n in enumerate(shape)])
    np.testing.assert_array_equal(sums, x + spread)
    np.testing.assert_array_equal(most, np.maximum(x + spread, spread))


@pytest.mark.parametrize(
    ("case", "element", "most"),
    [
        (((320, 224, 4), (1,)), "f16", 6000),
        (((112, 24, 24, 12), (0, 1, 2)), "f16", 12000),
        (((400, 64, 4, 3), (0, 2, 3)), "f32", 14000),
    ],
)
def test_cycles(case: Case, element: str, most: int) -> None:
    """They took 20,113, 50,133 and 18,327 cycles."""
    text = added(*case, element).replace("stablehlo.maximum %y, %r", "stablehlo.negate %y")
    executable = compile_text(text, machine="ascend910", timing_only=True)
    executable.run()
    assert executable.profile["total_cycles"] < most


def split(module: ir.Module) -> int:
    """Broadcasts of @main that are taken apart on the 910."""
    found = machines.load("ascend910")
    chip = Chip(machines.for_vector(found), machines.vector_cores_for(found, 0), joined=False)
    with module.context:
        count = split_rows(module.body.operations[0].regions[0].blocks[0], chip)
    module.operation.verify()
    return count


def test_a_row_is_made_first_and_only_once() -> None:
    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        x, b = inputs
        return [ops.binary("add", x, ops.broadcast(b, (320, 224, 4), [1]))]

    module = build([(320, 224, 4), (224,)], body)
    x, b = np.ones((320, 224, 4), np.float32), np.arange(224, dtype=np.float32)
    (before,) = values(module, [x, b])
    assert split(module) == 1
    assert "tensor<224x4xf32>" in str(module)
    assert "ascend.begins" in str(module)
    (after,) = values(module, [x, b])
    np.testing.assert_array_equal(before, after)
    assert split(module) == 0


def test_rows_and_columns_stay() -> None:
    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        x, row, column = inputs
        sums = ops.binary("add", x, ops.broadcast(row, (128, 768), [1]))
        return [ops.binary("mul", sums, ops.broadcast(column, (128, 768), [0]))]

    assert split(build([(128, 768), (768,), (128,)], body)) == 0

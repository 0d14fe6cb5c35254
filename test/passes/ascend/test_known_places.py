"""Gathers at known places as runs: values on random tables, and when they are taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ascend_values import build, values
from davinci.machine import load
from davinci.mlir import ir
from davinci.operators import Tensor
from davinci.passes.ascend.known_places import differences, run_length, runs_of_gathers
from davinci.passes.ascend.tensor_ops import TensorOps, erase_unused
from support import compile_text

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


def names(module: ir.Module) -> list[str]:
    """The operators of @main."""
    block = module.body.operations[0].regions[0].blocks[0]
    return [op.operation.name.removeprefix("ascend.") for op in block.operations]


def rewritten(module: ir.Module, machine: str = "ascend910") -> int:
    """Gathers of a module that became runs."""
    found = load(machine)
    with module.context:
        block = module.body.operations[0].regions[0].blocks[0]
        count = runs_of_gathers(block, found, found.cores)
        erase_unused(block)
    module.operation.verify()
    return count


def gathered(ops: TensorOps, table: Any, places: Any, row: int) -> Any:
    """Elements of a table at places in its rows [rows, n]."""
    shape = places.shape
    at = (places + row * np.arange(len(places))[:, None]).astype(np.int32)
    indices = ops.array(at, Tensor(shape, "i32"))
    return ops.emit("gather_elements", [table, indices], Tensor(shape, "f32"))


def places_of(rng: np.random.Generator, rows: int, row: int, count: int) -> Any:
    """Any function of the column less the row, the rows numbered again after a divisor of them; of
    the column alone; or a run for each row."""
    kind, i, j = int(rng.integers(4)), np.arange(rows)[:, None], np.arange(count)
    if kind == 0:
        period = int(rng.choice([d for d in range(1, rows + 1) if rows % d == 0]))
        return rng.integers(0, row, period + count)[j - i % period + period - 1]
    if kind == 1:
        return np.clip(i - j + row // 2, 0, row - 1)
    if kind == 2:
        return np.broadcast_to(rng.integers(0, row, count), (rows, count))
    return rng.integers(0, row - count + 1, rows)[:, None] + j


@pytest.mark.parametrize("seed", range(40))
def test_runs_have_the_values_of_the_gather(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, count = (int(rng.choice([1, 2, 12, 48, 256])), int(rng.choice([1, 8, 15, 64, 130])))
    row = count + int(rng.integers(1, 200))
    batch = int(rng.choice([d for d in (1, 2, 4) if rows % d == 0]))
    shapes = [(batch, rows // batch, 16), (batch, 16, row)] if seed % 2 else [(rows, row)]
    places = places_of(rng, rows, row, count)

    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        table = inputs[0]
        if len(inputs) == 2:
            made = Tensor((batch, rows // batch, row), "f32")
            table = ops.reshape(ops.emit("batch_matmul", inputs, made), [rows, row])
        return [gathered(ops, table, places, row)]

    module = build(shapes, body)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (before,) = values(module, inputs)
    if rewritten(module):
        assert "gather_elements" not in names(module)
    (after,) = values(module, inputs)
    np.testing.assert_allclose(after, before, rtol=1e-5, atol=1e-5)


def relative(rows: int, row: int, count: int) -> Any:
    """Relative positions, as attention gathers scores by."""
    return np.clip(np.arange(rows)[:, None] - np.arange(count) + row // 2, 0, row - 1)


def test_a_product_has_its_columns_at_once() -> None:
    """Scores of positions: no gather is left, and the product has as many columns as there are
    differences."""

    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        table = ops.emit("batch_matmul", inputs, Tensor((2, 128, 512), "f32"))
        places = np.tile(relative(128, 512, 128), (2, 1))
        return [gathered(ops, ops.reshape(table, [256, 512]), places, 512)]

    module = build([(2, 128, 64), (2, 64, 512)], body)
    assert rewritten(module) == 1
    assert "gather_elements" not in names(module)
    assert "tensor<2x128x255xf32>" in str(module)
    assert rewritten(module) == 0


def test_a_table_that_others_read_is_not_computed_twice() -> None:
    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        table = ops.emit("matmul", inputs, Tensor((128, 512), "f32"))
        return [gathered(ops, table, relative(128, 512, 128), 512), table]

    module = build([(128, 64), (64, 512)], body)
    rewritten(module)
    assert names(module).count("matmul") == 1


def test_places_without_a_rule_stay() -> None:
    places = np.random.default_rng(0).integers(0, 512, (256, 128))
    module = build([(256, 512)], lambda ops, x: [gathered(ops, x[0], places, 512)])
    assert rewritten(module) == 0


def test_computed_places_stay() -> None:
    def body(ops: TensorOps, inputs: list[Any]) -> list[Any]:
        places = ops.cast(inputs[1], "i32")
        return [ops.emit("gather_elements", [inputs[0], places], Tensor((256, 128), "f32"))]

    assert rewritten(build([(256, 512), (256, 128)], body)) == 0


def test_rules_of_places() -> None:
    i, j = np.arange(6)[:, None], np.arange(4)
    assert run_length(10 * i + j) == 4
    assert run_length(10 * i + j // 2 * 5 + j % 2) == 2
    assert run_length(10 * i - j) == 1
    found = differences(np.array([5, 3, 3, 2, 0, 7])[j - i % 3 + 2])
    assert found is not None
    assert (found.columns.tolist(), found.period) == ([5, 3, 3, 2, 0, 7], 3)
    assert found.firsts(6).tolist() == [2, 1, 0, 2, 1, 0]
    assert differences(i * j) is None


TEXT = """
func.func @main(%q: tensor<3x40x16xf32>, %p: tensor<3x16x64xf32>) -> tensor<3x40x40xf32> {
  %s = stablehlo.dot_general %q, %p, batching_dims = [0] x [0], contracting_dims = [2] x [1]
    : (tensor<3x40x16xf32>, tensor<3x16x64xf32>) -> tensor<3x40x64xf32>
  %i = stablehlo.iota dim = 1 : tensor<3x40x40xi64>
  %j = stablehlo.iota dim = 2 : tensor<3x40x40xi64>
  %d = stablehlo.subtract %i, %j : tensor<3x40x40xi64>
  %c = stablehlo.constant dense<SHIFT> : tensor<3x40x40xi64>
  %k = stablehlo.add %d, %c : tensor<3x40x40xi64>
  %at = stablehlo.reshape %k : (tensor<3x40x40xi64>) -> tensor<3x40x40x1xi64>
  %g = "stablehlo.gather"(%s, %at) {dimension_numbers = #stablehlo.gather<
    collapsed_slice_dims = [2], operand_batching_dims = [0, 1],
    start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>,
    slice_sizes = array<i64: 1, 1, 1>}
    : (tensor<3x40x64xf32>, tensor<3x40x40x1xi64>) -> tensor<3x40x40xf32>
  return %g : tensor<3x40x40xf32>
}
"""


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("shift", [32, 10])
def test_relative_positions_on_a_machine(machine: str, shift: int) -> None:
    """Where differences leave the table they are clamped."""
    executable = compile_text(TEXT.replace("SHIFT", str(shift)), machine=machine, precision="fp16")
    rng = np.random.default_rng(shift)
    q, p = (rng.integers(-4, 5, s).astype(np.float32) for s in ((3, 40, 16), (3, 16, 64)))
    (found,) = executable.run(q, p).values()
    i, j = np.arange(40)[:, None], np.arange(40)
    at = np.broadcast_to(np.clip(i - j + shift, 0, 63), (3, 40, 40))
    np.testing.assert_array_equal(found, np.take_along_axis(q @ p, at, 2))
    assert not any(kernel["unit"] == "scalar" for kernel in executable.profile["kernels"])

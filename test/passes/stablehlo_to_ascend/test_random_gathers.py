"""Random gathers of elements on all machines, and their oracle against StableHLO's interpreter;
many more: benchmarks/proofs/gathers.py."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.mlir import ir, make_context
from davinci.reference.interpreter import evaluate
from random_gathers import random_gather

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")


@pytest.mark.parametrize("seed", range(24))
def test_random_gathers(seed: int) -> None:
    gather = random_gather(seed, longest=60)
    executable = davinci.compile(gather.text, machine=MACHINES[seed % len(MACHINES)], cores=2)
    (found,) = executable.run(*gather.inputs).values()
    assert np.array_equal(found, gather.result)


@pytest.mark.parametrize("seed", range(24))
def test_oracle(seed: int) -> None:
    """Places outside, duplicates, and any axis."""
    gather = random_gather(seed, longest=20)
    with make_context():
        module = ir.Module.parse(gather.text)
    inputs = dict(zip("ab", gather.inputs, strict=True))
    (found,) = evaluate(module, inputs, ["r"]).values()
    assert np.array_equal(found, gather.result)


def gathered(
    table: np.ndarray, places: np.ndarray, axis: int, machine: str = "ascend910", cores: int = 0
) -> davinci.Executable:
    """Runs and checks a gather of elements: of rows of a table of rank 2 at places in each, or of a
    table of rank 1 or rows of few elements along `axis` 0."""
    element = f"{table.dtype.kind}{8 * table.itemsize}"
    a, p = ("x".join(map(str, x.shape)) for x in (table, places))
    if axis:
        result, numbers = (
            p,
            (
                "collapsed_slice_dims = [1], operand_batching_dims = [0], "
                "start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2"
            ),
        )
    else:
        rows = table.shape[1:]
        result = "x".join(map(str, (*places.shape, *rows)))
        offsets = "offset_dims = [1], " if rows else ""
        numbers = (
            f"{offsets}collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
        )
    sizes = ", ".join(map(str, (1, 1) if axis else (1, *table.shape[1:])))
    text = f"""func.func @main(%a: tensor<{a}x{element}>, %p: tensor<{p}xi32>)
        -> tensor<{result}x{element}> {{
      %i = stablehlo.reshape %p : (tensor<{p}xi32>) -> tensor<{p}x1xi32>
      %r = "stablehlo.gather"(%a, %i) {{dimension_numbers = #stablehlo.gather<{numbers}>,
        slice_sizes = array<i64: {sizes}>}}
        : (tensor<{a}x{element}>, tensor<{p}x1xi32>) -> tensor<{result}x{element}>
      return %r : tensor<{result}x{element}>
    }}"""
    executable = davinci.compile(text, precision="fp32", machine=machine, cores=cores)
    (found,) = executable.run(table, places).values()
    expected = np.take_along_axis(table, places, 1) if axis else table[places]
    np.testing.assert_array_equal(found, expected)
    return executable


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize(("rows", "row", "count"), [(40, 100, 203), (3, 513, 1032), (64, 7, 35)])
def test_elements_by_words(dtype: type, rows: int, row: int, count: int) -> None:
    """Words of 64 bits hold 1 to 8 elements; what is left of a piece comes one by one."""
    rng = np.random.default_rng(row)
    table = rng.integers(-100, 100, (rows, row)).astype(dtype)
    gathered(table, rng.integers(0, row, (rows, count)).astype(np.int32), 1)


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32, np.int64])
def test_tiles_of_two_sizes(dtype: type, machine: str) -> None:
    """Tiles of 9 rows and of 8, or of other uneven parts, take turns on the same buffers: i64 of
    two sizes did not fit UB on the 310."""
    rng = np.random.default_rng(17)
    table = rng.integers(-100, 100, (17, 119 * 17)).astype(dtype)
    gathered(table, rng.integers(0, 119 * 17, (17, 272)).astype(np.int32), 1, machine, 2)


@pytest.mark.parametrize("machine", MACHINES)
def test_a_part_of_the_only_block_of_a_table(machine: str) -> None:
    """The second core's rows of 4 bytes begin inside the block that all of the table is."""
    rng = np.random.default_rng(8)
    table = rng.integers(-100, 100, (8, 2)).astype(np.int16)
    places = rng.integers(0, 2, (8, 203)).astype(np.int32)
    gathered(table, places, 1, machine)


def test_two_accesses_an_element() -> None:
    """Places, elements and results one by one take 56,055 cycles."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((256, 1000)).astype(np.float32)
    places = rng.integers(0, 1000, (256, 160)).astype(np.int32)
    assert gathered(table, places, 1).profile["total_cycles"] < 42_000

"""Rows that tiles are combined with, in UB."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.schedule.vector.row_tables import doubling, doubling_cycles, is_moved
from support import compile_text


def test_many_short_rows_take_few_steps() -> None:
    assert len(doubling(598, 8, "f32").steps) == 10
    found = machine.load("ascend910")
    assert doubling_cycles(1, 8, "f32", found) == 0
    assert doubling_cycles(598, 8, "f32", found) < 1000


def test_long_rows_come_from_l1_where_there_is_a_path() -> None:
    """Those of a layer norm do, while it computes; a row of one block takes longer than what is
    computed of one."""
    found = machine.load("ascend910")
    assert is_moved(768, "f32", 10, found)
    assert not is_moved(768, "f32", 1, found)
    assert not is_moved(8, "f32", 10, found)
    assert not is_moved(768, "f32", 10, machine.load("ascend910b"))


@pytest.mark.parametrize("name", ["ascend910", "ascend310p", "ascend910b"])
@pytest.mark.parametrize("shape", [(8, 224, 8), (3, 50, 24), (5, 7, 16)])
def test_a_row_of_one_block_beside_many(name: str, shape: tuple[int, ...]) -> None:
    """The row is repeated by the vector unit: 8 x 224 rows of 8 took 15,895 cycles as copies."""
    kind, row = "x".join(map(str, shape)) + "xf32", f"{shape[2]}xf32"
    text = f"""func.func @main(%x: tensor<{kind}>, %r: tensor<{row}>) -> tensor<{kind}> {{
      %b = stablehlo.broadcast_in_dim %r, dims = [2] : (tensor<{row}>) -> tensor<{kind}>
      %y = stablehlo.add %x, %b : tensor<{kind}>
      return %y : tensor<{kind}> }}"""
    executable = compile_text(text, machine=name, precision="fp32")
    rng = np.random.default_rng(shape[1])
    x, r = (rng.standard_normal(s).astype(np.float32) for s in (shape, shape[2:]))
    (found,) = executable.run(x, r).values()
    np.testing.assert_array_equal(found, x + r)
    assert executable.profile["total_cycles"] < 4000

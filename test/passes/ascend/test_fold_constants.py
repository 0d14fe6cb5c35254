"""ascend-fold-constants: what a repeated row leads to is folded, the row itself is not."""

from __future__ import annotations

import numpy as np

from davinci import elements, frontends
from davinci.elements import Array
from davinci.mlir import make_context
from davinci.passes.pipeline import runner

ROWS, COLUMNS = 320, 16
"""More bytes than repeated rows may have."""

RANDOM = np.random.default_rng(5)
MATRIX = RANDOM.standard_normal((ROWS, COLUMNS)).astype(np.float32)
ROW = RANDOM.standard_normal(COLUMNS).astype(np.float32)


def folded(body: str) -> tuple[list[str], list[Array]]:
    """Names of the operations of a function that has `%x`, `%w` and `%g`, and its constants."""
    kind = f"tensor<{ROWS}x{COLUMNS}xf32>"
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %w = "ascend.constant"() {{value = dense<"0x{MATRIX.tobytes().hex()}"> : {kind}}}
        : () -> {kind}
      %g = "ascend.constant"() {{value = dense<"0x{ROW.tobytes().hex()}"> : tensor<16xf32>}}
        : () -> tensor<16xf32>
      {body.replace("KIND", kind)}
    }}"""
    module = frontends.load(text, make_context())
    runner.run(module.operation, "builtin.module(ascend-fold-constants)")
    ops = [op.operation for op in module.body.operations[0].regions[0].blocks[0].operations]
    arrays = [elements.to_array(op.attributes["value"]) for op in ops if "value" in op.attributes]
    return [op.name.removeprefix("ascend.") for op in ops], arrays


REPEAT = '%r = "ascend.broadcast"(%g) {dims = array<i64: 1>} : (tensor<16xf32>) -> KIND'
SCALE = '%s = "ascend.mul"(%w, %r) : (KIND, KIND) -> KIND'
ADD = '%y = "ascend.add"(%x, %s) : (KIND, KIND) -> KIND'


def test_weight_by_gains() -> None:
    names, arrays = folded(f"{REPEAT}\n{SCALE}\n{ADD}\nreturn %y : KIND")
    assert names == ["constant", "add", "func.return"]
    np.testing.assert_array_equal(arrays[0], MATRIX * ROW)


def test_weight_by_its_own_sums() -> None:
    sums = (
        '%g2 = "ascend.reduce"(%w) {kind = "add", dims = array<i64: 0>} : (KIND) -> tensor<16xf32>'
    )
    body = f"{sums}\n{REPEAT.replace('%g)', '%g2)')}\n{SCALE}\n{ADD}\nreturn %y : KIND"
    names, arrays = folded(body)
    assert names == ["constant", "add", "func.return"]
    np.testing.assert_allclose(arrays[0], MATRIX * MATRIX.sum(0), rtol=1e-5)


def test_rows_only() -> None:
    """What comes from a row alone stays repeated in place, however long the chain."""
    body = f"{REPEAT}\n{SCALE.replace('%w', '%r')}\n{ADD}\nreturn %y : KIND"
    names, _ = folded(body)
    assert names == ["constant", "broadcast", "mul", "add", "func.return"]


def test_row_that_stays() -> None:
    """A repeated row that is read at run time is not given away for what else it leads to."""
    other = '%z = "ascend.add"(%y, %r) : (KIND, KIND) -> KIND'
    names, _ = folded(f"{REPEAT}\n{SCALE}\n{ADD}\n{other}\nreturn %z : KIND")
    assert names == ["constant", "constant", "broadcast", "mul", "add", "add", "func.return"]

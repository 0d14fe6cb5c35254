"""ascend-fold-constants: what a repeated row leads to is folded, the row itself is not."""

from __future__ import annotations

import numpy as np
import pytest

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
    return operations_of(text)


def operations_of(text: str, options: str = "") -> tuple[list[str], list[Array]]:
    """The same of the only function of a module."""
    module = frontends.load(text, make_context())
    runner.run(module.operation, f"builtin.module(ascend-fold-constants{options})")
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
    """A repeated row that is read at run time stays repeated in place, and what else it leads to is
    folded all the same."""
    other = '%z = "ascend.add"(%y, %r) : (KIND, KIND) -> KIND'
    names, _ = folded(f"{REPEAT}\n{SCALE}\n{ADD}\n{other}\nreturn %z : KIND")
    assert names == ["constant", "broadcast", "constant", "add", "add", "func.return"]


def test_flags_of_what_stays() -> None:
    """A selection by flags that are made of a mask made at run time, the same for all rows."""
    rows, scores = "tensor<64x64xf32>", "tensor<2x64x64xf32>"
    flags, numbers = "tensor<64x64xi1>", "tensor<64x64xi32>"
    lines = [
        '%i = "ascend.iota"() {dim = 0 : i64} : () -> tensor<64x1xi32>',
        '%j = "ascend.iota"() {dim = 1 : i64} : () -> tensor<1x64xi32>',
        f'%a = "ascend.broadcast"(%i) {{dims = array<i64: 0, 1>}} : (tensor<64x1xi32>)'
        f" -> {numbers}",
        f'%b = "ascend.broadcast"(%j) {{dims = array<i64: 0, 1>}} : (tensor<1x64xi32>)'
        f" -> {numbers}",
        f'%c = "ascend.compare"(%a, %b) {{predicate = "LT"}} : ({numbers}, {numbers}) -> {flags}',
        f'%l = "ascend.full"() {{value = 0xFF800000 : f32}} : () -> {rows}',
        f'%z = "ascend.full"() {{value = 0.0 : f32}} : () -> {rows}',
        f'%m = "ascend.select"(%c, %l, %z) : ({flags}, {rows}, {rows}) -> {rows}',
        f'%h = "ascend.reduce"(%m) {{kind = "max", dims = array<i64: 1>}} : ({rows})'
        " -> tensor<64xf32>",
        '%s = "ascend.full"() {value = 0xFF800000 : f32} : () -> tensor<64xf32>',
        '%e = "ascend.compare"(%h, %s) {predicate = "EQ"}'
        " : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>",
        '%f = "ascend.broadcast"(%e) {dims = array<i64: 1>}'
        " : (tensor<64xi1>) -> tensor<2x64x64xi1>",
        f'%w = "ascend.broadcast"(%m) {{dims = array<i64: 1, 2>}} : ({rows}) -> {scores}',
        f'%y = "ascend.add"(%x, %w) : ({scores}, {scores}) -> {scores}',
        f'%n = "ascend.full"() {{value = 0.0 : f32}} : () -> {scores}',
        f'%r = "ascend.select"(%f, %n, %y) : (tensor<2x64x64xi1>, {scores}, {scores}) -> {scores}',
        f"return %r : {scores}",
    ]
    body = "\n".join(lines)
    text = f"func.func @main(%x: {scores}) -> {scores} {{\n{body}\n}}"
    names, _ = operations_of(text)
    assert "reduce" not in names
    assert names[-2:] == ["add", "func.return"]


@pytest.mark.parametrize("rows", [ROWS, ROWS + 1])
def test_rows_over_fractals_with_padding(rows: int) -> None:
    """Where cube cores have no vector unit, the row behind a product is a kernel of its own if
    fractals have padding, which stays zero."""
    kind = f'tensor<{rows}x{COLUMNS}xf32, #ascend.layout<"nz">>'
    text = f"""func.func @main(%x: {kind}) -> {kind} {{
      %g = "ascend.constant"() {{value = dense<"0x{ROW.tobytes().hex()}"> : tensor<16xf32>}}
        : () -> tensor<16xf32>
      {REPEAT.replace("KIND", kind)}
      %y = "ascend.add"(%x, %r) : ({kind}, {kind}) -> {kind}
      return %y : {kind}
    }}"""
    left = ["constant", "broadcast", "add", "func.return"]
    assert operations_of(text)[0] == left
    names, (array,) = operations_of(text, "{machine=ascend910b}")
    assert names == (left if rows == ROWS else ["constant", "add", "func.return"])
    found = array.reshape(-1, COLUMNS)
    assert (found[:1] == ROW).all()
    assert rows == ROWS or (found[rows:] == 0).all()


ALIKE = np.broadcast_to(ROW, (ROWS + 1, COLUMNS))


@pytest.mark.parametrize(
    ("machine", "rows", "left"),
    [
        ("ascend910b", ALIKE, ["matmul", "constant", "broadcast", "add", "func.return"]),
        ("ascend910", ALIKE, ["matmul", "constant", "add", "func.return"]),
        ("ascend910b", ALIKE + np.eye(*ALIKE.shape), ["matmul", "constant", "add", "func.return"]),
    ],
)
def test_rows_added_to_products(machine: str, rows: Array, left: list[str]) -> None:
    """Mads begin with a row where there is a bias table, also where it came as a constant."""
    height, rows = ROWS + 1, rows.astype(np.float32)
    kind, a, b = f"tensor<{height}x16xf32>", f"tensor<{height}x8xf16>", "tensor<8x16xf16>"
    text = f"""func.func @main(%a: {a}, %b: {b}) -> {kind} {{
      %x = "ascend.matmul"(%a, %b) : ({a}, {b}) -> {kind}
      %r = "ascend.constant"() {{value = dense<"0x{rows.tobytes().hex()}"> : {kind}}}
        : () -> {kind}
      %y = "ascend.add"(%x, %r) : ({kind}, {kind}) -> {kind}
      return %y : {kind}
    }}"""
    names, (array,) = operations_of(text, f"{{machine={machine}}}")
    assert names == left
    assert np.array_equal(array, ROW if "broadcast" in left else rows)

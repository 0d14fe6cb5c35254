"""Which operators become one kernel, by the launches of small networks."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci.mlir import ir, make_context
from davinci.passes.ascend import product_grouping
from davinci.passes.ascend.group_judge import judge_of
from davinci.passes.ascend.grouping import FusedGroup, Grouping

NORM = """
  %s = stablehlo.reduce({source} init: %zero) applies stablehlo.add across dimensions = [{last}]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{rows}xf32>
  %t = stablehlo.reshape %s : (tensor<{rows}xf32>) -> tensor<{rows}x1xf32>
  %m = stablehlo.divide %t, %n : tensor<{rows}x1xf32>
  %r = stablehlo.rsqrt %m : tensor<{rows}x1xf32>
  %b = stablehlo.broadcast_in_dim %r, dims = {dims} : (tensor<{rows}x1xf32>) -> tensor<{shape}xf32>
"""


def launches(text: str, *inputs: object) -> tuple[int, list[np.ndarray]]:
    """Of a network, and its outputs."""
    executable = davinci.compile(text)
    outputs = list(executable.run(*inputs).values())
    return len(executable.profile["launches_list"]), outputs


def test_a_norm_whose_parts_read_the_same_reshape() -> None:
    """Each reads a view of its own: they are one array, or the kernel would have none that has all
    axes."""
    norm = NORM.format(source="%d", last=1, shape="32x64", rows="32", dims="[0, 1]")
    text = f"""func.func @main(%x: tensor<1x32x64xf32>) -> tensor<32x64xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<64.0> : tensor<32x1xf32>
  %v = stablehlo.reshape %x : (tensor<1x32x64xf32>) -> tensor<32x64xf32>
  %d = stablehlo.multiply %v, %v : tensor<32x64xf32>
{norm}
  %y = stablehlo.multiply %v, %b : tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}}"""
    x = np.random.default_rng(0).standard_normal((1, 32, 64)).astype(np.float32)
    count, (y,) = launches(text, x)
    assert count == 1
    np.testing.assert_allclose(y, x[0] / np.sqrt((x[0] ** 2).mean(1, keepdims=True)), rtol=1e-5)


@pytest.mark.parametrize(("together", "kernels"), [(False, 2), (True, 1)])
def test_squares_behind_a_product_belong_to_the_reduction(
    together: bool, kernels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a product's result is made of for a reduction is computed with the reduction, in a
    kernel of its own as long as the result leaves that of the product anyway, or in the same."""
    monkeypatch.setattr(product_grouping, "rows_pay", lambda *_: together)
    norm = NORM.format(source="%q", last=2, shape="1x32x64", rows="1x32", dims="[0, 1, 2]")
    text = f"""func.func @main(%x: tensor<32x48xf16>, %w: tensor<48x64xf16>,
    %o: tensor<1x32x64xf32>) -> tensor<1x32x64xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %n = stablehlo.constant dense<64.0> : tensor<1x32x1xf32>
  %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<32x48xf16>, tensor<48x64xf16>) -> tensor<32x64xf32>
  %v = stablehlo.reshape %p : (tensor<32x64xf32>) -> tensor<1x32x64xf32>
  %d = stablehlo.add %v, %o : tensor<1x32x64xf32>
  %q = stablehlo.multiply %d, %d : tensor<1x32x64xf32>
{norm}
  %y = stablehlo.multiply %d, %b : tensor<1x32x64xf32>
  return %y : tensor<1x32x64xf32>
}}"""
    random = np.random.default_rng(0)
    x, w, o = (random.standard_normal(s).astype(np.float32) for s in ((32, 48), (48, 64), (32, 64)))
    count, (y,) = launches(text, x.astype(np.float16), w.astype(np.float16), o[None])
    assert count == kernels
    d = x.astype(np.float16).astype(np.float32) @ w.astype(np.float16).astype(np.float32) + o
    scale = 1 / np.sqrt((d**2).mean(1, keepdims=True))
    np.testing.assert_allclose(y[0], d * scale, rtol=1e-4, atol=1e-5)


def test_what_no_kernel_holds_is_parted_into_few() -> None:
    """Rows of 16 in f16, of whose halves a vector instruction writes no block: the rounding is left
    to a second kernel, and nothing else."""
    text = """func.func @main(%x: tensor<4x32x16xf32>, %c: tensor<32x16xf32>)
    -> tensor<4x32x16xf16> {
  %b = stablehlo.broadcast_in_dim %c, dims = [1, 2] : (tensor<32x16xf32>) -> tensor<4x32x16xf32>
  %m = stablehlo.multiply %x, %b : tensor<4x32x16xf32>
  %l = stablehlo.slice %x [0:4, 0:32, 0:8] : (tensor<4x32x16xf32>) -> tensor<4x32x8xf32>
  %h = stablehlo.slice %x [0:4, 0:32, 8:16] : (tensor<4x32x16xf32>) -> tensor<4x32x8xf32>
  %n = stablehlo.negate %h : tensor<4x32x8xf32>
  %r = stablehlo.concatenate %n, %l, dim = 2
      : (tensor<4x32x8xf32>, tensor<4x32x8xf32>) -> tensor<4x32x16xf32>
  %s = stablehlo.add %m, %r : tensor<4x32x16xf32>
  %y = stablehlo.convert %s : (tensor<4x32x16xf32>) -> tensor<4x32x16xf16>
  return %y : tensor<4x32x16xf16>
}"""
    random = np.random.default_rng(0)
    x, c = (random.standard_normal(s).astype(np.float32) for s in ((4, 32, 16), (32, 16)))
    count, (y,) = launches(text, x, c)
    assert count == 2
    turned = np.concatenate([-x[..., 8:], x[..., :8]], axis=2)
    np.testing.assert_allclose(y, (x * c + turned).astype(np.float16), rtol=2e-3, atol=2e-3)


def test_products_that_need_parts_of_each_other() -> None:
    """Each could take the sum behind it in alone; together neither could run first."""
    text = """func.func @main(%x: tensor<16x32xf16>, %v: tensor<32x16xf16>,
    %y: tensor<16x32xf16>, %w: tensor<32x16xf16>)
    -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %a = stablehlo.dot_general %x, %v, contracting_dims = [1] x [0]
      : (tensor<16x32xf16>, tensor<32x16xf16>) -> tensor<16x16xf32>
  %b = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0]
      : (tensor<16x32xf16>, tensor<32x16xf16>) -> tensor<16x16xf32>
  %s = stablehlo.reverse %a, dims = [0] : tensor<16x16xf32>
  %t = stablehlo.reverse %b, dims = [0] : tensor<16x16xf32>
  %c = stablehlo.add %a, %t : tensor<16x16xf32>
  %d = stablehlo.add %b, %s : tensor<16x16xf32>
  return %c, %d : tensor<16x16xf32>, tensor<16x16xf32>
}"""
    random = np.random.default_rng(0)
    shapes = ((16, 32), (32, 16)) * 2
    x, v, y, w = (random.standard_normal(shape).astype(np.float16) for shape in shapes)
    _, (c, d) = launches(text, x, v, y, w)
    a, b = (p.astype(np.float32) @ q.astype(np.float32) for p, q in ((x, v), (y, w)))
    np.testing.assert_allclose(c, a + b[::-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(d, b + a[::-1], rtol=1e-4, atol=1e-4)


def test_a_product_rounds_what_is_reshaped_first() -> None:
    """The rounding stands in front of a reshape: a row of a state, as classifiers take it."""
    text = """func.func @main(%x: tensor<1x17x48xf32>, %w: tensor<48x32xf32>) -> tensor<1x32xf32> {
  %t = stablehlo.reverse %x, dims = [1] : tensor<1x17x48xf32>
  %s = stablehlo.slice %t [0:1, 0:1, 0:48] : (tensor<1x17x48xf32>) -> tensor<1x1x48xf32>
  %h = stablehlo.convert %s : (tensor<1x1x48xf32>) -> tensor<1x1x48xf16>
  %v = stablehlo.convert %w : (tensor<48x32xf32>) -> tensor<48x32xf16>
  %r = stablehlo.reshape %h : (tensor<1x1x48xf16>) -> tensor<1x48xf16>
  %y = stablehlo.dot_general %r, %v, contracting_dims = [1] x [0]
      : (tensor<1x48xf16>, tensor<48x32xf16>) -> tensor<1x32xf32>
  return %y : tensor<1x32xf32>
}"""
    random = np.random.default_rng(0)
    x, w = (random.standard_normal(s).astype(np.float32) for s in ((1, 17, 48), (48, 32)))
    count, (y,) = launches(text, x, w)
    assert count == 2
    np.testing.assert_allclose(y, x[0, 16:] @ w, rtol=1e-2, atol=1e-2)


def sum_of_windows(function: str) -> str:
    """A function of 30 x 30 places, and the sum of its nine windows of 28 x 28."""
    large, small = "tensor<30x30x16xf32>", "tensor<28x28x16xf32>"
    lines, total = [f"%e = stablehlo.{function} %x : {large}"], ""
    for number, (i, j) in enumerate(np.ndindex(3, 3)):
        part = f"[{i}:{i + 28}, {j}:{j + 28}, 0:16]"
        lines.append(f"%w{number} = stablehlo.slice %e {part} : ({large}) -> {small}")
        if total:
            lines.append(f"%s{number} = stablehlo.add {total}, %w{number} : {small}")
        total = f"%s{number}" if total else "%w0"
    body = "\n".join(lines)
    return f"func.func @main(%x: {large}) -> {small} {{\n{body}\nreturn {total} : {small}\n}}"


@pytest.mark.parametrize(("function", "kernels"), [("tanh", 2), ("abs", 1)])
def test_what_overlapping_windows_read_is_computed_once_where_it_is_dear(
    function: str, kernels: int
) -> None:
    """Inside one kernel each window would compute its elements anew."""
    executable = davinci.compile(sum_of_windows(function), launches="many")
    x = np.random.default_rng(0).standard_normal((30, 30, 16)).astype(np.float32)
    (y,) = executable.run(x).values()
    assert len(executable.profile["launches_list"]) == kernels
    whole = {"tanh": np.tanh, "abs": np.abs}[function](x)
    windows = (whole[i : i + 28, j : j + 28] for i, j in np.ndindex(3, 3))
    np.testing.assert_allclose(y, sum(windows), rtol=1e-4, atol=1e-4)


def test_parts_of_a_value_that_are_results_are_one_kernel() -> None:
    """Each has a buffer of its own, to which it is copied: all in one launch."""
    text = """func.func @main(%x: tensor<64x16xf32>) -> (tensor<32x16xf32>, tensor<1x32x16xf32>) {
  %r = stablehlo.reverse %x, dims = [0] : tensor<64x16xf32>
  %a = stablehlo.slice %r [0:32, 0:16] : (tensor<64x16xf32>) -> tensor<32x16xf32>
  %b = stablehlo.slice %r [32:64, 0:16] : (tensor<64x16xf32>) -> tensor<32x16xf32>
  %c = stablehlo.reshape %b : (tensor<32x16xf32>) -> tensor<1x32x16xf32>
  return %a, %c : tensor<32x16xf32>, tensor<1x32x16xf32>
}"""
    executable = davinci.compile(text, launches="many")
    x = np.random.default_rng(0).standard_normal((64, 16)).astype(np.float32)
    a, c = executable.run(x).values()
    assert len(executable.profile["launches_list"]) <= 2
    np.testing.assert_array_equal(a, x[:31:-1])
    np.testing.assert_array_equal(c, x[None, 31::-1])


def test_a_maximum_joins_a_softmax_that_has_grown() -> None:
    """A difference alone saves nothing with the maximum that it reads, but the softmax that it has
    become part of does: rows of 14 numbers are loaded once."""
    shape, rows = "512x80x14", "512x14"
    text = f"""func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{rows}xf32>
  %n = stablehlo.broadcast_in_dim %m, dims = [0, 2] : (tensor<{rows}xf32>) -> tensor<{shape}xf32>
  %d = stablehlo.subtract %x, %n : tensor<{shape}xf32>
  %e = stablehlo.exponential %d : tensor<{shape}xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<{shape}xf32>, tensor<f32>) -> tensor<{rows}xf32>
  %t = stablehlo.broadcast_in_dim %s, dims = [0, 2] : (tensor<{rows}xf32>) -> tensor<{shape}xf32>
  %y = stablehlo.divide %e, %t : tensor<{shape}xf32>
  return %y : tensor<{shape}xf32>
}}"""
    x = np.random.default_rng(0).standard_normal((512, 80, 14)).astype(np.float32)
    count, (y,) = launches(text, x)
    assert count == 1
    expected = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, expected / expected.sum(1, keepdims=True), rtol=1e-5)


ENDS_WITH_A_VIEW = """func.func @main(%x: tensor<900x16xf32>, %z: tensor<900x16xf32>)
    -> (tensor<30x30x16xf32>, tensor<900x16xf32>) {
  %e = "ascend.tanh"(%x) : (tensor<900x16xf32>) -> tensor<900x16xf32>
  %r = "ascend.reshape"(%e) : (tensor<900x16xf32>) -> tensor<30x30x16xf32>
  %f = "ascend.exp"(%z) : (tensor<900x16xf32>) -> tensor<900x16xf32>
  return %r, %f : tensor<30x30x16xf32>, tensor<900x16xf32>
}"""


def test_a_view_at_the_end_of_one_of_two_groups_side_by_side_stands_behind_both() -> None:
    """Groups end with views where kernels are parted, as a network may have it."""
    module = ir.Module.parse(ENDS_WITH_A_VIEW, make_context())
    with module.context, ir.Location.unknown():
        block = module.body.operations[0].regions[0].blocks[0]
        grouping = Grouping(block, judge_of(machines.load("ascend910"), 8), True, True)
        tanh, view, exp, end = ops = [op.operation for op in block.operations]
        parted = [FusedGroup([tanh, view]), FusedGroup([exp]), FusedGroup([end])]
        grouping._group = {op: group for group in parted for op in group.ops}
        grouping._side_by_side()
        joined = next(group for group in grouping._ordered() if tanh in group.ops)
        assert joined.ops == [tanh, exp]
        assert [op.name for op in block.operations].index("ascend.reshape") == 2
        assert len(ops) == len(list(block.operations))

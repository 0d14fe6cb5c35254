"""Forms of operators that are made of others, or whose operands say shapes."""

from __future__ import annotations

from typing import Any

import numpy as np

from stablehlo_forms import ALL, FEW, FLOATS, NUMBERS, array, form, simple


def normalized(x: Any, scale: Any, offset: Any, mean: Any, variance: Any) -> Any:
    spread = (1, -1, 1)
    deviation = np.sqrt(variance.astype(np.float64).reshape(spread) + 0.01)
    return (x - mean.reshape(spread)) / deviation * scale.reshape(spread) + offset.reshape(spread)


def trained(x: Any, scale: Any, offset: Any) -> list[Any]:
    mean, variance = x.astype(np.float64).mean((0, 2)), x.astype(np.float64).var((0, 2))
    results = [normalized(x, scale, offset, mean, variance), mean, variance]
    return [result.astype(x.dtype) for result in results]


def batch_norm_gradients(x: Any, scale: Any, mean: Any, variance: Any, grad: Any) -> list[Any]:
    x, scale, mean, variance, grad = (
        v.astype(np.float64) for v in (x, scale, mean, variance, grad)
    )
    spread = (1, -1, 1)
    centred = x - mean.reshape(spread)
    factor = 1 / np.sqrt(variance + 0.01)
    count = x.shape[0] * x.shape[2]
    of_scale = (grad * centred).sum((0, 2)) * factor
    of_offset = grad.sum((0, 2))
    inner = count * grad - of_offset.reshape(spread)
    inner -= centred * (of_scale * factor).reshape(spread)
    return [inner * (scale * factor / count).reshape(spread), of_scale, of_offset]


_NORM = "{epsilon = 0.01 : f32, feature_index = 1 : i64}"
_x, _c = "tensor<3x5x4xT>", "tensor<5xT>"
simple(
    "batch_norm_inference",
    "",
    [_x, _c, _c, _c, _c],
    _x,
    _NORM,
    types=FLOATS,
    positive=True,
    expected=lambda *v: [normalized(*v)],
)
simple(
    "batch_norm_training",
    "",
    [_x, _c, _c],
    f"{_x}, {_c}, {_c}",
    _NORM,
    types=FLOATS,
    positive=True,
    expected=trained,
)
simple(
    "batch_norm_grad",
    "",
    [_x, _c, _c, _c, _x],
    f"{_x}, {_c}, {_c}",
    _NORM,
    types=FLOATS,
    positive=True,
    expected=lambda *v: [g.astype(v[0].dtype) for g in batch_norm_gradients(*v)],
)

for _config, _a, _b, _r in (
    ("ij,jk->ik", "3x4", "4x5", "3x5"),
    ("bij,bkj->bki", "2x3x4", "2x5x4", "2x5x3"),
    ("i,i->", "7", "7", ""),
    ("ij,k->kij", "2x3", "4", "4x2x3"),
):
    _x = "x" if _r else ""
    simple(
        "einsum",
        _config,
        [f"tensor<{_a}xT>", f"tensor<{_b}xT>"],
        f"tensor<{_r}{_x}T>",
        f'{{einsum_config = "{_config}"}}',
        types=("f32", "f16", "i32"),
        small=True,
        expected=lambda a, b, config=_config: [np.einsum(config, a, b)],
    )
for _config, _r in (("ij->ji", "4x3x"), ("ij->i", "3x"), ("ij->", "")):
    simple(
        "unary_einsum",
        _config,
        ["tensor<3x4xT>"],
        f"tensor<{_r}T>",
        f'{{einsum_config = "{_config}"}}',
        types=("f32", "f16", "i32"),
        small=True,
        expected=lambda a, config=_config: [np.einsum(config, a)],
    )
simple(
    "torch_index_select",
    "",
    ["tensor<5x3xT>", "tensor<4xi32>"],
    "tensor<4x3xT>",
    "{dim = 0 : i64, batch_dims = 0 : i64}",
    types=FEW,
    small=True,
    expected=lambda x, i: [x[np.clip(i, 0, 4)]],
)
simple(
    "torch_index_select",
    "batched",
    ["tensor<2x5x3xT>", "tensor<2x4xi32>"],
    "tensor<2x4x3xT>",
    "{dim = 1 : i64, batch_dims = 1 : i64}",
    types=FEW,
    small=True,
    expected=lambda x, i: [np.stack([a[np.clip(b, 0, 4)] for a, b in zip(x, i, strict=True)])],
)


def with_constants(
    operator: str,
    arguments: list[str],
    constants: list[tuple[str, str]],
    result: str,
    attributes: str,
    **more: Any,
) -> None:
    """A form whose last operands are constants, each the text of its values and its type."""
    lines = [f"%k{i} = stablehlo.constant dense<{v}> : {t}" for i, (v, t) in enumerate(constants)]
    names = [f"%{'abcdefgh'[i]}" for i in range(len(arguments))]
    names += [f"%k{i}" for i in range(len(constants))]
    types = [*arguments, *(t for _, t in constants)]
    lines.append(
        f'%r = "stablehlo.{operator}"({", ".join(names)}) {attributes} : '
        f"({', '.join(types)}) -> {result}\nreturn %r : {result}"
    )
    form(operator, "constant shape", arguments, "\n".join(lines), **more)


_pair = "tensor<2xi64>"
with_constants(
    "dynamic_broadcast_in_dim",
    ["tensor<3x1xT>"],
    [("[3, 5]", _pair)],
    "tensor<3x5xT>",
    f"{{broadcast_dimensions = {array(0, 1)}}}",
    types=ALL,
)
with_constants(
    "dynamic_iota",
    [],
    [("[3, 5]", _pair)],
    "tensor<3x5xT>",
    "{iota_dimension = 1 : i64}",
    types=NUMBERS,
)
with_constants(
    "dynamic_reshape", ["tensor<3x5xT>"], [("[5, 3]", _pair)], "tensor<5x3xT>", "", types=ALL
)
with_constants(
    "dynamic_pad",
    ["tensor<3x5xT>", "tensor<T>"],
    [("[1, 0]", _pair), ("[0, 2]", _pair), ("[0, 1]", _pair)],
    "tensor<4x11xT>",
    "",
    types=FEW,
)
with_constants(
    "real_dynamic_slice",
    ["tensor<7x9xT>"],
    [("[1, 2]", _pair), ("[6, 9]", _pair), ("[2, 1]", _pair)],
    "tensor<3x7xT>",
    "",
    expected=lambda x: [x[1:6:2, 2:9]],
    types=FEW,
)
with_constants(
    "dynamic_gather",
    ["tensor<7x3xT>", "tensor<5x1xi32>"],
    [("[1, 3]", _pair)],
    "tensor<5x3xT>",
    "{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
    "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>}",
    types=FEW,
    small=True,
)
with_constants(
    "dynamic_conv",
    ["tensor<1x6x6x2xT>", "tensor<3x3x2x4xT>"],
    [("[[1, 0], [1, 1]]", "tensor<2x2xi64>")],
    "tensor<1x5x6x4xT>",
    "{dimension_numbers = #stablehlo.conv<"
    "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
    "batch_group_count = 1 : i64}",
    types=("f32", "i32"),
    small=True,
)
form(
    "composite",
    "",
    ["tensor<5x3xT>"],
    """
  %r = stablehlo.composite "mine.twice" %a {decomposition = @twice} : (tensor<5x3xT>)
    -> tensor<5x3xT>
  return %r : tensor<5x3xT>
}
func.func private @twice(%x: tensor<5x3xT>) -> tensor<5x3xT> {
  %y = stablehlo.add %x, %x : tensor<5x3xT>
  return %y : tensor<5x3xT>""",
    types=ALL,
)
form(
    "custom_call",
    "mhlo.erf",
    ["tensor<33xf32>"],
    """
  %r = stablehlo.custom_call @mhlo.erf(%a) : (tensor<33xf32>) -> tensor<33xf32>
  return %r : tensor<33xf32>""",
    expected=lambda x: [np.vectorize(__import__("math").erf)(x).astype(np.float32)],
)
for _name in ("real", "imag"):
    simple(_name, "of a real number", ["tensor<7xT>"], "tensor<7xT>", "", types=FLOATS)
_q = "!quant.uniform<i8:f32, 0.05:-3>"
form(
    "uniform_quantize",
    "",
    ["tensor<33xf32>"],
    f"""
  %q = stablehlo.uniform_quantize %a : (tensor<33xf32>) -> tensor<33x{_q}>
  %r = stablehlo.uniform_dequantize %q : (tensor<33x{_q}>) -> tensor<33xf32>
  return %r : tensor<33xf32>""",
    expected=lambda x: [
        ((np.clip(np.rint(x / np.float32(0.05)) - 3, -128, 127) + 3) * np.float32(0.05)).astype(
            np.float32
        )
    ],
)
form(
    "uniform_dequantize",
    "",
    ["tensor<33xi8>"],
    f"""
  %q = stablehlo.bitcast_convert %a : (tensor<33xi8>) -> tensor<33x{_q}>
  %r = stablehlo.uniform_dequantize %q : (tensor<33x{_q}>) -> tensor<33xf32>
  return %r : tensor<33xf32>""",
    expected=lambda x: [((x.astype(np.int32) + 3) * np.float32(0.05)).astype(np.float32)],
)


for _lower in (True, False):
    _flip = "" if _lower else "upper"
    form(
        "cholesky",
        _flip,
        ["tensor<2x5x5xT>"],
        f"""
      %eye = stablehlo.constant dense<{(np.eye(5) * 20).tolist()}> : tensor<5x5xf32>
      %e = stablehlo.broadcast_in_dim %eye, dims = [1, 2] : (tensor<5x5xf32>) -> tensor<2x5x5xf32>
      %f = stablehlo.convert %e : (tensor<2x5x5xf32>) -> tensor<2x5x5xT>
      %t = stablehlo.transpose %a, dims = [0, 2, 1] : (tensor<2x5x5xT>) -> tensor<2x5x5xT>
      %s = stablehlo.add %a, %t : tensor<2x5x5xT>
      %m = stablehlo.add %s, %f : tensor<2x5x5xT>
      %c = "stablehlo.cholesky"(%m) {{lower = {str(_lower).lower()}}} : (tensor<2x5x5xT>)
        -> tensor<2x5x5xT>
      %i = stablehlo.iota dim = {1 if _lower else 2} : tensor<2x5x5xi32>
      %j = stablehlo.iota dim = {2 if _lower else 1} : tensor<2x5x5xi32>
      %in = stablehlo.compare GE, %i, %j : (tensor<2x5x5xi32>, tensor<2x5x5xi32>)
        -> tensor<2x5x5xi1>
      %z = stablehlo.subtract %f, %f : tensor<2x5x5xT>
      %r = stablehlo.select %in, %c, %z : tensor<2x5x5xi1>, tensor<2x5x5xT>
      return %r : tensor<2x5x5xT>""",
        types=FLOATS,
        expected=lambda x, up=not _lower: [_factor(x, up)],
    )


def _factor(x: Any, upper: bool) -> Any:
    whole = x.astype(np.float64)
    whole = whole + whole.swapaxes(1, 2) + 20 * np.eye(5)
    found = np.linalg.cholesky(whole)
    return (found.swapaxes(1, 2) if upper else found).astype(x.dtype)


def solved(a: Any, b: Any, left: bool, lower: bool, unit: bool, transpose: bool) -> Any:
    b = b.astype(np.float64)
    a = a.astype(np.float64) + 4 * np.eye(a.shape[-1])
    a = np.tril(a) if lower else np.triu(a)
    if unit:
        a = a - np.diag(np.diag(a)) + np.eye(a.shape[-1])
    a = a.T if transpose else a
    return np.linalg.solve(a, b) if left else np.linalg.solve(a.T, b.T).T


for _left, _lower, _unit, _transpose in (
    (True, True, False, False),
    (True, False, False, False),
    (True, True, True, True),
    (False, True, False, False),
    (False, False, False, True),
    (True, False, True, True),
):
    _kind = "5x3" if _left else "3x5"
    _flags = [str(flag).lower() for flag in (_left, _lower, _unit)]
    form(
        "triangular_solve",
        f"left {_flags[0]}, lower {_flags[1]}, unit {_flags[2]}, transpose {_transpose}",
        ["tensor<5x5xT>", f"tensor<{_kind}xT>"],
        f"""
      %eye = stablehlo.constant dense<{(np.eye(5) * 4).tolist()}> : tensor<5x5xf32>
      %f = stablehlo.convert %eye : (tensor<5x5xf32>) -> tensor<5x5xT>
      %m = stablehlo.add %a, %f : tensor<5x5xT>
      %r = "stablehlo.triangular_solve"(%m, %b) {{left_side = {_flags[0]}, lower = {_flags[1]},
        unit_diagonal = {_flags[2]}, transpose_a =
        #stablehlo<transpose {"TRANSPOSE" if _transpose else "NO_TRANSPOSE"}>}}
        : (tensor<5x5xT>, tensor<{_kind}xT>) -> tensor<{_kind}xT>
      return %r : tensor<{_kind}xT>""",
        types=FLOATS,
        expected=lambda a, b, flags=(_left, _lower, _unit, _transpose): [
            solved(a, b, *flags).astype(a.dtype)
        ],
    )
for _algorithm in ("DEFAULT", "THREE_FRY", "PHILOX"):
    simple(
        "rng_bit_generator",
        _algorithm,
        ["tensor<2xui64>"],
        "tensor<2xui64>, tensor<3x5xui32>",
        f"{{rng_algorithm = #stablehlo<rng_algorithm {_algorithm}>}}",
    )
form(
    "rng",
    "",
    ["tensor<f32>", "tensor<f32>"],
    """%k = stablehlo.constant dense<[3, 5]> : tensor<2xi64>
    %r = stablehlo.rng %a, %b, %k, distribution = UNIFORM : (tensor<f32>, tensor<f32>,
      tensor<2xi64>) -> tensor<3x5xf32>
    return %r : tensor<3x5xf32>""",
)

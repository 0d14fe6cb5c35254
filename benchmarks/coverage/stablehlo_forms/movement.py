"""Forms of operators that make or move data."""

from __future__ import annotations

import numpy as np

from stablehlo_forms import ALL, FEW, FLOATS, INTEGERS, NUMBERS, array, form, region, simple

_t = "tensor<3x5xT>"
simple("reshape", "", [_t], "tensor<5x3xT>", "", types=ALL)
simple(
    "transpose",
    "",
    ["tensor<2x3x5xT>"],
    "tensor<5x2x3xT>",
    "{permutation = array<i64: 2, 0, 1>}",
    types=ALL,
)
simple("reverse", "", [_t], _t, "{dimensions = array<i64: 1>}", types=ALL)
simple("reverse", "both", [_t], _t, "{dimensions = array<i64: 0, 1>}", types=FEW)
simple("reverse", "none", [_t], _t, "{dimensions = array<i64>}")
simple("reverse", "empty", ["tensor<0x3xT>"], "tensor<0x3xT>", "{dimensions = array<i64: 0>}")
simple(
    "broadcast_in_dim",
    "",
    ["tensor<3x1xT>"],
    "tensor<3x2x5xT>",
    "{broadcast_dimensions = array<i64: 0, 2>}",
    types=ALL,
)
simple(
    "broadcast_in_dim",
    "transposing",
    [_t],
    "tensor<5x2x3xT>",
    "{broadcast_dimensions = array<i64: 2, 0>}",
    types=FEW,
)
simple(
    "broadcast",
    "",
    [_t],
    "tensor<2x3x5xT>",
    "{broadcast_sizes = array<i64: 2>}",
    types=FEW,
    expected=lambda x: [np.stack([x, x])],
)
simple(
    "concatenate", "", [_t, "tensor<3x2xT>"], "tensor<3x7xT>", "{dimension = 1 : i64}", types=ALL
)
simple("concatenate", "empty", [_t, "tensor<0x5xT>"], _t, "{dimension = 0 : i64}")
simple(
    "slice",
    "",
    ["tensor<9x10xT>"],
    "tensor<3x7xT>",
    "{start_indices = array<i64: 1, 2>, limit_indices = array<i64: 9, 9>, "
    "strides = array<i64: 3, 1>}",
    types=ALL,
)
_pads = {
    "": ([1, 0], [2, 1], [0, 0], "6x6"),
    "negative": ([-1, 1], [1, -2], [0, 0], "3x4"),
    "interior": ([0, 1], [0, 0], [1, 2], "5x14"),
}
for _name, (_low, _high, _inner, _shape) in _pads.items():
    simple(
        "pad",
        _name,
        [_t, "tensor<T>"],
        f"tensor<{_shape}xT>",
        f"{{edge_padding_low = {array(*_low)}, edge_padding_high = {array(*_high)}, "
        f"interior_padding = {array(*_inner)}}}",
        types=ALL,
    )
simple("iota", "", [], _t, "{iota_dimension = 1 : i64}", types=NUMBERS)
form(
    "constant",
    "",
    [],
    "%r = stablehlo.constant dense<[[1, 2], [3, 4]]> : tensor<2x2xT>\nreturn %r : tensor<2x2xT>",
    types=INTEGERS,
)
form(
    "constant",
    "floats",
    [],
    "%r = stablehlo.constant dense<[1.0, -2.5]> : tensor<2xT>\nreturn %r : tensor<2xT>",
    types=FLOATS,
)
form(
    "optimization_barrier",
    "",
    [_t, "tensor<2xi32>"],
    f"%r:2 = stablehlo.optimization_barrier %a, %b : {_t}, tensor<2xi32>\n"
    f"return %r#0, %r#1 : {_t}, tensor<2xi32>",
    types=ALL,
)
form(
    "get_dimension_size",
    "",
    [_t],
    f"%r = stablehlo.get_dimension_size %a, dim = 1 : ({_t}) -> "
    "tensor<i32>\nreturn %r : tensor<i32>",
)
form(
    "return",
    "",
    ["tensor<9xT>"],
    '%r = "stablehlo.map"(%a) '
    + region(1, ["T"], "stablehlo.return %p0 : tensor<T>")
    + " {dimensions = array<i64: 0>} : (tensor<9xT>) -> tensor<9xT>\nreturn %r : tensor<9xT>",
    types=ALL,
)

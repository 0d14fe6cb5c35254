"""Forms of matrix products and convolutions."""

from __future__ import annotations

import numpy as np

from stablehlo_forms import NUMBERS, simple

for _name, _a, _b, _r, _numbers in (
    (
        "",
        "3x17",
        "17x5",
        "3x5",
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]",
    ),
    (
        "transposed",
        "17x3",
        "5x17",
        "3x5",
        "lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [1]",
    ),
    (
        "batch",
        "2x3x4",
        "2x4x5",
        "2x3x5",
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = "
        "[0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]",
    ),
    ("outer", "3", "5", "3x5", ""),
    (
        "two inner",
        "3x4x5",
        "4x7x5",
        "3x7",
        "lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 2]",
    ),
):
    simple(
        "dot_general",
        _name,
        [f"tensor<{_a}xT>", f"tensor<{_b}xT>"],
        f"tensor<{_r}xT>",
        f"{{dot_dimension_numbers = #stablehlo.dot<{_numbers}>}}",
        types=NUMBERS,
        small=True,
    )
for _name, _a, _b, _r in (("", "3x4x", "4x5x", "3x5x"), ("vectors", "4x", "4x", "")):
    simple(
        "dot",
        _name,
        [f"tensor<{_a}T>", f"tensor<{_b}T>"],
        f"tensor<{_r}T>",
        "",
        types=NUMBERS,
        small=True,
        expected=lambda a, b: [np.asarray(a @ b, a.dtype)],
    )
_convolutions = {
    "": ("1x6x6x2", "3x3x2x4", "1x4x4x4", "", 1, 1),
    "strides and padding": (
        "1x6x6x2",
        "3x3x2x4",
        "1x5x3x4",
        "window_strides = array<i64: 1, 2>, "
        "padding = dense<[[1, 0], [1, 1]]> : tensor<2x2xi64>, "
        "rhs_dilation = array<i64: 1, 1>, ",
        1,
        1,
    ),
    "dilations": (
        "1x4x4x2",
        "2x2x2x4",
        "1x5x5x4",
        "lhs_dilation = array<i64: 2, 2>, rhs_dilation = array<i64: 2, 2>, ",
        1,
        1,
    ),
    "groups": ("1x5x5x4", "2x2x2x6", "1x4x4x6", "", 2, 1),
    "batch groups": ("2x5x5x3", "2x2x3x4", "1x4x4x4", "", 1, 2),
    "reversal": (
        "1x5x5x2",
        "2x2x2x3",
        "1x4x4x3",
        "window_reversal = array<i1: true, true>, ",
        1,
        1,
    ),
}
for _name, (_x, _w, _r, _more, _groups, _batches) in _convolutions.items():
    simple(
        "convolution",
        _name,
        [f"tensor<{_x}xT>", f"tensor<{_w}xT>"],
        f"tensor<{_r}xT>",
        f"{{{_more}dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>,"
        f" feature_group_count = {_groups} : i64, batch_group_count = {_batches} : i64}}",
        types=("f32", "f16", "i32", "i8", "ui8"),
        small=True,
    )

"""Forms of reductions, windows, `map` and `sort`: operators with a region."""

from __future__ import annotations

from stablehlo_forms import ALL, FEW, INTEGERS, NUMBERS, form, reducer, region, simple

_ARITHMETIC = ("add", "maximum", "minimum", "multiply")
_t = "tensor<3x5xT>"
_max_with_index = region(
    4,
    ["T", "i32"],
    """%g = stablehlo.compare GE, %p0, %p2 : (tensor<T>, tensor<T>) -> tensor<i1>
    %v = stablehlo.select %g, %p0, %p2 : tensor<i1>, tensor<T>
    %i = stablehlo.select %g, %p1, %p3 : tensor<i1>, tensor<i32>
    stablehlo.return %v, %i : tensor<T>, tensor<i32>""",
)

for _name in _ARITHMETIC:
    simple(
        "reduce",
        _name,
        ["tensor<3x17xT>", "tensor<T>"],
        "tensor<3xT>",
        f"{reducer(_name)} {{dimensions = array<i64: 1>}}",
        types=ALL,
    )
for _name in ("and", "or", "xor"):
    simple(
        "reduce",
        _name,
        ["tensor<3x17xT>", "tensor<T>"],
        "tensor<17xT>",
        f"{reducer(_name)} {{dimensions = array<i64: 0>}}",
        types=(*INTEGERS, "i1"),
    )
simple(
    "reduce",
    "all dimensions",
    [_t, "tensor<T>"],
    "tensor<T>",
    f"{reducer('add')} {{dimensions = array<i64: 0, 1>}}",
    types=FEW,
)
simple(
    "reduce",
    "no dimension",
    [_t, "tensor<T>"],
    _t,
    f"{reducer('add')} {{dimensions = array<i64>}}",
    types=FEW,
)
simple(
    "reduce",
    "empty",
    ["tensor<3x0xT>", "tensor<T>"],
    "tensor<3xT>",
    f"{reducer('maximum')} {{dimensions = array<i64: 1>}}",
    types=FEW,
)
simple(
    "reduce",
    "two operands",
    ["tensor<3x5xT>", "tensor<3x5xi32>", "tensor<T>", "tensor<i32>"],
    "tensor<3xT>, tensor<3xi32>",
    f"{_max_with_index} {{dimensions = array<i64: 1>}}",
    types=NUMBERS,
)
_sum_of_squares = region(
    2,
    ["T"],
    """%m = stablehlo.multiply %p1, %p1 : tensor<T>
    %s = stablehlo.add %p0, %m : tensor<T>
    stablehlo.return %s : tensor<T>""",
)
simple(
    "reduce",
    "body of two operations",
    [_t, "tensor<T>"],
    "tensor<3xT>",
    f"{_sum_of_squares} {{dimensions = array<i64: 1>}}",
    types=NUMBERS,
)
_clamped = region(
    2,
    ["T"],
    """%c = "stablehlo.compare"(%p0, %p1) {comparison_direction =
      #stablehlo<comparison_direction LT>} : (tensor<T>, tensor<T>) -> tensor<i1>
    %s = "stablehlo.if"(%c) ({ stablehlo.return %p0 : tensor<T> }, {
      %n = stablehlo.subtract %p0, %p1 : tensor<T>
      stablehlo.return %n : tensor<T> }) : (tensor<i1>) -> tensor<T>
    stablehlo.return %s : tensor<T>""",
)
simple(
    "reduce",
    "body with a condition",
    [_t, "tensor<T>"],
    "tensor<3xT>",
    f"{_clamped} {{dimensions = array<i64: 1>}}",
    types=FEW[:-1],
)
simple(
    "reduce",
    "wider accumulator",
    ["tensor<3x5xi8>", "tensor<i8>"],
    "tensor<3xi8>",
    f"{reducer('add', 'i8')} {{dimensions = array<i64: 1>}}",
)

for _name in _ARITHMETIC:
    simple(
        "reduce_window",
        _name,
        ["tensor<6x7xT>", "tensor<T>"],
        "tensor<3x6xT>",
        f"{reducer(_name)} {{window_dimensions = array<i64: 2, 2>, "
        "window_strides = array<i64: 2, 1>}",
        types=ALL,
    )
_windows = {
    "padding": (
        "6x7",
        "7x4",
        "window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>",
    ),
    "window dilation": ("6x7", "4x4", "window_dilations = array<i64: 2, 3>"),
    "base dilation": ("3x4", "4x9", "base_dilations = array<i64: 2, 3>"),
    "all": (
        "3x4",
        "2x7",
        "base_dilations = array<i64: 2, 3>, window_dilations = array<i64: 3, 2>,"
        "window_strides = array<i64: 2, 2>, padding = dense<[[1, 1], [2, 3]]> : "
        "tensor<2x2xi64>",
    ),
    "negative padding": ("6x7", "3x5", "padding = dense<[[-1, -1], [-1, 0]]> : tensor<2x2xi64>"),
}
for _name, (_from, _to, _more) in _windows.items():
    for _body in ("add", "maximum"):
        simple(
            "reduce_window",
            f"{_name} {_body}",
            [f"tensor<{_from}xT>", "tensor<T>"],
            f"tensor<{_to}xT>",
            f"{reducer(_body)} {{window_dimensions = array<i64: 2, 2>, {_more}}}",
            types=FEW,
        )
simple(
    "reduce_window",
    "cumulative sum",
    ["tensor<17xT>", "tensor<T>"],
    "tensor<17xT>",
    f"{reducer('add')} {{window_dimensions = array<i64: 17>, padding = dense<[[16, 0]]> : "
    "tensor<1x2xi64>}",
    types=NUMBERS,
)
simple(
    "reduce_window",
    "two operands",
    ["tensor<6xT>", "tensor<6xi32>", "tensor<T>", "tensor<i32>"],
    "tensor<5xT>, tensor<5xi32>",
    f"{_max_with_index} {{window_dimensions = array<i64: 2>}}",
    types=NUMBERS,
)
simple(
    "reduce_window",
    "any body",
    [_t, "tensor<T>"],
    "tensor<2x4xT>",
    f"{_sum_of_squares} {{window_dimensions = array<i64: 2, 2>}}",
    types=NUMBERS,
)
simple(
    "reduce_window",
    "one dimension of four",
    ["tensor<1x4x4x3xT>", "tensor<T>"],
    "tensor<1x2x2x3xT>",
    f"{reducer('maximum')} {{window_dimensions = array<i64: 1, 2, 2, 1>, "
    "window_strides = array<i64: 1, 2, 2, 1>}",
    types=FEW,
)

_select = region(
    2,
    ["T"],
    """
    %w = stablehlo.compare GE, %p0, %p1 : (tensor<T>, tensor<T>) -> tensor<i1>
    stablehlo.return %w : tensor<i1>""",
)
for _name, _from, _to, _more in (
    ("", "4x6", "2x3", "window_strides = array<i64: 2, 2>"),
    ("overlapping", "5x5", "4x4", "window_strides = array<i64: 1, 1>"),
    (
        "padding",
        "4x5",
        "3x3",
        "window_strides = array<i64: 2, 2>, padding = dense<[[1, 1], [0, 1]]> : tensor<2x2xi64>",
    ),
):
    form(
        "select_and_scatter",
        _name,
        [f"tensor<{_from}xT>", f"tensor<{_to}xT>"],
        f"""
      %z = "stablehlo.constant"() {{value = dense<0> : tensor<i8>}} : () -> tensor<i8>
      %i = stablehlo.convert %z : (tensor<i8>) -> tensor<T>
      %r = "stablehlo.select_and_scatter"(%a, %b, %i) {_select[:-1]}, {reducer("add")[1:]}
        {{window_dimensions = array<i64: 2, 2>, {_more}}} : (tensor<{_from}xT>, tensor<{_to}xT>,
        tensor<T>) -> tensor<{_from}xT>
      return %r : tensor<{_from}xT>""",
        types=NUMBERS,
    )
simple(
    "map",
    "",
    [_t, _t],
    _t,
    region(
        2,
        ["T"],
        """
    %m = stablehlo.multiply %p0, %p1 : tensor<T>
    %s = stablehlo.add %m, %p1 : tensor<T>
    stablehlo.return %s : tensor<T>""",
    )
    + " {dimensions = array<i64: 0, 1>}",
    types=ALL,
)

# Sorting.
_less = region(
    2,
    ["T"],
    """
    %c = stablehlo.compare LT, %p0, %p1 : (tensor<T>, tensor<T>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>""",
)
_more_by_first = region(
    4,
    ["T", "T", "i32", "i32"],
    """
    %c = stablehlo.compare GT, %p0, %p1 : (tensor<T>, tensor<T>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>""",
)
for _name, _shape, _dim in (
    ("", "17", 0),
    ("first dimension", "5x3", 0),
    ("middle dimension", "2x16x3", 1),
    ("one element", "1", 0),
    ("empty", "0x3", 0),
    ("31 elements", "2x31", 1),
):
    _kind = f"tensor<{_shape}xT>"
    simple(
        "sort",
        _name,
        [_kind],
        _kind,
        f"{_less} {{dimension = {_dim} : i64, is_stable = true}}",
        types=ALL,
    )
simple(
    "sort",
    "two operands, stable",
    [_t, "tensor<3x5xi32>"],
    f"{_t}, tensor<3x5xi32>",
    f"{_more_by_first} {{dimension = 1 : i64, is_stable = true}}",
    types=ALL,
)

"""Forms of elementwise operators."""

from __future__ import annotations

from typing import Any

from stablehlo_forms import ALL, FLOATS, INTEGERS, NUMBERS, SIGNED, simple

SHAPES = {"": "7x13x", "rank 0": "", "one element": "1x", "empty": "0x3x", "17 elements": "17x"}
"""Shapes of elementwise forms."""


def elementwise(operator: str, count: int, types: tuple[str, ...], **more: Any) -> None:
    for name, shape in SHAPES.items():
        tensor = f"tensor<{shape}T>"
        kinds = types if not name else types[:1]
        simple(operator, name, [tensor] * count, tensor, "", types=kinds, **more)


for _name in ("cosine", "exponential", "exponential_minus_one", "logistic", "sine", "tan", "tanh"):
    elementwise(_name, 1, FLOATS)
for _name in ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "cbrt"):
    elementwise(_name, 1, FLOATS)
for _name in ("log", "log_plus_one", "rsqrt", "sqrt"):
    elementwise(_name, 1, FLOATS, positive=True)
for _name in ("abs", "sign"):
    elementwise(_name, 1, (*FLOATS, *SIGNED))
elementwise("negate", 1, (*FLOATS, *INTEGERS))
for _name in ("count_leading_zeros", "popcnt"):
    elementwise(_name, 1, INTEGERS)
elementwise("not", 1, (*INTEGERS, "i1"))
for _name in ("add", "maximum", "minimum", "multiply"):
    elementwise(_name, 2, ALL)
elementwise("subtract", 2, NUMBERS)
elementwise("divide", 2, NUMBERS, positive=True)
elementwise("remainder", 2, NUMBERS, positive=True)
elementwise("atan2", 2, FLOATS)
elementwise("power", 2, NUMBERS, positive=True, small=True)
for _name in ("and", "or", "xor"):
    elementwise(_name, 2, (*INTEGERS, "i1"))
for _name in ("shift_left", "shift_right_arithmetic", "shift_right_logical"):
    elementwise(_name, 2, INTEGERS)
simple("is_finite", "", ["tensor<17xT>"], "tensor<17xi1>", "", types=FLOATS)
for _bits in ((3, 4), (5, 10), (8, 7), (1, 0), (11, 30)):
    _more = f"{{exponent_bits = {_bits[0]} : i32, mantissa_bits = {_bits[1]} : i32}}"
    simple("reduce_precision", f"e{_bits[0]}m{_bits[1]}", ["tensor<33xT>"], "tensor<33xT>", _more)
for _direction in ("EQ", "NE", "LT", "LE", "GT", "GE"):
    simple(
        "compare",
        _direction,
        ["tensor<5x17xT>"] * 2,
        "tensor<5x17xi1>",
        f"{{comparison_direction = #stablehlo<comparison_direction {_direction}>}}",
        types=ALL,
    )
simple(
    "compare",
    "TOTALORDER",
    ["tensor<17xT>"] * 2,
    "tensor<17xi1>",
    "{comparison_direction = #stablehlo<comparison_direction LT>, "
    "compare_type = #stablehlo<comparison_type TOTALORDER>}",
)
_t = "tensor<5x17xT>"
simple("select", "", ["tensor<5x17xi1>", _t, _t], _t, "", types=ALL)
simple("select", "scalar predicate", ["tensor<i1>", _t, _t], _t, "", types=ALL)
simple("clamp", "", [_t, _t, _t], _t, "", types=NUMBERS)
simple("clamp", "scalar bounds", ["tensor<T>", _t, "tensor<T>"], _t, "", types=NUMBERS)
for _to in ALL:
    simple("convert", f"to {_to}", ["tensor<33xT>"], f"tensor<33x{_to}>", "", types=ALL)
for _from, _to in (
    ("33xf32", "33xi32"),
    ("33xi32", "33xf32"),
    ("33xf16", "33xi16"),
    ("33xui32", "33xi32"),
    ("5x4xi8", "5xi32"),
    ("5xi32", "5x4xi8"),
    ("5x2xf16", "5xf32"),
    ("5xi64", "5x2xf32"),
    ("5xi64", "5x8xui8"),
    ("i32", "2xf16"),
    ("8xi8", "i64"),
):
    simple("bitcast_convert", f"{_from} to {_to}", [f"tensor<{_from}>"], f"tensor<{_to}>", "")

"""Every operator on every element type that kernels hold, against StableHLO's interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import frontends
from davinci.mlir import make_context
from davinci.narrow import Array
from davinci.reference import interpreter
from support import run_text

TYPES = {
    "f16": "float16",
    "f64": "float64",
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
TARGETS = [*TYPES, "f32", "i1"]
TOLERANCE = {"f16": 5e-3, "f64": 1e-12}
"""Of the largest value: f64 is that of one rounding in a library's function."""

BINARY = ("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "power")
BITWISE = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
UNARY_FLOAT = (
    *("abs", "cbrt", "ceil", "cosine", "exponential", "exponential_minus_one", "floor"),
    *("log", "log_plus_one", "logistic", "negate", "round_nearest_afz", "round_nearest_even"),
    *("rsqrt", "sign", "sine", "sqrt", "tan", "tanh"),
)
UNARY_INTEGER = ("count_leading_zeros", "negate", "not", "popcnt")
UNARY_SIGNED = ("abs", "sign")


def statements(element: str) -> dict[str, tuple[str, str]]:
    """For each operator what computes `%name` of %x and %y, [3, 4], and the type of that."""
    t, p, e = f"tensor<3x4x{element}>", "tensor<3x4xi1>", f"tensor<{element}>"
    isfloat = element.startswith("f")
    unary = UNARY_FLOAT if isfloat else UNARY_INTEGER
    if element.startswith("i"):
        unary += UNARY_SIGNED
    positive = ("log", "log_plus_one", "sqrt", "rsqrt")
    found = {
        **{n: (f"stablehlo.{n} %{'small' if n == 'power' else 'x'}, %y_ : {t}", t) for n in BINARY},
        **{n: (f"stablehlo.{n} %{'a' if n in positive else 'x'} : {t}", t) for n in unary},
        **{
            n: (f"stablehlo.compare {n}, %x, %y : ({t}, {t}) -> {p}", p)
            for n in ("EQ", "NE", "LT", "LE", "GT", "GE")
        },
        "select": (f"stablehlo.select %LT, %x, %y : {p}, {t}", t),
        "clamp": (f"stablehlo.clamp %one, %x, %three : {t}", t),
        "transpose": (
            f"stablehlo.transpose %x, dims = [1, 0] : ({t}) -> tensor<4x3x{element}>",
            f"tensor<4x3x{element}>",
        ),
        "iota": (f"stablehlo.iota dim = 1 : {t}", t),
        "dot": (
            f"stablehlo.dot_general %x, %y, contracting_dims = [1] x [1] : ({t}, {t}) -> "
            f"tensor<3x3x{element}>",
            f"tensor<3x3x{element}>",
        ),
        **{
            f"reduce_{n}": (
                f"stablehlo.reduce(%x init: %init) applies stablehlo.{n} across dimensions = [1]"
                f" : ({t}, {e}) -> tensor<3x{element}>",
                f"tensor<3x{element}>",
            )
            for n in ("add", "maximum", "minimum", "multiply")
        },
        **{
            f"to_{n}": (f"stablehlo.convert %a : ({t}) -> tensor<3x4x{n}>", f"tensor<3x4x{n}>")
            for n in TARGETS
        },
    }
    if not isfloat:
        found |= {n: (f"stablehlo.{n} %x, %three : {t}", t) for n in BITWISE}
    return found


def program(element: str) -> str:
    t = f"tensor<3x4x{element}>"
    number = "{}.0" if element.startswith("f") else "{}"
    constants = [
        *(f"%{n} = stablehlo.constant dense<{number.format(v)}> : {t}" for n, v in CONSTANTS),
        f"%init = stablehlo.constant dense<{number.format(1)}> : tensor<{element}>",
        f"%y_ = stablehlo.maximum %y, %one : {t}",
        f"%small = stablehlo.minimum %y_, %three : {t}",
        f"%a = stablehlo.maximum %x, %one : {t}",
    ]
    made = statements(element)
    lines = [f"%{name} = {text}" for name, (text, _) in made.items()]
    kinds = ", ".join(kind for _, kind in made.values())
    values = ", ".join(f"%{name}" for name in made)
    body = "\n".join([*constants, *lines, f"return {values} : {kinds}"])
    return f"func.func @main(%x: {t}, %y: {t}) -> ({kinds}) {{\n{body}\n}}"


CONSTANTS = (("one", 1), ("three", 3))


def numbers(element: str, seed: int) -> Array:
    rng, dtype = np.random.default_rng(seed), np.dtype(TYPES[element])
    if dtype.kind == "f":
        return (rng.standard_normal((3, 4)) * 5).astype(dtype)
    limits = np.iinfo(dtype)
    found = rng.integers(limits.min, limits.max, (3, 4), dtype, endpoint=True)
    found.flat[seed : seed + 4] = [limits.min, limits.max, 0, 1]
    return found


@pytest.mark.parametrize("element", TYPES)
def test_operators(element: str) -> None:
    text = program(element)
    x, y = numbers(element, 1), numbers(element, 2)
    module = frontends.load(text, make_context())
    interpreter.prepare(module)
    names = list(statements(element))
    wanted = interpreter.evaluate(module, {"x": x, "y": y}, names)
    # Many operators of few elements: which share kernels, launches and cores is not asked here.
    results = run_text(text, x, y, cores=1, plan="sequential", fusion="none")
    for name, found in zip(names, results, strict=True):
        assert found.dtype == wanted[name].dtype, name
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted[name], name)
            continue
        finite = wanted[name][np.isfinite(wanted[name])].astype(np.float64)
        tolerance = TOLERANCE.get(element, 1e-6) * float(np.abs(finite).max(initial=0))
        assert np.isfinite(tolerance)
        np.testing.assert_allclose(found, wanted[name], rtol=0, atol=tolerance, err_msg=name)

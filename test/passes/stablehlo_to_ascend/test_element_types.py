"""Element types that no unit has, from argument to result, on the simulated machine.

Conversions are held against ml_dtypes, which rounds f64 and integers by way of f32, and the least
numbers of f8E8M0FNU up: there, against StableHLO's interpreter, which rounds once and to nearest.
The interpreter in turn has no rule for what f4E2M1FN and f8E8M0FNU cannot hold.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from davinci import arrays, elements, frontends
from davinci.errors import CompileError, InputError
from davinci.mlir import ir, make_context, operations
from davinci.narrow import FLOATS, INTEGERS, NARROW, Array, NarrowFloat, to_stored
from davinci.reference import interpreter
from pairs import in_turn
from support import compile_text, run_text

pytestmark = pytest.mark.filterwarnings("ignore:(invalid|overflow).*:RuntimeWarning")

NATIVE = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"ui{n}": f"uint{n}" for n in (8, 16, 32, 64)},
}
SINGLE_ROUNDING = ("f64", "i32", "ui32", "i64", "ui64")
"""Sources that ml_dtypes rounds twice."""


def all_values(kind: Any) -> Array:
    """Every bit pattern of a narrow type; of bf16, every 37th and the odd ones."""
    bits = np.arange(1 << kind.bits)
    if kind.bits == 16:
        odd = [0x7F7F, 0x7F80, 0x7FC0, 0xFF80, 0xFFC0, 0x8000, 1, 0x8001, 0x7F, 0x80]
        bits = np.unique(np.concatenate([bits[::37], odd]))
    if isinstance(kind, NarrowFloat):
        return bits.astype(f"uint{max(8, kind.bits)}").view(kind.dtype)
    return (bits + kind.least).astype(np.int8).astype(kind.dtype)


def hard_numbers(kind: NarrowFloat) -> Array:
    """The numbers of a type as f32, those halfway between, the next ones to both, and odd ones."""
    values = all_values(kind).astype(np.float32)
    values = np.unique(values[np.isfinite(values)])
    halfway = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    odd = [3e38, -3e38, 1e38, 1e-45, -1e-45, 1e-40, np.inf, -np.inf, 0.0, -0.0]
    found = np.concatenate([values, halfway, np.array(odd, np.float32)])
    next_ones = [np.nextafter(found, np.float32(to)) for to in (np.inf, -np.inf)]
    nans = np.array([0x7FC00000, 0xFFC00000, 0x7F800001], np.uint32).view(np.float32)
    return np.concatenate([found, *next_ones, nans])


def convert_text(source: str, *targets: str, count: int) -> str:
    a, kinds = f"tensor<{count}x{source}>", [f"tensor<{count}x{target}>" for target in targets]
    lines = [f"%{i} = stablehlo.convert %x : ({a}) -> {kind}" for i, kind in enumerate(kinds)]
    results = ", ".join(f"%{i}" for i in range(len(kinds)))
    return f"""func.func @main(%x: {a}) -> ({", ".join(kinds)}) {{
      {chr(10).join(lines)}
      return {results} : {", ".join(kinds)}
    }}"""


def converted(array: Array, source: str, *targets: str) -> dict[str, Array]:
    """`array` as each of the target types."""
    found = run_text(convert_text(source, *targets, count=len(array)), array)
    return dict(zip(targets, found, strict=True))


def by_interpreter(text: str, *arrays: Array) -> list[Array]:
    inputs = {f"arg{i}": array for i, array in enumerate(arrays)}
    module = frontends.load(text, make_context())
    interpreter.prepare(module)
    results = len(module.body.operations[0].type.results)
    return list(interpreter.evaluate(module, inputs, [f"r{i}" for i in range(results)]).values())


def assert_same(found: Array, wanted: Array) -> None:
    """Equal bits; where both are NaN, any."""
    assert found.dtype == wanted.dtype
    a, b = to_stored(found), to_stored(wanted)
    if found.dtype.kind == "f":
        a, b = (x.view(f"u{x.dtype.itemsize}") for x in (a, b))
    same = (a == b) | ((found != found) & (wanted != wanted))
    assert same.all(), [(i, found[i], wanted[i]) for i in np.flatnonzero(~same)[:5]]


NUMBERS = [0, 1, 2, 3, 5, 7, 9, 10, 17, 100, 127]
LARGE = [129, 257, 385, 65409, (1 << 24) + (1 << 16) + 1, (1 << 31) - 1, (1 << 54) + (1 << 46) + 1]
VERY_LARGE = [(1 << 63) - 1, (1 << 63) + (1 << 55) + 1, (1 << 64) - 1]


def native_numbers(name: str) -> Array:
    """Numbers of a type of NumPy's own that are hard to round to any of the narrow floats."""
    dtype = np.dtype(NATIVE[name])
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        every = [*NUMBERS, *LARGE, *VERY_LARGE, *(-n for n in [*NUMBERS, *LARGE])]
        return np.array([n for n in every if limits.min <= n <= limits.max], dtype)
    few = [hard_numbers(kind)[:: 1 + (kind.bits == 16) * 8] for kind in FLOATS.values()]
    numbers = np.unique(np.concatenate(few)).astype(dtype)
    return numbers if name != "f64" else np.concatenate([numbers, numbers * (1 + 2.0**-40)])


def have_one_rule(numbers: Array, target: str, by: str) -> Any:
    """Where ml_dtypes ("NumPy") or the interpreter, if that is `by`, rounds as the others do."""
    wide = numbers.astype(np.float64)
    if target == "f8E8M0FNU" and by == "NumPy":  # it rounds numbers below the normal ones of f32 up
        return (wide <= 0) | (wide >= 2.0**-126) | np.isnan(wide)
    if target == "f8E8M0FNU":  # it has codes of its own for zeros and negative numbers
        return (wide > 0) & (wide < 2.0**127)
    if target == "f4E2M1FN":  # it has neither NaN nor infinities
        return np.abs(wide) <= 7 if by == "interpreter" else ~np.isnan(wide)
    return np.ones(numbers.shape, bool)


@pytest.mark.parametrize("source", NATIVE)
def test_to_narrow_floats(source: str) -> None:
    numbers = native_numbers(source)
    found = converted(numbers, source, *FLOATS)
    if source in SINGLE_ROUNDING:
        text, by = convert_text(source, *FLOATS, count=len(numbers)), "interpreter"
        wanted = dict(zip(FLOATS, by_interpreter(text, numbers), strict=True))
    else:
        by, wanted = "NumPy", {name: numbers.astype(kind.dtype) for name, kind in FLOATS.items()}
    for name, array in found.items():
        known = have_one_rule(numbers, name, by)
        assert known.any()
        assert_same(array[known], wanted[name][known])


@pytest.mark.parametrize("source", FLOATS)
def test_from_narrow_floats(source: str) -> None:
    """To every other type. What an integer type does not hold is left open."""
    values = all_values(FLOATS[source])
    wide = values.astype(np.float32)
    others = [name for name in FLOATS if name != source]
    for name, array in converted(values, source, *others).items():
        known = have_one_rule(wide, name, "NumPy")
        assert_same(array[known], wide.astype(FLOATS[name].dtype)[known])
    for name, array in converted(values, source, *NATIVE).items():
        dtype, fits = np.dtype(NATIVE[name]), np.ones(wide.shape, bool)
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            fits = (wide > float(limits.min) - 1) & (wide < float(limits.max))
        assert_same(array[fits], wide[fits].astype(dtype))


@pytest.mark.parametrize("source", [*INTEGERS, "i32"])
def test_between_narrow_integers(source: str) -> None:
    numbers = np.arange(-40, 40, dtype=np.int32)
    values = all_values(INTEGERS[source]) if source in INTEGERS else numbers
    targets = [name for name in INTEGERS if name != source]
    wanted = by_interpreter(convert_text(source, *targets, count=len(values)), values)
    for array, right in zip(converted(values, source, *targets).values(), wanted, strict=True):
        assert_same(array, right)


@pytest.mark.parametrize("source", ["f32", "bf16", "f8E5M2"])
def test_floats_to_narrow_integers_are_saturated(source: str) -> None:
    numbers = np.array([-9, -3.5, -2, -1.5, -0.5, 0, 0.5, 1.5, 3.5, 7, 14, 20, *ODD])
    values = numbers.astype(NARROW[source].dtype if source in NARROW else np.float32)
    for name, array in converted(values, source, *INTEGERS).items():
        kind = INTEGERS[name]
        wanted = np.trunc(np.nan_to_num(numbers.clip(kind.least, kind.most))).astype(kind.dtype)
        assert_same(array, wanted)


ODD = (np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("source", INTEGERS)
def test_narrow_integers_to_others(source: str) -> None:
    values = all_values(INTEGERS[source])
    for name, array in converted(values, source, "f32", "bf16", "i64", "i1").items():
        dtype = NARROW[name].dtype if name in NARROW else np.dtype({**NATIVE, "i1": bool}[name])
        assert_same(array, values.astype(np.int32).astype(np.float32).astype(dtype))


SELECT = """%p = stablehlo.compare GT, %x, %y : (T, T) -> P
    %r = stablehlo.select %p, %y, %x : P, T"""

INTEGER_OPS = {
    name: f"%r = stablehlo.{name} %x, %y : T"
    for name in (
        *("add", "subtract", "multiply", "maximum", "minimum", "and", "or", "xor"),
        *("shift_left", "shift_right_logical", "shift_right_arithmetic"),
    )
} | {
    "divide": "%0 = stablehlo.or %y, %one : T\n%r = stablehlo.divide %x, %0 : T",
    "remainder": "%0 = stablehlo.or %y, %one : T\n%r = stablehlo.remainder %x, %0 : T",
    "not": "%r = stablehlo.not %x : T",
    "popcnt": "%r = stablehlo.popcnt %x : T",
    "count_leading_zeros": "%r = stablehlo.count_leading_zeros %x : T",
    "select": SELECT,
    "clamp": "%r = stablehlo.clamp %one, %x, %y : T",
    "while": """%r = stablehlo.while(%i = %x) : T
        cond { %n = stablehlo.slice %i [0:1] : (T) -> tensor<1xE>
          %m = stablehlo.reshape %n : (tensor<1xE>) -> tensor<E>
          %c = stablehlo.constant dense<0> : tensor<E>
          %p = stablehlo.compare NE, %m, %c : (tensor<E>, tensor<E>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }
        do { %n = stablehlo.add %i, %one : T
          stablehlo.return %n : T }""",
}


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        *itertools.product(["i4", "ui2"], INTEGER_OPS),
        *((("ui4", "i2")[i % 2], name) for i, name in enumerate(INTEGER_OPS)),
    ],
)
def test_arithmetic_on_narrow_integers(name: str, operator: str) -> None:
    """Of every pair of values, against the interpreter."""
    values = all_values(INTEGERS[name])
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    if operator == "while":
        x = np.roll(x, -len(values))
    if operator.startswith("shift"):  # counts are not negative and smaller than the width
        fits = (y.astype(np.int8) >= 0) & (y.astype(np.int8) < INTEGERS[name].bits)
        x, y = x[fits], y[fits]
    text = program(INTEGER_OPS[operator], name, len(x))
    assert_same(run_text(text, x, y)[0], by_interpreter(text, x, y)[0])


def program(body: str, element: str, count: int) -> str:
    tensor, one = f"tensor<{count}x{element}>", 1 if element in INTEGERS else 1.0
    body = body.replace("xE>", f"x{element}>").replace("tensor<E>", f"tensor<{element}>")
    body = (
        body.replace(" T", f" {tensor}")
        .replace("(T", f"({tensor}")
        .replace("P", f"tensor<{count}xi1>")
    )
    return f"""func.func @main(%x: {tensor}, %y: {tensor}) -> {tensor} {{
      %one = stablehlo.constant dense<{one}> : {tensor}
      {body}
      return %r : {tensor}
    }}"""


FLOAT_OPS = {
    **{
        name: f"%r = stablehlo.{name} %x, %y : T"
        for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum")
    },
    **{name: f"%r = stablehlo.{name} %x : T" for name in ("negate", "abs", "exponential", "tanh")},
    "select": SELECT,
    "sort": """%r = "stablehlo.sort"(%x) ({ ^bb0(%a: tensor<E>, %b: tensor<E>):
        %p = stablehlo.compare LT, %a, %b : (tensor<E>, tensor<E>) -> tensor<i1>
        stablehlo.return %p : tensor<i1> }) {dimension = 0 : i64, is_stable = true} : (T) -> T""",
    "moves": """%0 = stablehlo.reverse %x, dims = [0] : T
        %r = stablehlo.concatenate %0, dim = 0 : (T) -> T""",
}


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        *itertools.product(["bf16", "f8E5M2FNUZ"], FLOAT_OPS),
        *((("f8E4M3FN", "f4E2M1FN")[i % 2], name) for i, name in enumerate(FLOAT_OPS)),
    ],
)
def test_arithmetic_on_narrow_floats(name: str, operator: str) -> None:
    """One operation, rounded once, so it differs from the interpreter in nothing or in one place.

    The interpreter computes `tanh` and the like in f64 and rounds once, too. Sorted alone, -0 comes
    before 0, which a comparison takes for equal.
    """
    values = all_values(FLOATS[name])
    values = values[np.isfinite(values.astype(np.float32))][:: 7 if name == "bf16" else 1]
    x, y = values, np.roll(values, 3)
    if operator == "divide":
        x, y = x[y.astype(np.float32) != 0], y[y.astype(np.float32) != 0]
    text = program(FLOAT_OPS[operator], name, len(x))
    found, wanted = run_text(text, x, y)[0], by_interpreter(text, x, y)[0]
    if operator == "sort":
        found, wanted = (array.astype(np.float32) + np.float32(0) for array in (found, wanted))
    assert_same(found, wanted)


CONSTANTS = {
    "some": lambda values: values[:5],
    "a splat": lambda values: np.full(7, values[1]),
    "as hexadecimal text": lambda values: np.resize(values, 300),
    "a resource": lambda values: np.resize(values, 1300),
}


@pytest.mark.parametrize(("name", "size"), in_turn(NARROW, CONSTANTS))
def test_constants(name: str, size: str) -> None:
    """What stands in the text comes out; a sum with it is computed with its values."""
    array = CONSTANTS[size](all_values(NARROW[name]))
    with make_context(), ir.Location.unknown():
        attr = elements.to_attribute(array, ir.Type.parse(name))
        assert_same(elements.to_array(attr), array)
        tensor = f"tensor<{len(array)}x{name}>"
        module = ir.Module.parse(
            f"""func.func @main(%x: {tensor}) -> ({tensor}, {tensor}) {{
              %0 = stablehlo.constant dense<1> : {tensor}
              %1 = stablehlo.maximum %x, %0 : {tensor}
              return %0, %1 : {tensor}, {tensor}
            }}""".replace("dense<1>", "dense<1>" if name in INTEGERS else "dense<1.0>")
        )
        operations(module.operation, "stablehlo.constant")[0].attributes["value"] = attr
        text = str(module)
    x = np.zeros_like(array) if name != "f8E8M0FNU" else np.ones_like(array)
    found, larger = run_text(text, x)
    assert_same(found, array)
    wanted = np.maximum(array.astype(np.float32), x.astype(np.float32)).astype(array.dtype)
    np.testing.assert_array_equal(larger.astype(np.float32), wanted.astype(np.float32))


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 1, 3)])
def test_shapes(name: str, shape: tuple[int, ...]) -> None:
    tensor = f"tensor<{''.join(f'{n}x' for n in shape)}{name}>"
    text = f"""func.func @main(%x: {tensor}) -> ({tensor}, {tensor}) {{
      %0 = stablehlo.add %x, %x : {tensor}
      return %0, %x : {tensor}, {tensor}
    }}"""
    x = np.ones(shape, NARROW[name].dtype)
    doubled, same = run_text(text, x)
    assert_same(same, x)
    wanted = (x.astype(np.float32) * 2).astype(x.dtype)
    assert_same(doubled, wanted)


@pytest.mark.parametrize("name", ["bf16", "f8E4M3FN", "f8E5M2", "i4", "ui4"])
def test_products(name: str) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.integers(-2, 8, (5, 20)).clip(0).astype(NARROW[name].dtype) for _ in "xy")
    result = "i32" if name in INTEGERS else "f32"
    operand = f"tensor<5x20x{name}>"
    text = f"""func.func @main(%x: {operand}, %y: {operand}) -> tensor<5x5x{result}> {{
      %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [1]
        : ({operand}, {operand}) -> tensor<5x5x{result}>
      return %0 : tensor<5x5x{result}>
    }}"""
    executable = compile_text(text)
    wanted = x.astype(np.float32) @ y.astype(np.float32).T
    assert_same(executable.run(x, y)["out0"], wanted.astype(NATIVE[result]))
    units = {kernel["unit"] for kernel in executable.profile["kernels"]}
    assert "cube" in units or name == "ui4"


BITS = {
    "bf16": "ui16",
    "f8E5M2": "i8",
    "f8E8M0FNU": "ui8",
    "f4E2M1FN": "ui4",
    "i4": "ui4",
    "ui2": "i2",
}


@pytest.mark.parametrize("name", BITS)
def test_bits_there_and_back(name: str) -> None:
    values = all_values(NARROW[name])
    a, b = (f"tensor<{len(values)}x{kind}>" for kind in (name, BITS[name]))
    text = f"""func.func @main(%x: {a}) -> ({b}, {a}) {{
      %0 = stablehlo.bitcast_convert %x : ({a}) -> {b}
      %1 = stablehlo.bitcast_convert %0 : ({b}) -> {a}
      return %0, %1 : {b}, {a}
    }}"""
    found = run_text(text, values)
    for array, wanted in zip(found, by_interpreter(text, values), strict=True):
        np.testing.assert_array_equal(to_stored(array), to_stored(wanted))


def test_bits_of_another_width_are_refused() -> None:
    text = """func.func @main(%x: tensor<3x2xi4>) -> tensor<3xi8> {
      %0 = stablehlo.bitcast_convert %x : (tensor<3x2xi4>) -> tensor<3xi8>
      return %0 : tensor<3xi8>
    }"""
    with pytest.raises(CompileError, match="less than a byte"):
        compile_text(text)


def test_rounding_where_the_model_says_so() -> None:
    """There and back through bf16 rounds with the policy `fp32`, `reduce_precision` always."""
    x = np.array([1 + 2.0**-8 + 2.0**-20, 1 / 3, -1e-3, 3e38], np.float32)
    text = """func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
      %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
      %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
      %2 = stablehlo.reduce_precision %x, format = e8m7 : tensor<4xf32>
      return %1, %2 : tensor<4xf32>, tensor<4xf32>
    }"""
    wanted = x.astype(NARROW["bf16"].dtype).astype(np.float32)
    for found in run_text(text, x, precision="fp32"):
        assert_same(found, wanted)
    kept, reduced = run_text(text, x)
    assert_same(kept, x)
    assert_same(reduced, wanted)


def test_inputs_and_outputs_have_the_types_of_the_model() -> None:
    executable = compile_text(convert_text("bf16", "i4", count=4))
    assert [str(spec) for spec in executable.inputs] == ["bfloat16[4]"]
    assert [str(spec) for spec in executable.outputs] == ["int4[4]"]


def test_arrays_that_a_file_has_kept(tmp_path: Path) -> None:
    """`numpy.savez` writes them as bytes without a type; of as many bytes, they are accepted."""
    values = all_values(NARROW["bf16"])
    arrays.save_npz(str(tmp_path / "x.npz"), {"arg0": values})
    executable = compile_text(convert_text("bf16", "f32", count=len(values)))
    found = executable.run(arrays.load_npz(str(tmp_path / "x.npz")))["out0"]
    assert_same(found, values.astype(np.float32))
    with pytest.raises(InputError, match="expected bfloat16"):
        executable.run(values.view(np.uint16))


def test_the_last_conversion_of_narrow_arithmetic_is_returned() -> None:
    """The sum in f32 stands for the bf16 one too; a return and a bitcast want the f32 one."""
    x = np.array([1.5, -2.25, 1 / 3, 40.0], NARROW["bf16"].dtype)
    text = """func.func @main(%x: tensor<4xbf16>) -> (tensor<4xf32>, tensor<4xi32>) {
      %0 = stablehlo.multiply %x, %x : tensor<4xbf16>
      %1 = stablehlo.convert %0 : (tensor<4xbf16>) -> tensor<4xf32>
      %2 = stablehlo.bitcast_convert %1 : (tensor<4xf32>) -> tensor<4xi32>
      return %1, %2 : tensor<4xf32>, tensor<4xi32>
    }"""
    numbers, bits = run_text(text, x)
    np.testing.assert_allclose(numbers, np.square(x.astype(np.float32)), rtol=2.0**-8)
    np.testing.assert_array_equal(bits, numbers.view(np.int32))


def test_a_narrow_integer_made_wider_is_no_narrow_one() -> None:
    x = np.array([-8, -1, 3, 7], np.int8)
    text = """func.func @main(%x: tensor<4xi8>) -> (tensor<4xi8>, tensor<4xi8>) {
      %0 = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi4>
      %1 = stablehlo.add %0, %0 : tensor<4xi4>
      %2 = stablehlo.convert %1 : (tensor<4xi4>) -> tensor<4xi8>
      %s = stablehlo.constant dense<2> : tensor<4xi8>
      %3 = stablehlo.shift_right_logical %2, %s : tensor<4xi8>
      return %2, %3 : tensor<4xi8>, tensor<4xi8>
    }"""
    wide, shifted = run_text(text, x)
    wanted = ((2 * x.astype(int) + 8) % 16 - 8).astype(np.int8)
    np.testing.assert_array_equal(wide, wanted)
    np.testing.assert_array_equal(shifted, (wanted.view(np.uint8) >> 2).view(np.int8))

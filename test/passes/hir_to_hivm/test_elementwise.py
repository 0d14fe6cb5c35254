"""Operations of AscendNPU-IR on the vector unit, against NumPy, on shapes that hurt."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.errors import CompileError
from hivm_support import KernelText, run, segments

SHAPES = [(1,), (15,), (16,), (17,), (64,), (1021,), (3, 8), (5, 64), (2, 136), (300, 64)]
RANDOM = np.random.default_rng(0)


def numbers(shape: tuple[int, ...], kind: str = "float32") -> np.ndarray:
    if kind.startswith("int"):
        return RANDOM.integers(-50, 50, shape).astype(kind)
    return RANDOM.standard_normal(shape).astype(kind)


def binary(name: str, shape: tuple[int, ...], element: str = "f32") -> str:
    made = KernelText()
    a, b = made.load(shape, element), made.load(shape, element)
    made.op(name, [a, b, a], segments(2, 1, 0))
    made.store(a, shape, element)
    return made.text()


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_of_any_shape(shape: tuple[int, ...]) -> None:
    x, y = numbers(shape), numbers(shape)
    np.testing.assert_array_equal(run(binary("vadd", shape), x, y, np.zeros_like(x)), x + y)


@pytest.mark.parametrize(
    ("name", "function"),
    [("vsub", np.subtract), ("vmul", np.multiply), ("vmax", np.maximum), ("vmin", np.minimum)],
)
@pytest.mark.parametrize("kind", ["float16", "float32", "int16", "int32"])
def test_operations_of_two_arrays(name: str, function: np.ufunc, kind: str) -> None:
    x, y = numbers((200,), kind), numbers((200,), kind)
    element = kind.replace("float", "f").replace("int", "i")
    found = run(binary(name, (200,), element), x, y, np.zeros_like(x))
    np.testing.assert_array_equal(found, function(x, y))


@pytest.mark.parametrize("name", ["vadd", "vmul", "vmax", "vdiv"])
@pytest.mark.parametrize("count", [7, 64, 1000])
def test_an_array_and_a_scalar(name: str, count: int) -> None:
    made = KernelText()
    a = made.load((count,), "f32")
    scalar = (made.constant("2.5", "f32"), "f32")
    scratch = [made.buffer((8,), "f32")] if name == "vdiv" else []
    made.op(name, [a, scalar, a, *scratch], segments(2, 1, len(scratch)))
    made.store(a, (count,), "f32")
    x = numbers((count,))
    function = {"vadd": np.add, "vmul": np.multiply, "vmax": np.maximum, "vdiv": np.divide}[name]
    expected = function(x, np.float32(2.5))
    np.testing.assert_array_equal(run(made.text(), x, np.zeros_like(x)), expected)


@pytest.mark.parametrize("columns", [8, 20, 64, 130])
def test_a_column_is_broadcast_along_rows(columns: int) -> None:
    rows = 11
    pitch = -(-columns // 8) * 8
    made = KernelText()
    whole, kind = made.buffer((rows, pitch), "f32")
    part = made.name()
    view = f"memref<{rows}x{columns}xf32, strided<[{pitch}, 1]>, #hivm.address_space<ub>>"
    sizes = (
        "operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0, 0>, "
        f"static_sizes = array<i64: {rows}, {columns}>, static_strides = array<i64: 1, 1>"
    )
    made.lines.append(f'{part} = "memref.subview"({whole}) <{{{sizes}}}> : ({kind}) -> {view}')
    source = made.argument((rows, columns), "f32")
    made.op("load", [source, (part, view)], LOAD_2D)
    column = made.load((rows, 1), "f32")
    scratch = made.buffer((rows * 8 + 64,), "f32")
    with_dims = segments(2, 1, 1).replace("broadcast = array<i64>", "broadcast = array<i64: 1>")
    made.op("vsub", [(part, view), column, (part, view), scratch], with_dims)
    made.op(
        "store",
        [(part, view), made.argument((rows, columns), "f32")],
        "may_implicit_transpose_with_last_axis = false",
    )
    x, c = numbers((rows, columns)), numbers((rows, 1))
    np.testing.assert_array_equal(run(made.text(), x, c, np.zeros_like(x)), x - c)


LOAD_2D = (
    "init_out_buffer = false, may_implicit_transpose_with_last_axis = false, "
    "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>"
)


@pytest.mark.parametrize(
    ("name", "function"),
    [("vexp", np.exp), ("vabs", np.abs), ("vrelu", lambda x: np.maximum(x, 0))],
)
def test_operations_of_one_array(name: str, function: np.ufunc) -> None:
    made = KernelText()
    a = made.load((77,), "f32")
    made.op(name, [a, a], segments(1, 1, 0))
    made.store(a, (77,), "f32")
    x = numbers((77,))
    np.testing.assert_allclose(run(made.text(), x, np.zeros_like(x)), function(x), rtol=1e-6)


@pytest.mark.parametrize("count", [16, 65, 1000])
def test_compare_and_select(count: int) -> None:
    made = KernelText()
    a, b = made.load((count,), "f32"), made.load((count,), "f32")
    bits = made.buffer((max(count, 256),), "i1")
    part = (bits[0], bits[1])
    mode = "compare_mode = #hivm.compare_mode<lt>, "
    made.op("vcmp", [a, b, part], mode + segments(2, 1))
    scratch = made.buffer((16,), "f32")
    zero = (made.constant("0.0", "f32"), "f32")
    made.op("vsel", [part, a, zero, a, scratch], segments(3, 1, 1))
    made.store(a, (count,), "f32")
    x, y = numbers((count,)), numbers((count,))
    found = run(made.text(), x, y, np.zeros_like(x))
    np.testing.assert_array_equal(found, np.where(x < y, x, 0))


@pytest.mark.parametrize(
    ("mode", "function"), [("rint", np.rint), ("floor", np.floor), ("trunc", np.trunc)]
)
def test_casts_round_as_they_say(mode: str, function: np.ufunc) -> None:
    made = KernelText()
    a, target = made.load((99,), "f32"), made.buffer((99,), "i32")
    how = f"cast = #hivm.cast<cast_signed>, round_mode = #hivm.round_mode<{mode}>, "
    made.op("vcast", [a, target], how + segments(1, 1, 0))
    made.store(target, (99,), "i32")
    x = numbers((99,)) * 10
    np.testing.assert_array_equal(run(made.text(), x, np.zeros(99, np.int32)), function(x))


@pytest.mark.parametrize("count", [5, 8, 100, 1024])
def test_numbers_from_an_offset_on(count: int) -> None:
    made = KernelText()
    target = made.buffer((count,), "i32")
    offset, step = (made.constant(n, "index") for n in (3, 2))
    made.op(
        "varange",
        [target, (offset, "index"), (step, "index")],
        "operandSegmentSizes = array<i32: 1, 1, 1>",
    )
    made.store(target, (count,), "i32")
    found = run(made.text(), np.zeros(count, np.int32))
    np.testing.assert_array_equal(found, 3 + 2 * np.arange(count))


@pytest.mark.parametrize("kind", ["sum", "max", "min"])
@pytest.mark.parametrize(
    "shape", [(1,), (50,), (64,), (1000,), (1024,), (16, 128), (9, 40), (13, 8), (2100, 8)], ids=str
)
def test_reductions_along_rows(kind: str, shape: tuple[int, ...]) -> None:
    made = KernelText()
    a = made.load(shape, "f32")
    results = (*shape[:-1], 1)
    target, scratch = made.buffer(results, "f32"), made.buffer((2048,), "f32")
    how = f"arith = #hivm.reduce_op<{kind}>, reduce_dims = array<i64: {len(shape) - 1}>, "
    made.op("vreduce", [a, target, scratch], how + "operandSegmentSizes = array<i32: 1, 1, 1, 0>")
    made.store(target, results, "f32")
    x = numbers(shape)
    expected = getattr(np, {"sum": "sum", "max": "max", "min": "min"}[kind])(x, -1, keepdims=True)
    np.testing.assert_allclose(
        run(made.text(), x, np.zeros(results, np.float32)), expected, rtol=1e-5, atol=1e-4
    )


@pytest.mark.parametrize("rows", [1, 2, 7, 32])
def test_reductions_of_rows(rows: int) -> None:
    made = KernelText()
    a = made.load((rows, 40), "f32")
    target, scratch = made.buffer((1, 40), "f32"), made.buffer((2048,), "f32")
    how = "arith = #hivm.reduce_op<sum>, reduce_dims = array<i64: 0>, "
    made.op("vreduce", [a, target, scratch], how + "operandSegmentSizes = array<i32: 1, 1, 1, 0>")
    made.store(target, (1, 40), "f32")
    x = numbers((rows, 40))
    found = run(made.text(), x, np.zeros((1, 40), np.float32))
    np.testing.assert_allclose(found, x.sum(0, keepdims=True), rtol=1e-5, atol=1e-5)


def test_what_is_not_supported_is_listed_with_counts() -> None:
    made = KernelText()
    a = made.load((64,), "f32")
    made.op("vsort", [a, a], "descending = false")
    made.op("vsort", [a, a], "descending = false")
    made.op("vtanh", [a, a], segments(1, 1))
    made.store(a, (64,), "f32")
    with pytest.raises(CompileError) as raised:
        run(made.text(), numbers((64,)), numbers((64,)))
    assert "vsort (2x), vtanh (1x)" in str(raised.value)

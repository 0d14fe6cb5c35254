"""Forms of operations that the scalar unit does element by element, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hivm_support import BARRIER, KernelText, compiled, run, segments

RANDOM = np.random.default_rng(0)
KINDS = {"int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "float32": "f32"}


def integers(shape: tuple[int, ...], kind: str, most: int = 100) -> np.ndarray:
    return RANDOM.integers(-most, most, shape).astype(kind)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        ("vadd", np.add),
        ("vmul", np.multiply),
        ("vmax", np.maximum),
        ("vxor", np.bitwise_xor),
        ("vand", np.bitwise_and),
    ],
)
@pytest.mark.parametrize("kind", ["int8", "int64"])
@pytest.mark.parametrize("shape", [(1,), (33,), (3, 32)], ids=str)
def test_types_that_the_vector_unit_lacks(
    name: str, function: np.ufunc, kind: str, shape: tuple[int, ...]
) -> None:
    made = KernelText()
    a, b = made.load(shape, KINDS[kind]), made.load(shape, KINDS[kind])
    made.op(name, [a, b, a], segments(2, 1, 0))
    made.store(a, shape, KINDS[kind])
    x, y = integers(shape, kind), integers(shape, kind)
    found = run(made.text(), x, y, np.zeros_like(x))
    np.testing.assert_array_equal(found, function(x, y))


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_quotients_and_remainders_by_zero_and_minus_one(kind: str) -> None:
    least = np.iinfo(kind).min
    x = np.array([7, -7, 5, least, 0, 9, -9, 1], kind)
    y = np.array([2, 2, -1, -1, 3, 4, -4, 5], kind)
    for name, expected in (("vdiv", np.trunc(x / y.astype(np.float64))), ("vmod", np.fmod(x, y))):
        made = KernelText()
        a, b = made.load((8,), KINDS[kind]), made.load((8,), KINDS[kind])
        made.op(name, [a, b, a], segments(2, 1, 0))
        made.store(a, (8,), KINDS[kind])
        found = run(made.text(), x, y, np.zeros_like(x))
        keep = x != least  # its quotient by -1 is itself
        np.testing.assert_array_equal(found[keep], expected[keep])


@pytest.mark.parametrize("target", ["int8", "int16", "int64"])
@pytest.mark.parametrize("source", ["int32", "int64"])
def test_casts_of_integers_wrap_around(source: str, target: str) -> None:
    made = KernelText()
    a, b = made.load((40,), KINDS[source]), made.buffer((40,), KINDS[target])
    how = "cast = #hivm.cast<cast_signed>, round_mode = #hivm.round_mode<truncwithoverflow>, "
    made.op("vcast", [a, b], how + segments(1, 1, 0))
    made.store(b, (40,), KINDS[target])
    x = integers((40,), source, 100_000)
    np.testing.assert_array_equal(run(made.text(), x, np.zeros(40, target)), x.astype(target))


@pytest.mark.parametrize("mode", ["lt", "ge", "ne"])
@pytest.mark.parametrize("count", [5, 16, 100])
def test_compares_and_selects_of_64_bits(mode: str, count: int) -> None:
    made = KernelText()
    a, b = made.load((count,), "i64"), made.load((count,), "i64")
    bits = made.buffer((count,), "i1")
    made.op("vcmp", [a, b, bits], f"compare_mode = #hivm.compare_mode<{mode}>, " + segments(2, 1))
    made.op("vsel", [bits, a, b, a], segments(3, 1, 0))
    made.store(a, (count,), "i64")
    x, y = integers((count,), "int64", 3), integers((count,), "int64", 3)
    function = {"lt": np.less, "ge": np.greater_equal, "ne": np.not_equal}[mode]
    found = run(made.text(), x, y, np.zeros_like(x))
    np.testing.assert_array_equal(found, np.where(function(x, y), x, y))


@pytest.mark.parametrize("order", [(1, 0), (0, 2, 1), (2, 0, 1)], ids=str)
@pytest.mark.parametrize("kind", ["int8", "float32", "int64"])
def test_transposes(order: tuple[int, ...], kind: str) -> None:
    shape = (16, 64, 8)[: len(order)]
    turned = tuple(shape[i] for i in order)
    made = KernelText()
    a, b = made.load(shape, KINDS[kind]), made.buffer(turned, KINDS[kind])
    made.op("vtranspose", [a, b], f"permutation = array<i64: {', '.join(map(str, order))}>")
    made.store(b, turned, KINDS[kind])
    x = integers(shape, kind)
    found = run(made.text(), x, np.zeros(turned, kind))
    np.testing.assert_array_equal(found, x.transpose(order))


@pytest.mark.parametrize("shape", [(16, 16), (48, 32), (16, 272), (64, 24)], ids=str)
def test_transposes_of_halves(shape: tuple[int, int]) -> None:
    """In squares by the vector unit; 24 columns, which are none, by the scalar unit."""
    made, turned = KernelText(), shape[::-1]
    a, b = made.load(shape, "i16"), made.buffer(turned, "i16")
    made.op("vtranspose", [a, b], "permutation = array<i64: 1, 0>")
    made.store(b, turned, "i16")
    x = integers(shape, "int16")
    np.testing.assert_array_equal(run(made.text(), x, np.zeros(turned, "int16")), x.T)


def test_channels_go_apart_and_together() -> None:
    made = KernelText()
    a = made.load((2, 64), "f32")
    first, second = made.buffer((2, 32), "f32"), made.buffer((2, 32), "f32")
    made.op("vdeinterleave", [a, first, second], "channel_num = 2 : i64")
    b = made.buffer((2, 64), "f32")
    how = "interleave_channel_nums = 2 : i64, operandSegmentSizes = array<i32: 2, 1, 0>"
    made.op("vinterleave", [second, first, b], how)
    made.store(b, (2, 64), "f32")
    x = RANDOM.standard_normal((2, 64)).astype(np.float32)
    expected = np.stack([x[:, 1::2], x[:, ::2]], -1).reshape(2, 64)
    np.testing.assert_array_equal(run(made.text(), x, np.zeros_like(x)), expected)


@pytest.mark.parametrize(("kind", "columns"), [("float32", 8), ("float32", 12), ("int64", 4)])
def test_the_first_of_many_channels_is_where_strides_say(kind: str, columns: int) -> None:
    made, element, rows = KernelText(), KINDS[kind], 40
    given, target = made.load((rows, columns), element), made.load((rows, columns), element)
    views = [made.first_column(a, rows, columns, element) for a in (given, target)]
    how = f"channel_num = {columns} : i64, index_mode = #hivm.deinterleave_mode<CHANNEL_0>"
    made.op("vdeinterleave", views, how)
    made.store(target, (rows, columns), element)
    x, y = integers((rows, columns), kind), integers((rows, columns), kind)
    expected = np.concatenate([x[:, :1], y[:, 1:]], 1)
    np.testing.assert_array_equal(run(made.text(), x, y, np.zeros_like(x)), expected)


def test_a_boolean_is_stored_for_vector_instructions() -> None:
    made = KernelText()
    a, b = made.load((1,), "i32"), made.load((1,), "i32")
    flag, kind = made.buffer((1,), "i1")
    value, at = made.constant(1, "i1"), made.constant(0, "index")
    made.lines += [f'"memref.store"({value}, {flag}, {at}) : (i1, {kind}, index) -> ()', BARRIER]
    made.op("vor", [(flag, kind)] * 3, segments(2, 1, 0))
    made.op("vsel", [(flag, kind), a, b, a], segments(3, 1, 0))
    made.store(a, (1,), "i32")
    x, y = np.array([3], np.int32), np.array([5], np.int32)
    assert run(made.text(), x, y, np.zeros_like(x)) == x


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_running_sums(dim: int, reverse: bool) -> None:
    made = KernelText()
    a, b = made.load((4, 40), "i32"), made.buffer((4, 40), "i32")
    how = f"cum_dims = array<i64: {dim}>, reverse = {str(reverse).lower()}"
    made.op("vcumsum", [a, b], how)
    made.store(b, (4, 40), "i32")
    x = integers((4, 40), "int32")
    turn = (lambda array: np.flip(array, dim)) if reverse else (lambda array: array)
    expected = turn(np.cumsum(turn(x), dim))
    np.testing.assert_array_equal(run(made.text(), x, np.zeros_like(x)), expected)


@pytest.mark.parametrize(
    ("name", "function"),
    [("max_with_index_left", np.argmax), ("min_with_index_left", np.argmin)],
)
@pytest.mark.parametrize("dim", [0, 1])
def test_the_place_of_the_largest(name: str, function: object, dim: int) -> None:
    made = KernelText()
    shape = (1, 40) if dim == 0 else (8, 1)
    a = made.load((8, 40), "f32")
    value, index = made.buffer(shape, "f32"), made.buffer(shape, "i32")
    how = f"arith = #hivm.reduce_op<{name}>, reduce_dims = array<i64: {dim}>, "
    made.op("vreduce", [a, value, index], how + "operandSegmentSizes = array<i32: 1, 2, 0, 0>")
    made.store(index, shape, "i32")
    x = integers((8, 40), "float32", 5)
    found = run(made.text(), x, np.zeros(shape, np.int32))
    np.testing.assert_array_equal(found, function(x, dim).reshape(shape))  # type: ignore[operator]


def test_what_lies_between_two_elements_is_not_read() -> None:
    """The scalar unit reads two buffers while a copy fills one between them."""
    made = KernelText()
    first, between, last = (made.buffer((64,), "f32") for _ in range(3))
    sources = [made.argument((64,), "f32") for _ in range(3)]
    how = (
        "init_out_buffer = false, may_implicit_transpose_with_last_axis = false, "
        "operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>"
    )
    made.op("load", [sources[0], first], how)
    made.op("load", [sources[2], last], how)
    made.op("load", [sources[1], between], how)
    made.lines.pop()  # the barrier behind it
    zero = made.constant(0, "index")
    one, other, total = made.name(), made.name(), made.name()
    for name, (buffer, kind) in ((one, first), (other, last)):
        made.lines.append(f'{name} = "memref.load"({buffer}, {zero}) : ({kind}, index) -> f32')
    made.lines.append(f'{total} = "arith.addf"({one}, {other}) : (f32, f32) -> f32')
    target, kind = made.buffer((8,), "f32")
    made.lines.append(f'"memref.store"({total}, {target}, {zero}) : (f32, {kind}, index) -> ()')
    made.lines.append(BARRIER)
    part = made.name()
    view = "memref<1xf32, strided<[1]>, #hivm.address_space<ub>>"
    sizes = (
        "operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, "
        "static_sizes = array<i64: 1>, static_strides = array<i64: 1>"
    )
    made.lines.append(f'{part} = "memref.subview"({target}) <{{{sizes}}}> : ({kind}) -> {view}')
    made.store((part, view), (1,), "f32")
    x = [RANDOM.standard_normal(64).astype(np.float32) for _ in range(3)]
    found = run(made.text(), *x, np.zeros(1, np.float32))
    np.testing.assert_array_equal(found, [x[0][0] + x[2][0]])


def test_accesses_of_the_scalar_unit_are_counted() -> None:
    made = KernelText()
    a, b = made.load((64,), "i64"), made.load((64,), "i64")
    made.op("vadd", [a, b, a], segments(2, 1, 0))
    made.store(a, (64,), "i64")
    x = integers((64,), "int64")
    executable = compiled(made.text(), [x, x, x])
    executable.run({f"x{i}": x for i in range(3)})
    (kernel,) = executable.profile["kernels"]
    assert kernel["scalar_accesses"] == 3 * 64


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("kind", ["int16", "int32", "float32"])
@pytest.mark.parametrize("shape", [(1,), (33,), (3, 16)], ids=str)
def test_sorts(shape: tuple[int, ...], kind: str, descending: bool) -> None:
    """Along the last axis, with equal numbers among them."""
    made = KernelText()
    a, b = made.load(shape, KINDS[kind]), made.buffer(shape, KINDS[kind])
    axis = len(shape) - 1
    how = f"descending = {str(descending).lower()}, sort_axis = {axis} : i64"
    made.op("vsort", [a, b], how)
    made.store(b, shape, KINDS[kind])
    x = integers(shape, kind, 20)
    expected = -np.sort(-x, axis=-1) if descending else np.sort(x, axis=-1)
    np.testing.assert_array_equal(run(made.text(), x, np.zeros_like(x)), expected)

"""Groups on the vector unit against NumPy: statistics in GM, short rows, scalars, types mixed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import davinci
from pairs import all_pairs, in_turn
from support import compile_text, run_text

Array = npt.NDArray[Any]

NAMES = {"float32": "f32", "float16": "f16", "int32": "i32", "bool": "i1", "int8": "i8"}
NAMES["int64"] = "i64"

SHAPES = [(1, 1), (1, 7), (3, 1), (5, 3), (17, 7), (300, 3), (7, 8), (16, 16), (33, 17)]
SHAPES += [(100, 31), (129, 64), (1001, 5), (64, 768), (37, 1000), (2, 9000)]


def tensor(shape: Sequence[int], dtype: Any) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{NAMES[np.dtype(dtype).name]}>"


class Text:
    """Writes a function of operators of ascend on tensors, and computes it in NumPy beside."""

    def __init__(self) -> None:
        self.inputs: list[Array] = []
        self.lines: list[str] = []
        self.values: dict[str, Array] = {}

    def input(self, x: Array) -> str:
        name = f"%a{len(self.inputs)}"
        self.inputs.append(x)
        self.values[name] = x
        return name

    def op(self, name: str, operands: Sequence[str], result: Array, attributes: str = "") -> str:
        number = f"%{len(self.lines)}"
        kinds = ", ".join(self._type(v) for v in operands)
        kind = tensor(result.shape, result.dtype)
        call = f'"ascend.{name}"({", ".join(operands)}) {{{attributes}}}'
        self.lines.append(f"{number} = {call} : ({kinds}) -> {kind}")
        self.values[number] = result
        return number

    def _type(self, name: str) -> str:
        return tensor(self.values[name].shape, self.values[name].dtype)

    def reduce(self, kind: str, x: str, *dims: int) -> str:
        array = self.values[x]
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        function = {"add": np.sum, "max": np.max, "min": np.min, "mul": np.prod}[kind]
        result = np.asarray(function(wide, axis=dims)).astype(array.dtype)
        numbers = ", ".join(map(str, dims))
        return self.op("reduce", [x], result, f'kind = "{kind}", dims = array<i64: {numbers}>')

    def broadcast(self, x: str, shape: Sequence[int], *dims: int) -> str:
        array = self.values[x]
        places = [array.shape[dims.index(i)] if i in dims else 1 for i in range(len(shape))]
        result = np.broadcast_to(array.reshape(places), shape)
        numbers = f": {', '.join(map(str, dims))}" if dims else ""
        return self.op("broadcast", [x], result, f"dims = array<i64{numbers}>")

    def binary(self, name: str, a: str, b: str) -> str:
        function = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[name]
        return self.op(name, [a, b], function(self.values[a], self.values[b]))

    def exp(self, x: str) -> str:
        return self.op("exp", [x], np.exp(self.values[x]))

    def cast(self, x: str, dtype: Any) -> str:
        return self.op("cast", [x], self.values[x].astype(dtype))

    def check(self, *outputs: str, tolerance: float = 2e-6, **options: Any) -> Any:
        """Compiles, runs and compares; returns the executable."""
        arguments = ", ".join(f"%a{i}: {self._type(f'%a{i}')}" for i in range(len(self.inputs)))
        kinds = ", ".join(self._type(v) for v in outputs)
        text = f"func.func @main({arguments}) -> ({kinds}) {{\n" + "\n".join(self.lines)
        text += f"\nreturn {', '.join(outputs)} : {kinds}\n}}"
        executable = compile_text(text, precision="fp16" if "f16" in text else "mixed", **options)
        run = executable.run({f"arg{i}": x for i, x in enumerate(self.inputs)})
        for found, name in zip(run.values(), outputs, strict=True):
            expected = self.values[name]
            assert found.shape == expected.shape
            if expected.dtype.kind == "f":
                np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
            else:
                np.testing.assert_array_equal(found, expected)
        return executable


def units(executable: Any) -> set[str]:
    return {kernel["unit"] for kernel in executable.profile["kernels"]}


def uniform(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-4, 4, shape).astype(dtype)


@pytest.mark.parametrize("shape", SHAPES)
def test_statistics_leave_and_come(shape: tuple[int, int]) -> None:
    text = Text()
    x = text.input(uniform(shape))
    largest = text.reduce("max", x, 1)
    shifted = text.binary("sub", x, text.broadcast(largest, shape, 0))
    total = text.reduce("add", text.exp(shifted), 1)
    given = text.input(uniform(shape[:1], seed=1))
    scaled = text.binary("mul", shifted, text.broadcast(given, shape, 0))
    text.check(largest, total, scaled)


@pytest.mark.parametrize(
    ("shape", "cores", "machine"),
    [
        *all_pairs([(5, 3), (33, 17), (300, 3), (64, 40)], [1, 2], ["ascend910", "ascend310"]),
        ((33, 17), 5, "ascend910"),
        ((300, 3), 5, "ascend910"),
    ],
)
def test_softmax_on_machines(shape: tuple[int, int], cores: int, machine: str) -> None:
    text = Text()
    x = text.input(uniform(shape))
    shifted = text.binary("sub", x, text.broadcast(text.reduce("max", x, 1), shape, 0))
    powers = text.exp(shifted)
    total = text.broadcast(text.reduce("add", powers, 1), shape, 0)
    text.check(text.binary("div", powers, total), machine=machine, cores=cores)


@pytest.mark.parametrize("shape", [(3, 5), (40, 3), (300, 15), (64, 100), (17, 16)])
def test_sums_of_halves(shape: tuple[int, int]) -> None:
    text = Text()
    x = text.input(uniform(shape, np.float16))
    total = text.reduce("add", x, 1)
    text.check(total, text.binary("mul", x, text.broadcast(total, shape, 0)), tolerance=2e-3)


@pytest.mark.parametrize("shape", [(3, 5), (40, 3), (70, 20), (64, 100)])
def test_conditions_of_rows(shape: tuple[int, int]) -> None:
    text = Text()
    flags = np.random.default_rng(2).integers(0, 2, shape).astype(bool)
    row = np.random.default_rng(3).integers(0, 2, shape[:1]).astype(bool)
    x, y, f, r = (text.input(a) for a in (uniform(shape), uniform(shape, seed=1), flags, row))
    chosen = text.op("select", [f, x, y], np.where(flags, text.values[x], text.values[y]))
    wide = text.broadcast(r, shape, 0)
    again = text.op(
        "select", [wide, chosen, y], np.where(row[:, None], text.values[chosen], text.values[y])
    )
    text.check(again, wide, text.cast(r, np.float32))


@pytest.mark.parametrize(
    ("dims", "shape"),
    [
        *in_turn(
            2 * [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)],
            [(2, 3, 4), (5, 1, 9), (3, 40, 5), (4, 6, 33)],
        ),
        ((0,), (3, 40, 5)),
        ((0,), (5, 1, 9)),
    ],
)
def test_reduced_dimensions(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    text = Text()
    x = text.input(uniform(shape))
    total = text.reduce("add", x, *dims)
    kept = [i for i in range(3) if i not in dims]
    text.check(total, text.binary("sub", x, text.broadcast(total, shape, *kept)), tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8, np.bool_, np.int64])
@pytest.mark.parametrize("sizes", [((), (3,), ()), ((1,), (40, 9), (1,)), ((7,), (7, 3), (0,))])
def test_repeats(dtype: Any, sizes: tuple[Any, Any, Any]) -> None:
    source, shape, dims = sizes
    text = Text()
    x = text.input(np.random.default_rng(1).integers(0, 2, source).astype(dtype))
    executable = text.check(text.broadcast(x, shape, *dims))
    assert units(executable) == {"vector"}


def test_scalars() -> None:
    text = Text()
    a, b = text.input(uniform(())), text.input(uniform((), seed=1))
    text.check(text.exp(text.binary("add", a, b)), text.reduce("max", text.input(uniform((5,))), 0))


@pytest.mark.parametrize("count", [1, 7, 40])
def test_integers_of_short_rows(count: int) -> None:
    text = Text()
    x = text.input(np.random.default_rng(0).integers(-99, 99, (count, 5)).astype(np.int32))
    row = text.input(np.arange(5, dtype=np.int32))
    total = text.reduce("add", text.binary("mul", x, text.broadcast(row, (count, 5), 1)), 1)
    text.check(total, text.reduce("min", x, 0))


def test_statistics_of_many_blocks() -> None:
    """More than the repeats of one instruction bring to rows, or back."""
    text = Text()
    x = text.input(uniform((4, 500, 2)))
    y = text.input(uniform((8000, 16)))
    text.check(text.reduce("max", x, 1), text.reduce("max", y, 1), cores=1)


LONG = [(1, 70_001), (2, 80_000), (9, 66_000), (70_001, 9), (3, 40_000, 2)]


@pytest.mark.parametrize("shape", LONG)
def test_softmax_of_what_does_not_fit(shape: tuple[int, ...]) -> None:
    """Over the longest dimension."""
    text = Text()
    long = int(np.argmax(shape))
    kept = [i for i in range(len(shape)) if i != long]
    x = text.input(uniform(shape))
    shifted = text.binary("sub", x, text.broadcast(text.reduce("max", x, long), shape, *kept))
    powers = text.exp(shifted)
    total = text.reduce("add", powers, long)
    text.check(text.binary("div", powers, text.broadcast(total, shape, *kept)), total)


@pytest.mark.parametrize("dims", [(0,), (1,), (0, 2), (0, 1, 2)])
def test_reductions_of_what_does_not_fit(dims: tuple[int, ...]) -> None:
    text = Text()
    x = text.input(uniform((40, 33, 700), np.float16))
    text.check(text.reduce("max", x, *dims), text.reduce("add", x, *dims), tolerance=2e-2)


@pytest.mark.parametrize("cores", [1, 7, 32])
@pytest.mark.parametrize("shape", [(2, 16, 16), (2, 67, 32), (3, 5, 17), (1, 40, 9), (4, 1, 100)])
def test_statistics_beside_rows_without_an_axis(shape: tuple[int, ...], cores: int) -> None:
    text = Text()
    of_rows = text.broadcast(text.input(uniform(shape[:2])), shape, 0, 1)
    of_columns = text.broadcast(text.input(uniform((shape[0], shape[2]), seed=1)), shape, 0, 2)
    product = text.binary("mul", of_rows, of_columns)
    x = text.binary("add", product, text.input(uniform(shape, seed=2)))
    text.check(product, text.binary("mul", x, product), cores=cores)


@pytest.mark.parametrize("shape", [(2, 67, 32), (1, 1031, 64), (3, 35, 8), (2, 2001, 16)])
def test_statistics_of_pieces(shape: tuple[int, ...]) -> None:
    """Of a reduced axis whose last piece is shorter than the others."""
    text = Text()
    given = text.broadcast(text.input(uniform(shape[1:2])), shape, 1)
    x = text.binary("mul", text.input(uniform(shape, seed=1)), given)
    text.check(text.binary("mul", x, text.broadcast(text.reduce("max", x, 1), shape, 0, 2)))


@pytest.mark.parametrize("n", [257, 1000, 4099])
@pytest.mark.parametrize("cores", [2, 3, 32])
def test_statistics_of_rows_beside_a_short_last_tile(n: int, cores: int) -> None:
    """Tiles along lanes that have all rows: the places of statistics are those of all tiles."""
    kind = f"tensor<16x{n}xf32>"
    text = f"""func.func @main(%x: {kind}, %s: tensor<16xf32>) -> tensor<{n}xf32> {{
  %b = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<16xf32>) -> {kind}
  %m = stablehlo.multiply %x, %b : {kind}
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%m init: %z) applies stablehlo.add across dimensions = [0]
    : ({kind}, tensor<f32>) -> tensor<{n}xf32>
  return %r : tensor<{n}xf32>
}}"""
    random = np.random.default_rng(0)
    x, s = (random.uniform(-1, 1, shape).astype(np.float32) for shape in ((16, n), (16,)))
    (found,) = run_text(text, x, s, cores=cores)
    np.testing.assert_allclose(found, s @ x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("cores", [1, 32])
@pytest.mark.parametrize("shape", [(40, 1300), (77, 1301), (9, 1312), (300, 300)])
def test_flags_beside_rows_that_are_no_whole_repeats(shape: tuple[int, int], cores: int) -> None:
    """Rows of flags end before the rows in UB do, where a repeat of what is computed of them ends:
    what lies between is filled by words, for which there is an instruction."""
    rows, columns = shape
    full = f"tensor<{rows}x{columns}x"
    text = f"""func.func @main(%a: tensor<{columns}xf32>, %b: tensor<{rows}xf32>, %m: {full}i1>)
    -> {full}f32> {{
  %z = stablehlo.constant dense<2.0> : {full}f32>
  %i = stablehlo.constant dense<-1.0> : {full}f32>
  %p = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<{columns}xf32>) -> {full}f32>
  %q = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<{rows}xf32>) -> {full}f32>
  %c = stablehlo.compare GT, %p, %q : ({full}f32>, {full}f32>) -> {full}i1>
  %f = stablehlo.and %c, %m : {full}i1>
  %r = stablehlo.select %f, %z, %i : {full}i1>, {full}f32>
  return %r : {full}f32>
}}"""
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(n).astype(np.float32) for n in (columns, rows))
    m = random.integers(0, 2, shape).astype(bool)
    (found,) = davinci.compile(text, cores=cores).run(a, b, m).values()
    np.testing.assert_array_equal(found, np.where((a[None] > b[:, None]) & m, 2, -1))


@pytest.mark.parametrize("shape", [(3, 16), (16, 32), (33, 128), (5, 24)])
def test_a_row_that_is_widened_before_rows_are_combined_with_it(shape: tuple[int, int]) -> None:
    """a * s + row in f16, computed in f32: the row is converted once, not beside each row."""
    rng = np.random.default_rng(shape[1])
    a, row = (rng.integers(-2, 3, s).astype(np.float16) for s in (shape, shape[-1:]))
    kinds = [tensor(s, np.float16) for s in (shape, (), shape[-1:])]
    text = f"""
    func.func @main(%a: {kinds[0]}, %s: {kinds[1]}, %row: {kinds[2]}) -> {kinds[0]} {{
      %0 = stablehlo.broadcast_in_dim %s, dims = [] : ({kinds[1]}) -> {kinds[0]}
      %1 = stablehlo.multiply %a, %0 : {kinds[0]}
      %2 = stablehlo.broadcast_in_dim %row, dims = [1] : ({kinds[2]}) -> {kinds[0]}
      %3 = stablehlo.add %1, %2 : {kinds[0]}
      return %3 : {kinds[0]}
    }}"""
    (found,) = run_text(text, a, np.float16(-1), row)
    np.testing.assert_array_equal(found, row - a)


@pytest.mark.parametrize("shape", [(17,), (1, 129), (3, 17), (2, 3, 9), (31, 15)])
def test_halves_divided_by_a_number_between_rows_of_singles(shape: tuple[int, ...]) -> None:
    """Rows that are whole blocks of f32 but not of f16 are divided to their end."""
    wide, narrow = (tensor(shape, x) for x in (np.float32, np.float16))
    text = f"""
    func.func @main(%x: {wide}) -> {wide} {{
      %h = "ascend.cast"(%x) : ({wide}) -> {narrow}
      %c = "ascend.full"() {{value = 3.0 : f16}} : () -> {narrow}
      %q = "ascend.div"(%h, %c) : ({narrow}, {narrow}) -> {narrow}
      %r = "ascend.cast"(%q) : ({narrow}) -> {wide}
      return %r : {wide}
    }}"""
    x = np.random.default_rng(0).uniform(1, 3, shape).astype(np.float32)
    (found,) = run_text(text, x)
    expected = x.astype(np.float16) / np.float16(3)
    assert (found == expected.astype(np.float32)).all()


def test_parts_of_rows_of_another_type() -> None:
    """Halves of eight lanes lie 16 bytes apart, which no instruction reaches row by row."""
    wide, narrow, half = "tensor<16x16xf32>", "tensor<16x16xf16>", "tensor<16x8xf16>"
    starts = [
        f"{{starts = array<i64: 0, {a}>, limits = array<i64: 16, {a + 8}>, "
        "strides = array<i64: 1, 1>}"
        for a in (0, 8)
    ]
    text = f"""
    func.func @main(%x: {wide}) -> {wide} {{
      %h = "ascend.cast"(%x) : ({wide}) -> {narrow}
      %a = "ascend.slice"(%h) {starts[1]} : ({narrow}) -> {half}
      %b = "ascend.slice"(%h) {starts[0]} : ({narrow}) -> {half}
      %c = "ascend.concat"(%a, %b) {{dim = 1 : i64}} : ({half}, {half}) -> {narrow}
      %r = "ascend.cast"(%c) : ({narrow}) -> {wide}
      return %r : {wide}
    }}"""
    x = np.arange(256, dtype=np.float32).reshape(16, 16)
    (found,) = run_text(text, x)
    assert (found == np.roll(x, 8, axis=1)).all()


def test_bytes_without_sign_beside_rows() -> None:
    """A column that other cores take parts of comes and leaves by the scalar unit at its end."""
    text = """
    func.func @main(%x: tensor<50x1xui8>, %y: tensor<50x19xui8>)
        -> (tensor<50x19xui8>, tensor<50xui8>) {
      %a = "ascend.cast"(%x) : (tensor<50x1xui8>) -> tensor<50x1xf32>
      %b = "ascend.cast"(%y) : (tensor<50x19xui8>) -> tensor<50x19xf32>
      %c = "ascend.broadcast"(%a) {dims = array<i64: 0, 1>} :
        (tensor<50x1xf32>) -> tensor<50x19xf32>
      %m = "ascend.max"(%c, %b) : (tensor<50x19xf32>, tensor<50x19xf32>) -> tensor<50x19xf32>
      %n = "ascend.reduce"(%m) {dims = array<i64: 1>, kind = "min"} :
        (tensor<50x19xf32>) -> tensor<50xf32>
      %r = "ascend.cast"(%m) : (tensor<50x19xf32>) -> tensor<50x19xui8>
      %s = "ascend.cast"(%n) : (tensor<50xf32>) -> tensor<50xui8>
      return %r, %s : tensor<50x19xui8>, tensor<50xui8>
    }"""
    rng = np.random.default_rng(0)
    x, y = (rng.integers(0, 256, (50, n)).astype(np.uint8) for n in (1, 19))
    expected = np.maximum(x, y)
    found, least = run_text(text, x, y)
    assert (found == expected).all() and (least == expected.min(1)).all()


@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_flags_of_rows_in_all_lanes_of_a_block(machine: str) -> None:
    """Rows that are all true or all false: a conversion of singles to halves fills 8 of 16 lanes of
    a block, of which 910B repeats all where it combines rows with them."""
    shape = (4, 33, 64)
    lengths = np.array([5, 20, 33, 0], np.int32)
    text = f"""func.func @main(%n: tensor<4xi32>) -> {tensor(shape, bool)} {{
      %0 = stablehlo.iota dim = 1 : {tensor(shape, np.int32)}
      %1 = stablehlo.broadcast_in_dim %n, dims = [0] : (tensor<4xi32>) -> {tensor(shape, np.int32)}
      %2 = stablehlo.compare LT, %0, %1 : ({tensor(shape, np.int32)}, {tensor(shape, np.int32)})
        -> {tensor(shape, bool)}
      return %2 : {tensor(shape, bool)}
    }}"""
    (found,) = run_text(text, lengths, machine=machine)
    wanted = np.arange(33)[None, :, None] < lengths[:, None, None]
    np.testing.assert_array_equal(found, np.broadcast_to(wanted, shape))


@pytest.mark.parametrize("channels", [7, 64])
@pytest.mark.parametrize("machine", ["ascend910", "ascend910b"])
def test_pads_of_bytes(machine: str, channels: int) -> None:
    """What lies around an image is filled as words, of which a pixel of odd channels ends one."""
    image, whole, floats = (f"tensor<1x{n}x{n}x{channels}x{t}>" for n, t in SIDES)
    text = f"""func.func @main(%a: {floats}) -> {whole} {{
      %l = stablehlo.constant dense<-128.0> : tensor<f32>
      %h = stablehlo.constant dense<127.0> : tensor<f32>
      %0 = stablehlo.round_nearest_even %a : {floats}
      %1 = stablehlo.clamp %l, %0, %h : (tensor<f32>, {floats}, tensor<f32>) -> {floats}
      %2 = stablehlo.convert %1 : ({floats}) -> {image}
      %z = stablehlo.constant dense<-5> : tensor<i8>
      %3 = stablehlo.pad %2, %z, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 0, 0, 0]
        : ({image}, tensor<i8>) -> {whole}
      return %3 : {whole} }}"""
    a = (90 * np.random.default_rng(0).standard_normal((1, 16, 16, channels))).astype(np.float32)
    (found,) = run_text(text, a, machine=machine)
    around = ((0, 0), (1, 1), (1, 1), (0, 0))
    expected = np.pad(np.clip(np.rint(a), -128, 127), around, constant_values=-5)
    np.testing.assert_array_equal(found, expected.astype(np.int8))


SIDES = ((16, "i8"), (18, "i8"), (16, "f32"))

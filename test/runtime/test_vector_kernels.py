"""Elementwise cce operations on the simulated machine against NumPy, over shapes and strides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from davinci.isa.core import DTYPES
from runtime.kernel_harness import Kernel, run, strided


def random(size: int, dtype: str, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype[0] == "f":
        return (rng.standard_normal(size) * 4).astype(DTYPES[dtype])
    return rng.integers(-100, 100, size).astype(DTYPES[dtype])


def span(shape: list[int], strides: list[int]) -> int:
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


@st.composite
def layouts(draw: st.DrawFn, operands: int, block: int) -> tuple[list[int], list[list[int]]]:
    """A shape, and strides per operand: the last is the destination, sources may broadcast."""
    rank = draw(st.integers(1, 3))
    run_length = draw(
        st.sampled_from([1, 3, block, 2 * block, 5 * block, 8 * block, 9 * block + 1])
    )
    shape = [*(draw(st.integers(1, 17)) for _ in range(rank - 1)), run_length]
    strides = []
    for i in range(operands):
        steps, extent = [1], -(-run_length // block) * block
        for size in reversed(shape[:-1]):
            broadcast = i < operands - 1 and draw(st.booleans())
            steps.insert(0, 0 if broadcast else extent)
            extent *= 1 if broadcast else size
            extent += draw(st.sampled_from([0, 0, block]))
        strides.append(steps)
    return shape, strides


@pytest.mark.parametrize("dtype", ["f16", "f32", "s32"])
@given(data=st.data())
def test_binary(dtype: str, data: st.DataObject) -> None:
    shape, strides = data.draw(layouts(3, 32 // DTYPES[dtype].itemsize))
    kernel = Kernel()
    sizes = [span(shape, s) for s in strides]
    views = [kernel.view(n, dtype, shape, s) for n, s in zip(sizes, strides, strict=True)]
    kernel.op("vadd", views)
    arrays = [random(n, dtype, i) for i, n in enumerate(sizes)]
    found = run(kernel.text(), arrays)
    expected = [a.copy() for a in arrays]
    a, b, out = (strided(x, shape, s) for x, s in zip(expected, strides, strict=True))
    out[...] = a + b
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("size", [1, 7, 8, 63, 64, 65, 255 * 64, 255 * 64 + 5, 30011])
def test_unary_sizes(size: int) -> None:
    kernel = Kernel()
    views = [kernel.view(size, "f32", [size], [1]) for _ in range(2)]
    kernel.op("vabs", views)
    arrays = [random(size, "f32", 1), np.zeros(size, np.float32)]
    found = run(kernel.text(), arrays)
    np.testing.assert_array_equal(found[1], np.abs(arrays[0]))


@pytest.mark.parametrize(
    ("src", "dst", "mode"),
    [
        ("f32", "f16", "none"),
        ("f16", "f32", "none"),
        ("f16", "s8", "rint"),
        ("f32", "s32", "trunc"),
        ("s32", "f32", "none"),
        ("f16", "s32", "floor"),
    ],
)
@pytest.mark.parametrize("rows", [1, 5])
def test_conversion(src: str, dst: str, mode: str, rows: int) -> None:
    row = 80
    shape, strides = [rows, 75], [row, 1]
    kernel = Kernel()
    size = rows * row + row
    strides_dst = [row + 16, 1] if dst != "s8" else [96, 1]
    if "s8" in (src, dst):
        strides = [96, 1]
        size = rows * 96 + 96
    views = [
        kernel.view(2 * size, src, shape, strides),
        kernel.view(2 * size, dst, shape, strides_dst),
    ]
    kernel.op("vconv", views, f'round = "{mode}"')
    arrays = [random(2 * size, src, 3), np.zeros(2 * size, DTYPES[dst])]
    found = run(kernel.text(), arrays)
    source = strided(arrays[0], shape, strides)
    rounding = {"none": lambda x: x, "rint": np.rint, "trunc": np.trunc, "floor": np.floor}[mode]
    np.testing.assert_array_equal(
        strided(found[1], shape, strides_dst), rounding(source).astype(DTYPES[dst])
    )


@pytest.mark.parametrize("dtype", ["f16", "f32"])
@pytest.mark.parametrize("size", [5, 64, 700])
def test_compare_select(dtype: str, size: int) -> None:
    kernel = Kernel()
    views = [kernel.view(size, dtype, [size], [1]) for _ in range(5)]
    kernel.op("vcmpsel", views, 'predicate = "lt"')
    arrays = [random(size, dtype, i) for i in range(5)]
    found = run(kernel.text(), arrays)
    a, b, x, y, _ = arrays
    np.testing.assert_array_equal(found[4], np.where(a < b, x, y))


@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_scalar_from_memory(dtype: str) -> None:
    """The scalar is loaded from GM, so it is a dynamic field."""
    kernel = Kernel()
    views = [kernel.view(300, dtype, [300], [1]) for _ in range(2)]
    kernel.arguments.append(f"%s: memref<4x{dtype}>")
    kernel.lines += [
        "%c2 = arith.constant 2 : index",
        f"%scalar = memref.load %s[%c2] : memref<4x{dtype}>",
    ]
    kernel.op("vmuls", [views[0], ("%scalar", dtype), views[1]])
    arrays = [random(300, dtype), np.zeros(300, DTYPES[dtype]), random(4, dtype, 5)]
    found = run(kernel.text(), arrays)
    np.testing.assert_array_equal(found[1], arrays[0] * arrays[2][2])


@pytest.mark.parametrize(("dtype", "value"), [("f16", "-1.5"), ("f32", "0.1"), ("s32", "-7")])
def test_constant_fill(dtype: str, value: str) -> None:
    kernel = Kernel()
    view = kernel.view(77, dtype, [77], [1])
    element = "i32" if dtype == "s32" else dtype
    kernel.lines.append(f"%scalar = arith.constant {value} : {element}")
    kernel.op("vector_dup", [("%scalar", element), view])
    found = run(kernel.text(), [random(77, dtype)])
    np.testing.assert_array_equal(found[0], np.full(77, float(value)).astype(DTYPES[dtype]))


@pytest.mark.parametrize(("first", "lanes"), [(0, 64), (3, 10), (63, 1)])
@pytest.mark.parametrize("rows", [1, 300])
def test_row_sums(first: int, lanes: int, rows: int) -> None:
    kernel = Kernel()
    views = [
        kernel.view(rows * 72, "f32", [rows, 64], [72, 1]),
        kernel.view(rows, "f32", [rows], [1]),
    ]
    kernel.op("vcadd", views, f"first_lane = {first} : i64, lanes = {lanes} : i64")
    arrays = [random(rows * 72, "f32"), np.zeros(rows, np.float32)]
    found = run(kernel.text(), arrays)
    expected = arrays[0].reshape(rows, 72)[:, first : first + lanes].sum(axis=1, dtype=np.float32)
    np.testing.assert_allclose(found[1], expected, rtol=1e-5, atol=1e-5)


def test_row_maxima() -> None:
    kernel = Kernel()
    views = [
        kernel.view(5 * 128, "f16", [5, 100], [128, 1]),
        kernel.view(10, "f16", [5, 2], [2, 1]),
    ]
    kernel.op("vcmax", views)
    arrays = [random(5 * 128, "f16"), np.zeros(10, np.float16)]
    found = run(kernel.text(), arrays)[1].reshape(5, 2)
    rows = arrays[0].reshape(5, 128)[:, :100]
    np.testing.assert_array_equal(found[:, 0], rows.max(axis=1))
    np.testing.assert_array_equal(found[:, 1].copy().view(np.uint16), rows.argmax(axis=1))


def test_block_sums() -> None:
    kernel = Kernel()
    views = [
        kernel.view(3 * 256, "f16", [3, 8, 16], [256, 32, 1]),
        kernel.view(24, "f16", [3, 8], [8, 1]),
    ]
    kernel.op("vcgmax", views)
    arrays = [random(3 * 256, "f16"), np.zeros(24, np.float16)]
    found = run(kernel.text(), arrays)[1]
    expected = arrays[0].reshape(3, 8, 32)[:, :, :16].max(axis=2)
    np.testing.assert_array_equal(found.reshape(3, 8), expected)


@pytest.mark.parametrize("repeats", [1, 3, 240])
def test_transpose_blocks(repeats: int) -> None:
    """dst[i, t, j] = src[j, t, i], with rows apart and repeats side by side."""
    size = 16 * 16 * repeats
    kernel = Kernel()
    views = [
        kernel.view(size, "f16", [16, repeats, 16], [16 * repeats, 16, 1]),
        kernel.view(size, "f16", [16, repeats, 16], [16, 256, 1]),
    ]
    kernel.op("vnchwconv", views)
    arrays = [random(size, "f16"), np.zeros(size, np.float16)]
    found = run(kernel.text(), arrays)[1]
    source = arrays[0].reshape(16, repeats, 16)
    np.testing.assert_array_equal(found.reshape(repeats, 16, 16), source.transpose(1, 2, 0))


@pytest.mark.parametrize(("dtype", "lanes"), [("f16", 16), ("f32", 8), ("s32", 8)])
def test_transpose_of_words(dtype: str, lanes: int) -> None:
    """Rows in several dimensions, each operand's own; 32-bit elements are two words."""
    kernel = Kernel()
    views = [
        kernel.view(12 * lanes, dtype, [4, 2, 2, 3, lanes], [0, lanes, 6 * lanes, 2 * lanes, 1]),
        kernel.view(48 * lanes, dtype, [16, 3, lanes], [3 * lanes, lanes, 1]),
    ]
    kernel.op("vnchwconv", views)
    arrays = [random(12 * lanes, dtype), np.zeros(48 * lanes, DTYPES[dtype])]
    found = run(kernel.text(), arrays)[1].view(np.int16).reshape(16, 3, 16)
    blocks = arrays[0].view(np.int16).reshape(12, 16)
    rows = [[blocks[i // 2 % 2 + i % 2 * 6 + t * 2] for t in range(3)] for i in range(16)]
    np.testing.assert_array_equal(found, np.array(rows).transpose(2, 1, 0))


@pytest.mark.parametrize(("first", "lanes"), [(0, 64), (13, 51), (60, 1)])
@pytest.mark.parametrize(("rows", "pitch"), [(1, 64), (300, 72), (3, 3000 * 8)])
def test_fill_of_lanes(first: int, lanes: int, rows: int, pitch: int) -> None:
    kernel = Kernel()
    size = (rows - 1) * pitch + 64
    view = kernel.view(size, "f32", [rows, 64], [pitch, 1])
    kernel.lines.append("%scalar = arith.constant 2.5 : f32")
    where = f"first_lane = {first} : i64, lanes = {lanes} : i64"
    kernel.op("vector_dup", [("%scalar", "f32"), view], where)
    array = random(size, "f32")
    expected = array.copy()
    strided(expected, [rows, 64], [pitch, 1])[:, first : first + lanes] = 2.5
    np.testing.assert_array_equal(run(kernel.text(), [array])[0], expected)


@pytest.mark.parametrize(("dtype", "pitch"), [("f16", 16), ("f32", 16), ("f32", 8), ("f32", 24)])
@pytest.mark.parametrize("rows", [3, 8, 1031])
def test_fill_of_lanes_of_short_rows(dtype: str, pitch: int, rows: int) -> None:
    """A repeat fills as many rows as lie in it, the last one those that are left."""
    kernel, width = Kernel(), 8
    view = kernel.view(rows * pitch, dtype, [rows, width], [pitch, 1])
    kernel.lines.append(f"%scalar = arith.constant 2.5 : {dtype}")
    kernel.op("vector_dup", [("%scalar", dtype), view], "first_lane = 5 : i64, lanes = 3 : i64")
    array = random(rows * pitch, dtype)
    expected = array.copy().reshape(rows, pitch)
    expected[:, 5:8] = 2.5
    np.testing.assert_array_equal(run(kernel.text(), [array])[0].reshape(rows, pitch), expected)


@pytest.mark.parametrize("distance", [8, 255, 256])
def test_row_sums_apart(distance: int) -> None:
    kernel = Kernel()
    size = 6 * distance + 1
    views = [
        kernel.view(7 * 64, "f32", [7, 64], [64, 1]),
        kernel.view(size, "f32", [7], [distance]),
    ]
    kernel.op("vcadd", views)
    arrays = [random(7 * 64, "f32"), random(size, "f32", 2)]
    found = run(kernel.text(), arrays)[1]
    expected = arrays[1].copy()
    expected[::distance] = arrays[0].reshape(7, 64).sum(1, dtype=np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-5)


def test_transpose_of_more_blocks_than_a_repeat_count_holds() -> None:
    """The source is one 16 x 16 block, read again and again by a stride of 0."""
    kernel = Kernel()
    views = [
        kernel.view(256, "f16", [16, 300, 16], [16, 0, 1]),
        kernel.view(256 * 300, "f16", [16, 300, 16], [16, 256, 1]),
    ]
    kernel.op("vnchwconv", views)
    arrays = [random(256, "f16"), np.zeros(256 * 300, np.float16)]
    found = run(kernel.text(), arrays)[1].reshape(300, 16, 16)
    assert (found == arrays[0].reshape(16, 16).T).all()


@given(data=st.data())
def test_strided_conversion(data: st.DataObject) -> None:
    """Strides count blocks of each side's own elements: 8 of f32, 16 of f16."""
    shape, strides = data.draw(layouts(2, 16))
    kernel = Kernel()
    sizes = [span(shape, s) for s in strides]
    pairs = list(zip(sizes, ("f16", "f32"), strides, strict=True))
    kernel.op("vconv", [kernel.view(n, t, shape, s) for n, t, s in pairs])
    arrays = [random(n, t, 1) for n, t, _ in pairs]
    found = run(kernel.text(), arrays)
    expected = arrays[1].copy()
    strided(expected, shape, strides[1])[...] = strided(arrays[0], shape, strides[0])
    np.testing.assert_array_equal(found[1], expected)


@given(data=st.data())
def test_strided_select(data: st.DataObject) -> None:
    shape, strides = data.draw(layouts(5, 8))
    kernel = Kernel()
    sizes = [span(shape, s) for s in strides]
    views = [kernel.view(n, "f32", shape, s) for n, s in zip(sizes, strides, strict=True)]
    kernel.op("vcmpsel", views, 'predicate = "ge"')
    arrays = [random(n, "f32", i) for i, n in enumerate(sizes)]
    found = run(kernel.text(), arrays)
    expected = arrays[4].copy()
    a, b, x, y = (strided(v, shape, s) for v, s in zip(arrays[:4], strides[:4], strict=True))
    strided(expected, shape, strides[4])[...] = np.where(a >= b, x, y)
    np.testing.assert_array_equal(found[4], expected)


def test_transpose_at_dynamic_addresses() -> None:
    """Row addresses are computed at run time, one pair of 16 x 32 halves a turn."""
    kernel = Kernel()
    source, kind = kernel.argument(3 * 512, "f16")
    result, _ = kernel.argument(3 * 512, "f16")
    view = 'memref<16x2x16xf16, strided<[32, 16, 1], offset: ?>, #cce.space<"UB">>'
    other = 'memref<16x2x16xf16, strided<[16, 256, 1], offset: ?>, #cce.space<"UB">>'
    kernel.lines.append(f"""
      %c0 = arith.constant 0 : index
      %c512 = arith.constant 512 : index
      %end = arith.constant 1536 : index
      scf.for %i = %c0 to %end step %c512 {{
        %s = memref.reinterpret_cast {source} to offset: [%i], sizes: [16, 2, 16],
          strides: [32, 16, 1] : {kind} to {view}
        %d = memref.reinterpret_cast {result} to offset: [%i], sizes: [16, 2, 16],
          strides: [16, 256, 1] : {kind} to {other}
        "cce.vnchwconv"(%s, %d) : ({view}, {other}) -> ()
      }}""")
    arrays = [random(1536, "f16"), np.zeros(1536, np.float16)]
    found = run(kernel.text(), arrays)[1].reshape(3, 2, 16, 16)
    blocks = arrays[0].reshape(3, 16, 2, 16)
    np.testing.assert_array_equal(found, blocks.transpose(0, 2, 3, 1))

"""Images to columns: against a window by window reading of what the record says."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from davinci.errors import InputError
from davinci.isa import DTYPES, INSTRUCTIONS, Registers, Space
from davinci.isa.img2col import encoded, pixels_of, signed

SRC, DST = 0x400, 0x200


def expected(image, fields, pads, padding):
    """Fractals [repeat][16][c] of an image [c1][h][w][c]."""
    _, height, width, lanes = image.shape
    fh, fw = fields["filter_h"], fields["filter_w"]
    reach = (fw - 1) * fields["dilation_w"]

    def windows():
        y, x = signed(fields["left_top_h"]), signed(fields["left_top_w"])
        while True:
            if x + reach > width - 1 + pads[1] and x != -pads[0]:
                y, x = y + fields["stride_h"], -pads[0]
            yield y, x
            x += fields["stride_w"]
            if x + reach > width - 1 + pads[1]:
                y, x = y + fields["stride_h"], -pads[0]

    walk = windows()
    places = [next(walk) for _ in range(16 * max(1, fields["repeat"]))]
    first = (fields["c1_index"] * fh + fields["fetch_h"]) * fw + fields["fetch_w"]
    found = np.full((fields["repeat"], 16, lanes), padding, image.dtype)
    for turn in range(fields["repeat"]):
        by_windows = fields["repeat_mode"]
        element = first if by_windows else first + turn
        block, i, j = element // (fh * fw), element // fw % fh, element % fw
        for row, (y, x) in enumerate(places[16 * turn * by_windows :][:16]):
            y, x = y + i * fields["dilation_h"], x + j * fields["dilation_w"]
            if 0 <= y < height and 0 <= x < width:
                found[turn, row] = image[block, y, x]
    return found


@pytest.mark.parametrize("dtype", ["f16", "s8", "u8"])
@pytest.mark.parametrize(("name", "space"), [("ca", Space.L0A), ("cb", Space.L0B)])
@given(data=st.data())
def test_img2col(make_bench, name, space, dtype, data):
    bench = make_bench()

    def draw(low, high):
        return data.draw(st.integers(low, high))

    height, width = draw(1, 7), draw(1, 9)
    pads = [draw(0, 3) for _ in range(4)]
    fields = {f"filter_{s}": draw(1, 3) for s in "hw"}
    fields |= {f"stride_{s}": draw(1, 3) for s in "hw"}
    fields |= {f"dilation_{s}": draw(1, 2) for s in "hw"}
    fields |= {f"fetch_{s}": draw(0, fields[f"filter_{s}"] - 1) for s in "hw"}
    fields |= {"left_top_h": encoded(draw(-pads[2], height))}
    left = draw(-pads[0], width)
    fields |= {"left_top_w": encoded(left), "c1_index": draw(0, 1), "repeat_mode": draw(0, 1)}
    fields |= {"jump_stride": draw(1, 3), "repeat": draw(0, 5)}
    # A first window that reaches beyond the padding is no window of this row.
    reach = (fields["filter_w"] - 1) * fields["dilation_w"]
    assume(left + reach <= width - 1 + pads[1] or left == -pads[0])
    assume(reach <= width - 1 + pads[0] + pads[1])
    kind = np.dtype(f"u{DTYPES[dtype].itemsize}")
    lanes, blocks = 32 // kind.itemsize, 8
    image = bench.get(Space.L1, SRC, (blocks, height, width, lanes), kind)
    after = bench.memory[space].copy()
    want = expected(image, fields, pads, 7)
    for turn, fractal in enumerate(want):
        place = DST + 512 * turn * fields["jump_stride"]
        after[place : place + 512] = np.ascontiguousarray(fractal).reshape(-1).view(np.uint8)
    sides = dict(zip(("pad_left", "pad_right", "pad_top", "pad_bottom"), pads, strict=True))
    bench.run("set_fmatrix", l1_w=width, l1_h=height, **sides)
    bench.run("set_padding", bits=7)
    bench.run(f"img2col_cbuf_to_{name}.{dtype}", dst=DST, src=SRC, **fields)
    assert np.array_equal(bench.memory[space], after)


def one(**given):
    record = INSTRUCTIONS["img2col_cbuf_to_ca.f16"]
    values = {"dst": 0, "src": 0} | {f.name: f.minimum for f in record.fields}
    return record, values | given


def fmatrix(**given):
    registers = Registers()
    record = INSTRUCTIONS["set_fmatrix"]
    values = {f.name: f.minimum for f in record.fields} | given
    record.compute(values, registers, [])
    return registers


def test_only_pixels_of_the_image_are_read():
    """Of a 3 x 3 image with padding 1, element (0, 0) of a 3 x 3 kernel needs the first two
    columns; the last 7 windows are below the 9 of the result."""
    registers = fmatrix(l1_w=3, l1_h=3, pad_left=1, pad_right=1)
    top = encoded(-1)
    record, values = one(filter_w=3, filter_h=3, left_top_w=top, left_top_h=top, repeat=1)
    (read,), _ = record.accesses(values, registers)
    assert read.address == 0
    assert read.mask is not None
    assert read.mask[:, 0].tolist() == [True, True, False, True, True, False, True, True]


def test_rows_that_a_fractal_has_parts_of():
    registers = fmatrix(l1_w=24, l1_h=4)
    _, values = one(repeat=3, repeat_mode=1)
    assert pixels_of(values, registers.fmatrix).rows.tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"left_top_w": encoded(-256)}, "left_top_w: found -256, expected at least -255"),
        ({"left_top_h": 1 << 15}, "left_top_h: found -32768"),
        ({"fetch_h": 2, "filter_h": 2}, "fetch_h is outside of the kernel: found 2"),
    ],
)
def test_illegal(fields, message):
    record, values = one(**fields)
    with pytest.raises(InputError, match=message):
        record.encode(values)


@pytest.mark.parametrize(("name", "space"), [("ca", Space.L0A), ("cb", Space.L0B)])
@given(data=st.data())
def test_block_of_windows_and_elements(make_bench, name, space, data):
    """load3dv2: the matrix of all windows by all channels of kernel elements, a part of it."""
    bench = make_bench()

    def draw(low, high):
        return data.draw(st.integers(low, high))

    height, width, blocks = draw(1, 7), draw(1, 20), 2
    left, right, top, bottom = (draw(0, 3) for _ in range(4))
    fields = {f"{what}_{s}": draw(1, 3) for what in ("filter", "stride") for s in "hw"}
    fields |= {f"dilation_{s}": draw(1, 2) for s in "hw"}
    reach = {s: (fields[f"filter_{s}"] - 1) * fields[f"dilation_{s}"] for s in "hw"}
    wide = (width + left + right - reach["w"] - 1) // fields["stride_w"] + 1
    assume(reach["w"] <= width + left + right - 1)
    high, deep = draw(0, 2), draw(0, 3)
    elements = fields["filter_h"] * fields["filter_w"]
    m_start, k_start = 16 * draw(0, 2), 16 * draw(0, max(0, 2 * elements - deep))
    assume(k_start // 16 + deep <= blocks * elements)
    image = bench.get(Space.L1, SRC, (blocks, height, width, 16), np.uint16)
    after = bench.memory[space].copy()
    place = DST
    for m in range(high):
        for k in range(deep):
            block, at = divmod(k_start // 16 + k, elements)
            i, j = divmod(at, fields["filter_w"])
            fractal = np.full((16, 16), 7, np.uint16)
            for window in range(16):
                row, column = divmod(m_start + 16 * m + window, wide)
                y = row * fields["stride_h"] - top + i * fields["dilation_h"]
                x = column * fields["stride_w"] - left + j * fields["dilation_w"]
                if 0 <= y < height and 0 <= x < width:
                    fractal[window] = image[block, y, x]
            rows = fractal if name == "ca" else fractal.T  # L0B has channels as rows, always
            after[place : place + 512] = np.ascontiguousarray(rows).reshape(-1).view(np.uint8)
            place += 512
    sides = {"pad_left": left, "pad_right": right, "pad_top": top, "pad_bottom": bottom}
    bench.run("set_fmatrix", l1_w=width, l1_h=height, **sides)
    bench.run("set_padding", bits=7)
    extents = {"k_extension": 16 * deep, "m_extension": 16 * high}
    starts = {"k_start": k_start, "m_start": m_start}
    bench.run(f"img2colv2_cbuf_to_{name}.f16", dst=DST, src=SRC, **fields, **extents, **starts)
    assert np.array_equal(bench.memory[space], after)


@pytest.mark.parametrize("field", ["k_extension", "m_extension", "k_start", "m_start"])
def test_blocks_are_whole_fractals(field):
    record = INSTRUCTIONS["img2colv2_cbuf_to_ca.f16"]
    sizes = {f.name: max(f.minimum, 16) for f in record.fields if f.limit > 1}
    values = {"dst": 0, "src": 0} | sizes
    with pytest.raises(InputError, match=f"{field}: found 17, expected a multiple of 16"):
        record.encode(values | {field: 17})


@pytest.mark.parametrize(
    ("name", "space", "transpose"), [("ca", "L0A", 0), ("ca", "L0A", 1), ("cb", "L0B", None)]
)
@pytest.mark.parametrize(
    ("dtype", "rows", "columns"),
    [
        *((np.float16, *shape) for shape in ((16, 16), (48, 32), (32, 48))),
        *((np.float32, *shape) for shape in ((16, 8), (16, 16), (48, 24), (32, 40))),
    ],
)
def test_matrices_are_transposed(make_bench, name, space, transpose, dtype, rows, columns):
    """Rows in L1, [columns / lanes][rows][lanes], are an image of height 1: L0A takes them Zz or
    their transpose Zz, L0B takes them Zn. Of f32 half a square of 16 x 16 may be missing."""
    lanes = 32 // dtype().itemsize
    bench = make_bench()
    matrix = np.arange(1, rows * columns + 1).astype(dtype).reshape(rows, columns)
    bench.put(Space.L1, SRC, matrix.reshape(rows, columns // lanes, lanes).swapaxes(0, 1))
    ones = ("stride_w", "stride_h", "filter_w", "filter_h", "dilation_w", "dilation_h")
    fields = dict.fromkeys(ones, 1) | {"k_start": 0, "m_start": 0}
    fields |= {"k_extension": columns, "m_extension": rows}
    if transpose is not None:
        fields["transpose"] = transpose
    bench.run("set_fmatrix", l1_w=rows, l1_h=1, pad_left=0, pad_right=0, pad_top=0, pad_bottom=0)
    before = bench.memory[Space[space]].copy()
    kind = np.dtype(dtype).name.replace("float", "f")
    bench.run(f"img2colv2_cbuf_to_{name}.{kind}", dst=DST, src=SRC, **fields)
    if transpose == 0:
        expected = matrix.reshape(rows // 16, 16, columns // lanes, lanes).transpose(0, 2, 1, 3)
    else:
        wide = -(-columns // 16)
        padded = np.zeros((rows, 16 * wide), dtype)
        padded[:, :columns] = matrix
        parts = padded.reshape(rows // lanes, lanes, wide, 16)
        expected = parts.transpose((2, 0, 3, 1) if name == "ca" else (0, 2, 3, 1))
    after = before.copy()
    after[DST : DST + expected.nbytes] = np.ascontiguousarray(expected).reshape(-1).view(np.uint8)
    assert np.array_equal(bench.memory[Space[space]], after)

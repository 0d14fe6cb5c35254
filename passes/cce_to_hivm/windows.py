"""Loads of windows of an image: FMATRIX says what image, each instruction where it begins.

load3dv1 names the pixel of its first window and walks along one direction. load3dv2 takes a
rectangle of windows and kernel elements, and counts windows from the first one of the image: where
L1 holds only some rows, the rows in front of them count as padding above.
"""

from __future__ import annotations

import math

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.instructions import RECTANGLE_LOADS, WINDOW_LOADS
from davinci.dialects.cce.windows import LoadedWindows
from davinci.isa.img2col import CHANNELS, PLACE_BITS, encoded
from davinci.machine.views import loads_rectangles
from davinci.mlir import Op, arith, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Shift, constant_i64
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant
from davinci.units import FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

Number = int | ir.Value
"""A number that is known, or an i64 value."""

MOST_ABOVE = 255
"""Rows of padding above that FMATRIX can say."""


@lowering("load3d")
def lower_load3d(emitter: Emitter, op: Op) -> None:
    """Rectangles where the machine loads those; else the repeat walks windows or elements of the
    kernel, whichever are more."""
    source, first, top, target = list(op.operands)
    src, dst = buffer_of(source), buffer_of(target)
    windows = LoadedWindows.of(op)
    if (padding := attribute(op, "padding")) is not None:
        emitter.set_padding(padding)
    # To L0B rectangles are transposed.
    if dst.space == "L0A" and loads_rectangles(emitter.machine, dst.space, src.dtype):
        load_rectangles(emitter, op, windows, src, dst)
        return
    record = emitter.record(op, WINDOW_LOADS[dst.space], src.dtype)
    emitter.set_image(
        {
            "l1_w": windows.width,
            "l1_h": windows.height,
            "pad_left": windows.left,
            "pad_right": windows.right,
            "pad_top": 0,
            "pad_bottom": 0,
        }
    )
    most = {f.name: f.limit for f in record.fields}
    height, width = windows.kernel
    shared = {
        "stride_h": windows.strides[0],
        "stride_w": windows.strides[1],
        "filter_h": height,
        "filter_w": width,
        "dilation_h": windows.dilations[0],
        "dilation_w": windows.dilations[1],
        "repeat_mode": int(windows.by_windows),
    }
    jump, step = windows.element_jump, windows.window_jump
    inner, outer = windows.elements, windows.windows
    if windows.by_windows:
        jump, step, inner, outer = step, jump, outer, inner
    start, begin, row_0 = emitter.addresses.of(target), number(first), number(top)
    for number_outer in range(outer):
        for at, count in cut(inner, most["repeat"]):
            window, element = number_outer, at
            if windows.by_windows:
                window, element = at, number_outer
            element += windows.element
            place = plus(begin, window * SIDE)
            row, column = divide(place, windows.of_row)
            fields = {
                **shared,
                "c1_index": element // (width * height),
                "fetch_h": element // width % height,
                "fetch_w": element % width,
                "left_top_h": as_place(plus(times(row, windows.strides[0]), row_0)),
                "left_top_w": as_place(plus(times(column, windows.strides[1]), -windows.left)),
                "jump_stride": jump if count > 1 else 1,
                "repeat": count,
            }
            shift = Shift((number_outer * step + at * jump) * FRACTAL_BYTES)
            emitter.instruction(record, [start.plus(shift), emitter.addresses.of(source)], fields)


def load_rectangles(
    emitter: Emitter, op: Op, windows: LoadedWindows, src: BufferView, dst: BufferView
) -> None:
    """As many windows and elements of the kernel at once as lie in the destination as load3dv2
    writes them: of 16 windows all elements, then of the next 16."""
    source, first, top, target = list(op.operands)
    record = emitter.record(op, RECTANGLE_LOADS[dst.space], src.dtype)
    limit = next(field.limit for field in record.fields if field.name == "m_start")
    begin, above = counted(windows, number(first), number(top), limit)
    emitter.set_image(
        {
            "l1_w": windows.width,
            "l1_h": windows.height,
            "pad_left": windows.left,
            "pad_right": windows.right,
            "pad_top": above,
            "pad_bottom": 0,
        }
    )
    of_kernel = windows.kernel[0] * windows.kernel[1]
    block, inside = divmod(windows.element, of_kernel)
    block_bytes = windows.height * windows.width * CHANNELS * src.itemsize
    image = emitter.addresses.of(source).plus(Shift(block * block_bytes))
    start = emitter.addresses.of(target)
    shared = {
        "stride_h": windows.strides[0],
        "stride_w": windows.strides[1],
        "filter_h": windows.kernel[0],
        "filter_w": windows.kernel[1],
        "dilation_h": windows.dilations[0],
        "dilation_w": windows.dilations[1],
    }
    high, deep = rectangle(windows)
    for window in range(0, windows.windows, high):
        for element in range(0, windows.elements, deep):
            fields = {
                **shared,
                "k_extension": min(deep, windows.elements - element) * CHANNELS,
                "m_extension": min(high, windows.windows - window) * SIDE,
                "k_start": (inside + element) * CHANNELS,
                "m_start": plus(begin, window * SIDE),
            }
            place = window * windows.window_jump + element * windows.element_jump
            at = start.plus(Shift(place * FRACTAL_BYTES))
            emitter.instruction(record, [at, image], fields)


def rectangle(windows: LoadedWindows) -> tuple[int, int]:
    """Fractals of windows, and of elements of the kernel, that one load3dv2 writes to their
    places."""
    deep = windows.elements if windows.element_jump == 1 else 1
    together = windows.windows == 1 or windows.window_jump == deep
    return (windows.windows if together else 1), deep


def counted(
    windows: LoadedWindows, first: Number, top: Number, limit: int
) -> tuple[Number, Number]:
    """The number of the first window, a multiple of 16, and the rows of padding above the image in
    L1, counted from a row of windows in front of it.

    Args:
        first: the window, counted from the first one of the whole image.
        top: where in L1 the first row of windows of the whole image begins; 0 or less.
        limit: the largest number of a window that an instruction can say.
    """
    rows = times(top, -1)
    if isinstance(rows, int) and rows <= MOST_ABOVE:
        lines = ceil_div(rows + windows.height, windows.strides[0])
        if lines * windows.of_row <= limit + 1:
            return first, rows
    # Whole fractals of windows begin where so many rows of windows do.
    step = SIDE // math.gcd(SIDE, windows.of_row)
    line, _ = divide(first, windows.of_row)
    reached, _ = divide(rows, windows.strides[0])
    skipped = times(divide(least(line, reached), step)[0], step)
    begin = plus(first, times(skipped, -windows.of_row))
    return begin, plus(rows, times(skipped, -windows.strides[0]))


def least(a: Number, b: Number) -> Number:
    """The smaller one of two numbers that are not negative."""
    if isinstance(a, int) and isinstance(b, int):
        return min(a, b)
    value: ir.Value = arith.MinUIOp(as_value(a), as_value(b)).result
    return value


def number(index: ir.Value) -> Number:
    known = is_constant(index)
    if known is not None:
        return known
    value: ir.Value = arith.IndexCastOp(ir.IntegerType.get_signless(64), index).result
    return value


def plus(a: Number, b: Number) -> Number:
    if isinstance(a, int) and isinstance(b, int):
        return a + b
    if b == 0:
        return a
    value: ir.Value = arith.AddIOp(as_value(a), as_value(b)).result
    return value


def times(a: Number, factor: int) -> Number:
    if isinstance(a, int) or factor == 1:
        return a * factor if isinstance(a, int) else a
    value: ir.Value = arith.MulIOp(a, constant_i64(factor)).result
    return value


def divide(a: Number, by: int) -> tuple[Number, Number]:
    """Quotient and remainder of what is not negative."""
    if isinstance(a, int):
        return divmod(a, by)
    divisor = constant_i64(by)
    return arith.DivUIOp(a, divisor).result, arith.RemUIOp(a, divisor).result


def as_place(a: Number) -> Number:
    """A place in an image, in two's complement."""
    if isinstance(a, int):
        return encoded(a)
    value: ir.Value = arith.AndIOp(a, constant_i64((1 << PLACE_BITS) - 1)).result
    return value


def as_value(a: Number) -> ir.Value:
    return constant_i64(a) if isinstance(a, int) else a

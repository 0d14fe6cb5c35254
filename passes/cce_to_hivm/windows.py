"""Loads of windows of an image: FMATRIX says what image, each instruction where it begins."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.instructions import WINDOW_LOADS
from davinci.dialects.cce.windows import Windows
from davinci.isa.img2col import PLACE_BITS, encoded
from davinci.mlir import Op, arith, ir
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Shift, constant_i64
from davinci.passes.cce_to_hivm.copies import cut
from davinci.passes.cce_to_hivm.emitter import Emitter, is_constant
from davinci.units import FRACTAL_BYTES
from davinci.units import FRACTAL_SIDE as SIDE

Number = int | ir.Value
"""A number that is known, or an i64 value."""


@lowering("load3d")
def lower_load3d(emitter: Emitter, op: Op) -> None:
    """The repeat walks windows or elements of the kernel, whichever are more."""
    source, first, top, target = list(op.operands)
    src, dst = buffer_of(source), buffer_of(target)
    windows = Windows.of(op)
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
    if (padding := attribute(op, "padding")) is not None:
        emitter.set_padding(padding)
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

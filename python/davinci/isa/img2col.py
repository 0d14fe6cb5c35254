"""Image to columns: loads that make fractals for a convolution of an image in L1, and their setup.

An image lies in L1 as [c1][height][width][c], c 32 bytes' worth of channels. A fractal has 16
windows of the output, in raster order, one a row, and of each window one element of the kernel:
32 bytes of channels of one pixel. What lies outside of the image is the padding value.

    window p          row p / windows of a row, column p % windows of a row
    kernel element    channel block c1, row i, column j; column fastest
    pixel             y = top + stride_h row + dilation_h i,  x = left + stride_w column + ... j

The first window is at (`left_top_h`, `left_top_w`), which are negative inside the padding. Its row
ends where windows would reach beyond the padding on the right; later rows begin at the padding on
the left. Windows below the image are padding.

load3dv1 (910, 310) names a first window and one direction. load3dv2 (910B) takes a rectangle of
windows and kernel elements, counted from the first window at the padding above and on the left. To
L0A it can turn the rectangle on its way, to L0B it always does, which makes it the transposing load
of matrices whose rows lie in L1 as fractals: an image of height 1 whose pixels are the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from davinci.isa.core import (
    DTYPES,
    Access,
    Accesses,
    Array,
    Compute,
    Field,
    Instruction,
    Operand,
    Pipe,
    Regions,
    Registers,
    Space,
    Values,
    define,
    no_regions,
)
from davinci.units import BLOCK_BYTES, FRACTAL_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

SOURCE = "docs/hardware.md a3 (rates), c (load3d); layout of the words assumed"

FMATRIX_FIELDS = (
    Field("l1_w", 0, 15, minimum=1, maximum=32767, doc="width of the image, in pixels"),
    Field("l1_h", 16, 31, minimum=1, maximum=32767, doc="height of the image in L1"),
    Field("pad_left", 32, 39, doc="columns of padding on the left"),
    Field("pad_right", 40, 47, doc="columns of padding on the right"),
    Field("pad_top", 48, 55, doc="rows of padding above; the first window says where it is"),
    Field("pad_bottom", 56, 63, doc="rows of padding below; all there is below is padding"),
)


@dataclass(frozen=True)
class FmatrixImage:
    """What FMATRIX holds of an image in L1: sizes in pixels, padding at its sides."""

    width: int
    height: int
    left: int
    right: int
    top: int

    @staticmethod
    def of(word: int) -> FmatrixImage:
        """From the register."""
        found = {f.name: word >> f.lo & ((1 << f.width) - 1) for f in FMATRIX_FIELDS}
        sides = found["pad_left"], found["pad_right"], found["pad_top"]
        return FmatrixImage(found["l1_w"], found["l1_h"], *sides)


def set_fmatrix(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.fmatrix = sum(values[f.name] << f.lo for f in FMATRIX_FIELDS)
    return ()


def set_padding(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    registers.padding = values["bits"]
    return ()


define(
    Instruction(
        name="set_fmatrix",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=FMATRIX_FIELDS,
        accesses=no_regions,
        compute=set_fmatrix,
        timing="scalar",
        doc="Sets the size and the padding of the image in L1 that img2col reads.",
        source=SOURCE,
    )
)

define(
    Instruction(
        name="set_padding",
        type="",
        pipe=Pipe.S,
        operands=(),
        fields=(
            Field(
                "bits",
                0,
                15,
                doc="bits of the element that img2col takes for padding, the lower half of them "
                "of 8-bit types; 0 at the start of a program",
            ),
        ),
        accesses=no_regions,
        compute=set_padding,
        timing="scalar",
        doc="Sets the value of the padding around images.",
        source=SOURCE,
    )
)

LEAST_LEFT_TOP = -255

FIELDS = (
    Field("c1_index", 0, 11, maximum=4095, doc="first channel block"),
    Field("fetch_w", 16, 23, maximum=254, doc="column of the first kernel element"),
    Field("fetch_h", 24, 31, maximum=254, doc="row of the first kernel element"),
    Field("left_top_w", 32, 47, doc="column of the first window in the image, -255..32767"),
    Field("left_top_h", 48, 63, doc="row of the first window in the image, -255..32767"),
    Field("stride_w", 0, 5, word=1, minimum=1, doc="pixels from window to window"),
    Field("stride_h", 6, 11, word=1, minimum=1, doc="pixels from row to row of windows"),
    Field("filter_w", 12, 19, word=1, minimum=1, doc="width of the kernel"),
    Field("filter_h", 20, 27, word=1, minimum=1, doc="height of the kernel"),
    Field("dilation_w", 28, 35, word=1, minimum=1, doc="pixels between columns of the kernel"),
    Field("dilation_h", 36, 43, word=1, minimum=1, doc="pixels between rows of the kernel"),
    Field(
        "jump_stride",
        44,
        50,
        word=1,
        minimum=1,
        doc="fractals from one written fractal to the next",
    ),
    Field(
        "repeat_mode",
        51,
        51,
        word=1,
        doc="0: each repeat takes the next kernel element; 1: the next 16 windows",
    ),
    Field("repeat", 56, 63, word=1, doc="number of fractals; 0: no operation"),
)

CHANNELS = BLOCK_BYTES // 2
"""Channels of f16 of a pixel in a block."""

BLOCK_FIELDS = (
    Field("k_extension", 0, 15, doc="channels of kernel elements that are taken; 0: no operation"),
    Field("m_extension", 16, 31, doc="windows that are taken; 0: no operation"),
    Field("k_start", 32, 47, doc="channel of the first kernel element"),
    Field("m_start", 48, 63, doc="first window"),
    *(field for field in FIELDS if field.name.startswith(("stride", "filter", "dilation"))),
)

TRANSPOSE = Field(
    "transpose",
    44,
    44,
    word=1,
    doc="1: rows of L0A are channels, its columns are windows; 0 if not given",
    optional=True,
)

PLACE_BITS = 16


def signed(value: int) -> int:
    """The number that a field of 16 bits holds in two's complement."""
    return value - (1 << PLACE_BITS) if value >> (PLACE_BITS - 1) else value


def encoded(value: int) -> int:
    """The other way round."""
    return value & ((1 << PLACE_BITS) - 1)


def check(values: Values) -> str:
    """Windows begin at most 255 pixels outside; the first element is one of the kernel."""
    for side in ("w", "h"):
        if (place := signed(values[f"left_top_{side}"])) < LEAST_LEFT_TOP:
            return f"left_top_{side}: found {place}, expected at least {LEAST_LEFT_TOP}"
        if values[f"fetch_{side}"] >= (size := values[f"filter_{side}"]):
            found = values[f"fetch_{side}"]
            return f"fetch_{side} is outside of the kernel: found {found}, expected below {size}"
    return ""


def whole_fractals(channels: int) -> Callable[[Values], str]:
    """`check` of load3dv2: extensions and starts are whole fractals of so many channels."""

    def check_block(values: Values) -> str:
        for name, unit in (("k", channels), ("m", SIDE)):
            for part in ("extension", "start"):
                if (found := values[f"{name}_{part}"]) % unit:
                    return f"{name}_{part}: found {found}, expected a multiple of {unit}"
        return ""

    return check_block


@dataclass(frozen=True)
class Pixels:
    """The pixels that an instruction takes, [repeats][16] of each.

    Attributes:
        place: number of the pixel in [c1][height][width], where `inside`.
        inside: whether it is one of the image.
        rows: rows of windows that each fractal has a part of, [repeats].
    """

    place: Array
    inside: Array
    rows: Array

    @cached_property
    def touched(self) -> tuple[int, Array]:
        """The first pixel that is read, and which of those from there on to the last one are."""
        places = self.place[self.inside]
        if not places.size:
            return 0, np.zeros(0, dtype=bool)
        first = int(places.min())
        taken = np.zeros(int(places.max()) - first + 1, dtype=bool)
        taken[places - first] = True
        return first, taken

    @cached_property
    def sources(self) -> Array:
        """Of each pixel its number among those from the first that is read on, [repeats][16]; the
        number behind the last one stands for padding."""
        first, taken = self.touched
        return np.where(self.inside, self.place - first, taken.size)

    @cached_property
    def whole(self) -> bool:
        """Whether no pixel is padding."""
        return bool(self.inside.all())


def pixels_of(values: Values, fmatrix: int, channels: int = CHANNELS) -> Pixels:
    """The pixels that an instruction takes, of the image that FMATRIX describes.

    Args:
        channels: of a pixel in a block; load3dv2 counts kernel elements by them.
    """
    names = BLOCK_FIELDS if "k_extension" in values else FIELDS
    return _pixels(tuple((f.name, values[f.name]) for f in names), fmatrix, channels)


@lru_cache(maxsize=4096)
def _pixels(fields: tuple[tuple[str, int], ...], fmatrix: int, channels: int) -> Pixels:
    at, image = dict(fields), FmatrixImage.of(fmatrix)
    if "k_extension" in at:
        return _block(at, image, channels)
    repeat, by_windows = at["repeat"], at["repeat_mode"]
    left, top = signed(at["left_top_w"]), signed(at["left_top_h"])
    window, turn = np.arange(SIDE), np.arange(repeat)[:, None]
    first_element = (at["c1_index"] * at["filter_h"] + at["fetch_h"]) * at["filter_w"]
    first_element += at["fetch_w"]
    number = turn * SIDE * by_windows + window
    return _taken(at, image, (left, top), number, first_element + turn * (1 - by_windows))


def _block(at: Mapping[str, int], image: FmatrixImage, channels: int) -> Pixels:
    """The pixels that load3dv2 takes: the kernel elements of 16 windows one after the other, then
    those of the next 16."""
    deep, high = at["k_extension"] // channels, at["m_extension"] // SIDE
    number = at["m_start"] + SIDE * np.arange(high)[:, None, None] + np.arange(SIDE)
    element = at["k_start"] // channels + np.arange(deep)[None, :, None]
    shape = high, deep, SIDE
    numbers, elements = np.broadcast_to(number, shape), np.broadcast_to(element, shape)
    return _taken(
        at,
        image,
        (-image.left, -image.top),
        numbers.reshape(-1, SIDE),
        elements.reshape(-1, SIDE)[:, :1],
    )


def _taken(
    at: Mapping[str, int],
    image: FmatrixImage,
    start: tuple[int, int],
    number: Array,
    element: Array,
) -> Pixels:
    """The pixels of the kernel elements [repeats] of windows [repeats][16], which are counted from
    the one at `start`."""
    left, top = start
    # Windows that begin in a row up to here do not reach beyond the padding.
    last = image.width + image.right - (at["filter_w"] - 1) * at["dilation_w"] - 1
    first = max(0, (last - left) // at["stride_w"] + 1)
    each = max(1, (last + image.left) // at["stride_w"] + 1)
    row = np.where(number < first, 0, (number - first) // each + 1)
    column = np.where(number < first, number, (number - first) % each)
    x = np.where(row == 0, left, -image.left) + at["stride_w"] * column
    y = top + at["stride_h"] * row
    height, width = at["filter_h"], at["filter_w"]
    x = x + at["dilation_w"] * (element % width)
    y = y + at["dilation_h"] * (element // width % height)
    inside = (x >= 0) & (x < image.width) & (y >= 0) & (y < image.height)
    place = (element // (width * height) * image.height + y) * image.width + x
    return Pixels(place, inside, row[:, -1] - row[:, 0] + 1)


def regions(dst: Space, dtype: str) -> Regions:
    """Whole pixels of L1, and fractals at the jump stride; of load3dv2 one behind the other."""
    element = DTYPES[dtype]
    lanes = BLOCK_BYTES // element.itemsize

    def accesses(values: Values, registers: Registers) -> Accesses:
        pixels = pixels_of(values, registers.fmatrix, lanes)
        first, taken = pixels.touched
        dims = ((taken.size, BLOCK_BYTES),)
        place = values["src"] + first * BLOCK_BYTES
        read = Access(Space.L1, place, dims, lanes, element, taken[:, None])
        count = len(pixels.rows)
        if turns(values, dst) and (high := values["m_extension"] // SIDE):
            # A square of 16 x 16 of f32 takes two fractals, also where only one holds channels.
            together = SIDE // lanes * high
            count = together * ceil_div(count, together)
        steps = ((count, values.get("jump_stride", 1) * FRACTAL_BYTES),)
        return [read], [Access(dst, values["dst"], steps, SIDE * lanes, element)]

    return accesses


def turns(values: Values, dst: Space) -> bool:
    """Whether an instruction is a load3dv2 that transposes: each one to L0B does, one to L0A if its
    field says so."""
    return "k_extension" in values and (dst is Space.L0B or bool(values["transpose"]))


def columns(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
    """`compute`: [pixels][c] to [repeats][16 c]."""
    (source,) = arrays
    lanes, kind = source.shape[1], source.dtype
    pixels = pixels_of(values, registers.fmatrix, lanes)
    if pixels.whole:
        return [source.take(pixels.sources, axis=0).reshape(-1, SIDE * lanes)]
    bits = registers.padding & ((1 << 8 * kind.itemsize) - 1)
    read: Array = np.empty((len(source) + 1, lanes), kind)
    read[:-1] = source
    read[-1] = np.array([bits], dtype=f"u{kind.itemsize}").view(kind)
    return [read.take(pixels.sources, axis=0).reshape(-1, SIDE * lanes)]


def turned(dst: Space) -> Compute:
    """`compute` of load3dv2: fractals of the transposed matrix, Zz in L0A and Zn in L0B, where the
    load transposes.

    Channels are the rows of fractals then. Of f32, which has 8 in a block, the missing half is
    zeros where they are an odd number of blocks (assumed: no result that is used depends on it).
    """

    def compute(values: Values, registers: Registers, arrays: Sequence[Array]) -> Sequence[Array]:
        (found,) = columns(values, registers, arrays)
        if not turns(values, dst) or not found.size:
            return [found]
        lanes = found.shape[1] // SIDE
        high, blocks_of_square = values["m_extension"] // SIDE, SIDE // lanes
        blocks = found.reshape(high, -1, SIDE, lanes)
        if missing := -blocks.shape[1] % blocks_of_square:
            blocks = np.pad(blocks, ((0, 0), (0, missing), (0, 0), (0, 0)))
        # [windows / lanes, lanes][channels / 16, 16]
        parts = blocks.transpose(0, 2, 1, 3).reshape(blocks_of_square * high, lanes, -1, SIDE)
        order = (2, 0, 3, 1) if dst is Space.L0A else (0, 2, 3, 1)
        return [parts.transpose(order).reshape(-1, SIDE * lanes)]

    return compute


IMAGE = Operand("src", Space.L1, False, "the image, [c1][height][width][32 bytes]")
"""The source of all loads of windows."""

for name, dst in [("img2col_cbuf_to_ca", Space.L0A), ("img2col_cbuf_to_cb", Space.L0B)]:
    for dtype in ("f16", "s8", "u8"):
        define(
            Instruction(
                name=name,
                type=dtype,
                pipe=Pipe.MTE1,
                operands=(
                    Operand("dst", dst, True, "fractals of 16 windows x 32 bytes of channels"),
                    IMAGE,
                ),
                fields=FIELDS,
                accesses=regions(dst, dtype),
                compute=columns,
                timing="mte1_load3d",
                doc=f"Makes fractals of the windows of an image in L1 (load3dv1) in {dst.name}. "
                "The image is as wide and as high as set_fmatrix says.",
                source=SOURCE,
                check=check,
            )
        )

for name, dst in [("img2colv2_cbuf_to_ca", Space.L0A), ("img2colv2_cbuf_to_cb", Space.L0B)]:
    for dtype in ("f16", "f32"):
        to_left, lanes = dst is Space.L0A, BLOCK_BYTES // DTYPES[dtype].itemsize
        rows = (
            f"16 windows x {lanes} channels, or transposed"
            if to_left
            else f"16 channels x {lanes} windows"
        )
        define(
            Instruction(
                name=name,
                type=dtype,
                pipe=Pipe.MTE1,
                operands=(
                    Operand("dst", dst, True, f"fractals of {rows}"),
                    IMAGE,
                ),
                fields=(*BLOCK_FIELDS, TRANSPOSE) if to_left else BLOCK_FIELDS,
                accesses=regions(dst, dtype),
                compute=turned(dst),
                timing="mte1_load3d",
                doc=f"Makes fractals of windows of an image in L1 (load3dv2) in {dst.name}: of 16 "
                "windows all kernel elements, then of the next 16. "
                + ("With `transpose` they are" if to_left else "They are")
                + " those of the transposed matrix, so that channels are rows of fractals. The "
                "image is as wide and as high as set_fmatrix says, windows begin at the padding "
                "above and on the left of it. A second FMATRIX does not exist.",
                source="docs/hardware.md a3 (rates; transposing assumed to be as fast), c "
                "(load3dv2); layout of the words assumed",
                check=whole_fractals(lanes),
            )
        )

"""What an operator reads for a part of its result, and the operator that computes just that part.

Most operators read their operands as their records say (`windows`), and are the same operators on
parts of these. Those whose attributes speak of sizes have rules of their own: slices, paddings,
concatenations, reshapes, gathers, and windows of images, whose part of an image has a halo.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.conv import MOST_STRIDE, Geometry, geometry
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.windows import WindowDim
from davinci.passes import builder
from davinci.passes.ascend import boxes
from davinci.passes.ascend.boxes import Box, Dimension, TakenIndices, plain, size_of
from davinci.passes.ascend.tensor_ops import TensorOps, full_value, is_elementwise
from davinci.tables import Table
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import round_up

Parts = Sequence[Any]
"""The parts of the operands, each a value, or None where a rule reads nothing of it."""

Emit = Callable[[Parts, TensorOps], ir.Value]
"""Builds the part of a result from the parts of the operands, None for what is not read."""


@dataclass(frozen=True)
class PartRule:
    """How a part of a result is computed.

    Attributes:
        operands: the box that is read of each operand, None for nothing of it.
        emit: computes the part.
    """

    operands: tuple[Box | None, ...]
    emit: Emit


Rule = Callable[[Op, Box], "PartRule | None"]
RULES: Table[str, Rule] = Table("a rule for parts")
rule = RULES.register

NAMES = {
    "ascend.broadcast": "slice-broadcast",
    "ascend.reduce": "slice-reduction",
    "ascend.matmul": "slice-product",
    "ascend.batch_matmul": "slice-product",
    "ascend.conv": "slice-convolution",
    "ascend.pool": "slice-convolution",
    "ascend.gather": "slice-gather",
    **dict.fromkeys(
        (f"ascend.{name}" for name in ("transpose", "reshape", "concat", "pad", "slice")),
        "slice-movement",
    ),
}
"""The rewrite that a slice in front of an operator is; of elementwise ones another."""

BY_WINDOWS = (
    "ascend.broadcast",
    "ascend.reduce",
    "ascend.matmul",
    "ascend.batch_matmul",
    "ascend.transpose",
)
"""Operators whose attributes say nothing of sizes, besides elementwise ones."""


def rewrite_of(op: Op) -> str:
    """The name of the rewrite that moves a slice in front of an operator; "" if none does."""
    return "slice-elementwise" if is_elementwise(op) else NAMES.get(op.name, "")


def part_of(op: Op, box: Box) -> PartRule | None:
    """How a part of the result of `op` is computed; None if only all of it is."""
    if any(0 in tensor_of(value.type).shape for value in (*op.operands, op.results[0])):
        return None
    if is_elementwise(op) or op.name in BY_WINDOWS:
        return by_windows(op, box)
    found = RULES.get(op.name)
    return None if found is None else found(op, box)


def by_windows(op: Op, box: Box) -> PartRule | None:
    """The same operator on what its windows reach."""
    call = call_of(op)
    found = OPERATORS[op.name.removeprefix("ascend.")].windows(call)
    along = {
        dim.axis: taken for dim, taken in zip(found.result, box, strict=True) if is_in_place(dim)
    }
    if len(along) != len(box):
        return None
    read: list[Box | None] = []
    for operand, window in zip(call.inputs, found.operands, strict=True):
        if window is None or not all(map(is_in_place, window)):
            return None
        sizes = zip(operand.shape, window, strict=True)
        read.append(tuple(along.get(dim.axis, boxes.all_of(size)) for size, dim in sizes))
    return PartRule(tuple(read), lambda operands, ops: again(op, operands, box))


def is_in_place(dim: WindowDim) -> bool:
    """Whether a dimension has one element for each index of its axis, or one in all."""
    return (dim.stride, dim.size, dim.offset, dim.inner) == (1, 1, 0, None)


def again(op: Op, operands: Parts, box: Box, **changed: Any) -> ir.Value:
    """The operator on other operands, with a smaller result and some attributes changed."""
    result = replace(tensor_of(op.results[0].type), shape=boxes.shape_of(box))
    attributes = {key: op.attributes[key] for key in op.attributes}
    attributes |= {key: builder.as_attribute(value) for key, value in changed.items()}
    return builder.op(op.name, operands, [tensor_type(result)], **attributes).result


def plain_dimensions(box: Box) -> list[range] | None:
    """Each dimension as one row of indices; None if that is not possible for all."""
    found = [plain(dimension) for dimension in box]
    return None if None in found else [at for at in found if at is not None]


def one(size: int, at: range) -> Dimension:
    return (TakenIndices(size, boxes.trimmed(at)),)


@rule("ascend.reshape")
def part_of_reshape(op: Op, box: Box) -> PartRule | None:
    source = boxes.reshaped(box, tensor_of(op.operands[0].type).shape)
    if source is None:
        return None
    shape = boxes.shape_of(box)
    return PartRule((source,), lambda operands, ops: ops.reshape(operands[0], shape))


@rule("ascend.slice")
def part_of_slice(op: Op, box: Box) -> PartRule | None:
    """A part of the operand: nothing is left to be done."""
    taken, shape = plain_dimensions(box), tensor_of(op.operands[0].type).shape
    if taken is None:
        return None
    starts, strides = attribute(op, "starts"), attribute(op, "strides")
    source = tuple(
        one(size, range(start + step * at[0], start + step * at[-1] + 1, step * at.step))
        for size, start, step, at in zip(shape, starts, strides, taken, strict=True)
    )
    return PartRule((source,), lambda operands, ops: operands[0])


def overlapping(taken: range, start: int, size: int) -> tuple[range, int, int]:
    """Indices that are taken as those of an array of `size` that begins at `start`, and how many
    are taken in front of it and behind it."""
    reached = [at - start for at in (taken[0], taken[-1])]
    before = min(len(taken), max(0, -(reached[0] // taken.step)))
    after = min(len(taken), max(0, (reached[1] - size) // taken.step + 1))
    inside = taken[before : len(taken) - after]
    return range(inside.start - start, inside.stop - start, inside.step), before, after


def with_whole_blocks(op: Op, box: Box) -> Box:
    """A box, or one of whole blocks of 16 elements of its rows, if an operator joins rows of such
    blocks: parts of blocks would be moved element by element."""
    taken, size = plain(box[-1]) if box else None, size_of(box[-1]) if box else 0
    if taken is None or taken.step != 1 or not joins_blocks(op):
        return box
    inside = range(taken.start // SIDE * SIDE, min(size, round_up(taken.stop, SIDE)))
    return (*box[:-1], one(size, inside))


def joins_blocks(op: Op) -> bool:
    """Whether an operator puts rows beside each other that begin at whole blocks."""
    if op.name == "ascend.concat":
        shapes = [tensor_of(operand.type).shape for operand in op.operands]
        of_rows = attribute(op, "dim") == len(shapes[0]) - 1
        return of_rows and all(shape[-1] % SIDE == 0 for shape in shapes[:-1])
    if op.name != "ascend.pad" or any(attribute(op, "interior")):
        return False
    low, high = (attribute(op, side)[-1:] for side in ("low", "high"))
    return any((*low, *high)) and all(n % SIDE == 0 for n in low)


@rule("ascend.concat")
def part_of_concat(op: Op, box: Box) -> PartRule | None:
    dim = attribute(op, "dim")
    taken = plain(box[dim])
    if taken is None:
        return None
    read: list[Box | None] = []
    start = 0
    for operand in op.operands:
        size = tensor_of(operand.type).shape[dim]
        inside, _, _ = overlapping(taken, start, size)
        read.append((*box[:dim], one(size, inside), *box[dim + 1 :]) if len(inside) else None)
        start += size
    return PartRule(
        tuple(read),
        lambda operands, ops: ops.concat([part for part in operands if part is not None], dim),
    )


@rule("ascend.pad")
def part_of_pad(op: Op, box: Box) -> PartRule | None:
    """What is left of the operand, with less around it."""
    taken, source = plain_dimensions(box), tensor_of(op.operands[0].type)
    if taken is None or any(attribute(op, "interior")):
        return None
    lows = attribute(op, "low")
    placed = [overlapping(*each) for each in zip(taken, lows, source.shape, strict=True)]
    shape, element = boxes.shape_of(box), source.element
    number = full_value(op.operands[1])
    if any(not len(inside) for inside, _, _ in placed):
        if number is None:
            return None
        return PartRule((None, None), lambda _, ops: ops.full(shape, element, number[()]))
    low, high = ([place[i] for place in placed] for i in (1, 2))

    def emit(operands: Parts, ops: TensorOps) -> ir.Value:
        if not any(low) and not any(high):
            value: ir.Value = operands[0]
            return value
        return again(op, operands, box, low=low, high=high)

    read = tuple(one(n, inside) for n, (inside, _, _) in zip(source.shape, placed, strict=True))
    return PartRule((read, ()), emit)


@rule("ascend.gather")
def part_of_gather(op: Op, box: Box) -> PartRule | None:
    """Fewer indices, all of the rows."""
    table = boxes.whole(tensor_of(op.operands[0].type).shape)
    if not boxes.is_whole(box[1:]):
        return None
    return PartRule((table, box[:1]), lambda operands, ops: again(op, operands, box))


@rule("ascend.conv")
def part_of_conv(op: Op, box: Box) -> PartRule | None:
    """Some of the images, windows, and channels of the result; the last are columns of weights."""
    x, w = (tensor_of(value.type) for value in op.operands)
    found = part_of_image(geometry(call_of(op).attributes), box[1])
    channels = boxes.is_whole(box[2:])
    single = w.shape[0] == 1 == attribute(op, "groups", 1) and TRANSPOSE_B not in op.attributes
    if found is None or not (channels or single) or attribute(op, "padding", 0):
        return None
    pixels, left = found
    weights = boxes.whole(w.shape)
    weights = weights if channels else (*weights[:2], box[2])
    read = ((box[0], pixels, boxes.all_of(x.shape[2])), weights)
    return PartRule(read, lambda operands, ops: again(op, operands, box, **sizes_of(left)))


@rule("ascend.pool")
def part_of_pool(op: Op, box: Box) -> PartRule | None:
    """Some of the images, windows and channels."""
    found = part_of_image(geometry(call_of(op).attributes), box[1])
    if found is None:
        return None
    pixels, left = found
    read = ((box[0], pixels, box[2]),)
    return PartRule(read, lambda operands, ops: again(op, operands, box, **sizes_of(left)))


def sizes_of(found: Geometry) -> dict[str, list[int]]:
    """The attributes of windows that are another part of an image."""
    return {name: list(getattr(found, name)) for name in ("image", "strides", "pads")}


def part_of_image(found: Geometry, windows: Dimension) -> tuple[Dimension, Geometry] | None:
    """The pixels that some windows reach, and how the windows lie on these; None if they are no
    rows and columns of windows, or reach no pixel."""
    rows_and_columns = boxes.reshaped((windows,), found.windows)
    taken = None if rows_and_columns is None else plain_dimensions(rows_and_columns)
    if taken is None:
        return None
    pixels: list[TakenIndices] = []
    strides: list[int] = []
    above: list[int] = []
    behind: list[int] = []
    before = (found.pads[0], found.pads[2])
    for axis, at in enumerate(taken):
        size, stride = found.image[axis], found.strides[axis]
        first = at[0] * stride - before[axis]
        end = at[-1] * stride - before[axis] + found.extent[axis]
        reached = range(max(0, first), min(size, end))
        if not len(reached) or stride * at.step > MOST_STRIDE:
            return None
        pixels.append(TakenIndices(size, reached))
        strides.append(stride * at.step if len(at) > 1 else stride)
        above.append(max(0, -first))
        behind.append(max(0, end - size))
    image = (len(pixels[0].at), len(pixels[1].at))
    pads = (above[0], behind[0], above[1], behind[1])
    left = replace(found, image=image, strides=(strides[0], strides[1]), pads=pads)
    return tuple(pixels), left

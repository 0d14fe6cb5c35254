"""stablehlo-fold-pads: padding in front of a convolution or a pool becomes that of its windows.

before:
    %p = stablehlo.pad %x, %zero, low = [0, 0, 0, 0], high = [0, 0, 1, 1], interior = [0, 0, 0, 0]
        : (tensor<1x3x224x224xf32>, tensor<f32>) -> tensor<1x3x225x225xf32>
    %y = stablehlo.convolution(%p, %w) .. window = {stride = [2, 2]} ..
after:
    %y = stablehlo.convolution(%x, %w) .. window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} ..

Networks whose padding differs on two sides of an image ("same" with strides) pad in an operation of
their own, which copies the image. Convolutions of floats take zeros, reductions over windows what
they start from: minus infinity a maximum, zero a sum. Zeros around what is nowhere less than 0, a
ReLU, are to a maximum like minus infinity as long as every window has a pixel. Nothing is folded
along batch, channels, or a dimension that is dilated, nor pads that cut something off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from davinci.dialects.base import attribute
from davinci.elements import Array, to_array, to_attribute
from davinci.mlir import Op, ir, operations, stablehlo
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend.padding import edges_of
from davinci.passes.stablehlo_to_ascend.reductions import kind_of_body

PAD, CONVOLUTION, WINDOWS = (f"stablehlo.{x}" for x in ("pad", "convolution", "reduce_window"))


@register_pass
@dataclass(frozen=True)
class StablehloFoldPadsPass(Pass):
    """Make padding in front of windows padding of the windows."""

    NAME = "stablehlo-fold-pads"

    def run(self, op: Op) -> None:
        count = 0
        for windows in [*operations(op, CONVOLUTION), *operations(op, WINDOWS)]:
            while folds(windows):
                count += 1
        note(op, "fold-pads", count)


def folds(op: Op) -> bool:
    """Takes over what is padded in front of the operand of a convolution or a reduction over
    windows; whether it can."""
    pad = op.operands[0].owner
    is_pad = not isinstance(pad, ir.Block) and pad.name == PAD
    if not is_pad or len(op.results) != 1 or any(attribute(pad, "interior_padding")):
        return False
    number = known_number(pad.operands[1])
    low, high = (attribute(pad, f"edge_padding_{side}") for side in ("low", "high"))
    added = np.array([low, high], np.int64).T
    unseen = number == 0 and is_relu(pad.operands[0]) and takes_largest(op, added)
    if number is None or not (unseen or pads_with(op, number)):
        return False
    dims, dilations = dimensions_of(op)
    rest = [dim for dim in range(len(low)) if dim not in dims]
    if added.min() < 0 or added[rest].any():
        return False
    if any(added[dim].any() and step != 1 for dim, step in zip(dims, dilations, strict=True)):
        return False
    edges = edges_of(op, len(dims)) + added[dims]
    with op.context:
        kind = ir.IntegerType.get_signless(64)
        op.attributes["padding"] = to_attribute(edges, kind)
    op.operands[0] = pad.operands[0]
    fuse(op, [pad.location])
    if not list(pad.results[0].uses):
        pad.operation.erase()
    return True


def known_number(value: ir.Value) -> float | None:
    """The number of rank 0 that a constant is, None if it is none."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
        return None
    if not isinstance(value.type.element_type, ir.FloatType):
        return None
    return float(to_array(owner.attributes["value"]).reshape(()))


def pads_with(op: Op, number: float) -> bool:
    """Whether the windows of an operation see this number beside the operand."""
    if op.name == CONVOLUTION:
        return number == 0
    return len(op.operands) == 2 and known_number(op.operands[1]) == number


def is_relu(value: ir.Value) -> bool:
    """Whether a value is the larger of another and zeros."""
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "stablehlo.maximum":
        return False
    return any(zeros(operand) for operand in op.operands)


def zeros(value: ir.Value) -> bool:
    """Whether a value is a constant of zeros, or a zero that is repeated."""
    owner = value.owner
    if not isinstance(owner, ir.Block) and owner.name == "stablehlo.broadcast_in_dim":
        owner = owner.operands[0].owner
    if isinstance(owner, ir.Block) or owner.name != "stablehlo.constant":
        return False
    return not to_array(owner.attributes["value"]).any()


def takes_largest(op: Op, added: Array) -> bool:
    """Whether an operation is a maximum over windows of which each has a pixel that was not added
    around them.

    Args:
        added: [rank, 2], elements in front of and behind each dimension.
    """
    if op.name != WINDOWS or kind_of_body(op) != "max" or known_number(op.operands[1]) != -np.inf:
        return False
    edges = edges_of(op, len(added)) + added
    sizes = np.array(attribute(op, "window_dimensions"))
    dilated = any(step != 1 for step in attribute(op, "window_dilations") or [])
    return not dilated and bool((edges >= 0).all() and (edges < sizes[:, None]).all())


def dimensions_of(op: Op) -> tuple[list[int], list[int]]:
    """The dimensions of the operand that `padding` speaks of, in its order, and the dilation of the
    operand along each."""
    if op.name == CONVOLUTION:
        numbers = stablehlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        dims = list(numbers.input_spatial_dimensions)
        return dims, attribute(op, "lhs_dilation") or [1] * len(dims)
    rank = op.operands[0].type.rank
    return list(range(rank)), attribute(op, "base_dilations") or [1] * rank

"""stablehlo-expand-reduce: gives reductions over no dimensions one of size 1.

before:
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = []
        : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
after:
    %x1 = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
    %0 = stablehlo.reduce(%x1 init: %c) applies stablehlo.add across dimensions = [2]
        : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3xf32>

Such a reduction combines each element with the start value. Upstream's simplification takes it for
its operand, so this pass runs before it. Needs static shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class StablehloExpandReducePass(Pass):
    """Give reductions over no dimensions one of size 1."""

    NAME = "stablehlo-expand-reduce"

    def run(self, op: Op) -> None:
        for reduction in operations(op, "stablehlo.reduce"):
            if not attribute(reduction, "dimensions"):
                expand(reduction)


def expand(reduction: Op) -> None:
    """Adds a last dimension to the operands of `reduction`, and reduces it."""
    operands = list(reduction.operands)[: len(reduction.results)]
    if not all(v.type.has_static_shape for v in operands):
        return
    with reduction.location, ir.InsertionPoint(reduction):
        for i, value in enumerate(operands):
            kind = ir.RankedTensorType.get([*value.type.shape, 1], value.type.element_type)
            reduction.operands[i] = builder.op("stablehlo.reshape", [value], [kind]).result
    rank = operands[0].type.rank
    with reduction.context:
        reduction.attributes["dimensions"] = builder.as_attribute([rank])

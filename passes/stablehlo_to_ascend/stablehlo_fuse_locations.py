"""stablehlo-fuse-locations: of operations that compute the same, the first gets all places.

before:
    %0 = stablehlo.exponential %x : tensor<8xf32> loc("Exp_0")
    %1 = stablehlo.exponential %x : tensor<8xf32> loc("Exp_1")
after:
    %0 = stablehlo.exponential %x : tensor<8xf32> loc(fused["Exp_0", "Exp_1"])
    %1 = stablehlo.exponential %x : tensor<8xf32> loc("Exp_1")

`cse`, which runs after it, keeps the first one with its location only, and reports would name half
of the nodes that a kernel computes. Operations with regions and those that are not pure are left
alone.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from davinci.mlir import Op, ir, operations
from davinci.passes.analysis.origins import fuse, origins
from davinci.passes.pipeline.base import Pass, register_pass

IMPURE = frozenset(
    f"stablehlo.{name}"
    for name in ("custom_call", "infeed", "outfeed", "recv", "rng", "rng_bit_generator", "send")
)
"""Operations that two times in a row may give two things, or do two."""


@register_pass
@dataclass(frozen=True)
class StablehloFuseLocationsPass(Pass):
    """Give the first of equal operations the places of all."""

    NAME = "stablehlo-fuse-locations"

    def run(self, op: Op) -> None:
        for function in operations(op, "func.func"):
            for region in function.regions:
                for block in region.blocks:
                    fuse_equal(block)


def fuse_equal(block: ir.Block) -> None:
    """Equal are operations of one name, with equal attributes and types, on equal operands."""
    firsts: dict[Hashable, Op] = {}
    same: dict[ir.Value, ir.Value] = {}
    for view in block.operations:
        op = view.operation
        if not op.name.startswith("stablehlo.") or op.name in IMPURE or len(op.regions):
            continue
        attributes = tuple((name, op.attributes[name]) for name in op.attributes)
        operands = tuple(same.get(value, value) for value in op.operands)
        key = (op.name, operands, tuple(value.type for value in op.results), attributes)
        first = firsts.setdefault(key, op)
        if first is op:
            continue
        same.update(zip(op.results, first.results, strict=True))
        if not set(origins(op.location)) <= set(origins(first.location)):
            fuse(first, [op.location])

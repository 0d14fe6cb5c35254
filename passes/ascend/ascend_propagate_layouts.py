"""ascend-propagate-layouts: chooses the layouts of all values of a function by what they cost.

before:
    %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
    %1 = "ascend.add"(%0, %r) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %2 = "ascend.cast"(%1) : (tensor<8x4xf32>) -> tensor<8x4xf16>
    %3 = "ascend.matmul"(%2, %c) : (tensor<8x4xf16>, tensor<4x8xf16>) -> tensor<8x8xf32>
after, each tensor type but those of arguments and of %5 with #ascend.layout<"nz">:
    %0 = "ascend.matmul"(relayout(%a), relayout(%b))
    %1 = "ascend.add"(%0, relayout(%r))
    %2 = "ascend.cast"(%1)
    %3 = "ascend.matmul"(%2, relayout(%c))
    %5 = "ascend.relayout"(%3)

The cube works on fractals, so products take and give nz; most vector operators take either, and
what a model takes and returns lies in rows. `layout_choice` finds the fewest bytes and launches for
changes of layout; a value changes once for all its uses. Reshapes and transposes that are views in
nz (heads split and merged) become `view`. What has a layout already keeps it.

Needs products of types that the cube has (`ascend-legalize-precision`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.machine import Machine
from davinci.machine.views import multiplies_f32
from davinci.mlir import Op, ir, owner_of
from davinci.operators.products import CUBE_TYPES, PRODUCTS
from davinci.operators.tensors import ND, NZ
from davinci.passes import builder
from davinci.passes.analysis.origins import fuse
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.layout_choice import LayoutChoice, Layouts
from davinci.passes.ascend.layout_support import keeps_matrices
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    ON_CUBE,
    TensorOps,
    merge_equal,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, fail, option, register_pass


@register_pass
@dataclass(frozen=True)
class AscendPropagateLayoutsPass(Pass):
    """Choose the layouts of values."""

    NAME = "ascend-propagate-layouts"

    machine: str = option("ascend910", "machine file that the costs come from")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            free = mark_foldable(block)
            for operation in block.operations:
                if operation.operation.name in ON_CUBE:
                    require_cube_types(operation.operation, machine)
                if operation.operation.name in CONSTANTS:
                    free.add(operation.operation.results[0])
            Rewriter(block, free, LayoutChoice(block, free, machine).layouts())
            merge_equal(block)


def require_cube_types(product: Op, machine: Machine) -> None:
    """Fails unless the cube multiplies these element types."""
    a, b, c = (tensor_of(v.type).element for v in (*product.operands, product.result))
    singles = multiplies_f32(machine) and product.name.removeprefix("ascend.") in PRODUCTS
    types = {pair: made for pair, made in CUBE_TYPES.items() if singles or "f32" not in pair}
    if c not in types.get((a, b), ()):
        known = (f"{x} x {y} to {' or '.join(z)}" for (x, y), z in types.items())
        fail(
            product,
            "has element types that the cube has not",
            found=f"{a} x {b} to {c}",
            expected=", ".join(known),
            hint="ascend-legalize-precision brings f32 to f16",
        )


class Rewriter:
    """Gives the operations of a block the layouts that were chosen."""

    def __init__(self, block: ir.Block, free: set[ir.Value], layouts: Layouts) -> None:
        self._layouts = layouts
        self._made: dict[ir.Value, ir.Value] = {}
        self._changed: dict[tuple[ir.Value, str], ir.Value] = {}
        old = []
        for operation in list(block.operations):
            op = operation.operation
            if len(op.results) == 1 and op.results[0] in free:
                continue
            if op in layouts.in_nz:
                self._made[op.results[0]] = self._in_nz(op)
                old.append(op)
            else:
                for i, wanted in enumerate(self._wanted(op)):
                    op.operands[i] = self._get(op.operands[i], wanted, op)
        for op in reversed(old):
            op.erase()

    def _wanted(self, op: Op) -> list[str]:
        """The layouts in which an operation takes its operands."""
        if op in self._layouts.in_nz and op.name not in (*ON_CUBE, "ascend.broadcast"):
            return [NZ] * len(op.operands)
        return [
            NZ if (op, i) in self._layouts.operands_in_nz else tensor_of(operand.type).layout
            for i, operand in enumerate(op.operands)
        ]

    def _in_nz(self, op: Op) -> ir.Value:
        """The result of `op`, computed in nz."""
        result = replace(tensor_of(op.results[0].type), layout=NZ)
        if op.name == "ascend.reduce" and not keeps_matrices(op):
            result = replace(result, layout=ND)
        with op.location, ir.InsertionPoint(op):
            if op in self._layouts.views:
                source, how = self._layouts.views[op]
                value = self._get(source, NZ, op)
                if how.permutation == tuple(sorted(how.permutation)):
                    return TensorOps().emit("reshape", [value], result)
                keys = {"shape": list(how.shape), "permutation": list(how.permutation)}
                return TensorOps().emit("view", [value], result, **keys)
            wanted = self._wanted(op)
            operands = [self._get(v, w, op) for v, w in zip(op.operands, wanted, strict=True)]
            attributes = {key: op.attributes[key] for key in op.attributes}
            return builder.op(op.name, operands, [tensor_type(result)], **attributes).result

    def _get(self, value: ir.Value, layout: str, user: Op) -> ir.Value:
        """`value` in a layout: as it is made, or changed in front of its first user."""
        made = self._made.get(value, value)
        if tensor_of(made.type).layout == layout:
            return made
        key = made, layout
        if key not in self._changed:
            place = user.location if layout == NZ else made.owner.location
            with place, ir.InsertionPoint(user):
                self._changed[key] = TensorOps().relayout(made, layout)
        elif layout == NZ:
            owner = owner_of(self._changed[key])
            fuse(owner, [user.location])
        return self._changed[key]

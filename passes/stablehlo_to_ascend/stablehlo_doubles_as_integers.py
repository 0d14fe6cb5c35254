"""stablehlo-doubles-as-integers: moves f64 as the integers of the same bits.

before:
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>
    %1 = stablehlo.slice %0 [0:1, 0:2] : (tensor<3x2xf64>) -> tensor<1x2xf64>
after:
    %a = stablehlo.bitcast_convert %x : (tensor<2x3xf64>) -> tensor<2x3xi64>
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xi64>) -> tensor<3x2xi64>
    %b = stablehlo.slice %0 [0:1, 0:2] : (tensor<3x2xi64>) -> tensor<1x2xi64>
    %1 = stablehlo.bitcast_convert %b : (tensor<1x2xi64>) -> tensor<1x2xf64>

The vector unit has no f64, but integers of 64 bits as pairs of words. Bitcasts between the two are
views. Operations that compute with f64 stay those of the scalar unit.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.passes.ascend.tensor_ops import tensor_functions
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t

MOVES = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("broadcast_in_dim", "concatenate", "dynamic_slice", "dynamic_update_slice", "gather"),
        *("optimization_barrier", "pad", "reshape", "reverse", "select", "slice", "transpose"),
    )
)
"""Operations whose results are elements of their operands."""


@register_pass
@dataclass(frozen=True)
class StablehloDoublesAsIntegersPass(Pass):
    """Move f64 as integers of 64 bits."""

    NAME = "stablehlo-doubles-as-integers"

    def run(self, op: Op) -> None:
        for function in tensor_functions(op):
            rewriting = Doubles()
            for block in function.regions[0].blocks:
                for view in list(block.operations):
                    with function.context:
                        rewriting.rewrite(view.operation)


class Doubles:
    """Rewrites the operations of a function, but not those in regions, which loops of the scalar
    unit come from.

    Attributes:
        bits: of values of f64 met so far, as integers.
    """

    def __init__(self) -> None:
        self.bits: dict[ir.Value, ir.Value] = {}

    def rewrite(self, op: Op) -> None:
        if not any(is_double(value.type) for value in (*op.operands, *op.results)):
            return
        with op.location, ir.InsertionPoint(op):
            if op.name in MOVES or (op.name == "stablehlo.scatter" and overwrites(op)):
                self._move(op)

    def bits_of(self, value: ir.Value) -> ir.Value:
        """A value of f64 as integers of the same bits."""
        if value not in self.bits:
            owner = value.owner
            if not isinstance(owner, ir.Block) and owner.name == "stablehlo.constant":
                array = to_array(owner.attributes["value"])
                made = t.constant(array.view("i8"), ir.IntegerType.get_signless(64))
            else:
                made = t.op("bitcast_convert", [value], as_integers(value.type))
            self.bits[value] = made
        return self.bits[value]

    def _move(self, op: Op) -> None:
        """Puts the operation on integers in front of one, and its results as f64 in its place."""
        operands = [self.bits_of(v) if is_double(v.type) else v for v in op.operands]
        moved = op.operation.clone(ir.InsertionPoint(op))
        for place, value in enumerate(operands):
            moved.operands[place] = value
        values = [*moved.results]
        for region in moved.regions:
            values += [value for block in region.blocks for value in block.arguments]
        for value in values:
            if is_double(value.type):
                value.set_type(as_integers(value.type))
        for old, new in zip(op.results, moved.results, strict=True):
            if old.type != new.type:
                found = t.op("bitcast_convert", [new], old.type)
                self.bits[found] = new
                old.replace_all_uses_with(found)
            else:
                old.replace_all_uses_with(new)
        op.operation.erase()


def is_double(kind: ir.Type) -> bool:
    """Whether a type is a tensor of f64 of a static shape."""
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return False
    return isinstance(kind.element_type, ir.F64Type)


def as_integers(kind: ir.ShapedType) -> ir.RankedTensorType:
    """Tensors of integers of 64 bits, of the shape of another type."""
    return ir.RankedTensorType.get(kind.shape, ir.IntegerType.get_signless(64))


def overwrites(op: Op) -> bool:
    """Whether a scatter stores its updates as they are."""
    operations = [view.operation for view in op.regions[0].blocks[0].operations]
    arguments = list(op.regions[0].blocks[0].arguments)
    half = len(arguments) // 2
    return len(operations) == 1 and list(operations[0].operands) == arguments[half:]

"""stablehlo-widen-half: computes in f32 what the model computes in f16.

before:
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0]
        : (tensor<4096xf16>, tensor<f16>) -> tensor<f16>
    %1 = stablehlo.divide %0, %n : tensor<f16>
after:
    %x1 = stablehlo.convert %x : (tensor<4096xf16>) -> tensor<4096xf32>
    %c1, %n1 = stablehlo.convert %c, %n
    %0 = stablehlo.reduce(%x1 init: %c1) applies stablehlo.add across dimensions = [0]
        : (tensor<4096xf32>, tensor<f32>) -> tensor<f32>
    %1 = stablehlo.divide %0, %n1 : tensor<f32>
    %2 = stablehlo.convert %1 : (tensor<f32>) -> tensor<f16>

A sum of f16 values leaves the range of f16 where what divides it, or takes its root, brings it
back; so values between operations are f32 until something wants f16: a result of the function, a
conversion that the model itself makes, an operand of an operation that only carries its operands.
Products are widened as well: `ascend-legalize-precision` brings their operands back to f16 where
the policy wants that. What only moves or chooses among f16 values stays f16.
`fp16` leaves everything as it is; sums are accumulated in f32 inside kernels then.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.elements import to_array, to_attribute
from davinci.mlir import Op, ir
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import PRECISIONS

EXACT = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("abs", "broadcast_in_dim", "clamp", "compare", "concatenate", "dynamic_slice"),
        *("dynamic_update_slice", "gather", "is_finite", "maximum", "minimum", "negate", "pad"),
        *("reshape", "reverse", "select", "sign", "slice", "sort", "transpose"),
    )
)
"""Operations that round nothing: they stay f16 unless an operand has been computed in f32."""

COMBINE = frozenset(
    f"stablehlo.{name}" for name in ("reduce", "reduce_window", "scatter", "select_and_scatter")
)
"""Operations that round if an operation of their body does."""

CARRIERS = frozenset(
    f"stablehlo.{name}"
    for name in (
        *("bitcast_convert", "case", "composite", "constant", "convert", "custom_call", "if"),
        *("iota", "return", "while"),
    )
)
"""Operations whose operands and results keep their types."""


@register_pass
@dataclass(frozen=True)
class StablehloWidenHalfPass(Pass):
    """Compute in f32 what the model computes in f16."""

    NAME = "stablehlo-widen-half"

    precision: str = option("mixed", "fp16 leaves everything as it is", PRECISIONS)

    def run(self, op: Op) -> None:
        if self.precision == "fp16":
            return
        for operation in op.regions[0].blocks[0].operations:
            if operation.operation.name == "func.func":
                for block in operation.regions[0].blocks:
                    widen_block(block, {})


def widen_block(block: ir.Block, wide: dict[ir.Value, ir.Value]) -> None:
    """Widens the operations of `block`; `wide` has the f32 value of each f16 one computed so."""
    narrowed: list[Op] = []
    for view in list(block.operations):
        op = view.operation
        if op.name in CARRIERS or op.name.partition(".")[0] not in ("stablehlo", "chlo"):
            carry(op, wide)
            continue
        operands = [v for v in op.operands if is_half(v)]
        if is_exact(op) and not any(v in wide for v in operands):
            continue
        if operands or any(is_half(v) for v in op.results):
            narrowed += widen(op, wide)
    for convert in reversed(narrowed):
        if not list(convert.result.uses):
            convert.erase()


def is_exact(op: Op) -> bool:
    """Whether every result of `op` is one of the f16 values that it takes."""
    if op.name not in COMBINE:
        return op.name in EXACT
    inner = [view.operation.name for region in op.regions for b in region.blocks for view in b]
    return all(name in EXACT or name == "stablehlo.return" for name in inner)


def carry(op: Op, wide: dict[ir.Value, ir.Value]) -> None:
    """Widens inside the regions of `op`; a conversion to f32 of what is f32 already goes."""
    for region in op.regions:
        for block in region.blocks:
            widen_block(block, wide)
    if op.name != "stablehlo.convert" or op.operands[0] not in wide:
        return
    value = wide[op.operands[0]]
    if value.type == op.result.type:
        op.result.replace_all_uses_with(value)
        op.erase()
    else:
        op.operands[0] = value


def widen(op: Op, wide: dict[ir.Value, ir.Value]) -> list[Op]:
    """Makes the f16 operands, results and regions of `op` f32; returns the conversions back."""
    for i, value in enumerate(op.operands):
        if is_half(value):
            op.operands[i] = widened(value, wide, op)
    for region in op.regions:
        for block in region.blocks:
            widen_region(block, wide, op)
    narrowed: list[Op] = []
    for result in op.results:
        if is_half(result):
            half = result.type
            result.set_type(float32(half))
            with op.location, ir.InsertionPoint.after(op):
                convert = builder.op("stablehlo.convert", [result], [half])
            result.replace_all_uses_except(convert.result, convert)
            wide[convert.result] = result
            narrowed.append(convert)
    return narrowed


def widen_region(block: ir.Block, wide: dict[ir.Value, ir.Value], owner: Op) -> None:
    """Makes every f16 value in a region of `owner`, the body of a reduction, f32."""
    for argument in block.arguments:
        if is_half(argument):
            argument.set_type(float32(argument.type))
    for view in block.operations:
        op = view.operation
        for i, value in enumerate(op.operands):
            if is_half(value):  # from outside
                op.operands[i] = widened(value, wide, owner)
        for region in op.regions:
            for inner in region.blocks:
                widen_region(inner, wide, owner)
        for result in op.results:
            if is_half(result):
                result.set_type(float32(result.type))
        if op.name == "stablehlo.constant":
            element = op.result.type.element_type
            if op.attributes["value"].type.element_type != element:
                array = to_array(op.attributes["value"])
                op.attributes["value"] = to_attribute(array.astype("float32"), element)


def widened(value: ir.Value, wide: dict[ir.Value, ir.Value], user: Op) -> ir.Value:
    """The f32 value of an f16 one, in front of `user`."""
    if value in wide:
        return wide[value]
    with user.location, ir.InsertionPoint(user):
        return builder.op("stablehlo.convert", [value], [float32(value.type)]).result


def is_half(value: ir.Value) -> bool:
    shaped = value.type
    return isinstance(shaped, ir.RankedTensorType) and isinstance(shaped.element_type, ir.F16Type)


def float32(tensor_type: ir.RankedTensorType) -> ir.RankedTensorType:
    """The same tensor type with elements of f32."""
    return ir.RankedTensorType.get(tensor_type.shape, ir.F32Type.get(tensor_type.context))

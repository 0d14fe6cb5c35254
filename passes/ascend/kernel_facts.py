"""What reports say of a kernel: a label that people can read, and the work its operator means.

    matmul of 17x33 by 33x5     ascend.label = "matmul 17x5x33 f16"
                                ascend.work = {macs = 2805, factor_bits = 16,
                                               read_bytes = 1452, write_bytes = 340}

The work (`davinci.operators.work.Work`) is that of the operator, not what a kernel of it happens to
do: a convolution has its multiply-accumulates on the scalar unit too.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.for_readers import for_readers
from davinci.mlir import Op, ir, stablehlo
from davinci.operators import OPERATORS, Call, Tensor
from davinci.operators.products import PRODUCTS
from davinci.operators.tensors import NZ
from davinci.operators.work import OperatorWork, computed, moved, partly_read, traffic
from davinci.passes import builder

MOVES = frozenset(
    [
        *("broadcast_in_dim", "concatenate", "constant", "dynamic_slice", "dynamic_update_slice"),
        *("gather", "iota", "pad", "reshape", "reverse", "scatter", "slice", "transpose"),
    ]
)
"""Operations of StableHLO that compute nothing."""

PARTLY_READ = frozenset({"dynamic_slice", "gather", "slice"})
"""Operations of StableHLO that read no more of their first operand than they return."""

RESHAPING = frozenset(
    [
        *("broadcast", "broadcast_in_dim", "dynamic_slice", "gather", "pad", "reduce"),
        *("reduce_window", "slice", "transpose"),
    ]
)
"""Operators whose label shows the shapes of operand and result."""


@dataclass(frozen=True)
class KernelFacts:
    """Label and work of a kernel."""

    label: str
    work: OperatorWork

    def mark(self, kernel: Op) -> None:
        """Writes both onto the function `kernel`."""
        given = {key: value for key, value in asdict(self.work).items() if value}
        if not self.work.macs:
            del given["factor_bits"]
        numbers = {key: builder.as_attribute(value) for key, value in given.items()}
        kernel.attributes["ascend.label"] = ir.StringAttr.get(self.label)
        kernel.attributes["ascend.work"] = ir.DictAttr.get(numbers)


@dataclass(frozen=True)
class Described:
    """An operation of either dialect; its name is without the dialect."""

    name: str
    call: Call
    work: OperatorWork

    @property
    def facts(self) -> KernelFacts:
        return KernelFacts(self.label, self.work)

    @property
    def label(self) -> str:
        """Name, shape and element type: `matmul 128x768x768 f16` (m, n, k), `add 1x768 f32`."""
        call, given = self.call, self.call.attributes
        kind = given.get("kind") or given.get("predicate", "").lower()
        name = f"{self.name} {kind}" if kind else self.name
        source, result = (call.inputs or call.outputs)[0], (call.outputs or call.inputs)[0]
        if self.name in PRODUCTS:
            return f"{name} {by(PRODUCTS[self.name].sizes(call))} {source.element}"
        if self.work.macs:
            return f"{name} {by(source.shape)} * {by(call.inputs[1].shape)} {source.element}"
        if self.name in ("cast", "convert"):
            return f"{name} {by(result.shape)} {source.element} -> {result.element}"
        if self.name == "fractalize":
            return f"{name} {by(source.shape)} {source.element}"
        if self.name in RESHAPING:
            return f"{name} {by(source.shape)} -> {by(result.shape)} {result.element}"
        compared = self.name == "compare"
        return f"{name} {by(result.shape)} {(source if compared else result).element}"


@for_readers(lambda name, call: KernelFacts(name, OperatorWork()))
def facts_of(name: str, call: Call) -> KernelFacts:
    """Label and work of an operator of ascend."""
    return Described(kernel_name(name, call.outputs[0]), call, OPERATORS[name].work(call)).facts


def kernel_name(name: str, result: Tensor) -> str:
    """What an operator is called in names of kernels: a change of layout by its direction."""
    if name != "relayout":
        return name
    return "fractalize" if result.layout == NZ else "defractalize"


@for_readers(lambda name, function: KernelFacts(name, OperatorWork()))
def facts_of_function(name: str, function: Op) -> KernelFacts:
    """Label and work of a function of StableHLO operations on tensors: all of its operations.

    Args:
        name: of the operator that it stands for.
        function: a `func.func` with a body.
    """
    block = function.regions[0].blocks[0]
    found = [described(op.operation) for op in block.operations if is_computed(op.operation)]
    if len(found) == 1:
        return found[0].facts
    terminator = block.operations[len(block.operations) - 1].operation
    call = Call(
        tuple(tensor_of(argument.type) for argument in block.arguments),
        tuple(tensor_of(value.type) for value in terminator.operands),
    )
    factor_bits = max((part.work.factor_bits for part in found if part.work.macs), default=16)
    macs, repeats = (
        sum(getattr(x.work, count) for x in found) for count in ("macs", "vector_repeats")
    )
    whole = Described(name, call, OperatorWork(macs, factor_bits, repeats, *traffic(call)))
    # A product's conversions of its operands are no part of its name.
    named = next((part for part in found if part.work.macs), replace(whole, work=OperatorWork()))
    return KernelFacts(named.label, whole.work)


def is_computed(op: Op) -> bool:
    """Whether an operation of a function computes something from tensors at run time."""
    tensors = [v for v in op.results if isinstance(v.type, ir.RankedTensorType)]
    return bool(tensors) and not op.name.endswith(".constant")


def described(op: Op) -> Described:
    """An operation of StableHLO on tensors."""
    operands, results = (
        tuple(tensor_of(v.type) for v in values if isinstance(v.type, ir.RankedTensorType))
        for values in (op.operands, op.results)
    )
    call, name = Call(operands, results), op.name.partition(".")[2]
    macs = macs_of(name, call, op.attributes)
    if macs:
        bits = 8 if operands[0].bytes_each == 1 else 16  # the cube has no wider factors
        return Described(name, call, OperatorWork(macs, bits, 0, *traffic(call)))
    work_of = partly_read if name in PARTLY_READ else moved if name in MOVES else computed
    return Described(name, call, work_of(call))


def macs_of(name: str, call: Call, attributes: ir.OpAttributeMap) -> int:
    """Multiply-accumulates of a product or convolution; 0 of other operations."""
    result = call.outputs[0].count if call.outputs else 0
    if name == "convolution":
        weights = call.inputs[1]
        convolved = stablehlo.ConvDimensionNumbers(attributes["dimension_numbers"])
        features = weights.shape[convolved.kernel_output_feature_dimension]
        return int(result * weights.count // max(1, features))
    if name == "dot_general":
        numbers = stablehlo.DotDimensionNumbers(attributes["dot_dimension_numbers"])
        inner = numbers.lhs_contracting_dimensions
        return int(result * math.prod(call.inputs[0].shape[i] for i in inner))
    return result * call.inputs[0].shape[-1] if name == "dot" else 0


def by(shape: tuple[int, ...]) -> str:
    """`128x768`; `scalar` of no dimensions."""
    return "x".join(map(str, shape)) or "scalar"

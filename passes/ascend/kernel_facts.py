"""What reports say of a kernel: a label that people can read, and the work its operator means.

    matmul of 17x33 by 33x5     ascend.label = "matmul 17x5x33 f16"
                                ascend.work = {macs = 2805, factor_bits = 16,
                                               read_bytes = 1452, write_bytes = 340}

The work is that of the operator, not what a kernel of it happens to do: a convolution has its
multiply-accumulates on the scalar unit too. It is the least that any kernel must do:

* `macs`: multiply-accumulates, of factors of `factor_bits` bits;
* `vector_repeats`: one for each 256 bytes of the widest operand or result of what is computed
  element by element; operators that only move data have none;
* `read_bytes`, `write_bytes`: what is read of each operand, and each result, once, without padding.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from davinci.dialects.ascend_rules import TRANSPOSE_A, TRANSPOSE_B, matrix_sizes, stored_sizes
from davinci.dialects.ascend_shapes import Tensor, tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import ir, stablehlo
from davinci.passes import builder
from davinci.units import REPEAT_BYTES, ceil_div

SIZES = "ascend.sizes"
"""Attribute of a product of fractals: its [m, n, k] without padding."""

MOVES = frozenset(
    [
        *("broadcast", "broadcast_in_dim", "concat", "concatenate", "constant", "copy"),
        *("defractalize", "dynamic_slice", "dynamic_update_slice", "fractalize", "gather", "iota"),
        *("pad", "relayout", "reshape", "reverse", "scatter", "slice", "transpose", "view"),
    ]
)
"""Operators that compute nothing, by their names in ascend and StableHLO."""

PARTLY_READ = frozenset({"dynamic_slice", "gather", "slice"})
"""Operators that read no more of their first operand than they return."""

RESHAPING = frozenset(
    [
        *("broadcast", "broadcast_in_dim", "dynamic_slice", "gather", "pad", "reduce"),
        *("reduce_window", "slice", "transpose"),
    ]
)
"""Operators whose label shows the shapes of operand and result."""


@dataclass(frozen=True)
class Work:
    """See the head of the module; what is 0 is left out of the attribute."""

    macs: int = 0
    factor_bits: int = 16
    vector_repeats: int = 0
    read_bytes: int = 0
    write_bytes: int = 0


@dataclass(frozen=True)
class Facts:
    """Label and work of a kernel."""

    label: str
    work: Work

    def mark(self, kernel: Any) -> None:
        """Writes both onto the function `kernel`."""
        given = {key: value for key, value in asdict(self.work).items() if value}
        if not self.work.macs:
            del given["factor_bits"]
        numbers = {key: builder.as_attribute(value) for key, value in given.items()}
        kernel.attributes["ascend.label"] = ir.StringAttr.get(self.label)
        kernel.attributes["ascend.work"] = ir.DictAttr.get(numbers)


@dataclass(frozen=True)
class Operator:
    """An operator of either dialect, on values of known shapes.

    Attributes:
        name: without its dialect.
        operands, results: the shapes.
        attributes: anything that has MLIR attributes by name: an operation, a dictionary.
    """

    name: str
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    attributes: Any

    def given(self, name: str) -> Any:
        """The Python value of an attribute; None if there is none."""
        return attribute(self, name)

    @property
    def facts(self) -> Facts:
        read_bytes, write_bytes = self._traffic()
        work = Work(self.macs, self.factor_bits, self.vector_repeats, read_bytes, write_bytes)
        return Facts(self.label, work)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of a product or convolution; 0 of other operators."""
        if self.name in ("matmul", "batch_matmul"):
            return math.prod(self.product_sizes)
        result = self.results[0].count if self.results else 0
        if self.name == "convolution":
            weights = self.operands[1]
            numbers = stablehlo.ConvDimensionNumbers(self.attributes["dimension_numbers"])
            features = weights.shape[numbers.kernel_output_feature_dimension]
            return int(result * weights.count // max(1, features))
        if self.name == "dot_general":
            dot = stablehlo.DotDimensionNumbers(self.attributes["dot_dimension_numbers"])
            inner = dot.lhs_contracting_dimensions
            return int(result * math.prod(self.operands[0].shape[i] for i in inner))
        if self.name == "dot":
            return result * self.operands[0].shape[-1]
        return 0

    @property
    def factor_bits(self) -> int:
        """8 for products of bytes, else 16: the cube has no wider factors."""
        return 8 if self.macs and bytes_each(self.operands[0]) == 1 else 16

    @property
    def product_sizes(self) -> tuple[int, ...]:
        """[batch, m, n, k] of a product, m, n and k with padding if nothing else is known."""
        a, b = self.operands
        batch = a.shape[: a.rank - (4 if self.in_fractals else 2)]
        if sizes := self.given(SIZES):
            return (*batch, *sizes)
        (m, k), (_, n) = (
            matrix_sizes(
                stored_sizes(x) if self.in_fractals else x.shape, self.given(flag) is not None
            )
            for x, flag in ((a, TRANSPOSE_A), (b, TRANSPOSE_B))
        )
        return (*batch, m, n, k)

    @property
    def in_fractals(self) -> bool:
        """Whether a product takes fractals, rather than rows."""
        return self.operands[0].rank >= 4

    @property
    def vector_repeats(self) -> int:
        if self.macs or self.name in MOVES:
            return 0
        widest = max((size_bytes(value) for value in (*self.operands, *self.results)), default=0)
        return ceil_div(widest, REPEAT_BYTES)

    def _traffic(self) -> tuple[int, int]:
        """Bytes read and written at least."""
        if self.name in ("matmul", "batch_matmul"):
            *batch, m, n, k = self.product_sizes
            count = math.prod(batch)
            factors = bytes_each(self.operands[0]) * (m * k + k * n)
            return count * factors, count * m * n * bytes_each(self.results[0])
        reads = [size_bytes(operand) for operand in self.operands]
        write_bytes = sum(size_bytes(result) for result in self.results)
        if self.name in PARTLY_READ and reads:
            reads[0] = min(reads[0], write_bytes)
        return sum(reads), write_bytes

    @property
    def label(self) -> str:
        """Name, shape and element type: `matmul 128x768x768 f16` (m, n, k), `add 1x768 f32`."""
        kind = self.given("kind") or (self.given("predicate") or "").lower()
        name = f"{self.name} {kind}" if kind else self.name
        if self.name in ("matmul", "batch_matmul"):
            return f"{name} {by(self.product_sizes)} {self.operands[0].element}"
        source, result = (self.operands or self.results)[0], (self.results or self.operands)[0]
        if self.macs:
            return f"{name} {by(source.shape)} * {by(self.operands[1].shape)} {source.element}"
        if self.name == "cast" or self.name == "convert":
            return f"{name} {by(result.shape)} {source.element} -> {result.element}"
        if self.name == "fractalize":
            return f"{name} {by(source.shape)} {source.element}"
        if self.name in RESHAPING:
            return f"{name} {by(source.shape)} -> {by(result.shape)} {result.element}"
        compared = self.name == "compare"
        return f"{name} {by(result.shape)} {(source if compared else result).element}"


def facts_of_function(name: str, function: Any) -> Facts:
    """Label and work of a function of StableHLO operations on tensors: all of its operations.

    Args:
        name: of the operator that it stands for.
        function: a `func.func` with a body.
    """
    block = function.regions[0].blocks[0]
    found = [operator_of(op.operation) for op in block.operations if is_computed(op.operation)]
    if len(found) == 1:
        return found[0].facts
    inputs = tuple(tensor_of(argument.type) for argument in block.arguments)
    terminator = block.operations[len(block.operations) - 1].operation
    outputs = tuple(tensor_of(value.type) for value in terminator.operands)
    whole = Operator(name, inputs, outputs, {})
    read_bytes, write_bytes = whole._traffic()
    factor_bits = max((part.factor_bits for part in found if part.macs), default=16)
    macs, repeats = sum(x.macs for x in found), sum(x.vector_repeats for x in found)
    # A product's conversions of its operands are no part of its name.
    named = next((part for part in found if part.macs), whole)
    return Facts(named.label, Work(macs, factor_bits, repeats, read_bytes, write_bytes))


def is_computed(op: Any) -> bool:
    """Whether an operation of a function computes something from tensors at run time."""
    tensors = [v for v in op.results if isinstance(v.type, ir.RankedTensorType)]
    return bool(tensors) and not op.name.endswith(".constant")


def operator_of(op: Any) -> Operator:
    """An operation on tensors."""
    operands, results = (
        tuple(tensor_of(v.type) for v in values if isinstance(v.type, ir.RankedTensorType))
        for values in (op.operands, op.results)
    )
    return Operator(op.name.partition(".")[2], operands, results, op.attributes)


def bytes_each(tensor: Tensor) -> int:
    """Bytes of an element in global memory."""
    element = tensor.element
    if isinstance(element, ir.ComplexType):
        return int(2 * element.element_type.width // 8)
    return int(max(8, element.width) // 8)


def size_bytes(tensor: Tensor) -> int:
    return tensor.count * bytes_each(tensor)


def by(shape: tuple[int, ...]) -> str:
    """`128x768`; `scalar` of no dimensions."""
    return "x".join(map(str, shape)) or "scalar"

"""Powers of integers as products, for scalar kernels.

Upstream's loops look at six bits of the exponent and take a large unsigned one for negative.
"""

from __future__ import annotations

from davinci import elements
from davinci.dialects.ascend_types import element_type, tensor_of
from davinci.mlir import Op, ir, operations
from davinci.operators.tensors import is_integer
from davinci.passes import builder
from davinci.passes.stablehlo_to_ascend import tensors as t


def expand_integer_powers(root: Op) -> None:
    """Replaces each `stablehlo.power` of integers in `root` by products modulo 2^bits."""
    for op in operations(root, "stablehlo.power"):
        if not is_integer(tensor_of(op.result.type).element):
            continue
        with op.location, ir.InsertionPoint(op):
            op.result.replace_all_uses_with(Integers(op.result.type).power(*op.operands))
        op.erase()


class Integers:
    """Builds StableHLO operations on tensors of one integer type."""

    def __init__(self, kind: ir.RankedTensorType) -> None:
        self._kind = kind
        self._element = ir.IntegerType(element_type(tensor_of(kind).element))

    def power(self, base: ir.Value, exponent: ir.Value) -> ir.Value:
        """By squaring, one step a bit of the exponent.

        With a negative exponent 1 and -1 go the same way, since only its lowest bit matters; of
        other bases the result is 0, as StableHLO's interpreter has it for 0, too.
        """
        one = self._constant(1)
        result, square, bits = one, base, exponent
        for _ in range(self._element.width):
            odd = t.compare("EQ", self._op("and", bits, one), one)
            result = self._select(odd, self._op("multiply", result, square), result)
            square = self._op("multiply", square, square)
            bits = self._op("shift_right_logical", bits, one)
        if self._element.is_unsigned:
            return result
        unit = t.compare("EQ", self._op("abs", base), one)
        zero = self._constant(0)
        return self._select(
            t.compare("LT", exponent, zero), self._select(unit, result, zero), result
        )

    def _op(self, name: str, *operands: ir.Value) -> ir.Value:
        return builder.op(f"stablehlo.{name}", operands, [self._kind]).result

    def _constant(self, number: int) -> ir.Value:
        value = elements.scalar_attribute(number, self._element)
        splat = ir.DenseElementsAttr.get_splat(self._kind, value)
        return builder.op("stablehlo.constant", [], [self._kind], value=splat).result

    def _select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        return self._op("select", condition, a, b)

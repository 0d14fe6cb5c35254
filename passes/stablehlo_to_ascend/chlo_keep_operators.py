"""chlo-keep-operators: keeps operations that upstream would expand, and ascend has an operator for.

before:
    %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
    %1 = stablehlo.composite "chlo.erf" %x {decomposition = @erf} : ...
    %2 = stablehlo.composite "ascend.hard_swish" %x {decomposition = @hard_swish} : ...
after:
    %0 = stablehlo.custom_call @chlo.erf(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.custom_call @chlo.erf(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = stablehlo.custom_call @ascend.hard_swish(%x) : (tensor<4xf32>) -> tensor<4xf32>

A composite may name any elementwise operator of ascend that needs no attributes. Runs before
`chlo-legalize-to-stablehlo` and `stablehlo-legalize-composite-to-call`, which expand all others.
What the vector unit cannot do, in f64, is left to them.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, operations
from davinci.operators import OPERATORS, Operator
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend.elementwise import CHLO

KEPT = frozenset(f"chlo.{name}" for name in CHLO)
"""The operations of CHLO for which the ascend dialect has an operator."""

MOST_BITS = 32
"""Width of the floats that the operators take; narrower ones are widened."""


@register_pass
@dataclass(frozen=True)
class ChloKeepOperatorsPass(Pass):
    """Make custom calls of CHLO operations that have an ascend operator."""

    NAME = "chlo-keep-operators"

    def run(self, op: Op) -> None:
        for found in operations(op, "stablehlo.composite", *sorted(KEPT)):
            name = found.name
            if name == "stablehlo.composite":
                name = str(attribute(found, "name"))
            record = OPERATORS.get(name.removeprefix("ascend."))
            if name in KEPT or (record and is_of_one_type(record, name, found)):
                element = found.results[0].type.element_type
                if isinstance(element, ir.FloatType) and element.width <= MOST_BITS:
                    keep(found, name)


def is_of_one_type(record: Operator, name: str, op: Op) -> bool:
    """Whether a composite called `name` means an elementwise operator on values of one type."""
    named = name.startswith("ascend.") and record.elementwise and not record.required
    alike = {value.type for value in (*op.operands, *op.results)}
    return named and len(op.operands) == len(record.operands) and len(alike) == 1


def keep(op: Op, name: str) -> None:
    """Replaces `op`, of one operand and result, by a custom call of `name`."""
    with op.location, ir.InsertionPoint(op):
        types = [result.type for result in op.results]
        call = builder.op("stablehlo.custom_call", list(op.operands), types, call_target_name=name)
    op.results[0].replace_all_uses_with(call.result)
    op.erase()

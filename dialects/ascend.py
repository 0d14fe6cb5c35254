"""The ascend dialect: operators on whole tensors.

The operations are made from the records of `davinci.operators`; nothing about an operator is
written here. Every operation has two forms. On tensors it has one result: `%r = "ascend.add"(%a,
%b)`. On buffers in GM it has none and its outputs are its last operands: `"ascend.add"(%a, %b,
%r)`. Booleans are `i1` on tensors and bytes 0 and 1 in buffers. The numbered constraints of a
record hold for both forms. Operations print in generic form.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute_of, python_value, verifier
from davinci.errors import require
from davinci.mlir import ext, ir, type_text
from davinci.operators import OPERATORS, Call, Operator, Tensor

Operand = ext.Operand
Result = ext.Result


class Ascend(ext.Dialect, name="ascend"):
    """Operators on tensors or GM buffers."""


class LayoutAttr(Ascend.Attribute, name="layout"):
    """How the elements of a tensor lie in GM: `tensor<512x768xf16, #ascend.layout<"nz">>`.

    "nz" is [.., ceil(n/c), ceil(m/16), 16, c] for a tensor [.., m, n], padded with zeros: fractals
    of 16 rows of c elements, c = 32 for 8-bit types, else 16. Without the attribute rows lie one
    after the other.
    """

    layout: ir.StringAttr


def record_of(op: Any) -> Operator:
    """The record of an ascend operation."""
    return OPERATORS[op.operation.name.removeprefix("ascend.")]


def call_of(op: Any) -> Call:
    """An ascend operation of either form as plain data.

    Raises:
        Invalid: it has another number of operands or results, or one that is no static array.
    """
    inputs = len(record_of(op).operands)
    operands = [tensor_of(v.type) for v in op.operands]
    results = [tensor_of(v.type) for v in op.results]
    buffers = any(isinstance(v.type, ir.MemRefType) for v in [*op.operands, *op.results])
    require(
        len(operands) + len(results) == inputs + 1 and len(results) <= 1,
        "number of operands",
        f"{len(operands)} and {len(results)} results",
        f"{inputs} and one result, or {inputs + 1} buffers",
    )
    given = {name: attribute_of(op, name) for name in op.attributes}
    return Call(
        tuple(operands[:inputs]),
        tuple(results or operands[-1:]),
        {name: python_value(attr) for name, attr in given.items()},
        buffers,
        {name: kind for name, attr in given.items() if (kind := type_of(attr))},
    )


def type_of(attr: Any) -> Tensor | None:
    """The type of an attribute, None if it has none."""
    kind = getattr(attr, "type", None)
    if isinstance(kind, ir.ShapedType):
        return Tensor(tuple(kind.shape), type_text(kind.element_type))
    return None if kind is None else Tensor((), str(kind))


class AscendOp(Ascend.Operation):
    """Verified by the operator's record; the subclasses give the number of inputs.

    The operand that is missing on tensors and the result that is missing on buffers are optional.
    There are no lists of operands: IRDL would want one type for all of them.
    """

    @verifier
    def verify_invariants(self) -> None:
        record_of(self).check(call_of(self))


def description(record: Operator) -> str:
    """The documentation of an operation: what it computes, and its constraints."""
    numbered = (f"C{i} {c.__doc__}" for i, c in enumerate(record.constraints, 1))
    return "\n".join([record.doc, "", *numbered])


def _define(record: Operator) -> type:
    """The operation class of an operator."""
    inputs: dict[str, Any] = dict.fromkeys(record.operands, Operand[Any])
    namespace = {
        "__doc__": description(record),
        "__module__": __name__,
        "__annotations__": {**inputs, "out": Operand[Any] | None, "result": Result[Any] | None},
    }
    class_name = "".join(part.capitalize() for part in record.name.split("_")) + "Op"
    return type(class_name, (AscendOp,), namespace, name=record.name)


OPERATIONS: dict[str, type] = {name: _define(record) for name, record in OPERATORS.items()}
"""Operation classes by operator name."""

"""The ascend dialect: operators on whole tensors.

The operations are made from the records of `davinci.operators`; nothing about an operator is
written here. Every operation is on tensors and has one result: `%r = "ascend.add"(%a, %b)`.
Operations print in generic form.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute_of, python_value, verifier
from davinci.errors import require
from davinci.mlir import Op, ext, ir, type_text
from davinci.operators import OPERATORS, Call, Operator, Tensor

Operand = ext.Operand
Result = ext.Result


class Ascend(ext.Dialect, name="ascend"):
    """Operators on tensors."""


class LayoutAttr(Ascend.Attribute, name="layout"):
    """How the elements of a tensor lie in GM: `tensor<512x768xf16, #ascend.layout<"nz">>`.

    "nz" is [.., ceil(n/c), ceil(m/16), 16, c] for a tensor [.., m, n], padded with zeros: fractals
    of 16 rows of c elements, c = 32 for 8-bit types, else 16. Without the attribute rows lie one
    after the other.
    """

    layout: ir.StringAttr


def record_of(op: Op) -> Operator:
    """The record of an ascend operation."""
    return OPERATORS[op.operation.name.removeprefix("ascend.")]


def call_of(op: Op) -> Call:
    """An ascend operation as plain data.

    Raises:
        Invalid: it has another number of operands or results, or one that is no static tensor.
    """
    inputs = len(record_of(op).operands)
    values = [*op.operands, *op.results]
    require(
        len(op.operands) == inputs and len(op.results) == 1,
        "number of operands",
        f"{len(op.operands)} and {len(op.results)} results",
        f"{inputs} and one result",
    )
    for value in values:
        tensor = not isinstance(value.type, ir.MemRefType)
        require(tensor, "operand or result type", value.type, "a tensor")
    *operands, result = (tensor_of(value.type) for value in values)
    found = ((name, attribute_of(op, name)) for name in op.attributes)
    given = {name: attr for name, attr in found if attr is not None}
    return Call(
        tuple(operands),
        (result,),
        {name: python_value(attr) for name, attr in given.items()},
        {name: kind for name, attr in given.items() if (kind := type_of(attr))},
    )


def type_of(attr: ir.Attribute) -> Tensor | None:
    """The type of an attribute, None if it has none."""
    kind = getattr(attr, "type", None)
    if isinstance(kind, ir.ShapedType):
        return Tensor(tuple(kind.shape), type_text(kind.element_type))
    return None if kind is None else Tensor((), str(kind))


class AscendOp(Ascend.Operation):
    """Verified by the operator's record; the subclasses give the number of inputs.

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
        "__annotations__": {**inputs, "result": Result[Any]},
    }
    class_name = "".join(part.capitalize() for part in record.name.split("_")) + "Op"
    return type(class_name, (AscendOp,), namespace, name=record.name)


OPERATIONS: dict[str, type] = {name: _define(record) for name, record in OPERATORS.items()}
"""Operation classes by operator name."""

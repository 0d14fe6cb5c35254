"""The ascend operators: kind, number of inputs, element types and constraints of each, in `OPS`.

The operations of the dialect (`ascend.py`) are verified by these entries, and lowerings read them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from davinci.dialects import ascend_rules as rules
from davinci.dialects.ascend_shapes import Call, missing
from davinci.dialects.base import attribute, require
from davinci.mlir import ir

PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True)
class OpInfo:
    """What is known of an operator apart from its constraints.

    Attributes:
        name: without the dialect, e.g. `add`.
        inputs: number of inputs.
        kind: "binary", "unary", "ternary" for elementwise operators, else the operator's name.
        types: "float", "integer" or "any" element types of the inputs.
        check: raises `Invalid` if an operation breaks a constraint.
    """

    name: str
    inputs: int
    kind: str
    types: str
    check: Callable[[Call], None]

    @property
    def elementwise(self) -> bool:
        return self.kind in ("binary", "unary", "ternary")


OPS: dict[str, OpInfo] = {}
"""Every operator by name."""


def check_same(call: Call) -> None:
    """All inputs and the output have one shape and element type."""
    first = call.inputs[0]
    for i, operand in enumerate(call.inputs[1:], 1):
        require(operand == first, f"type of operand {i}", operand, first)
    call.expect_output(first.shape, first.element)


def check_compare(call: Call) -> None:
    a, b = call.inputs
    call.choice("predicate", PREDICATES)
    require(a == b, "type of operand 1", b, a)
    call.expect_output(a.shape, ir.IntegerType.get_signless(1))


def check_select(call: Call) -> None:
    condition, a, b = call.inputs
    call.same_element("the condition", condition.element, ir.IntegerType.get_signless(1))
    require(condition.shape == a.shape, "shape of the condition", condition, list(a.shape))
    require(a == b, "type of operand 2", b, a)
    call.expect_output(a.shape, a.element)


def check_cast(call: Call) -> None:
    call.expect_output(call.inputs[0].shape, call.outputs[0].element)


def check_cube_scale(call: Call) -> None:
    single = ir.F32Type.get()
    call.same_element("the operand", call.inputs[0].element, single)
    call.expect_output(call.inputs[0].shape, single)


def check_half_part(call: Call) -> None:
    part = attribute(call.op, "part")
    require(part in (0, 1, 2), "attribute 'part'", missing(part), "0, 1 or 2")
    call.same_element("the operand", call.inputs[0].element, ir.F32Type.get())
    call.expect_output(call.inputs[0].shape, ir.F16Type.get())


def operator(
    name: str, inputs: int, kind: str, check: Callable[[Call], None], types: str = "any"
) -> None:
    OPS[name] = OpInfo(name, inputs, kind, types, check)


for _name in ("add", "sub", "mul", "div", "max", "min"):
    operator(_name, 2, "binary", check_same)
operator("pow", 2, "binary", check_same, "float")
for _name in ("and", "or", "xor"):
    operator(_name, 2, "binary", check_same, "integer")
for _name in ("neg", "abs", "sign", "relu"):
    operator(_name, 1, "unary", check_same)
for _name in ("exp", "log", "sqrt", "rsqrt", "tanh", "erf", "logistic", "floor", "ceil", "round"):
    operator(_name, 1, "unary", check_same, "float")
operator("not", 1, "unary", check_same, "integer")
operator("cast", 1, "unary", check_cast)
operator("cube_scale", 1, "unary", check_cube_scale)
operator("half_part", 1, "unary", check_half_part)
operator("compare", 2, "binary", check_compare)
operator("select", 3, "ternary", check_select)
operator("clamp", 3, "ternary", check_same)
operator("copy", 1, "copy", check_same)
operator("full", 0, "full", rules.check_full)
operator("constant", 0, "constant", rules.check_constant)
operator("iota", 0, "iota", rules.check_iota)
operator("broadcast", 1, "broadcast", rules.check_broadcast)
operator("reshape", 1, "reshape", rules.check_reshape)
operator("transpose", 1, "transpose", rules.check_transpose)
operator("reduce", 1, "reduce", rules.check_reduce)
operator("slice", 1, "slice", rules.check_slice)
operator("concat", 2, "concat", rules.check_concat)
operator("pad", 2, "pad", rules.check_pad)
operator("gather", 2, "gather", rules.check_gather)
operator("view", 1, "view", rules.check_view)
operator("relayout", 1, "relayout", rules.check_relayout)
operator("fractalize", 1, "fractalize", rules.check_fractalize)
operator("defractalize", 1, "defractalize", rules.check_defractalize)
operator("matmul", 2, "matmul", rules.check_matmul)
operator("batch_matmul", 2, "batch_matmul", rules.check_batch_matmul)

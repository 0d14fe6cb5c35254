"""The ascend dialect: operators on whole tensors, and the launches that run them.

Every operation has two forms. On tensors it has one result: `%r = "ascend.add"(%a, %b)`. On buffers
in GM it has none and its outputs are its last operands: `"ascend.add"(%a, %b, %r)`. Booleans are
`i1` on tensors and bytes 0 and 1 in buffers. `OPS` lists the operators; the constraints C1, C2, ...
of each are numbered in its docstring and hold for both forms. Operations print in generic form.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.dialects import ascend_rules as rules
from davinci.dialects.ascend_rules import require
from davinci.dialects.ascend_shapes import Call, is_float, is_integer, tensor_of
from davinci.dialects.base import verifier
from davinci.mlir import ext, ir

Operand = ext.Operand
Result = ext.Result

PREDICATES = ("EQ", "NE", "LT", "LE", "GT", "GE")


@dataclass(frozen=True)
class OpInfo:
    """What is known of an operator apart from its constraints.

    Attributes:
        name: without the dialect, e.g. `add`.
        inputs: number of inputs, None for any.
        kind: "binary", "unary", "ternary" for elementwise operators, else the operator's name.
        types: "float", "integer" or "any" element types of the inputs.
        check: raises `Invalid` if an operation breaks a constraint.
    """

    name: str
    inputs: int | None
    kind: str
    types: str
    check: Callable[[Call], None]

    @property
    def elementwise(self) -> bool:
        return self.kind in ("binary", "unary", "ternary")


OPS: dict[str, OpInfo] = {}
"""Every operator by name; `launch` and the inputs-only `scalar` included."""


class Ascend(ext.Dialect, name="ascend"):
    """Operators on tensors or GM buffers."""


def call_of(op: Any) -> Call:
    """Inputs and outputs of an ascend operation of either form."""
    info = OPS[op.operation.name.removeprefix("ascend.")]
    operands = [tensor_of(v.type) for v in op.operands]
    results = [tensor_of(v.type) for v in op.results]
    buffers = any(isinstance(v.type, ir.MemRefType) for v in [*op.operands, *op.results])
    if info.inputs is None:
        inputs = len(operands) - (1 if info.name == "concat" and not results else 0)
        require(info.name != "concat" or inputs > 0, "number of operands", inputs, "at least 1")
        return Call(op, tuple(operands[:inputs]), tuple(results or operands[inputs:]), buffers)
    count = len(operands) + len(results)
    require(
        count == info.inputs + 1 and len(results) <= 1,
        "number of operands",
        f"{len(operands)} and {len(results)} results",
        f"{info.inputs} and one result, or {info.inputs + 1} buffers",
    )
    return Call(op, tuple(operands[: info.inputs]), tuple(results or operands[-1:]), buffers)


class AscendOp(Ascend.Operation):
    """Any operands, any results; the table says what is legal."""

    inputs: Sequence[Operand[Any]]
    outputs: Sequence[Result[Any]]

    @verifier
    def verify_invariants(self) -> None:
        info = OPS[self.operation.name.removeprefix("ascend.")]
        call = call_of(self)
        wanted = {"float": is_float, "integer": is_integer}.get(info.types)
        if wanted and call.inputs and not wanted(call.inputs[0].element):
            require(False, "element type", call.inputs[0].element, f"{info.types} elements")
        info.check(call)


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


def operator(
    name: str, inputs: int | None, kind: str, check: Callable[[Call], None], types: str = "any"
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
operator("concat", None, "concat", rules.check_concat)
operator("pad", 2, "pad", rules.check_pad)
operator("gather", 2, "gather", rules.check_gather)
operator("fractalize", 1, "fractalize", rules.check_fractalize)
operator("defractalize", 1, "defractalize", rules.check_defractalize)
operator("matmul", 2, "matmul", rules.check_matmul)
operator("batch_matmul", 2, "batch_matmul", rules.check_batch_matmul)
operator("scalar", None, "scalar", rules.check_scalar)
operator("launch", None, "launch", rules.check_launch)


class AddOp(AscendOp, name="add"):
    """a + b. C1: operands and result have one type."""


class SubOp(AscendOp, name="sub"):
    """a - b. C1: operands and result have one type."""


class MulOp(AscendOp, name="mul"):
    """a * b. C1: operands and result have one type."""


class DivOp(AscendOp, name="div"):
    """a / b; integers truncate. C1: operands and result have one type."""


class MaxOp(AscendOp, name="max"):
    """The larger of a and b. C1: operands and result have one type."""


class MinOp(AscendOp, name="min"):
    """The smaller of a and b. C1: operands and result have one type."""


class PowOp(AscendOp, name="pow"):
    """a to the power of b. C1: operands and result have one type; C2: floats."""


class AndOp(AscendOp, name="and"):
    """a & b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class OrOp(AscendOp, name="or"):
    """a | b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class XorOp(AscendOp, name="xor"):
    """a ^ b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class NegOp(AscendOp, name="neg"):
    """-a. C1: operand and result have one type."""


class AbsOp(AscendOp, name="abs"):
    """|a|. C1: operand and result have one type."""


class SignOp(AscendOp, name="sign"):
    """-1, 0 or 1. C1: operand and result have one type."""


class ReluOp(AscendOp, name="relu"):
    """max(a, 0). C1: operand and result have one type."""


class ExpOp(AscendOp, name="exp"):
    """e to the power of a. C1: operand and result have one type; C2: floats."""


class LogOp(AscendOp, name="log"):
    """Natural logarithm. C1: operand and result have one type; C2: floats."""


class SqrtOp(AscendOp, name="sqrt"):
    """Square root. C1: operand and result have one type; C2: floats."""


class RsqrtOp(AscendOp, name="rsqrt"):
    """1 / square root. C1: operand and result have one type; C2: floats."""


class TanhOp(AscendOp, name="tanh"):
    """Hyperbolic tangent. C1: operand and result have one type; C2: floats."""


class ErfOp(AscendOp, name="erf"):
    """Error function. C1: operand and result have one type; C2: floats."""


class LogisticOp(AscendOp, name="logistic"):
    """1 / (1 + exp(-a)). C1: operand and result have one type; C2: floats."""


class FloorOp(AscendOp, name="floor"):
    """Rounds down. C1: operand and result have one type; C2: floats."""


class CeilOp(AscendOp, name="ceil"):
    """Rounds up. C1: operand and result have one type; C2: floats."""


class RoundOp(AscendOp, name="round"):
    """Rounds to nearest, ties to even. C1: operand and result have one type; C2: floats."""


class NotOp(AscendOp, name="not"):
    """Bitwise complement. C1: operand and result have one type; C2: integers or booleans."""


class CastOp(AscendOp, name="cast"):
    """Converts elements; float to integer truncates, to boolean asks for != 0. C1: same shape."""


class CompareOp(AscendOp, name="compare"):
    """predicate(a, b).

    C1 `predicate` is "EQ", "NE", "LT", "LE", "GT" or "GE".
    C2 operands have one type.
    C3 the result has their shape and is boolean.
    """


class SelectOp(AscendOp, name="select"):
    """condition ? a : b.

    C1 the condition is boolean and has the shape of a.
    C2 a, b and the result have one type.
    """


class ClampOp(AscendOp, name="clamp"):
    """min(high, max(low, x)) of (low, x, high). C1: operands and result have one type."""


class CopyOp(AscendOp, name="copy"):
    """The operand as it is. C1: operand and result have one type."""


class FullOp(AscendOp, name="full"):
    """The same value everywhere. C1: `value` is a typed integer or float of the element type."""


class ConstantOp(AscendOp, name="constant"):
    """Known elements. C1: `value` is an elements attribute of the result type; C2: on tensors."""


class IotaOp(AscendOp, name="iota"):
    """The index along a dimension. C1: `dim` is a dimension of the result."""


class BroadcastOp(AscendOp, name="broadcast"):
    """Operand dimension i becomes result dimension dims[i]; the others repeat.

    C1 `dims` has an entry for each dimension of the operand.
    C2 they are distinct dimensions of the result.
    C3 sizes are equal, or 1 in the operand.
    C4 element types are equal.
    """


class ReshapeOp(AscendOp, name="reshape"):
    """Row-major order in another shape. C1: same number of elements; C2: same element type."""


class TransposeOp(AscendOp, name="transpose"):
    """Result dimension i is operand dimension permutation[i].

    C1 `permutation` has each dimension of the operand once.
    C2 the result has the permuted shape and the operand's element type.
    """


class ReduceOp(AscendOp, name="reduce"):
    """Combines the elements along `dims`, which are dropped.

    C1 `kind` is "add", "max", "min" or "mul".
    C2 `dims` are distinct dimensions of the operand.
    C3 the result has the remaining shape and the operand's element type.
    """


class SliceOp(AscendOp, name="slice"):
    """Elements starts[i], starts[i] + strides[i], ... below limits[i].

    C1 `starts`, `limits`, `strides` have an entry for each dimension.
    C2 0 <= start <= limit <= size and stride > 0.
    C3 the result has the sliced shape and the operand's element type.
    """


class ConcatOp(AscendOp, name="concat"):
    """Operands one after the other along `dim`.

    C1 there is at least one operand.
    C2 `dim` is a dimension of the operands.
    C3 operands have equal shapes but for `dim`, and equal element types.
    C4 the result is as long as all of them along `dim`.
    """


class PadOp(AscendOp, name="pad"):
    """Puts `low` values before, `high` after and `interior` between; negative ones cut off.

    C1 `low`, `high`, `interior` have an entry for each dimension.
    C2 the value has rank 0 and the operand's element type.
    C3 `interior` is not negative.
    C4 the result has the padded shape and the operand's element type.
    """


class GatherOp(AscendOp, name="gather"):
    """Rows of a table [v, ..] by indices [n], which are clamped to the table: [n, ..].

    C1 the table has rank 1 or more, and a row if there is an index.
    C2 the indices have rank 1 and are i32 or i64.
    C3 the result is [n, ..] with the table's element type.
    """


class FractalizeOp(AscendOp, name="fractalize"):
    """[.., m, n] to Nz [.., ceil(n/c), ceil(m/16), 16, c], padded with zeros.

    C1 rank 2 or more.
    C2 elements of 8, 16 or 32 bits; c is 32 for 8 bits, else 16.
    C3 the result has the Nz shape and the operand's element type.
    """


class DefractalizeOp(AscendOp, name="defractalize"):
    """Nz to [.., m, n]; the result type says m and n.

    C1 the result has rank 2 or more.
    C2 elements of 8, 16 or 32 bits.
    C3 the operand has the Nz shape of the result and its element type.
    """


class MatmulOp(AscendOp, name="matmul"):
    """A [k1, m1, 16, c] times B [n1, k1, 16, c] gives C [n1, m1, 16, 16], all Nz.

    C1 A and B have rank 4 and fractals of 16 x c, c the lanes of their type.
    C2 types f16 x f16 to f32 or f16, i8 x i8 to i32.
    C3 B has as many rows as A has columns, both padded to fractals.
    C4 C is [n1, m1, 16, 16]; for 8-bit operands it has two fractals for each of B's, but
       the last may be absent.
    """


class BatchMatmulOp(AscendOp, name="batch_matmul"):
    """`matmul` of equal leading batch dimensions.

    C1 to C4 as for matmul, with one more dimension in front.
    C5 A and B have the same batch.
    """


class ScalarOp(AscendOp, name="scalar"):
    """Calls a function for the scalar unit; operands and results are its own.

    C1 `callee` is a symbol.
    """


class LaunchOp(AscendOp, name="launch"):
    """Runs a kernel on GM buffers; host only.

    C1 `kernel` is a symbol.
    C2 `blocks` is a positive number.
    """

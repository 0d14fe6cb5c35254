"""The ascend dialect: operators on whole tensors.

Every operation has two forms. On tensors it has one result: `%r = "ascend.add"(%a, %b)`. On buffers
in GM it has none and its outputs are its last operands: `"ascend.add"(%a, %b, %r)`. Booleans are
`i1` on tensors and bytes 0 and 1 in buffers. The constraints C1, C2, ... of each are numbered in
its docstring, hold for both forms, and are checked by its entry in `ascend_operators.OPS`.
Operations print in generic form.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.ascend_layouts import check_layouts
from davinci.dialects.ascend_operators import OPS
from davinci.dialects.ascend_shapes import Call, is_float, is_integer, tensor_of
from davinci.dialects.base import attribute_of, require, verifier
from davinci.mlir import ext, ir

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


def call_of(op: Any) -> Call:
    """Inputs and outputs of an ascend operation of either form."""
    info = OPS[op.operation.name.removeprefix("ascend.")]
    operands = [tensor_of(v.type) for v in op.operands]
    results = [tensor_of(v.type) for v in op.results]
    buffers = any(isinstance(v.type, ir.MemRefType) for v in [*op.operands, *op.results])
    count = len(operands) + len(results)
    require(
        count == info.inputs + 1 and len(results) <= 1,
        "number of operands",
        f"{len(operands)} and {len(results)} results",
        f"{info.inputs} and one result, or {info.inputs + 1} buffers",
    )
    return Call(op, tuple(operands[: info.inputs]), tuple(results or operands[-1:]), buffers)


class AscendOp(Ascend.Operation):
    """Verified by the operator's entry in `OPS`; the subclasses give the number of inputs.

    The operand that is missing on tensors and the result that is missing on buffers are optional.
    There are no lists of operands: IRDL would want one type for all of them.
    """

    @verifier
    def verify_invariants(self) -> None:
        info = OPS[self.operation.name.removeprefix("ascend.")]
        for name in self.attributes:
            attribute_of(self, name)  # passes copy all of them
        call = call_of(self)
        wanted = {"float": is_float, "integer": is_integer}.get(info.types)
        if wanted and call.inputs and not wanted(call.inputs[0].element):
            require(False, "element type", call.inputs[0].element, f"{info.types} elements")
        info.check(call)
        check_layouts(info.kind, call)


class NullaryOp(AscendOp):
    """No input."""

    out: Operand[Any] | None
    result: Result[Any] | None


class UnaryOp(AscendOp):
    """One input."""

    a: Operand[Any]
    out: Operand[Any] | None
    result: Result[Any] | None


class BinaryOp(AscendOp):
    """Two inputs."""

    a: Operand[Any]
    b: Operand[Any]
    out: Operand[Any] | None
    result: Result[Any] | None


class TernaryOp(AscendOp):
    """Three inputs."""

    a: Operand[Any]
    b: Operand[Any]
    c: Operand[Any]
    out: Operand[Any] | None
    result: Result[Any] | None


class AddOp(BinaryOp, name="add"):
    """a + b. C1: operands and result have one type."""


class SubOp(BinaryOp, name="sub"):
    """a - b. C1: operands and result have one type."""


class MulOp(BinaryOp, name="mul"):
    """a * b. C1: operands and result have one type."""


class DivOp(BinaryOp, name="div"):
    """a / b; integers truncate. C1: operands and result have one type."""


class MaxOp(BinaryOp, name="max"):
    """The larger of a and b. C1: operands and result have one type."""


class MinOp(BinaryOp, name="min"):
    """The smaller of a and b. C1: operands and result have one type."""


class PowOp(BinaryOp, name="pow"):
    """a to the power of b. C1: operands and result have one type; C2: floats."""


class AndOp(BinaryOp, name="and"):
    """a & b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class OrOp(BinaryOp, name="or"):
    """a | b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class XorOp(BinaryOp, name="xor"):
    """a ^ b, bitwise. C1: operands and result have one type; C2: integers or booleans."""


class NegOp(UnaryOp, name="neg"):
    """-a. C1: operand and result have one type."""


class AbsOp(UnaryOp, name="abs"):
    """|a|. C1: operand and result have one type."""


class SignOp(UnaryOp, name="sign"):
    """-1, 0 or 1. C1: operand and result have one type."""


class ReluOp(UnaryOp, name="relu"):
    """max(a, 0). C1: operand and result have one type."""


class ExpOp(UnaryOp, name="exp"):
    """e to the power of a. C1: operand and result have one type; C2: floats."""


class LogOp(UnaryOp, name="log"):
    """Natural logarithm. C1: operand and result have one type; C2: floats."""


class SqrtOp(UnaryOp, name="sqrt"):
    """Square root. C1: operand and result have one type; C2: floats."""


class RsqrtOp(UnaryOp, name="rsqrt"):
    """1 / square root. C1: operand and result have one type; C2: floats."""


class TanhOp(UnaryOp, name="tanh"):
    """Hyperbolic tangent. C1: operand and result have one type; C2: floats."""


class ErfOp(UnaryOp, name="erf"):
    """Error function. C1: operand and result have one type; C2: floats."""


class LogisticOp(UnaryOp, name="logistic"):
    """1 / (1 + exp(-a)). C1: operand and result have one type; C2: floats."""


class FloorOp(UnaryOp, name="floor"):
    """Rounds down. C1: operand and result have one type; C2: floats."""


class CeilOp(UnaryOp, name="ceil"):
    """Rounds up. C1: operand and result have one type; C2: floats."""


class RoundOp(UnaryOp, name="round"):
    """Rounds to nearest, ties to even. C1: operand and result have one type; C2: floats."""


class NotOp(UnaryOp, name="not"):
    """Bitwise complement. C1: operand and result have one type; C2: integers or booleans."""


class CastOp(UnaryOp, name="cast"):
    """Converts elements; float to integer truncates, to boolean asks for != 0. C1: same shape."""


class CubeScaleOp(UnaryOp, name="cube_scale"):
    """A power of two h for which a h h lies in [2^13, 2^15), for a >= 0.

    2^95 for 0, 2^-63 for an infinity, 1 for NaN. C1: operand and result have one type; C2: f32.
    """


class HalfPartOp(UnaryOp, name="half_part"):
    """Part 0 is a as f16, part 1 what that leaves of a as f16, part 2 what both leave.

    Parts 1 and 2 of what is not finite in f16 are NaN.
    C1 `part` is 0, 1 or 2.
    C2 the operand is f32, the result has its shape and is f16.
    """


class CompareOp(BinaryOp, name="compare"):
    """predicate(a, b).

    C1 `predicate` is "EQ", "NE", "LT", "LE", "GT" or "GE".
    C2 operands have one type.
    C3 the result has their shape and is boolean.
    """


class SelectOp(TernaryOp, name="select"):
    """condition ? a : b.

    C1 the condition is boolean and has the shape of a.
    C2 a, b and the result have one type.
    """


class ClampOp(TernaryOp, name="clamp"):
    """min(high, max(low, x)) of (low, x, high). C1: operands and result have one type."""


class CopyOp(UnaryOp, name="copy"):
    """The operand as it is. C1: operand and result have one type."""


class FullOp(NullaryOp, name="full"):
    """The same value everywhere. C1: `value` is a typed integer or float of the element type."""


class ConstantOp(NullaryOp, name="constant"):
    """Known elements.

    C1 `value` is an elements attribute: the array that the result takes in GM in its layout.
    C2 on tensors.
    """


class IotaOp(NullaryOp, name="iota"):
    """The index along a dimension. C1: `dim` is a dimension of the result."""


class BroadcastOp(UnaryOp, name="broadcast"):
    """Operand dimension i becomes result dimension dims[i]; the others repeat.

    C1 `dims` has an entry for each dimension of the operand.
    C2 they are distinct dimensions of the result.
    C3 sizes are equal, or 1 in the operand.
    C4 element types are equal.
    """


class ReshapeOp(UnaryOp, name="reshape"):
    """Row-major order in another shape. C1: same number of elements; C2: same element type."""


class TransposeOp(UnaryOp, name="transpose"):
    """Result dimension i is operand dimension permutation[i].

    C1 `permutation` has each dimension of the operand once.
    C2 the result has the permuted shape and the operand's element type.
    """


class ReduceOp(UnaryOp, name="reduce"):
    """Combines the elements along `dims`, which are dropped.

    C1 `kind` is "add", "max", "min" or "mul".
    C2 `dims` are distinct dimensions of the operand.
    C3 the result has the remaining shape and the operand's element type.
    """


class SliceOp(UnaryOp, name="slice"):
    """Elements starts[i], starts[i] + strides[i], ... below limits[i].

    C1 `starts`, `limits`, `strides` have an entry for each dimension.
    C2 0 <= start <= limit <= size and stride > 0.
    C3 the result has the sliced shape and the operand's element type.
    """


class ConcatOp(BinaryOp, name="concat"):
    """The second operand behind the first along `dim`.

    C1 `dim` is a dimension of the operands.
    C2 operands have equal shapes but for `dim`, and equal element types.
    C3 the result is as long as both along `dim`.
    """


class PadOp(BinaryOp, name="pad"):
    """Puts `low` values before, `high` after and `interior` between; negative ones cut off.

    C1 `low`, `high`, `interior` have an entry for each dimension.
    C2 the value has rank 0 and the operand's element type.
    C3 `interior` is not negative.
    C4 the result has the padded shape and the operand's element type.
    """


class GatherOp(BinaryOp, name="gather"):
    """Rows of a table [v, ..] by indices [n], which are clamped to the table: [n, ..].

    C1 the table has rank 1 or more, and a row if there is an index.
    C2 the indices have rank 1 and are i32 or i64.
    C3 the result is [n, ..] with the table's element type.
    """


class ViewOp(UnaryOp, name="view"):
    """The bytes of the operand as another tensor: reshaped to `shape`, transposed, reshaped.

    C1 `shape` has as many elements as the operand, and so has the result; element types are equal.
    C2 `permutation` has each dimension of `shape` once.
    C3 all bytes stay where they are (`ascend_layouts.is_view`); on tensors.
    """


class RelayoutOp(UnaryOp, name="relayout"):
    """The operand in another layout.

    C1 shapes and element types are equal; C2 on tensors.
    C3 elements of 8, 16 or 32 bits.
    """


class FractalizeOp(UnaryOp, name="fractalize"):
    """The kernel of a `relayout` from [.., m, n] to Nz, the array [.., n1, m1, 16, c].

    C1 rank 2 or more; on buffers.
    C2 elements of 8, 16 or 32 bits; c is 32 for 8 bits, else 16.
    C3 the result has the Nz shape and the operand's element type.
    """


class DefractalizeOp(UnaryOp, name="defractalize"):
    """The kernel of a `relayout` from Nz to [.., m, n]; the result type says m and n.

    C1 the result has rank 2 or more; on buffers.
    C2 elements of 8, 16 or 32 bits.
    C3 the operand has the Nz shape of the result and its element type.
    """


class MatmulOp(BinaryOp, name="matmul"):
    """A [m, k] times B [k, n] gives C [m, n], each in any layout.

    C1 A and B have rank 2 and one element type.
    C2 B has as many rows as A has columns.
    C3 C is [m, n].
    With `transpose_a` A is given as [k, m], with `transpose_b` B as [n, k].
    On buffers all are Nz, A [k1, m1, 16, c], B [n1, k1, 16, c], C [n1, m1, 16, 16]:
    C4 A and B have rank 4 and fractals of 16 x c, c the lanes of their type.
    C5 types f16 x f16 to f32 or f16, i8 x i8 to i32.
    C6 B has as many rows as A has columns, both padded to fractals.
    C7 C is [n1, m1, 16, 16]; for 8-bit operands it has two fractals for each of B's, but
       the last may be absent.
    """


class BatchMatmulOp(BinaryOp, name="batch_matmul"):
    """`matmul` of equal leading batch dimensions.

    C1 to C7 as for matmul, with one more dimension in front.
    C8 A and B have the same batch.
    """

"""stablehlo-custom-calls-to-chlo: custom calls that name an operation of CHLO or StableHLO are one.

before:
    %0 = stablehlo.custom_call @mhlo.erf(%x) {mhlo.version = 1 : i64} : ...
    %1:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = true}}
after:
    %0 = chlo.erf %x : ...
    %1:2 = chlo.top_k(%x, k = 3) : ...

JAX and XLA write these, where a portable artifact cannot hold the operation itself. And JAX calls
LAPACK where it lowers for processors: its Cholesky decomposition and its triangular solver are
those of StableHLO.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.pipeline.base import Pass, fail, register_pass

TARGETS = {
    "mhlo.erf": "chlo.erf",
    "mhlo.topk": "chlo.top_k",
    "mhlo.tan": "stablehlo.tan",
    **{
        f"mhlo.{name}": f"chlo.{name}"
        for name in ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh")
    },
}
"""Operations by the targets of custom calls."""

KEPT = {"chlo.top_k": ("k",)}
"""Attributes of operations, which a call has in `mhlo.attributes`."""


@register_pass
@dataclass(frozen=True)
class StablehloCustomCallsToChloPass(Pass):
    """Replace custom calls that name an operation of CHLO by the operation."""

    NAME = "stablehlo-custom-calls-to-chlo"

    def run(self, op: Op) -> None:
        for call in operations(op, "stablehlo.custom_call"):
            target = str(attribute(call, "call_target_name"))
            if target in TARGETS:
                replace(call, TARGETS[target])
            elif target in LAPACK:
                LAPACK[target](call)


def replace(call: Op, name: str) -> None:
    """Replaces `call` by the operation `name`."""
    given = call.attributes.get("mhlo.attributes")
    kept = {key: given[key] for key in KEPT.get(name, ()) if given is not None and key in given}
    if given is not None and "largest" in given and not ir.BoolAttr(given["largest"]).value:
        fail(call, "asks for the smallest elements", expected="largest = true")
    with call.location, ir.InsertionPoint(call):
        types = [result.type for result in call.results]
        built = builder.op(name, list(call.operands), types, **kept)
    for old, new in zip(call.results, built.results, strict=True):
        old.replace_all_uses_with(new)
    call.erase()


def letter(call: Op, name: str) -> str:
    """An option of a call of LAPACK, which is the number of a letter."""
    return chr(ir.IntegerAttr(call.attributes["mhlo.backend_config"][name]).value)


def factorize(call: Op) -> None:
    """`spotrf`: the decomposition, and a number that is not 0 where the matrix has none.

    StableHLO then has NaN from the first pivot that is not positive on, so in the last one.
    """
    matrix, lower = call.operands[0], letter(call, "uplo") == "L"
    kind, state = ir.RankedTensorType(matrix.type), call.results[1].type
    rank, size = len(kind.shape), kind.shape[-1]
    places = ir.RankedTensorType.get([*kind.shape[:-2], 1, 1], kind.element_type)
    flags = [*ir.RankedTensorType(state).shape]
    with call.location, ir.InsertionPoint(call):
        made = builder.op(
            "stablehlo.cholesky", [matrix], [kind], lower=ir.BoolAttr.get(lower)
        ).results[0]
        last = builder.op(
            "stablehlo.slice",
            [made],
            [places],
            start_indices=[*[0] * (rank - 2), size - 1, size - 1],
            limit_indices=list(kind.shape),
            strides=[1] * rank,
        ).results[0]
        last = builder.op(
            "stablehlo.reshape", [last], [ir.RankedTensorType.get(flags, kind.element_type)]
        ).results[0]
        wrong = builder.op(
            "stablehlo.compare",
            [last, last],
            [ir.RankedTensorType.get(flags, ir.IntegerType.get_signless(1))],
            comparison_direction=ir.Attribute.parse("#stablehlo<comparison_direction NE>"),
        ).results[0]
        number = builder.op("stablehlo.convert", [wrong], [state]).results[0]
    call.results[0].replace_all_uses_with(made)
    call.results[1].replace_all_uses_with(number)
    call.erase()


TRANSPOSED = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}
"""StableHLO's words for the letters of LAPACK."""


def solve(call: Op) -> None:
    """`strsm`: a triangular matrix and what it is solved for."""
    with call.location, ir.InsertionPoint(call):
        turned = TRANSPOSED[letter(call, "trans_x")]
        built = builder.op(
            "stablehlo.triangular_solve",
            list(call.operands),
            [call.results[0].type],
            left_side=ir.BoolAttr.get(letter(call, "side") == "L"),
            lower=ir.BoolAttr.get(letter(call, "uplo") == "L"),
            unit_diagonal=ir.BoolAttr.get(letter(call, "diag") == "U"),
            transpose_a=ir.Attribute.parse(f"#stablehlo<transpose {turned}>"),
        )
    call.results[0].replace_all_uses_with(built.results[0])
    call.erase()


LAPACK = {
    f"lapack_{kind}{name}_ffi": write
    for kind in "sd"
    for name, write in (("potrf", factorize), ("trsm", solve))
}
"""What replaces calls of LAPACK, by their targets."""

"""stablehlo-custom-calls-to-chlo: custom calls that name an operation of CHLO or StableHLO are one.

before:
    %0 = stablehlo.custom_call @mhlo.erf(%x) {mhlo.version = 1 : i64} : ...
    %1:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = true}}
after:
    %0 = chlo.erf %x : ...
    %1:2 = chlo.top_k(%x, k = 3) : ...

JAX and XLA write these, where a portable artifact cannot hold the operation itself.
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
            name = TARGETS.get(str(attribute(call, "call_target_name")))
            if name is not None:
                replace(call, name)


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

"""Takes the Shardy dialect out of texts of JAX, which says how tensors lie on several devices.

before:
    sdy.mesh @mesh = <["x"=2]>
    func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
    %1 = stablehlo.custom_call @f(%0) {sdy.sharding_rule = #sdy.op_sharding_rule<..>} : ..
after:
    func.func public @main(%arg0: tensor<8xf32>)
    %0 = stablehlo.reshape %arg0 : (tensor<8xf32>) -> tensor<8xf32>
    %1 = stablehlo.custom_call @f(%0) : ..

What a program computes does not depend on it, but for its parts that each device does on its own
(`sdy.manual_computation`), which are refused. Lines stay where they are.
"""

from __future__ import annotations

import re

from davinci.errors import CompileError
from davinci.mlir import MLIRError, ir

MARK = "sdy."
MESH = re.compile(r"^[ \t]*sdy\.mesh @[^\n]*$", re.MULTILINE)
CONSTRAINT = re.compile(r"= sdy\.sharding_constraint (%[\w#]+) <[^\n]*?> : (tensor<[^>\n]*>)")
OPERATION = re.compile(r"^[ \t]*(?:%[^=\n]*= )?(sdy\.\w+)\b(?! *=)", re.MULTILINE)


def has_shardings(text: str) -> bool:
    """Whether a text may mention the dialect."""
    return MARK in text


def read_without(text: str, where: str, context: ir.Context) -> ir.Module:
    """The module of a text, without what belongs to the dialect.

    Raises:
        CompileError: an operation that splits the computation.
        MLIRError: the text does not parse or verify.
    """
    text = CONSTRAINT.sub(r"= stablehlo.reshape \1 : (\2) -> \2", MESH.sub("", text))
    found = OPERATION.search(text)
    if found is not None:
        raise CompileError(
            f"{found[1]!r} splits a computation over devices, which is not supported",
            where=f"{where or '<text>'}:{text.count(chr(10), 0, found.start(1)) + 1}",
            expected="a program of one device, or one whose shardings are only told",
        )
    before = context.allow_unregistered_dialects
    context.allow_unregistered_dialects = True
    try:
        module = ir.Module.parse(text, context)
        with context:
            module.operation.walk(_drop)
    finally:
        context.allow_unregistered_dialects = before
    if not module.operation.verify():
        raise MLIRError("the program does not verify", [])
    return module


def _drop(op: ir.Operation) -> ir.WalkResult:
    """Drops the attributes of an operation, and of its arguments and results."""
    for name in list(op.attributes):
        if name.startswith(MARK):
            del op.attributes[name]
    for name in ("arg_attrs", "res_attrs"):
        if name in op.attributes:
            op.attributes[name] = ir.ArrayAttr.get([_kept(item) for item in op.attributes[name]])
    return ir.WalkResult.ADVANCE


def _kept(marks: ir.DictAttr) -> ir.DictAttr:
    return ir.DictAttr.get({m.name: m.attr for m in marks if not m.name.startswith(MARK)})

"""Scopes of nodes that their names do not tell: PyTorch's exporter keeps them as metadata.

A node `node_linear` of `net.layers[0].fc1` has `pkg.torch.onnx.name_scopes` `['', 'layers.0',
'layers.0.fc1', 'linear']`. Its scope is `layers.0/fc1`, as the name `/layers.0/fc1/MatMul` of the
older exporter tells. The module has them as `ascend.scopes`, for reports.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

import onnx

from davinci.for_readers import for_readers
from davinci.mlir import ir

KEY = "pkg.torch.onnx.name_scopes"


@for_readers(lambda module, model: None)
def mark_scopes(module: ir.Module, model: onnx.ModelProto) -> None:
    """Writes the scopes of the nodes of `model` onto `module`, if it says any."""
    found = {node.name: scope for node in model.graph.node if (scope := scope_of(node))}
    if found:
        with module.context:
            texts = {name: ir.StringAttr.get(scope) for name, scope in found.items()}
            module.operation.attributes["ascend.scopes"] = ir.DictAttr.get(texts)


def scope_of(node: onnx.NodeProto) -> str:
    """The scope of a node by its metadata, "" if that says none."""
    text = next((item.value for item in node.metadata_props if item.key == KEY), "[]")
    try:
        names = ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ""
    return "/".join(segments(names[:-1]))


def segments(modules: Sequence[str]) -> list[str]:
    """`["", "layers.0", "layers.0.fc1"]`, each the whole path of a module, as `layers.0`, `fc1`."""
    found, outer = [], ""
    for module in modules:
        if inner := module.removeprefix(f"{outer}.") if outer else module:
            found.append(inner)
        outer = module
    return found

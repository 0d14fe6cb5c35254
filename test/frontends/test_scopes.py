"""Scopes of nodes in the metadata of PyTorch's exporter, from the file to the record."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import davinci
from davinci.frontends.scopes import KEY, scope_of


def node(operator: str, name: str, scopes: str, source: str, result: str) -> onnx.NodeProto:
    made = helper.make_node(operator, [source], [result], name=name)
    made.metadata_props.add(key=KEY, value=scopes)
    return made


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("['', 'layers.0', 'layers.0.fc1', 'linear']", "layers.0/fc1"),
        ("['', 'layers.0', 'layers.0.mlp.0', 'linear']", "layers.0/mlp.0"),
        ("['', 'head', 'linear']", "head"),
        ("['', 'a', 'b.c', 'linear']", "a/b.c"),
        ("['', 'add']", ""),
        ("[]", ""),
        ("not a list", ""),
        ("[1, 2]", ""),
        ("{'a': 1}", ""),
        ("", ""),
    ],
)
def test_scope_of(text: str, scope: str) -> None:
    assert scope_of(node("Exp", "node_exp", text, "x", "y")) == scope


def test_scopes_come_to_the_record() -> None:
    nodes = [
        node("Exp", "node_exp", "['', 'layers.0', 'layers.0.fc1', 'exp']", "x", "h"),
        node("Relu", "node_relu", "['', 'head', 'relu']", "h", "y"),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 8]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "g", value[:1], value[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    assert launches(model, "none") == [(["node_exp"], "layers.0/fc1"), (["node_relu"], "head")]
    # Where they share a kernel, its scope is that of the first.
    assert launches(model, "all") == [(["node_exp", "node_relu"], "layers.0/fc1")]


def launches(model: onnx.ModelProto, fusion: str) -> list[tuple[list[str], str]]:
    """The nodes and the scope of each launch."""
    executable = davinci.compile(model, fusion=fusion)
    executable.run({"x": np.ones((4, 8), np.float32)})
    return [(x["operators"], x["scope"]) for x in executable.profile["launches_list"]]

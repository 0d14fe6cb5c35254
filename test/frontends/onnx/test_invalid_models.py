"""ONNX models that the checker accepts and that mean nothing: one message, no loop, no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from bad_files import network
from davinci import frontends
from davinci.errors import DavinciError

NINE = {"a": np.array([9])}


@pytest.mark.parametrize(
    ("operator", "weights", "attributes"),
    [
        ("Softmax", {}, {"axis": 9}),
        ("LogSoftmax", {}, {"axis": -9}),
        ("ReduceSum", NINE, {}),
        ("Squeeze", NINE, {}),
        ("Unsqueeze", NINE, {}),
    ],
)
def test_axes(operator: str, weights: dict[str, Any], attributes: dict[str, Any]) -> None:
    model = network(operator, {"x": [2, 3]}, {"y": [2, 3]}, weights)
    model.graph.node[0].attribute.extend(
        helper.make_attribute(key, value) for key, value in attributes.items()
    )
    with pytest.raises(
        DavinciError, match=f"axis -?9 is not one of .*operator {operator} of node"
    ) as error:
        frontends.load(model)
    assert error.value.exit_code == 2


def test_size_of_an_initializer() -> None:
    model = network("Add", {"x": [32, 32]}, {"y": [32, 32]}, {"w": np.ones((32, 32), "f4")})
    model.graph.initializer[0].raw_data = bytes(12)
    with pytest.raises(DavinciError) as error:
        frontends.load(model)
    assert "initializer 'w' has the wrong size; found 12 bytes; expected 4096" in str(error.value)


def test_more_elements_than_any_memory_holds() -> None:
    with pytest.raises(DavinciError, match="input 'x' is too large for any memory"):
        frontends.load(network("Exp", {"x": [1 << 40, 1 << 40]}, {"y": [1 << 40, 1 << 40]}))

"""Models of one sample become models of several: shapes, indices and constants that exporters write
without their batch. `job.batched` compares outputs with those of each sample alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from davinci import job

Node = tuple[str, list[str], str, dict[str, Any]]

KEYS = np.stack([np.zeros(8, np.int64), np.arange(8)], -1).reshape(1, 1, 1, 8, 2)
"""Indices of a mask [1, 8] as [1, 1, 1, 8]; the first of each pair is the sample."""

STATE = np.full((2, 1, 4), 0.5, np.float32)


def model(
    nodes: list[Node], dtype: int, dims: list[int | str], **constants: np.ndarray[Any, Any]
) -> onnx.ModelProto:
    """A graph of `x` with these sizes, whose last node makes `y`."""
    rng = np.random.default_rng(0)
    weights = {"w": (1, 16, 8), "r": (1, 16, 4), "wf": (2, 16, 8), "rf": (2, 16, 4)}
    given = {name: rng.normal(0, 0.3, shape).astype(np.float32) for name, shape in weights.items()}
    given |= {"table": rng.normal(size=(50, 8)).astype(np.float32), **constants}
    used = {name for _, names, _, _ in nodes for name in names}
    graph = helper.make_graph(
        [helper.make_node(op, names, [made], **extra) for op, names, made, extra in nodes],
        "graph",
        [helper.make_tensor_value_info("x", dtype, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, name) for name, v in given.items() if name in used],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def ints(*values: int) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


LSTM = {"hidden_size": 4}
FLOAT = {"to": TensorProto.FLOAT}
MODELS: dict[str, tuple[list[Node], int, dict[str, np.ndarray[Any, Any]]]] = {
    "mask by tuples of indices": (
        [("GatherND", ["x", "keys"], "m", {}), ("Cast", ["m"], "y", FLOAT)],
        TensorProto.INT64,
        {"keys": KEYS},
    ),
    "mask by computed indices of all samples": (
        [
            ("Flatten", ["x"], "f", {"axis": 2}),
            ("Shape", ["x"], "s", {}),
            ("Gather", ["s", "one"], "n", {}),
            ("Mul", ["sample", "n"], "o", {}),
            ("Add", ["o", "places"], "i", {}),
            ("Gather", ["f", "i"], "g", {}),
            ("Shape", ["i"], "is", {}),
            ("Reshape", ["g", "is"], "k", {}),
            ("Cast", ["k"], "y", FLOAT),
        ],
        TensorProto.INT64,
        {"one": ints(1), "sample": ints(0).reshape(1, 1, 1, 1), "places": ints(*range(-8, 0))},
    ),
    "first sample's rows": (
        [("Cast", ["x"], "f", FLOAT), ("Gather", ["f", "zero"], "y", {})],
        TensorProto.INT64,
        {"zero": ints(0)},
    ),
    "class token": (
        [
            ("Reshape", ["x", "rows"], "p", {}),
            ("Expand", ["token", "sizes"], "t", {}),
            ("Concat", ["t", "p"], "y", {"axis": -2}),
        ],
        TensorProto.FLOAT,
        {
            "rows": ints(1, 2, 4),
            "token": np.ones((1, 1, 4), np.float32),
            "sizes": ints(1, 1, 1),
        },
    ),
    "elements of a constant": (
        [
            ("GatherElements", ["types", "x"], "t", {"axis": 1}),
            ("Gather", ["table", "t"], "y", {}),
        ],
        TensorProto.INT64,
        {"types": ints(*range(50)).reshape(1, -1)},
    ),
    "sequences before samples": (
        [
            ("Reshape", ["x", "first"], "s", {}),
            ("Transpose", ["s"], "b", {"perm": [1, 0, 2]}),
            ("Concat", ["b", "b"], "c", {"axis": 2}),
            (
                "LSTM",
                ["c", "wf", "rf", "", "", "state"],
                "l",
                {**LSTM, "direction": "bidirectional"},
            ),
            ("Transpose", ["l"], "t", {"perm": [0, 2, 1, 3]}),
            ("Reshape", ["t", "both"], "h", {}),
            ("LSTM", ["h", "w", "r", "", "", "half"], "m", LSTM),
            ("Gather", ["m", "last"], "g", {}),
            ("Reshape", ["g", "flat"], "y", {}),
        ],
        TensorProto.FLOAT,
        {
            "first": ints(1, 2, 4),
            "state": STATE,
            "half": STATE[:1],
            "both": ints(2, 1, 8),
            "last": np.array(-1),
            "flat": ints(1, 4),
        },
    ),
    "heads joined with samples": (
        [
            ("Reshape", ["x", "heads"], "h", {}),
            ("Transpose", ["h"], "t", {"perm": [0, 2, 1]}),
            ("Reshape", ["t", "apart"], "a", {}),
            ("Transpose", ["a"], "y", {"perm": [0, 2, 1, 3]}),
        ],
        TensorProto.FLOAT,
        {"heads": ints(4, 1, 2), "apart": ints(1, 4, 2, 1)},
    ),
}


@pytest.mark.parametrize("open_batch", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_batch_is_that_of_its_samples(name: str, open_batch: bool) -> None:
    nodes, dtype, constants = MODELS[name]
    proto = model(nodes, dtype, ["batch" if open_batch else 1, 8], **constants)
    made = job.batched(job.Source(name, proto), 3).proto()
    assert made is not None
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 3


def test_constants_that_no_sample_reads_are_left_alone() -> None:
    nodes, dtype, constants = MODELS["class token"]
    proto = model(nodes, dtype, [1, 8], **constants)
    proto.graph.node[-1].attribute[0].i = 1
    names = {tensor.name for tensor in proto.graph.initializer}
    made = job.batched(job.Source("model", proto), 3).proto()
    assert made is not None
    kept = {tensor.name for tensor in made.graph.initializer}
    assert names <= kept and len(kept - names) == 2  # the shape of patches, and tokens

"""ONNX models for tests, and their outputs held against onnxruntime or ONNX's reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import davinci
from davinci import frontends
from davinci.reference import check, interpreter

Arrays = dict[str, Any]
OPSET, IR_VERSION = 22, 10
DOMAINS = {"ai.onnx.ml": 4, "ai.onnx.preview.training": 1, "com.microsoft": 1}
"""Versions of the operator sets beside ONNX's own."""


def value_info(name: str, array: Any) -> onnx.ValueInfoProto:
    found = np.asarray(array)
    kind = helper.np_dtype_to_tensor_dtype(found.dtype)
    return helper.make_tensor_value_info(name, kind, found.shape)


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Any],
    outputs: Sequence[str] = ("y",),
    constants: Mapping[str, Any] | None = None,
    opset: int = OPSET,
    kind: Any = np.float32,
) -> onnx.ModelProto:
    """A model of these nodes; inputs and constants are arrays by name.

    Args:
        kind: element type of outputs that ONNX does not infer.
    """
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value_info(name, array) for name, array in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(a), name) for name, a in (constants or {}).items()],
    )
    versions = {"": opset, **DOMAINS}
    used = {"", *(node.domain for node in nodes)}
    imports = [helper.make_opsetid(domain, versions[domain]) for domain in sorted(used)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=IR_VERSION)
    inferred = onnx.shape_inference.infer_shapes(model)
    for value in inferred.graph.output:
        if not value.type.WhichOneof("value"):  # ONNX's inference has its gaps
            value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    return inferred


def node_model(
    op_type: str,
    *operands: Any,
    outputs: int = 1,
    known: Sequence[int] = (),
    opset: int = OPSET,
    kind: Any = np.float32,
    **attributes: Any,
) -> tuple[onnx.ModelProto, Arrays]:
    """A model of one node and its inputs.

    Args:
        operands: arrays; None is left out.
        known: numbers of operands that are constants of the model.
        kind: element type of outputs that ONNX does not infer.
    """
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(operands)]
    given = {n: np.asarray(x) for n, x in zip(names, operands, strict=True) if n}
    constants = {names[i]: given.pop(names[i]) for i in known}
    results = ["y"] if outputs == 1 else [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op_type, names, results, name="the_node", **attributes)
    return model_of([node], given, results, constants, opset, kind), given


def run(model: onnx.ModelProto, inputs: Arrays, **options: Any) -> Arrays:
    """Outputs of the compiled model on two simulated cores."""
    options.setdefault("cores", 2)
    executable = davinci.compile(model, **options)
    kept = set(executable.input_names)
    return executable.run({name: x for name, x in inputs.items() if name in kept})


def reference(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    """Outputs of ONNX's own reference implementation."""
    names = [value.name for value in model.graph.output]
    return dict(zip(names, ReferenceEvaluator(model).run(None, inputs), strict=True))


def against_onnxruntime(model: onnx.ModelProto, inputs: Arrays, **options: Any) -> None:
    """Asserts that the compiled model gives what onnxruntime does."""
    agree(model, inputs, check.reference_onnx(model, inputs), **options)


def means(model: onnx.ModelProto, inputs: Arrays, rtol: float = 1e-4) -> None:
    """Asserts that the StableHLO made of a model, interpreted, gives what onnxruntime does.

    Args:
        rtol: largest difference, as a share of the largest value.
    """
    wanted = check.reference_onnx(model, inputs)
    module = frontends.load(model)
    interpreter.prepare(module)
    given = {v.name: inputs[v.name] for v in model.graph.input}
    found = interpreter.evaluate(module, given, list(wanted))
    for name, array in wanted.items():
        assert found[name].dtype == array.dtype, name
        apart = np.abs(found[name].astype(np.float64) - array.astype(np.float64))
        assert found[name].shape == array.shape
        assert apart.max(initial=0) <= rtol * np.abs(array).max(initial=1e-30), name


def against_reference(model: onnx.ModelProto, inputs: Arrays, **options: Any) -> None:
    """Asserts that the compiled model gives what ONNX's reference implementation does."""
    agree(model, inputs, reference(model, inputs), **options)


def agree(model: onnx.ModelProto, inputs: Arrays, wanted: Arrays, **options: Any) -> None:
    found = run(model, inputs, **options)
    for name, array in wanted.items():
        assert found[name].dtype == np.asarray(array).dtype, name
    check.require(check.compare(found, wanted), options.get("precision", "mixed"))


@dataclass(frozen=True)
class DrawnModel:
    """A model drawn at random, what it is run on, and a line that says what it is.

    Attributes:
        rtol: the relative error that its results may have.
    """

    model: onnx.ModelProto
    inputs: Arrays
    text: str
    rtol: float = 0

    def check(self, **options: Any) -> Any:
        """Asserts that the result is onnxruntime's; returns it."""
        (wanted,) = check.reference_onnx(self.model, self.inputs).values()
        (found,) = run(self.model, self.inputs, **options).values()
        np.testing.assert_allclose(found, wanted, rtol=self.rtol, atol=0, strict=True)
        return found

"""Recurrent networks, `LSTM` and `GRU` one upon the other, as PyTorch exports `nn.LSTM`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require, require_positive


@dataclass(frozen=True)
class Recurrent:
    """Parameters: steps and sequences, sizes of inputs and states, layers, 2 directions or 1."""

    steps: int = 100
    batch: int = 1
    features: int = 256
    hidden: int = 256
    layers: int = 1
    directions: int = 1
    seed: int = 0

    OPERATOR: ClassVar[str]
    GATES: ClassVar[int]
    ATTRIBUTES: ClassVar[dict[str, int]] = {}

    def build(self) -> onnx.ModelProto:
        require_positive(self, "steps", "batch", "features", "hidden", "layers", "directions")
        name = self.OPERATOR.lower()
        require(name, self.directions <= 2, "there are two directions at most", self.directions)
        graph = OnnxGraph(name, self.seed)
        value = graph.input("x", TensorProto.FLOAT, [self.steps, self.batch, self.features])
        size = self.features
        for layer in range(self.layers):
            value = self._layer(graph, value, layer, size)
            size = self.directions * self.hidden
        graph.output(value, "y", [self.steps, self.batch, size])
        return graph.model()

    def _layer(self, graph: OnnxGraph, value: str, layer: int, size: int) -> str:
        """The states of all steps [steps, batch, directions * hidden]."""
        rows, std = self.GATES * self.hidden, self.hidden**-0.5
        w = graph.weight(f"weight_ih_l{layer}", self.directions, rows, size, std=size**-0.5)
        r = graph.weight(f"weight_hh_l{layer}", self.directions, rows, self.hidden, std=std)
        b = graph.weight(f"bias_l{layer}", self.directions, 2 * rows, std=std)
        states = graph.node(
            self.OPERATOR,
            *(value, w, r, b),
            hidden_size=self.hidden,
            direction="forward" if self.directions == 1 else "bidirectional",
            **self.ATTRIBUTES,
        )
        beside = graph.node("Transpose", states, perm=[0, 2, 1, 3])
        shape = graph.constant(np.array([self.steps, self.batch, -1], np.int64))
        return graph.node("Reshape", beside, shape)

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        shape = (self.steps, self.batch, self.features)
        return {"x": rng.standard_normal(shape, dtype=np.float32)}


@dataclass(frozen=True)
class Lstm(Recurrent):
    """Long short-term memory: four gates and two states. Parameters besides: unrolled, 1 for a
    product for each gate of each step, which run on different devices, not one operator for all."""

    unrolled: int = 0
    OPERATOR, GATES = "LSTM", 4

    def _layer(self, graph: OnnxGraph, value: str, layer: int, size: int) -> str:
        if not self.unrolled:
            return super()._layer(graph, value, layer, size)
        require("lstm", self.directions == 1, "unrolled ones have one direction", self.directions)
        weights = [
            (
                graph.weight(f"weight_{gate}_l{layer}", size + self.hidden, self.hidden),
                graph.weight(f"bias_{gate}_l{layer}", self.hidden),
            )
            for gate in "ifco"
        ]
        inputs = (
            graph.parts("Split", value, count=self.steps, axis=0) if self.steps > 1 else [value]
        )
        zeros = np.zeros((1, self.batch, self.hidden), np.float32)
        state = cell = graph.constant(zeros)
        states = []
        for step, x in enumerate(inputs):
            with graph.scope(f"l{layer}.{step}"):
                read = graph.node("Concat", x, state, axis=2)
                i, f, c, o = (
                    graph.node("Add", graph.node("MatMul", read, weight), bias)
                    for weight, bias in weights
                )
                kept = graph.node("Mul", graph.node("Sigmoid", f), cell)
                new = graph.node("Mul", graph.node("Sigmoid", i), graph.node("Tanh", c))
                cell = graph.node("Add", kept, new)
                state = graph.node("Mul", graph.node("Sigmoid", o), graph.node("Tanh", cell))
                states.append(state)
        return graph.node("Concat", *states, axis=0)


@dataclass(frozen=True)
class Gru(Recurrent):
    """Gated recurrent units: three gates, the reset behind the product, as PyTorch has them."""

    OPERATOR, GATES = "GRU", 3
    ATTRIBUTES: ClassVar[dict[str, int]] = {"linear_before_reset": 1}

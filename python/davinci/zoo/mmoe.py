"""Several tasks on shared experts, each with a gate of its own that weighs them (Ma et al., "MMoE",
2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require_positive
from davinci.zoo.layers import dense
from davinci.zoo.transformer import reshaped


@dataclass(frozen=True)
class Mmoe:
    """Parameters: rows, features, experts and the numbers each makes, hidden size of an expert and
    of a tower, tasks."""

    batch: int = 256
    features: int = 512
    experts: int = 8
    made: int = 128
    hidden: int = 256
    tasks: int = 2
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        require_positive(self, "batch", "features", "experts", "made", "hidden", "tasks")
        graph = OnnxGraph("mmoe", self.seed)
        x = graph.input("x", TensorProto.FLOAT, [self.batch, self.features])
        parts = []
        for number in range(self.experts):
            with graph.scope(f"expert{number}"):
                inner = graph.node("Relu", dense(graph, x, self.features, self.hidden))
                made = graph.node("Relu", dense(graph, inner, self.hidden, self.made))
                parts.append(reshaped(graph, made, [self.batch, 1, self.made]))
        found = graph.node("Concat", *parts, axis=1)
        results = [self._task(graph, x, found, number) for number in range(self.tasks)]
        together = graph.node("Concat", *results, axis=1) if self.tasks > 1 else results[0]
        graph.output(together, "y", [self.batch, self.tasks])
        return graph.model()

    def _task(self, graph: OnnxGraph, x: str, experts: str, number: int) -> str:
        """[batch, 1] of [batch, experts, made]."""
        with graph.scope(f"task{number}"):
            gate = graph.node("Softmax", dense(graph, x, self.features, self.experts), axis=1)
            gate = reshaped(graph, gate, [self.batch, 1, self.experts])
            mixed = reshaped(graph, graph.node("MatMul", gate, experts), [self.batch, self.made])
            inner = graph.node("Relu", dense(graph, mixed, self.made, self.hidden))
            return graph.node("Sigmoid", dense(graph, inner, self.hidden, 1))

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        return {"x": rng.standard_normal((self.batch, self.features), dtype=np.float32)}

"""A multilayer perceptron: `Gemm` and `Relu`, as PyTorch exports `nn.Linear` and `nn.ReLU`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto

from davinci.zoo.graph import OnnxGraph, require_positive


@dataclass(frozen=True)
class Mlp:
    """Parameters: sizes of input, hidden layers and output, number of layers, rows of input."""

    batch: int = 16
    features: int = 256
    hidden: int = 512
    layers: int = 3
    classes: int = 10
    seed: int = 0

    def build(self) -> onnx.ModelProto:
        require_positive(self, "batch", "features", "hidden", "layers", "classes")
        graph = OnnxGraph("mlp", self.seed)
        value = graph.input("x", TensorProto.FLOAT, [self.batch, self.features])
        widths = [self.features, *[self.hidden] * (self.layers - 1), self.classes]
        for i in range(self.layers):
            weight = graph.weight(f"fc{i}.weight", widths[i + 1], widths[i])
            bias = graph.weight(f"fc{i}.bias", widths[i + 1])
            value = graph.node("Gemm", value, weight, bias, transB=1)
            if i < self.layers - 1:
                value = graph.node("Relu", value)
        graph.output(value, "y", [self.batch, self.classes])
        return graph.model()

    def inputs(self, rng: np.random.Generator) -> dict[str, npt.NDArray[Any]]:
        return {"x": rng.standard_normal((self.batch, self.features), dtype=np.float32)}

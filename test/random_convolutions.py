"""Random layers of windows as ONNX has them, of whole numbers, so that results are exact.

Convolutions and transposed ones of one to three dimensions, and pools; groups, strides, dilations,
padding of every kind, biases, what follows them; shapes around blocks of 16, primes and one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from onnx_support import Arrays, DrawnModel, model_of

KINDS = ("Conv", "Conv", "Conv", "ConvTranspose", "MaxPool", "AveragePool")
SIZES = (1, 2, 3, 5, 7, 8, 13, 15, 16, 17, 23)
CHANNELS = (1, 2, 3, 4, 8, 15, 16, 17, 32, 33)
WAYS: tuple[dict[str, Any], ...] = (
    {"machine": "ascend910", "cores": 32},
    {"machine": "ascend910", "cores": 1},
    {"machine": "ascend310", "cores": 2},
    {"machine": "ascend910", "cores": 5, "fusion": "none"},
)
"""Every machine that the compiler makes kernels for."""


class Draw:
    """Draws a layer.

    Args:
        seed: of everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.kind = self._one(KINDS)
        self.rank = self._one((1, 2, 2, 2, 3, 3))
        self.attributes: dict[str, Any] = {}
        self.constants: Arrays = {}

    def _one(self, values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def _each(self, values: Any) -> list[int]:
        return [int(self._one(values)) for _ in range(self.rank)]

    def layer(self) -> DrawnModel:
        most = 100 if self.rank == 3 else 1000
        sizes = self._each(SIZES)
        while np.prod(sizes) > most:
            sizes = self._each(SIZES)
        batch = self._one((1, 1, 2, 3))
        pooled = self.kind.endswith("Pool")
        groups = 1 if pooled else self._one((1, 1, 1, 2, 3, 16))
        channels = self._one(CHANNELS) if groups == 1 else groups * self._one((1, 2, 5, 16))
        kernel, dilations = self._each((1, 2, 3, 3, 5)), self._each((1, 1, 1, 2))
        if self.kind == "AveragePool":
            dilations = [1] * self.rank
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        sizes = [max(a, b) for a, b in zip(sizes, extent, strict=True)]
        self.attributes = {"kernel_shape": kernel, "strides": self._each((1, 1, 2, 3))}
        if max(dilations) > 1:
            self.attributes["dilations"] = dilations
        self._pad(kernel, pooled)
        x = self.random.integers(-3, 4, (batch, channels, *sizes)).astype(np.float32)
        nodes = [self._node(groups, channels, kernel)]
        nodes += self._followers()
        model = model_of(nodes, {"x": x}, ["y"], self.constants, opset=18)
        followers = [node.op_type for node in nodes[1:]]
        weights = [array.shape for array in self.constants.values()]
        text = f"{self.kind} of {x.shape} by {weights}, {self.attributes}, then {followers}"
        rtol = 1e-6 if self.kind == "AveragePool" else 0  # averages are rounded
        return DrawnModel(model, {"x": x}, text, rtol)

    def _pad(self, kernel: list[int], pooled: bool) -> None:
        way = self._one(("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"))
        if way == "pads" and self.kind == "ConvTranspose":
            # Padding takes results away, of which some must be left.
            self.attributes["pads"] = [0] * self.rank + [min(k, 2) - 1 for k in kernel]
        elif way == "pads":
            least = [k - 1 if pooled else k for k in kernel]
            self.attributes["pads"] = [int(self.random.integers(n + 1)) for n in (*least, *least)]
            if pooled:
                self.attributes["ceil_mode"] = int(self._one((0, 1)))
        elif way != "none" and "dilations" not in self.attributes:
            # Where windows leave pixels out, onnxruntime refuses SAME or has shapes of its own.
            apart = zip(kernel, self.attributes["strides"], strict=True)
            if way == "VALID" or all(size >= stride for size, stride in apart):
                self.attributes["auto_pad"] = way
        if self.kind == "AveragePool":
            self.attributes["count_include_pad"] = int(self._one((0, 1)))

    def _node(self, groups: int, channels: int, kernel: list[int]) -> onnx.NodeProto:
        if self.kind.endswith("Pool"):
            return helper.make_node(self.kind, ["x"], ["t0"], name="layer", **self.attributes)
        outputs = self._one(CHANNELS) if groups == 1 else groups * self._one((1, 2, 5, 16))
        pair = [outputs, channels // groups]
        if self.kind == "ConvTranspose":
            pair = [channels, outputs // groups]
        names = ["x", "w"]
        self.constants["w"] = self._numbers((*pair, *kernel))
        if self._one((True, False)):
            names.append("b")
            self.constants["b"] = self._numbers((outputs,))
        attributes = {**self.attributes, "group": groups}
        return helper.make_node(self.kind, names, ["t0"], name="layer", **attributes)

    def _numbers(self, shape: tuple[int, ...]) -> Any:
        return self.random.integers(-1, 2, shape).astype(np.float32)

    def _followers(self) -> list[onnx.NodeProto]:
        """Operators behind the layer; the last one gives y."""
        chosen = [str(self._one(("Relu", "Neg", "Abs"))) for _ in range(self._one((0, 1, 2)))]
        chosen = chosen or ["Identity"]
        names = [f"t{i}" for i in range(len(chosen))] + ["y"]
        return [
            helper.make_node(op, [given], [made], name=f"{op}_{given}")
            for op, given, made in zip(chosen, names[:-1], names[1:], strict=True)
        ]

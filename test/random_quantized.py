"""Random products and convolutions of bytes as ONNX has them, results and all compared exactly."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import helper

from onnx_support import DrawnModel, model_of

KINDS = ("MatMulInteger", "QLinearMatMul", "ConvInteger", "QLinearConv")
SIZES = (1, 2, 7, 13, 15, 16, 17, 31, 33, 70)
CHANNELS = (1, 2, 3, 8, 15, 16, 17, 32, 33, 70)
DEPTHS = (1, 3, 16, 31, 33, 129, 1025, 2100)
WAYS: tuple[dict[str, Any], ...] = (
    {"machine": "ascend910", "cores": 32},
    {"machine": "ascend310", "cores": 2},
    {"machine": "ascend910", "cores": 3, "fusion": "none"},
)


class Draw:
    """Draws a layer.

    Args:
        given: whether the graph is given its scales, which are constants otherwise.
    """

    def __init__(self, seed: int, given: bool = False) -> None:
        self.given = given
        self.rng = np.random.default_rng(seed)
        self.kind = KINDS[seed % len(KINDS)]
        self.weights: dict[str, Any] = {}

    def pick(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def integers(self, dtype: Any, *shape: int) -> Any:
        limits = np.iinfo(dtype)
        return self.rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)

    def constant(self, name: str, value: Any) -> str:
        self.weights[name] = np.asarray(value)
        return name

    def zero(self, name: str, dtype: Any, count: int = 0) -> str:
        """A zero point, or several; perhaps 0."""
        value = self.integers(dtype, *([count] if count else []))
        return self.constant(name, value if self.rng.integers(3) else np.zeros_like(value))

    def scale(self, name: str, mean: float, count: int = 0) -> str:
        shape = [count] if count else []
        return self.constant(name, np.float32(mean * (0.5 + self.rng.random(shape))))

    def layer(self) -> DrawnModel:
        left, right = self.pick((np.int8, np.uint8)), np.int8
        quantized = self.kind.startswith("QLinear")
        if "Conv" in self.kind:
            x, w, attributes, depth = self._windows(left, right)
            outputs = w.shape[0]
        else:
            m, n, depth = self.pick(SIZES), self.pick(SIZES), self.pick(DEPTHS)
            x, w, attributes = self.integers(left, m, depth), self.integers(right, depth, n), {}
            outputs = n
        self.weights["w"] = w
        # onnxruntime has zero points of weights for some forms only.
        weight_zero = self.constant("wz", np.int8(0))
        if not quantized:
            names = ["x", "w", self.zero("xz", left), weight_zero]
        else:
            each = outputs if self.kind == "QLinearConv" and self.rng.integers(2) else 0
            if each:
                weight_zero = self.constant("wz", np.zeros(each, np.int8))
            spread = 4000.0 * depth**0.5 / 60
            names = ["x", self.scale("xs", 0.02), self.zero("xz", left)]
            names += ["w", self.scale("ws", 0.01, each), weight_zero]
            names += [self.scale("ys", 0.0002 * spread), self.zero("yz", left)]
            if self.kind == "QLinearConv" and self.rng.integers(2):
                bias = self.rng.integers(-9999, 9999, outputs).astype(np.int32)
                names.append(self.constant("b", bias))
        node = helper.make_node(self.kind, names, ["y"], **attributes)
        scales = [name for name in ("xs", "ws", "ys") if self.given and name in self.weights]
        inputs = {"x": x} | {name: self.weights.pop(name) for name in scales}
        model = model_of([node], inputs, constants=self.weights)
        text = f"{self.kind} {x.dtype}{list(x.shape)} {w.dtype}{list(w.shape)} {attributes}"
        return DrawnModel(model, inputs, text)

    def _windows(self, left: Any, right: Any) -> tuple[Any, Any, dict[str, Any], int]:
        kernel = [self.pick((1, 1, 2, 3, 5)) for _ in range(2)]
        dilations = [self.pick((1, 1, 1, 2)) for _ in kernel]
        pads = [int(self.rng.integers(k)) for k in (*kernel, *kernel)]
        extent = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        sides = [max(e, self.pick((1, 5, 8, 13))) for e in extent]
        groups = self.pick((1, 1, 1, 2, 16))
        inner = self.pick(CHANNELS) if groups == 1 else self.pick((1, 2, 16))
        outputs = groups * self.pick((1, 2, 16)) if groups > 1 else self.pick(CHANNELS)
        x = self.integers(left, self.pick((1, 1, 2)), groups * inner, *sides)
        w = self.integers(right, outputs, inner, *kernel)
        strides = [self.pick((1, 1, 2, 3)) for _ in kernel]
        lies = {"pads": pads, "strides": strides, "dilations": dilations, "group": groups}
        return x, w, lies, inner * kernel[0] * kernel[1]

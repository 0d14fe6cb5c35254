"""Random nodes Resize: every mode, coordinate, rounding, size, policy and region that ONNX has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from davinci import frontends
from davinci.mlir import make_context
from davinci.reference import check, interpreter
from onnx_support import Arrays, model_of

WAYS = (
    *("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners"),
    *("asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"),
)
ROUNDINGS = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 20)
FACTORS = (0.2, 0.3, 0.37, 0.5, 0.6, 0.7, 0.75, 0.9, 1.0, 1.1, 1.25, 1.3, 1.7, 2.0, 2.3, 2.5, 3.0)
OPSET = 19

WHOLE, SHARE = 2, 2e-3
"""Errors that are allowed: of integers, which are rounded behind each of three axes, and of floats
(f16, too) as a share of the largest value."""


@dataclass
class DrawnResize:
    """A node, its image of rank 4, and what its other operands are."""

    image: Any
    scales: Sequence[float] = ()
    sizes: Sequence[int] = ()
    roi: Sequence[float] = ()
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        given = {"scales": self.scales, "sizes": self.sizes, "roi": self.roi} | self.attributes
        words = [f"{key}={value}" for key, value in given.items() if value not in ((), [])]
        return f"{self.image.dtype}{list(self.image.shape)} {', '.join(words)}"

    def model(self) -> tuple[onnx.ModelProto, Arrays]:
        """A model of this node, and what it is run on."""
        return model_of_all([self])


def model_of_all(drawn: Sequence[DrawnResize]) -> tuple[onnx.ModelProto, Arrays]:
    """A model with all of these nodes side by side: input x0 becomes output y0."""
    nodes, inputs, constants = [], {}, {}
    for i, resize in enumerate(drawn):
        inputs[f"x{i}"] = resize.image
        operands = [f"x{i}"]
        kinds = {"roi": np.float32, "scales": np.float32, "sizes": np.int64}
        for name, kind in kinds.items():
            given = getattr(resize, name)
            if len(given):
                constants[f"{name}{i}"] = np.array(given, kind)
            operands.append(f"{name}{i}" if len(given) else "")
        while not operands[-1]:
            operands.pop()
        name = f"resize{i}"
        nodes.append(helper.make_node("Resize", operands, [f"y{i}"], name, **resize.attributes))
    outputs = [f"y{i}" for i in range(len(drawn))]
    return model_of(nodes, inputs, outputs, constants, OPSET), inputs


def imported(model: onnx.ModelProto, inputs: Arrays) -> Arrays:
    """Outputs of an imported model by StableHLO's interpreter: fast, as no kernel is made."""
    with make_context() as context:
        module = frontends.load(model, context)
        interpreter.prepare(module)
        return interpreter.evaluate(module, inputs, [value.name for value in model.graph.output])


def differences(drawn: Sequence[DrawnResize], run: Callable[..., Arrays]) -> list[str]:
    """A line for each node whose result is not onnxruntime's.

    Args:
        run: gives the outputs of a model by name for its inputs.
    """
    model, inputs = model_of_all(drawn)
    wanted, found = check.reference_onnx(model, inputs), run(model, inputs)
    return [
        f"{resize.text}: {error}"
        for i, resize in enumerate(drawn)
        if (error := difference(found[f"y{i}"], wanted[f"y{i}"]))
    ]


def difference(found: Any, wanted: Any) -> str:
    """What is wrong with a result, in words; empty if nothing is."""
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return f"{found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    error = np.abs(a - b).max(initial=0)
    whole = wanted.dtype.kind in "iu"
    right = error <= (WHOLE if whole else SHARE * max(1, np.abs(b).max(initial=0)))
    return "" if right else f"off by {error:.3g}"


LAYOUTS: dict[str, tuple[tuple[int, ...], ...]] = {
    "nearest": ((1, 2, 0, 0), (0, 0), (0,), (1, 0, 2), (0, 1, 0, 2), (1, 1, 0, 0, 0)),
    "linear": ((1, 2, 0, 0), (0, 0), (2, 0, 0), (1, 0, 0, 2), (1, 1, 0, 0, 0)),
    "cubic": ((1, 2, 0, 0), (0, 0)),
}
"""Shapes of images that onnxruntime takes; axes of 0 are resized."""

TYPES = (np.float32, np.float32, np.float32, np.float32, np.float16, np.uint8, np.int8, np.int32)


def draw(seed: int) -> DrawnResize:
    """A node that onnxruntime takes; a region holds all of an axis that keeps its length."""
    random = np.random.default_rng(seed)
    mode = str(random.choice(list(LAYOUTS)))
    layouts = LAYOUTS[mode]
    layout = layouts[random.integers(len(layouts)) if random.random() < 0.5 else 0]
    axes = [i for i, length in enumerate(layout) if not length]
    shape = [length or int(random.choice(LENGTHS)) for length in layout]
    dtype = TYPES[random.integers(len(TYPES))]
    attributes = draw_mode(random, mode)
    smooth = "antialias" in attributes
    if (mode == "cubic" and not smooth) or (smooth and dtype == np.int8):
        dtype = np.float32
    image = (random.standard_normal(shape) * 40).clip(0 if dtype == np.uint8 else -127, 127)
    drawn = DrawnResize(image.astype(dtype))
    way = str(random.choice(WAYS))
    drawn.attributes |= {"mode": mode, "coordinate_transformation_mode": way}
    drawn.attributes |= attributes
    named = random.random() < 0.4
    if named:
        axes = [int(a) for a in random.permutation(axes)]
        drawn.attributes["axes"] = axes
    lengths = np.array([shape[a] for a in axes])
    if random.random() < 0.5:
        factors = np.maximum(random.choice(FACTORS, len(axes)), 1 / lengths + 0.01)
        drawn.scales = spread(factors, axes, [1.0] * len(shape), named)
        news = np.floor(lengths.astype(np.float32) * factors.astype(np.float32))
    else:
        news = random.choice(LENGTHS, len(axes))
        drawn.sizes = spread(news, axes, shape, named)
        if named and random.random() < 0.6:
            policy = str(random.choice(["stretch", "not_larger", "not_smaller"]))
            drawn.attributes["keep_aspect_ratio_policy"] = policy
    if way == "tf_crop_and_resize":
        drawn.attributes["extrapolation_value"] = 10.0
        drawn.attributes.pop("keep_aspect_ratio_policy", None)
        start, size = random.uniform(-0.3, 0.6, len(axes)), random.uniform(0.2, 0.9, len(axes))
        kept = news == lengths
        start, end = np.where(kept, 0, start), np.where(kept, 1, start + size)
        ends = [spread(start, axes, [0.0] * len(shape), named)]
        ends.append(spread(end, axes, [1.0] * len(shape), named))
        drawn.roi = [*ends[0], *ends[1]]
    return drawn


def draw_mode(random: np.random.Generator, mode: str) -> dict[str, Any]:
    """Attributes that belong to a mode."""
    if mode == "nearest":
        return {"nearest_mode": str(random.choice(ROUNDINGS))}
    attributes: dict[str, Any] = {"antialias": 1} if random.random() < 0.4 else {}
    if mode == "cubic":
        attributes["cubic_coeff_a"] = float(random.choice([-0.75, -0.5]))
    if mode == "cubic" or attributes:
        attributes["exclude_outside"] = int(random.integers(2))
    return attributes


def spread(given: Any, axes: Sequence[int], others: Sequence[Any], named: bool) -> list[Any]:
    """Numbers of the axes: in their order where they are named, else among those of all axes."""
    numbers = np.array(given).tolist()
    if named:
        return list(numbers)
    among = list(others)
    for axis, number in zip(axes, numbers, strict=True):
        among[axis] = number
    return among

"""Random graphs of products and convolutions with what follows them, of whole numbers.

What is drawn is what networks put behind products: additions, factors and bounds whose other
operand is a channel's number for each image (B, c, 1, 1), one for each pixel (1, 1, S, S), a number
a channel (c), a scalar, an array of the result's shape, or another product; operands are arguments,
constants, or computed (the time embedding of a diffusion UNet is a Gemm with two dimensions added).
Numbers stay whole and small, so that every precision gives the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper

import davinci
from davinci.reference import check
from onnx_support import Arrays, model_of

MACHINES = (
    ("ascend910", (1, 2, 32)),
    ("ascend310", (1, 2)),
    ("ascend310p", (1, 2, 8)),
)
"""Every machine that the compiler makes kernels for, with numbers of cores."""

PLACES = tuple((name, cores) for name, counts in MACHINES for cores in counts)
CHANNELS = (1, 3, 8, 16, 17, 32, 33)
SIDES = (1, 2, 3, 5, 7, 8, 16)
BINARY = ("Add", "Add", "Mul", "Sub", "Max", "Min")
UNARY = ("Relu", "Neg", "Abs", "Clip")
LARGEST = 2048
"""The largest whole number up to which f16 has all."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Epilogue:
    """A drawn model.

    Attributes:
        text: a line that says what it is.
        way: options of `davinci.compile` that it is checked with.
    """

    model: onnx.ModelProto
    inputs: Arrays
    text: str
    way: dict[str, Any]

    def check(self) -> bool:
        """Asserts that all outputs are onnxruntime's; False where numbers left f16's integers."""
        wanted = check.reference_onnx(self.model, self.inputs)
        if any(np.abs(array).max(initial=0) > LARGEST for array in wanted.values()):
            return False
        executable = davinci.compile(self.model, **self.way)
        kept = set(executable.input_names)
        found = executable.run({n: x for n, x in self.inputs.items() if n in kept})
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array, err_msg=name)
        return True


class Draw:
    """Draws a graph: one or two products, each with what follows it.

    Args:
        seed: of everything.
    """

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng([seed, 24])
        self.seed = seed
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: Arrays = {}
        self.constants: Arrays = {}
        self.outputs: list[str] = []
        self.words: list[str] = []

    def epilogue(self) -> Epilogue:
        """The graph, with one of the machines and numbers of cores."""
        self.kind = self._one(("Conv", "Conv", "MatMul", "Gemm"))
        value, shape = self._product()
        value, shape = self._follow(value, shape, self._one((1, 2, 3, 4)))
        if self._one((True, False, False)):
            self.outputs.append(value)
            value, shape = self._again(value, shape)
            value, shape = self._follow(value, shape, self._one((1, 2)))
        value = self._leave(value, shape)
        self.outputs = [name for name in dict.fromkeys(self.outputs) if self._one((True, False))]
        self.outputs.append(value)
        model = model_of(self.nodes, self.inputs, self.outputs, self.constants, opset=18)
        text = f"{', '.join(self.words)}; outputs {len(self.outputs)}"
        machine, cores = PLACES[self.seed % len(PLACES)]
        precision = self._one(("mixed", "mixed", "mixed", "fp16", "fp32"))
        way = {"machine": machine, "cores": cores, "precision": precision}
        return Epilogue(model, self.inputs, text, way)

    def _one(self, values: Any) -> Any:
        return values[int(self.random.integers(len(values)))]

    def _add(self, kind: str, *operands: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        node = helper.make_node(kind, list(operands), [name], name=f"{kind}_{name}", **attributes)
        self.nodes.append(node)
        return name

    def _argument(self, shape: Shape, least: int = -2, most: int = 2) -> str:
        name = f"x{len(self.inputs)}"
        numbers = self.random.integers(least, most + 1, shape)
        self.inputs[name] = numbers.astype(np.float32)
        return name

    def _constant(self, array: Any) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def _numbers(self, shape: Shape, least: int = -1, most: int = 1) -> str:
        """A constant, at times one number everywhere."""
        if self._one((True, False, False, False)):
            return self._constant(np.full(shape, self._one((-1, 0, 1)), np.float32))
        return self._constant(self.random.integers(least, most + 1, shape).astype(np.float32))

    def _either(self, shape: Shape) -> str:
        return self._argument(shape) if self._one((True, False)) else self._numbers(shape)

    def _product(self) -> tuple[str, Shape]:
        """The first product, and the shape of its result."""
        batch, channels, outputs = self._one((1, 2, 3)), self._one(CHANNELS), self._one(CHANNELS)
        if self.kind == "Conv":
            side = self._one(SIDES)
            return self._convolution(self._argument((batch, channels, side, side)), channels, side)
        rows = self._one((1, 2, 5, 16, 17))
        if self.kind == "Gemm":
            x, w = self._argument((rows, channels)), self._numbers((channels, outputs))
            self.words.append(f"Gemm {rows}x{channels}x{outputs}")
            return self._add("Gemm", x, w, *self._bias((outputs,))), (rows, outputs)
        x = self._argument((batch, rows, channels))
        of_w = self._one(((channels, outputs), (batch, channels, outputs)))
        w = self._argument(of_w, -1, 1) if self._one((True, False)) else self._numbers(of_w)
        self.words.append(f"MatMul {batch}x{rows}x{channels}x{outputs}")
        return self._add("MatMul", x, w), (batch, rows, outputs)

    def _bias(self, shape: Shape) -> list[str]:
        return [self._numbers(shape)] if self._one((True, False)) else []

    def _convolution(self, x: str, channels: int, side: int) -> tuple[str, Shape]:
        outputs, kernel = self._one(CHANNELS), self._one((1, 1, 3)) if side > 2 else 1
        stride, pad = self._one((1, 1, 2)), self._one((0, kernel // 2))
        batch = next(iter(self.inputs.values())).shape[0]
        groups = channels if self._one((True, False, False, False, False)) else 1
        outputs = channels if groups > 1 else outputs
        w = self._numbers((outputs, channels // groups, kernel, kernel))
        made = (side + 2 * pad - kernel) // stride + 1
        self.words.append(
            f"Conv {batch}x{channels}x{side}x{side} to {outputs} by {kernel}/{stride}"
        )
        result = self._add(
            "Conv",
            x,
            w,
            *self._bias((outputs,)),
            strides=[stride] * 2,
            pads=[pad] * 4,
            group=groups,
        )
        return result, (batch, outputs, made, made)

    def _again(self, value: str, shape: Shape) -> tuple[str, Shape]:
        """A second product, which reads what was made of the first."""
        if len(shape) == 4:
            return self._convolution(value, shape[1], shape[2])
        outputs = self._one(CHANNELS)
        self.words.append(f"MatMul to {outputs}")
        result = self._add("MatMul", value, self._numbers((shape[-1], outputs)))
        return result, (*shape[:-1], outputs)

    def _follow(self, value: str, shape: Shape, count: int) -> tuple[str, Shape]:
        for _ in range(count):
            if self._one((True, False, False, False)):
                self.outputs.append(value)
            kind = self._one((*BINARY, *UNARY[:1], *UNARY))
            if kind in UNARY:
                bounds = [self._constant(np.float32(b)) for b in (-3, 6)] if kind == "Clip" else []
                value = self._add(kind, value, *bounds)
                self.words.append(kind)
                continue
            other, how = self._operand(value, shape, kind == "Mul")
            pair = (value, other) if self._one((True, False)) else (other, value)
            value = self._add(kind, *pair)
            self.words.append(f"{kind} {how}")
        return value, shape

    def _operand(self, value: str, shape: Shape, small: bool) -> tuple[str, str]:
        """What a result of `shape` is combined with, and what that is called; its numbers are -1 to
        1 if `small`, as of a factor."""
        shapes = {"scalar": (), "one": (1,), "full": shape, "last": shape[-1:]}
        if len(shape) == 4:
            batch, c, rows, columns = shape
            shapes |= {"Bc11": (batch, c, 1, 1), "11SS": (1, 1, rows, columns), "c11": (c, 1, 1)}
            shapes |= {"1c11": (1, c, 1, 1), "B111": (batch, 1, 1, 1), "1cSS": (1, *shape[1:])}
            shapes |= {"B1SS": (batch, 1, rows, columns)}
        else:
            shapes |= {"rows": (*shape[:-1], 1), "first": (*shape[:1], *(1,) * (len(shape) - 1))}
        name = self._one(sorted(shapes))
        wanted = shapes[name]
        way = self._one(("argument", "constant", "computed", "itself"))
        if way == "itself" and name == "full" and not small:
            return value, "itself"
        if way == "computed" and not small and name in ("Bc11", "B111"):
            depth = self._one((3, 16, 20))
            x, w = self._argument((wanted[0], depth)), self._numbers((depth, wanted[1]))
            made = self._add("Gemm", x, w, *self._bias(wanted[1:2]))
            if self._one((True, False)):
                made = self._add("Relu", made)
            axes = self._constant(np.array([2, 3], np.int64))
            return self._add("Unsqueeze", made, axes), f"{name} of Gemm"
        if way == "constant":
            return self._numbers(wanted), f"{name} constant"
        made = self._argument(wanted, *((-1, 1) if small else (-2, 2)))
        if way == "computed":
            made = self._add(self._one(("Neg", "Relu", "Abs")), made)
        return made, name

    def _leave(self, value: str, shape: Shape) -> str:
        """What is done to the last result: nothing, or a rearrangement, reduction or concatenation
        of it."""
        way = self._one(("no", "no", "transpose", "flatten", "max", "concat", "slice"))
        if way == "no":
            return self._add("Identity", value)
        self.words.append(way)
        if way == "transpose":
            return self._add("Transpose", value, perm=[0, *range(2, len(shape)), 1][: len(shape)])
        if way == "flatten":
            return self._add("Flatten", value)
        if way == "max":
            axes = self._constant(np.array([len(shape) - 1, len(shape) - 2], np.int64))
            return self._add("ReduceMax", value, axes, keepdims=self._one((0, 1)))
        if way == "concat":
            return self._add("Concat", value, self._either(shape), axis=1)
        ends = [self._constant(np.array([n], np.int64)) for n in (0, (shape[1] + 1) // 2, 1)]
        return self._add("Slice", value, *ends)

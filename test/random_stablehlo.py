"""Random StableHLO programs: chains of a few operations on small tensors of all types.

Shapes are those that hurt: 0, 1, 15, 16, 17, primes. Values are small, and what a value went
through is known: operations that jump (comparisons, roundings, conversions to integers) are only
applied to values that are exact, so that two right computations differ by roundings only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

SIZES = (0, 1, 1, 2, 3, 5, 7, 15, 16, 17, 31)
MOST_ELEMENTS = 3000
FLOATS = ("f32", "f16")
INTEGERS = ("i32", "i8", "ui8", "i64", "i16", "ui32")
DTYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "ui8": np.uint8,
    "ui32": np.uint32,
    "i1": np.bool_,
}


@dataclass(frozen=True)
class Value:
    """A tensor of the program; `exact` if every right computation gives the same bits."""

    name: str
    shape: tuple[int, ...]
    kind: str
    exact: bool

    @property
    def type(self) -> str:
        return tensor(self.shape, self.kind)


def tensor(shape: tuple[int, ...] | list[int], kind: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


def array(values: Any) -> str:
    return f"array<i64{': ' if len(values) else ''}{', '.join(str(int(v)) for v in values)}>"


class Program:
    """Writes one program: `text`, and `inputs` for it."""

    def __init__(self, seed: int, length: int, steps: Sequence[Step]) -> None:
        self.rng = np.random.default_rng(seed)
        self.arguments: list[Value] = []
        self.lines: list[str] = []
        self.values: list[Value] = []
        for _ in range(self.draw(1, 3)):
            self.argument(self.shape(), self.kind())
        while len(self.lines) < length:
            step = self.pick(steps)
            step(self, self.values[-1] if self.chance(0.7) else self.pick(self.values))
        used = " ".join(self.lines)
        ends = [v for v in self.values if f"{v.name}," not in used and f"{v.name} " not in used]
        self.results = (ends or self.values)[-3:]
        self.inputs = [self.data(v.shape, v.kind) for v in self.arguments]

    @property
    def text(self) -> str:
        arguments = ", ".join(f"{v.name}: {v.type}" for v in self.arguments)
        types = ", ".join(v.type for v in self.results)
        names = ", ".join(v.name for v in self.results)
        body = "\n".join(f"  {line}" for line in [*self.lines, f"return {names} : {types}"])
        return f"func.func @main({arguments}) -> ({types}) {{\n{body}\n}}\n"

    def draw(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def chance(self, probability: float) -> bool:
        return bool(self.rng.random() < probability)

    def pick(self, values: Any) -> Any:
        return values[self.draw(0, len(values) - 1)]

    def kind(self) -> str:
        return str(self.pick(("f32", "f32", "f32", "f16", "i32", "i32", *INTEGERS, "i1")))

    def shape(self) -> tuple[int, ...]:
        while True:
            shape = tuple(self.pick(SIZES) for _ in range(self.draw(0, 4)))
            if np.prod(shape) <= MOST_ELEMENTS and (0 not in shape or self.chance(0.3)):
                return shape

    def data(self, shape: tuple[int, ...], kind: str) -> npt.NDArray[Any]:
        if kind == "i1":
            return np.asarray(self.rng.integers(0, 2, shape)).astype(bool)
        if kind in FLOATS:
            return (np.asarray(self.rng.integers(-12, 13, shape)) / 4).astype(DTYPES[kind])
        limits = np.iinfo(DTYPES[kind])
        low, high = (limits.min, limits.max) if self.chance(0.2) else (max(limits.min, -5), 9)
        found = self.rng.integers(low, high, shape, DTYPES[kind], endpoint=True)
        return np.asarray(found, DTYPES[kind])

    def argument(self, shape: tuple[int, ...], kind: str) -> Value:
        """Another argument, or a constant, or a value that is there already."""
        same = [v for v in self.values if (v.shape, v.kind) == (shape, kind)]
        if same and self.chance(0.5):
            found: Value = self.pick(same)
            return found
        if self.chance(0.3) and np.prod(shape):
            splat = shape if self.chance(0.5) or np.prod(shape) > 64 else ()
            data = self.data(shape if splat != shape or shape == () else (), kind)
            return self.emit(f"stablehlo.constant {dense(data)} : ", shape, kind, True, typed=False)
        value = Value(f"%a{len(self.arguments)}", shape, kind, True)
        self.arguments.append(value)
        self.values.insert(0, value)
        return value

    def emit(
        self, text: str, shape: Any, kind: str, exact: bool, types: str = "", typed: bool = True
    ) -> Value:
        """Adds a line; `types` are those of operands, before `->`."""
        value = Value(f"%v{len(self.lines)}", tuple(int(n) for n in shape), kind, exact)
        arrow = f" : ({types}) -> {value.type}" if typed else value.type
        self.lines.append(f"{value.name} = {text}{arrow}")
        self.values.append(value)
        return value

    def op(
        self,
        name: str,
        operands: list[Value],
        shape: Any,
        kind: str,
        exact: Any = None,
        region: str = "",
        **attributes: str,
    ) -> Value:
        """Adds an operation in generic form."""
        found = ", ".join(f"{key} = {value}" for key, value in attributes.items())
        text = f'"stablehlo.{name}"({", ".join(v.name for v in operands)})'
        text += (f" <{{{found}}}>" if found else "") + region
        if exact is None:
            exact = all(v.exact for v in operands)
        return self.emit(text, shape, kind, exact, ", ".join(v.type for v in operands))

    def scalar(self, kind: str) -> Value:
        return self.argument((), kind)


def dense(data: npt.NDArray[Any]) -> str:
    text = str(data.tolist()).replace("True", "true").replace("False", "false")
    return f"dense<{text}>"


Step = Callable[[Program, Value], None]
"""Adds an operation on a value to a program, or nothing where none fits."""

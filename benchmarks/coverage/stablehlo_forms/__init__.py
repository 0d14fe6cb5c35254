"""Small StableHLO programs: for each operator its forms, on our element types.

A form is text with `T` for the element type of a tensor, `tensor<3x5xT>`. Its program is the body
of `@main`; the arguments are named in `arguments`. Inputs are drawn by type: floats from -2 to 2,
integers with both ends of their range among them.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

FLOATS = ("f32", "f16")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32", "ui64")
INTEGERS = (*SIGNED, *UNSIGNED)
NUMBERS = (*FLOATS, *INTEGERS)
ALL = (*NUMBERS, "i1")
FEW = ("f32", "f16", "i8", "i32", "ui8", "i64", "i1")
ONE = ("f32",)

ELEMENT = re.compile(r"(?<=[<x])T(?=>)")
"""The place of the element type."""


@dataclass(frozen=True)
class Form:
    """One form of an operator.

    Attributes:
        operator: as StableHLO names it, without its dialect.
        name: what is special about the form; "" for the plain one.
        arguments: types of `%a`, `%b`, ... of `@main`.
        body: operations, the last of which returns.
        types: element types that replace `T`.
        positive: floats are drawn from 0.1 to 2, integers are neither 0 nor -1.
        small: integers are drawn from -4 to 6, which indices and exponents need.
        expected: results in NumPy where the interpreter cannot run the operator, else None.
    """

    operator: str
    name: str
    arguments: tuple[str, ...]
    body: str
    types: tuple[str, ...] = ONE
    positive: bool = False
    small: bool = False
    expected: Callable[..., Any] | None = None

    def text(self, element: str) -> str:
        """The program on tensors of `element`."""
        returned = re.findall(r"return [^:]*: (.*)$", self.body, re.M)[-1]
        signature = ", ".join(f"%{'abcdefgh'[i]}: {t}" for i, t in enumerate(self.arguments))
        whole = f"func.func @main({signature}) -> ({returned}) {{\n{self.body}\n}}\n"
        return ELEMENT.sub(element, whole)

    def inputs(self, specs: list[Any], element: str) -> dict[str, Any]:
        """Arrays for the inputs `specs`, which have name, shape and dtype."""
        rng = np.random.default_rng(zlib.crc32(f"{self.operator} {self.name} {element}".encode()))
        return {spec.name: self._draw(rng, spec.shape, spec.dtype) for spec in specs}

    def _draw(self, rng: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        if dtype.kind == "b":
            return rng.integers(0, 2, shape).astype(bool)
        if dtype.kind not in "iu":
            return rng.uniform(0.1 if self.positive else -2, 2, shape).astype(dtype)
        limits = np.iinfo(dtype)
        drawn = rng.integers(max(limits.min, -4), 7, shape).astype(dtype)
        if not self.small:
            ends = rng.choice(np.array([limits.min, limits.max, limits.max - 1], dtype), shape)
            drawn = np.where(rng.random(shape) < 0.3, ends, drawn).astype(dtype)
        if self.positive:
            drawn = np.where(np.isin(drawn.astype(np.int64), (0, -1)), 3, drawn).astype(dtype)
        return drawn


FORMS: list[Form] = []


def load_forms() -> None:
    """Imports the modules of this package, which add their forms to `FORMS`."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")


def form(operator: str, name: str, arguments: list[str], body: str, **more: Any) -> None:
    FORMS.append(Form(operator, name, tuple(arguments), body, **more))


def simple(
    operator: str, name: str, arguments: list[str], result: str, text: str, **more: Any
) -> None:
    """A form that is one operation in generic form; `text` stands between its names and types."""
    names = ", ".join(f"%{'abcdefgh'[i]}" for i in range(len(arguments)))
    types = ", ".join(arguments)
    results = result.count("tensor<")
    left = "%r" if results == 1 else f"%r:{results}"
    used = "%r" if results == 1 else ", ".join(f"%r#{i}" for i in range(results))
    body = (
        f'{left} = "stablehlo.{operator}"({names}) {text} : ({types}) -> ({result})\n'
        f"return {used} : {result}"
    )
    form(operator, name, arguments, body, **more)


def region(count: int, kinds: list[str], body: str) -> str:
    """A region whose `count` arguments are named `%p0`, `%p1`, ... of rank 0."""
    arguments = ", ".join(f"%p{i}: tensor<{kinds[i % len(kinds)]}>" for i in range(count))
    return f"({{\n^bb0({arguments}):\n{body}\n}})"


def reducer(name: str, kind: str = "T") -> str:
    return region(
        2,
        [kind],
        f"%s = stablehlo.{name} %p0, %p1 : tensor<{kind}>\nstablehlo.return %s : tensor<{kind}>",
    )


def array(*values: int) -> str:
    return f"array<i64{': ' if values else ''}{', '.join(map(str, values))}>"

"""What an operator record is. Everything that knows an operator of `ascend` reads its record.

A record says of an operator, on values of static shapes: which operands it takes, of which element
types the units compute it, its values in NumPy (constant folding, and what tests hold kernels
against), and, where it is elementwise, its *tile rule*: the vector program that computes any tile.

An elementwise operator is its tile rule with a decorator:

    @elementwise(values=lambda x: x * np.clip(x + 3, 0, 6) / 6, types=FLOATS)
    def hard_swish(p: VectorProgram, x: Value) -> Value:
        \"""x min(max(x + 3, 0), 6) / 6.\"""
        return p.mul(p.mul(x, limited(p, p.add(x, 3), 0, 6)), 1 / 6)

Positional parameters are its operands; keyword-only ones are attributes, and `result` the element
type of the result. The docstring is its documentation. Records import neither MLIR, nor the passes,
nor the simulator.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.element_types import dtype_of
from davinci.operators.vector_program import Operand, Value, VectorProgram

Array = npt.NDArray[Any]
Rule = Callable[..., Value]
"""A tile rule: a program and operands, then attributes by name, to the value of the result."""

FLOATS = frozenset({"f16", "f32"})
NUMBERS = FLOATS | {"i32"}
"""Element types that the vector unit has arithmetic for."""

RESULT = "result"
"""The keyword by which a record's functions ask for the element type of the result."""


@dataclass(frozen=True)
class Tensor:
    """Shape and element type, in MLIR's words, of an operand or result."""

    shape: tuple[int, ...]
    element: str

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def count(self) -> int:
        return math.prod(self.shape)

    def __str__(self) -> str:
        return "x".join([*map(str, self.shape), self.element])


@dataclass(frozen=True)
class Operator:
    """What is known of any operator.

    Attributes:
        name: without the dialect, e.g. `add`.
        operands: names of the inputs.
        types: element types of operands and result that the unit takes; booleans are `i1`.
        doc: what it computes.
    """

    name: str
    operands: tuple[str, ...]
    types: frozenset[str]
    doc: str

    @property
    def elementwise(self) -> bool:
        return isinstance(self, Elementwise)


@dataclass(frozen=True)
class Elementwise(Operator):
    """An operator that computes each element of its result from the same element of its operands.

    Attributes:
        formula: the values in NumPy, called like the rule without a program.
        rule: the tile rule.
        keywords: the attributes both ask for, and `result`.
    """

    formula: Callable[..., Any]
    rule: Rule
    keywords: tuple[str, ...]

    def _given(self, attributes: Mapping[str, Any], result: str) -> dict[str, Any]:
        known = {**attributes, RESULT: result}
        return {name: known[name] for name in self.keywords}

    def values(
        self, inputs: Sequence[Array], result: Tensor, attributes: Mapping[str, Any]
    ) -> Array:
        """The result, from operands of the shape of `result`, or all of rank 0."""
        with np.errstate(all="ignore"):
            found = self.formula(*inputs, **self._given(attributes, result.element))
        return np.asarray(found, dtype_of(result.element))

    def tile(
        self,
        program: VectorProgram,
        operands: Sequence[Operand],
        attributes: Mapping[str, Any],
        result: str,
    ) -> Value:
        """Records what computes a tile.

        Args:
            program: what to record on.
            operands: values, or numbers for operands that are the same everywhere, one a value at
                least; booleans are bytes 0 and 1.
            attributes: attributes as Python values.
            result: element type of the result on tensors: `i1` asks for bytes 0 and 1.
        """
        return self.rule(program, *operands, **self._given(attributes, result))


OPERATORS: dict[str, Operator] = {}
"""Every record by name."""


def define(record: Operator) -> None:
    """Registers a record."""
    if record.name in OPERATORS:
        raise ValueError(f"operator {record.name} is defined twice")
    OPERATORS[record.name] = record


def elementwise(values: Callable[..., Any], types: frozenset[str]) -> Callable[[Rule], Rule]:
    """Registers a tile rule as an elementwise operator of its name; see the head of the module.

    A name that Python has taken ends in an underscore, which the operator does not have.
    """

    def register(rule: Rule) -> Rule:
        _, *parameters = inspect.signature(rule).parameters.values()
        named = [p.name for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
        define(
            Elementwise(
                name=rule.__name__.rstrip("_"),
                operands=tuple(p.name for p in parameters if p.name not in named),
                types=types,
                doc=inspect.getdoc(rule) or "",
                formula=values,
                rule=rule,
                keywords=tuple(named),
            )
        )
        return rule

    return register

"""What an operator record is. Everything that knows an operator of `ascend` reads its record.

A record says of an operator, on values of static shapes: its constraints, of which the last says
which layouts go together, its unit and the element types it has there, its values in NumPy
(constant folding, and what tests hold kernels against), its iteration axes and what it reads over
them (`windows`), its work, and, where it is elementwise, its *tile rule*: the vector program that
computes any tile.

An elementwise operator is its tile rule with a decorator:

    @elementwise(values=lambda x: x * np.clip(x + 3, 0, 6) / 6, types=FLOATS)
    def hard_swish(p: VectorProgram, x: Value) -> Value:
        \"""x min(max(x + 3, 0), 6) / 6.\"""
        return p.mul(p.mul(x, limited(p, p.add(x, 3), 0, 6)), 1 / 6)

Any other is its values with one: `@operator(windows=.., constraints=..)`. Of such a function
positional parameters are the operands; it asks by keyword for attributes, those with a default
being optional, and for the type of the `result`. Its docstring is the operator's documentation. A
name that Python has taken ends in an underscore, which the operator does not have.

Records import neither MLIR, nor the passes, nor the simulator.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.element_types import dtype_of
from davinci.errors import Invalid
from davinci.operators.call import Call
from davinci.operators.composition import MadeOf
from davinci.operators.constraints import Constraint, floats_only, integers_only, same_types
from davinci.operators.layouts import any_layout, one_layout, rows_only
from davinci.operators.tensors import Tensor
from davinci.operators.vector_program import Operand, Value, VectorProgram
from davinci.operators.windows import WindowsOf, same_place
from davinci.operators.work import WorkOf, computed, moved, partly_read

Array = npt.NDArray[Any]
Function = Callable[..., Any]

FLOATS = frozenset({"f16", "f32"})
NUMBERS = FLOATS | {"i32"}
"""Element types that the vector unit has arithmetic for."""

REAL = (same_types, floats_only)
WHOLE = (same_types, integers_only)
"""Constraints of operators of floats, and of integers and booleans."""

ANY = frozenset[str]()
"""No limit of element types: what only moves data."""

RESULT = "result"
"""The keyword by which a record's functions ask for the `Tensor` of the result."""

CUBE, VECTOR, SCALAR, NONE = "cube", "vector", "scalar", "none"
"""Units that kernels run on; what is only another view of its operand needs none."""


@dataclass(frozen=True)
class Operator:
    """What is known of an operator.

    Attributes:
        name: without the dialect, e.g. `add`.
        doc: what it computes.
        operands: names of the inputs.
        keywords: what its functions ask for: attributes, and the result.
        required: those of the attributes that have no default.
        constraints: what a legal call holds to, C1 first.
        unit: what computes it on the element types `types`; other types are the scalar unit's.
        types: of operands and result, `ANY` if it takes all; booleans are `i1`.
        formula: its values in NumPy.
        rule: the tile rule of an elementwise operator, else None.
        windows: its axes and what it reads over them.
        work: what it means to do.
        overwrites: whether its kernel writes a part of its first operand, whose buffer becomes the
            result's.
        moves: whether it only moves elements: each of the result is the one of its operand at the
            place that `windows` says, which is all that its kernels are made of.
        made_of: the operators that a kernel computes instead, None if it has kernels of its own.
    """

    name: str
    doc: str
    operands: tuple[str, ...]
    keywords: tuple[str, ...]
    required: tuple[str, ...]
    constraints: tuple[Constraint, ...]
    unit: str
    types: frozenset[str]
    formula: Function
    rule: Callable[..., Value] | None
    windows: WindowsOf
    work: WorkOf
    overwrites: bool = False
    moves: bool = False
    made_of: MadeOf | None = None

    @property
    def elementwise(self) -> bool:
        """Whether each element of the result comes from the same element of the operands."""
        return self.rule is not None

    @property
    def reads_in_part(self) -> bool:
        """Whether it reads no more of its first operand than it returns."""
        return self.work is partly_read

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the attributes."""
        return tuple(name for name in self.keywords if name != RESULT)

    def check(self, call: Call) -> None:
        """Raises `Invalid`, with the number of the constraint, unless the call is legal."""
        for number, constraint in enumerate(self.constraints, 1):
            try:
                constraint(call)
            except Invalid as error:
                raise Invalid(f"C{number}: {error}") from None

    def refused(self, call: Call) -> str:
        """The first element type of a call that the operator's unit does not take, "" if none."""
        wrong = (x.element for x in call.values if self.types and x.element not in self.types)
        return next(wrong, "")

    def unit_of(self, call: Call) -> str:
        """The unit that computes a call: `SCALAR` where no other can."""
        return SCALAR if self.refused(call) else self.unit

    def values(
        self, inputs: Sequence[Array], result: Tensor, attributes: Mapping[str, Any]
    ) -> Array:
        """The result on known operands.

        Args:
            inputs: the operands; of an elementwise operator all may have rank 0.
            result: shape and element type of the result.
            attributes: attributes as Python values.
        """
        given = self._given(attributes, result)
        with np.errstate(all="ignore"):
            return np.asarray(self.formula(*inputs, **given), dtype_of(result.element))

    def makes_zero(
        self,
        operands: Sequence[tuple[str, Any]],
        element: str,
        attributes: Mapping[str, Any],
    ) -> bool:
        """Whether an elementwise result of some numbers is 0.

        Args:
            operands: the element type and the number of each.
            element: type of the result.
        """
        inputs = [np.asarray(number, dtype_of(kind)) for kind, number in operands]
        return not self.values(inputs, Tensor((), element), attributes).any()

    def tile(
        self,
        program: VectorProgram,
        operands: Sequence[Operand],
        attributes: Mapping[str, Any],
        result: str,
    ) -> Value:
        """Records what computes a tile of an elementwise operator.

        Args:
            program: what to record on.
            operands: values, or numbers for operands that are the same everywhere, one a value at
                least; booleans are bytes 0 and 1.
            attributes: attributes as Python values.
            result: element type of the result on tensors: `i1` asks for bytes 0 and 1.
        """
        if self.rule is None:
            raise TypeError(f"{self.name} is not elementwise: it has no tile rule")
        given = self._given(attributes, Tensor((), result))
        return self.rule(program, *operands, **given)

    def _given(self, attributes: Mapping[str, Any], result: Tensor) -> dict[str, Any]:
        known = {**attributes, RESULT: result}
        return {name: known[name] for name in self.keywords if name in known}


OPERATORS: dict[str, Operator] = {}
"""Every record by name."""


def elementwise(
    values: Function, types: frozenset[str], constraints: tuple[Constraint, ...] = (same_types,)
) -> Callable[[Function], Function]:
    """Registers a tile rule as an operator on the vector unit; see the head of the module.

    Args:
        values: the same in NumPy, with the same keywords.
        types: element types the rule takes.
        constraints: all of the operator's but that operands and result have one layout.
    """

    def register(rule: Function) -> Function:
        _, *parameters = inspect.signature(rule).parameters.values()
        _define(
            rule,
            parameters,
            constraints=(*constraints, one_layout),
            unit=VECTOR,
            types=types,
            formula=values,
            rule=rule,
            windows=same_place,
            work=computed,
        )
        return rule

    return register


def operator(
    windows: WindowsOf,
    constraints: tuple[Constraint, ...],
    unit: str = VECTOR,
    types: frozenset[str] = ANY,
    work: WorkOf = moved,
    layouts: Constraint = rows_only,
    overwrites: bool = False,
    moves: bool = False,
    made_of: MadeOf | None = None,
) -> Callable[[Function], Function]:
    """Registers NumPy values as an operator; see the head of the module.

    Args:
        windows, constraints, unit, types, work, overwrites, moves, made_of: as in `Operator`.
        layouts: the last constraint, which layouts go together.
    """

    def register(values: Function) -> Function:
        _define(
            values,
            list(inspect.signature(values).parameters.values()),
            constraints=constraints if layouts is any_layout else (*constraints, layouts),
            unit=unit,
            types=types,
            formula=values,
            rule=None,
            windows=windows,
            work=work,
            overwrites=overwrites,
            moves=moves,
            made_of=made_of,
        )
        return values

    return register


def _define(function: Function, parameters: list[inspect.Parameter], **facts: Any) -> None:
    """Registers the operator that a function with these parameters stands for."""
    name = function.__name__.rstrip("_")
    if name in OPERATORS:
        raise ValueError(f"operator {name} is defined twice")
    by_name = [p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY]
    named = [p.name for p in by_name]
    needed = (p.name for p in by_name if p.default is inspect.Parameter.empty)
    OPERATORS[name] = Operator(
        name=name,
        doc=inspect.getdoc(function) or "",
        operands=tuple(p.name for p in parameters if p.name not in named),
        keywords=tuple(named),
        required=tuple(name for name in needed if name != RESULT),
        **facts,
    )

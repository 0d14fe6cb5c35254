"""An application of an operator to values of known shapes, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from davinci.errors import Invalid
from davinci.operators.tensors import Tensor


@dataclass(frozen=True)
class Call:
    """An operator's inputs, outputs and attributes, which are Python values.

    Attributes:
        typed: the types of attributes that have one: of a number that of a scalar.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    typed: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def values(self) -> tuple[Tensor, ...]:
        """Inputs and outputs."""
        return (*self.inputs, *self.outputs)

    def array(self, name: str) -> list[int]:
        """The attribute `name`, a list of integers."""
        found = self.attributes.get(name)
        if not isinstance(found, (list, tuple)) or any(not isinstance(x, int) for x in found):
            raise Invalid(f"attribute '{name}'", missing(found), "array<i64: ...>")
        return list(found)

    def integer(self, name: str) -> int:
        found = self.attributes.get(name)
        if not isinstance(found, int) or isinstance(found, bool):
            raise Invalid(f"attribute '{name}'", missing(found), "an i64")
        return found

    def choice(self, name: str, choices: Sequence[str]) -> str:
        found = self.attributes.get(name)
        if found not in choices:
            raise Invalid(f"attribute '{name}'", missing(found), "one of " + ", ".join(choices))
        return str(found)

    def same_element(self, role: str, found: str, expected: str) -> None:
        """Equal element types."""
        if found != expected:
            raise Invalid(f"element type of {role}", found, expected)

    def expect_output(self, shape: Sequence[int], element: str) -> None:
        """The single output must be this."""
        found = self.outputs[0]
        if found.shape != tuple(shape):
            raise Invalid("shape of the result", list(found.shape), list(shape))
        self.same_element("the result", found.element, element)


def missing(found: object) -> object:
    return "none" if found is None else found

"""What PyTorch and JAX have in common: example arguments, and names of places in results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from davinci.errors import InputError


def arguments(example_inputs: Any, what: str, where: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Example inputs as arguments and keyword arguments.

    Args:
        example_inputs: a tuple or list of arguments, a dictionary of keyword arguments, or the only
            argument.
        what: kind of model, for messages.
        where: its name.

    Raises:
        InputError: there are none.
    """
    if example_inputs is None:
        raise InputError(
            f"{what} needs example inputs",
            where=where,
            expected="davinci.compile(model, example_inputs=(x, ...))",
            hint="their shapes and types are those that are compiled",
        )
    if isinstance(example_inputs, dict):
        return (), example_inputs
    if isinstance(example_inputs, (tuple, list)):
        return tuple(example_inputs), {}
    return (example_inputs,), {}


def place_name(steps: Sequence[str | int]) -> str:
    """The name of a result by the keys and indices that lead to it: `out0`, `y`, `z.0`."""
    if not steps:
        return "out0"
    first = f"out{steps[0]}" if isinstance(steps[0], int) else steps[0]
    return ".".join([first, *map(str, steps[1:])])

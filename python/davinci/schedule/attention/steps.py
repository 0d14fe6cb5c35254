"""Properties of the steps between scores and weights of attention, and how these are rewritten."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from davinci.operators.arithmetic import is_power_of_two
from davinci.operators.vector_program import TileStep, Value


def is_linear(step: TileStep) -> bool:
    """Whether a step of the chain multiplies all scores by a number, or adds one, which changes no
    weight."""
    return step.scalar is not None and (
        step.name == "vmuls" or (step.name == "vadds" and math.isfinite(step.scalar))
    )


def keeps_order(step: TileStep) -> bool:
    """Whether it also leaves larger scores larger."""
    return is_linear(step) and not (step.name == "vmuls" and (step.scalar or 0.0) <= 0)


def may_come_last(value: Value, steps: Sequence[TileStep]) -> bool:
    """Whether what hides elements of a value of a chain may hide them behind all of its steps."""
    at = next((i + 1 for i, step in enumerate(steps) if step.result is value), 0)
    return all(map(keeps_order, steps[at:]))


def power_of_two(number: float) -> float:
    """The one next to it, with its sign: a factor that f16 takes exactly.

    >>> power_of_two(0.125), power_of_two(-0.11), power_of_two(1e9)
    (0.125, -0.125, 1.0)
    """
    found = math.copysign(2.0 ** round(math.log2(abs(number))), number)
    return found if is_power_of_two(found) else 1.0


def renamed(step: TileStep, old: Value, new: Value) -> TileStep:
    """A step that reads another value in place of `old`."""
    return replace(step, sources=tuple(new if value is old else value for value in step.sources))


def without_scale(
    steps: list[TileStep], scores: Value
) -> tuple[list[TileStep], float, tuple[int, ...]]:
    """The steps of a chain without a factor that Q takes instead, that factor, a power of two, and
    the operators of the kernel that it is of; 1 if the chain begins with none.

    Args:
        scores: what the chain begins with.
    """
    factor = steps[0].scalar if steps and steps[0].name == "vmuls" else None
    if not factor:
        return steps, 1.0, ()
    scale, members = power_of_two(factor), steps[0].members
    if scale == factor:
        first, *others = steps
        return [renamed(step, first.result, scores) for step in others], scale, members
    if scores.dtype != "f32":
        return steps, 1.0, ()
    # What is left is about one, so that scores without it are about as large.
    return [replace(steps[0], scalar=factor / scale), *steps[1:]], scale, members

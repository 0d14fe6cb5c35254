"""Faults of a simulated program, before it is known where they are.

The parts that find a problem know bytes, flags and clocks; the core adds kernel, block,
instruction and source location and raises the `DeviceFault`.
"""

from __future__ import annotations

from collections.abc import Sequence

MALFORMED = (ValueError, TypeError, IndexError, ArithmeticError)
"""What computing an instruction raises whose fields do not fit each other."""


class UnplacedFault(Exception):
    """A fault of the program, still without its place."""

    def __init__(
        self, message: str, *, found: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.found, self.expected, self.hint = message, found, expected, hint


def malformed(error: Exception) -> UnplacedFault:
    """Fields of an instruction do not fit each other."""
    return UnplacedFault(f"malformed instruction: {error}")


def too_many(limit: int) -> UnplacedFault:
    """A program that issued all that it may."""
    return UnplacedFault(
        "too many instructions: the program may never end",
        expected=f"at most {limit:,} in a block",
        hint="look at the loop at this place; npu-run --instruction-limit N allows more",
    )


def located(locations: Sequence[str], number: int) -> str:
    """A source location by its id."""
    return locations[number] if 0 < number < len(locations) else "unknown location"

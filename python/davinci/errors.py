"""Errors that reach the user, each with the exit code of the command-line contract.

A message says where, what was found, what was expected, and what to do:

    models/net.onnx: node 'Conv_3': found a dynamic dimension 'batch'; expected static shapes;
    fix the dimension before export, for example with onnx.tools.update_model_dims
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

EXIT_OK = 0
EXIT_CHECK_FAILED = 1
EXIT_BAD_INPUT = 2
EXIT_CANNOT_COMPILE = 3
EXIT_DEVICE_FAULT = 4


PAGES = Path(__file__).parent / "pages"
"""Documentation and examples that messages point to; they are installed with the package."""


def shipped(name: str) -> str:
    """Where the user has a page or an example, `instructions.md`."""
    return str(PAGES / name)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known name, or ""."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


class Invalid(Exception):
    """A broken constraint of an operation or operator: what was found and what was expected."""

    def __init__(self, constraint: str, found: object = "", expected: object = "") -> None:
        parts = [constraint]
        parts += [f"found {found}"] if str(found) else []
        parts += [f"expected {expected}"] if str(expected) else []
        super().__init__("; ".join(parts))


def require(holds: bool, constraint: str, found: object = "", expected: object = "") -> None:
    """Raises `Invalid` with these parts unless `holds`."""
    if not holds:
        raise Invalid(constraint, found, expected)


class DavinciError(Exception):
    """Base of every error meant for the user. Never shown with a traceback.

    Args:
        message: what is wrong, in one sentence.
        where: file, line, operator or instruction the message is about.
        found: the offending thing as it was found.
        expected: what would have been accepted.
        hint: what to do about it.
    """

    exit_code = EXIT_BAD_INPUT

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        found: str = "",
        expected: str = "",
        hint: str = "",
    ) -> None:
        self.message, self.where = message, where
        self.found, self.expected, self.hint = found, expected, hint
        parts = [f"{where}: {message}" if where else message]
        parts += [f"found {found}"] if found else []
        parts += [f"expected {expected}"] if expected else []
        parts += [hint] if hint else []
        super().__init__("; ".join(parts))

    def at(self, where: str) -> DavinciError:
        """The same error with the place that its finder did not know."""
        details = {"found": self.found, "expected": self.expected, "hint": self.hint}
        return type(self)(self.message, where=where, **details)

    def with_hint(self, hint: str) -> DavinciError:
        """The same error with what its finder did not know to do; "" changes nothing."""
        details = {"where": self.where, "found": self.found, "expected": self.expected}
        return type(self)(self.message, **details, hint=hint or self.hint)


class InputError(DavinciError):
    """Bad usage, file, machine description, pipeline text or input array (exit code 2)."""

    exit_code = EXIT_BAD_INPUT


class CompileError(DavinciError):
    """A program that is well formed but cannot be compiled (exit code 3)."""

    exit_code = EXIT_CANNOT_COMPILE


class DeviceFault(DavinciError):
    """A fault of the simulated machine: bounds, race, deadlock, illegal field (exit code 4)."""

    exit_code = EXIT_DEVICE_FAULT


class CheckFailed(DavinciError):
    """The numbers differ from the reference by more than the tolerance (exit code 1)."""

    exit_code = EXIT_CHECK_FAILED

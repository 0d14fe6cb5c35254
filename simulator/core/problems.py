"""What goes wrong in a simulated program, before it is known where.

The parts that find a problem know bytes, flags and clocks; the core adds kernel, block,
instruction and source location and raises the `DeviceFault`.
"""

from __future__ import annotations


class Problem(Exception):
    """A fault of the program, still without its place."""

    def __init__(
        self, message: str, *, found: str = "", expected: str = "", hint: str = ""
    ) -> None:
        super().__init__(message)
        self.message, self.found, self.expected, self.hint = message, found, expected, hint

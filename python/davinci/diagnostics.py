"""Diagnostics as mlir-opt prints and verifies them: `file:line:col: error: message`.

MLIR's own diagnostics, those of a failed parse, and this project's errors all become
`Diagnostic`s, so `--verify-diagnostics` checks them in one way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from davinci.errors import DavinciError
from davinci.mlir import MLIRError, ir, location_text

_LOCATION = re.compile(r'"?([^"(\[]+?)"?:(\d+):(\d+)')
_EXPECTED = re.compile(
    r"expected-(error|warning|note|remark)(-re)?"
    r"(?:@([+-]\d+|\d+|above|below|unknown))?\s*\{\{(.*?)\}\}"
)


@dataclass(frozen=True)
class Diagnostic:
    """One message at a place; line 0 where the place is not known.

    `exit_code` is that of the error it was made from, 0 if MLIR emitted it.
    """

    severity: str
    file: str
    line: int
    column: int
    message: str
    exit_code: int = 0

    def format(self, source: Sequence[str] = ()) -> str:
        """As mlir-opt prints it, with the line of `source` and a caret where it is known."""
        place = f"{self.file}:{self.line}:{self.column}: " if self.line else ""
        text = f"{place}{self.severity}: {self.message}"
        if 0 < self.line <= len(source):
            text += f"\n{source[self.line - 1]}\n{' ' * (self.column - 1)}^"
        return text


@dataclass(frozen=True)
class Expectation:
    """An `expected-error@+1 {{text}}` comment: what is expected, and at which line."""

    severity: str
    line: int
    text: str
    is_regex: bool

    def accepts(self, diagnostic: Diagnostic) -> bool:
        if (self.severity, self.line) != (diagnostic.severity, diagnostic.line):
            return False
        if not self.is_regex:
            return self.text in diagnostic.message
        # {{...}} holds literal text in which [[regular expressions]] are marked, as in mlir-opt.
        parts = re.split(r"\[\[(.*?)\]\]", self.text)
        pattern = "".join(p if i % 2 else re.escape(p) for i, p in enumerate(parts))
        return re.search(pattern, diagnostic.message) is not None


@contextmanager
def collected(context: ir.Context) -> Iterator[list[Diagnostic]]:
    """Collects the diagnostics MLIR emits inside the block and those of exceptions that leave it.

    `MLIRError` and `DavinciError` end the block and are swallowed: the list then holds errors.
    """
    found: list[Diagnostic] = []

    def handle(info: Any) -> bool:
        found.extend(_from_info(info))
        return True

    handler = context.attach_diagnostic_handler(handle)
    try:
        yield found
    except MLIRError as error:
        for info in error.error_diagnostics:
            found.extend(_from_info(info))
        if not any(d.severity == "error" for d in found):
            found.append(Diagnostic("error", "", 0, 0, error.message))
    except DavinciError as error:
        found.append(from_error(error))
    finally:
        handler.detach()


def from_error(error: DavinciError) -> Diagnostic:
    """An error of this project; its place is that of `where`, if that is a source position."""
    match = _LOCATION.search(error.where)
    if match is None:
        return Diagnostic("error", "", 0, 0, str(error), error.exit_code)
    message = str(error).removeprefix(f"{error.where}: ")
    return Diagnostic("error", match[1], int(match[2]), int(match[3]), message, error.exit_code)


def moved(diagnostic: Diagnostic, file: str) -> Diagnostic:
    """Names the file of text that was parsed from memory, where MLIR says "-"."""
    return replace(diagnostic, file=file) if diagnostic.file == "-" else diagnostic


def expectations(text: str) -> list[Expectation]:
    """The `expected-...` comments of a source, with their lines resolved."""
    found: list[Expectation] = []
    designating = 0
    lines = text.splitlines()
    for number, line in enumerate(lines, start=1):
        matches = list(_EXPECTED.finditer(line))
        for match in matches:
            target = {
                None: number,
                "above": designating,
                "below": _next_designating(lines, number),
                "unknown": 0,
            }.get(match[3])
            if target is None:
                relative = match[3][0] in "+-"
                target = number + int(match[3]) if relative else int(match[3])
            found.append(Expectation(match[1], target, match[4], match[2] is not None))
        if not matches:
            designating = number
    return found


def mismatches(
    expected: Iterable[Expectation], produced: Iterable[Diagnostic], file: str
) -> list[Diagnostic]:
    """Expectations that no diagnostic meets, and diagnostics that nobody expected, as errors.

    Notes and remarks need not be expected, as in mlir-opt a note need not be.
    """
    rest = list(produced)
    wrong: list[Diagnostic] = []
    for expectation in expected:
        hit = next((d for d in rest if expectation.accepts(d)), None)
        if hit is None:
            message = f'expected {expectation.severity} "{expectation.text}" was not produced'
            wrong.append(Diagnostic("error", file, expectation.line, 1, message))
        else:
            rest.remove(hit)
    for d in rest:
        if d.severity in ("error", "warning"):
            wrong.append(replace(d, message=f"unexpected {d.severity}: {d.message}"))
    return wrong


def _from_info(info: Any) -> Iterator[Diagnostic]:
    severity = str(info.severity).rsplit(".", 1)[-1].lower()
    match = _LOCATION.search(str(info.location).removeprefix("loc("))
    file, line, column = (match[1], int(match[2]), int(match[3])) if match else ("", 0, 0)
    # A failed run of a pass manager reports this beside the pass's own error.
    yield Diagnostic(severity, file, line, column, str(info.message))
    for note in info.notes:
        yield from _from_info(note)


def _next_designating(lines: Sequence[str], number: int) -> int:
    for at in range(number, len(lines)):
        if not _EXPECTED.search(lines[at]):
            return at + 1
    return number


def first_diagnostic(error: Any, file: str = "<text>") -> str:
    """Location and text of the first diagnostic of an MLIR error.

    Args:
        file: that the text is from which was parsed from memory, where MLIR says "-".
    """
    if not error.error_diagnostics:
        return str(error)
    first = error.error_diagnostics[0]
    place = location_text(first.location)
    if place.startswith("-:"):
        place = f"{file}{place[1:]}"
    return f"{place}: {first.message}"

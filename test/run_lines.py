"""Runs the RUN lines of a lit test in this process, where lit starts two new ones for each.

What the tests of this project use of a shell: `a | b`, `not`, `< file`, `2>&1`, and lit's `%s` and
`%t`. Another word is an error.
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from unittest import mock

import filecheck.main as filecheck

from davinci.tools import npu_opt, npu_run

RUN = re.compile(r"^\s*//\s*RUN:\s*(.*)$", re.MULTILINE)
BOTH = " 2>&1"


def _file_check(arguments: Sequence[str]) -> int:
    try:
        filecheck.main(["filecheck", *arguments])
    except SystemExit as end:
        return int(end.code or 0)
    return 0


TOOLS: dict[str, Callable[[list[str]], int]] = {
    "npu-opt-short": npu_opt.main,
    # Checks are written against MLIR's own form; --round-trip says so. As in lit.cfg.py.
    "npu-opt": lambda arguments: npu_opt.main(["--round-trip", *arguments]),
    "npu-run": npu_run.main,
    "FileCheck": _file_check,
}


class _Stream(io.TextIOWrapper):
    """Text of a process: a stream over bytes."""

    def __init__(self, data: bytes = b"") -> None:
        self._bytes = io.BytesIO(data)
        super().__init__(self._bytes, encoding="utf-8", newline="", write_through=True)

    def data(self) -> bytes:
        self.flush()
        return self._bytes.getvalue()


def run_lines(path: Path, temporary: Path) -> None:
    """Runs the RUN lines of a file, in order.

    Args:
        temporary: what `%t` stands for.

    Raises:
        AssertionError: one of them fails; with what it printed as error.
    """
    lines = RUN.findall(path.read_text())
    assert lines, f"{path} has no RUN line"
    for line in lines:
        text = line.replace("%s", str(path)).replace("%t", str(temporary))
        output, errors = b"", b""
        for command in text.split(" | "):
            code, output, error = _run(command, output)
            errors += error
            assert code == 0, f"{line}\n{command}: exit code {code}\n{errors.decode()}"


def _run(command: str, given: bytes) -> tuple[int, bytes, bytes]:
    """The exit code of a command, 0 or 1 where `not` stands before it; what it prints."""
    both = BOTH in command
    words = shlex.split(command.replace(BOTH, ""))
    negated = words[0] == "not"
    name, *arguments = words[negated:]
    if "<" in arguments:
        place = arguments.index("<")
        given = Path(arguments[place + 1]).read_bytes()
        del arguments[place : place + 2]
    found = {">", "<", "&&", "&", ";", "|"}.intersection(arguments)
    assert not found, f"{command}: {found} is not known here"
    output = _Stream()
    error = output if both else _Stream()
    with (
        mock.patch.object(sys, "stdin", _Stream(given)),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(error),
    ):
        code = TOOLS[name](arguments)
    if negated:
        code = int(code == 0)
    return code, output.data(), b"" if both else error.data()

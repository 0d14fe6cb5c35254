"""Figures of docs/checks.md: each benchmark of the checks prints its own and puts them there."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"
WRITE = "--write"


def arguments() -> tuple[list[str], bool]:
    """The words of the command line, and whether the page is to be written."""
    return [word for word in sys.argv[1:] if word != WRITE], WRITE in sys.argv


def put(name: str, command: str, lines: Sequence[str], seconds: float, write: bool) -> None:
    """Prints lines, and writes them between the marks `name` of the page.

    Args:
        command: that makes the lines again.
        seconds: of the processor that it took.
    """
    text = "\n".join([*lines, f"{seconds:.0f} s of a processor"])
    print(text)
    if write:
        page = PAGE.read_text(encoding="utf-8")
        first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        before, rest = page.split(first)
        _, after = rest.split(last)
        block = f"```\n$ python benchmarks/proofs/{command}\n{text}\n```\n"
        PAGE.write_text(f"{before}{first}{block}{last}{after}", encoding="utf-8")

"""Figures of docs/checks.md: each benchmark of the checks prints its own and puts them there."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "checks.md"


def parser_of_figures(description: str) -> argparse.ArgumentParser:
    """Arguments of a benchmark that prints figures, and writes them to the page."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--write", action="store_true", help=f"put the figures into {PAGE.name}")
    return parser


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

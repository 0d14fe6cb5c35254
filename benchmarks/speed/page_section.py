"""Sections of pages that scripts write, between marks that the rest of the page keeps."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from davinci.files import write_atomically


class NamedCase(Protocol):
    """A case of a table, whose kernel has a name."""

    @property
    def kernel(self) -> str: ...


CaseT = TypeVar("CaseT", bound=NamedCase)


def put_section(page: Path, name: str, text: str) -> None:
    """Replaces what stands between `<!-- NAME -->` and `<!-- end of NAME -->` on a page.

    Args:
        page: its path.
        name: of the section.
        text: Markdown, without blank lines at its ends.
    """
    first, last = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.read_text(encoding="utf-8").split(first)
    after = rest.partition(last)[2]
    write_atomically(page, f"{before}{first}\n{text}\n\n{last}{after}".encode())


def print_table(
    description: str,
    cases: Sequence[CaseT],
    row: Callable[[CaseT], str],
    head: str,
    section: tuple[Path, str],
) -> None:
    """The command line of a script that prints a row for each kernel, `--only` some of them, and
    puts the table into a section of a page with `--write`.

    Args:
        head: the head of the table.
        section: the page and the name of its section.
    """
    words = argparse.ArgumentParser(description=description)
    words.add_argument("--only", default="", help="part of the name of a kernel")
    words.add_argument(
        "--write", action="store_true", help=f"put the table into docs/{section[0].name}"
    )
    options = words.parse_args()
    print(head)
    rows = []
    for case in cases:
        if options.only in case.kernel:
            rows.append(row(case))
            print(rows[-1], flush=True)
    if options.write:
        put_section(*section, "\n".join([head, *rows]))

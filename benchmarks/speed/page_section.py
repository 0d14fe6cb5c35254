"""Sections of pages that scripts write, between marks that the rest of the page keeps."""

from __future__ import annotations

from pathlib import Path

from davinci.files import write_atomically


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

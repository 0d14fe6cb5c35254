"""Puts what a benchmark of plans printed into docs/planning.md.

    python benchmarks/speed/stages.py squeezenet > stages.txt
    python benchmarks/speed/planning_page.py stages stages.txt

Every figure of the page stands in one of its tables, and `SECTIONS` names the script behind each.
The benchmarks take from minutes to hours, so they are run table by table, and most of them for some
networks at a time: rows of what was printed take the place of the rows with the same names, new
ones come last, and all others stay as they are. What a benchmark prints in front of the columns'
names and its verdict behind the rows are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "planning.md"


@dataclass(frozen=True)
class Section:
    """A table of the page.

    Attributes:
        script: what prints it, relative to the folder `benchmarks`.
        first: how the line with the names of the columns begins.
        keys: cells at the beginning of a row that name it; 0 for a table that is replaced as a
            whole, with all lines behind the names of the columns.
    """

    script: str
    first: str
    keys: int


SECTIONS = {
    "networks": Section("speed/planning.py", "network", 0),
    "problems": Section("speed/planning.py", "problem", 1),
    "packings": Section("proofs/packings.py", "  ", 0),
    "arenas": Section("speed/arenas.py", "network", 1),
    "stages": Section("speed/stages.py", "network", 2),
    "limits": Section("speed/memory_limits.py", "network", 1),
    "cores": Section("speed/core_sweep.py", "network", 1),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("section", choices=SECTIONS, help="of the page")
    parser.add_argument("output", type=Path, help="file with what the benchmark printed")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    printed = options.output.read_text(encoding="utf-8").splitlines()
    try:
        page = with_table(page, options.section, printed)
    except ValueError as error:
        parser.error(str(error))
    PAGE.write_text(page, encoding="utf-8")
    return 0


def with_table(page: str, name: str, printed: Sequence[str]) -> str:
    """The page with what was printed in the table of a section.

    Raises:
        ValueError: for lines without the names of the columns, and for other columns than those of
            the rows that would stay.
    """
    before, table, after = parted(page, name)
    lines = merged(table.splitlines(), [line.rstrip() for line in printed], SECTIONS[name])
    return before + "".join(f"{line}\n" for line in lines) + after


def parted(page: str, name: str) -> tuple[str, str, str]:
    """What stands in front of the table of a section, the table, and what stands behind it."""
    first, last = f"<!-- {name} -->\n```\n", f"```\n<!-- end of {name} -->"
    before, _, rest = page.partition(first)
    table, _, after = rest.partition(last)
    return before + first, table, last + after


def merged(old: Sequence[str], new: Sequence[str], section: Section) -> list[str]:
    """Lines of a table whose rows are the new ones, and those of the old ones that have no new.

    >>> arenas = SECTIONS["arenas"]
    >>> merged(["network  KB", "a         1"], ["network  KB", "b         2", "1 is bad"], arenas)
    ['network  KB', 'a         1', 'b         2']
    """
    starts = [at for at, line in enumerate(new) if line.startswith(section.first)]
    if not starts:
        raise ValueError(f"found no line that begins with {section.first!r}")
    head, *rows = new[starts[0] :]
    if not section.keys:
        return [head, *rows]
    found = {name: line for line in rows if (name := row_name(line, section.keys))}
    kept = {name: line for line in old[1:] if (name := row_name(line, section.keys))}
    if kept.keys() - found.keys() and head.split() != old[0].split():
        raise ValueError(f"other columns than those of the rows that stay: {old[0]}")
    return [head, *(kept | found).values()]


def row_name(line: str, keys: int) -> tuple[str, ...]:
    """The first cells of a row; nothing for a line that is a sentence, which no two spaces part."""
    cells = re.split(" {2,}", line)
    return tuple(cells[:keys]) if len(cells) > keys and " " not in cells[0] else ()


if __name__ == "__main__":
    sys.exit(main())

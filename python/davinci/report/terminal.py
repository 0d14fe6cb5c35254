"""Tables for a terminal of any width: words stay whole, and columns that have no room are left out.

A cell is broken at spaces only. A word longer than its column ends in an ellipsis; the record of
`--json` has all of it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

LEAST_TEXT = 12
"""Letters below which a column of text is left out rather than made narrower."""

MOST_OF_A_WORD = 26
"""Letters of a word that a column is made wide enough for, as long as there is room."""

PADDING = 3
"""Letters between the contents of two columns."""


@dataclass(frozen=True)
class Heading:
    """A column.

    Attributes:
        title: above it.
        text: whether its cells may have several lines; others are numbers, and stand to the right.
        worth: columns of the least worth are left out first.
    """

    title: str
    text: bool = False
    worth: int = 0


@dataclass(frozen=True)
class Fitted:
    """Columns that fit, by number, and how wide each is."""

    widths: dict[int, int]
    left_out: tuple[int, ...]


def fit(headings: Sequence[Heading], rows: Sequence[Sequence[str]], width: int) -> Fitted:
    """Chooses the columns that a table of `width` letters has room for, and their widths."""
    whole = [
        max(len(text) for text in (heading.title, *(row[i] for row in rows)))
        for i, heading in enumerate(headings)
    ]
    least = [
        min(whole[i], longest_word(heading.title, *(row[i] for row in rows)))
        if heading.text
        else whole[i]
        for i, heading in enumerate(headings)
    ]
    kept = list(range(len(headings)))

    def room(sizes: Sequence[int]) -> int:
        return width - sum(sizes[i] + PADDING for i in kept) - 1

    while len(kept) > 1 and room(least) < 0:
        kept.remove(min(kept, key=lambda i: (headings[i].worth, i)))
    widths = {i: least[i] for i in kept}
    spare = room(least)
    for i in sorted(kept, key=lambda i: -headings[i].worth):
        more = max(0, min(spare, whole[i] - widths[i]))
        widths[i] += more
        spare -= more
    if spare < 0:
        (only,) = kept
        widths[only] = max(1, widths[only] + spare)
    return Fitted(widths, tuple(i for i in range(len(headings)) if i not in kept))


def longest_word(title: str, *texts: str) -> int:
    """Returns the letters that a column of text needs."""
    words = [len(word) for text in texts for word in text.split()]
    return max(len(title), min(MOST_OF_A_WORD, max([LEAST_TEXT, *words])))


def lines_of(text: str, width: int) -> list[str]:
    """A text broken at spaces; of a word that is longer its beginning and an ellipsis."""
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return [line if len(line) <= width else line[: width - 1] + "\u2026" for line in lines] or [""]


def table_of(
    headings: Sequence[Heading],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    sections: Collection[int] = (),
    strong: Collection[int] = (),
    header: bool = True,
) -> Any:
    """A table of `rich` that is no wider than `width`.

    Args:
        sections: numbers of rows in front of which there is a line.
        strong: numbers of rows that are printed bold.
        header: whether there are titles and lines at all.
    """
    from rich.markup import escape
    from rich.table import Table

    fitted = fit(headings, rows, width)
    table = Table() if header else Table(box=None, show_header=False)
    for i, size in fitted.widths.items():
        justify: Any = "left" if headings[i].text else "right"
        table.add_column(headings[i].title, justify=justify, no_wrap=True, width=size)
    for number, row in enumerate(rows):
        if number in sections:
            table.add_section()
        cells = ("\n".join(lines_of(row[i], size)) for i, size in fitted.widths.items())
        table.add_row(*map(escape, cells), style="bold" if number in strong else "")
    if fitted.left_out:
        names = ", ".join(headings[i].title for i in fitted.left_out)
        table.caption = f"no room for {names}; --json has all"
        table.caption_justify = "left"
    return table

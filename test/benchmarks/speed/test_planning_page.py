"""Tables of docs/planning.md are what their benchmarks print, row by row."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

SPEED = Path(__file__).parents[3] / "benchmarks" / "speed"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(SPEED))
    import planning_page

    yield planning_page
    sys.modules.pop("planning_page")


HEAD = "network                 plan            launches      cycles    gain"
FIRST = "a                       sequential             2         100    1.00"
SECOND = "a                       time                   1          80    1.25"
OTHER = "b                       time                   1          70    1.50"
TABLE = f"{HEAD}\n{FIRST}\n{SECOND}\n"
TEXT = f"in front\n<!-- stages -->\n```\n{TABLE}```\n<!-- end of stages -->\nbehind\n"


def test_rows_of_the_same_name_are_replaced_and_others_stay(page: ModuleType) -> None:
    newer = SECOND.replace(" 80", " 75")
    printed = ["a warning", HEAD, newer, OTHER, "1 network gains less than it should"]
    text = page.with_table(TEXT, "stages", printed)
    assert text == TEXT.replace(SECOND, f"{newer}\n{OTHER}")


def test_printing_the_table_again_changes_nothing(page: ModuleType) -> None:
    for name in page.SECTIONS:
        text = page.PAGE.read_text(encoding="utf-8")
        _, table, _ = page.parted(text, name)
        assert page.with_table(text, name, table.splitlines()) == text, name


def test_other_columns_are_refused_where_rows_would_stay(page: ModuleType) -> None:
    printed = [HEAD.replace("gain", "most"), OTHER]
    with pytest.raises(ValueError, match="other columns than those of the rows that stay"):
        page.with_table(TEXT, "stages", printed)


def test_lines_without_names_of_columns_are_refused(page: ModuleType) -> None:
    with pytest.raises(ValueError, match="no line that begins with 'network'"):
        page.with_table(TEXT, "stages", ["Traceback"])


def test_every_table_of_the_page_has_its_command(page: ModuleType) -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    marked = {line[5:-4] for line in text.splitlines() if line.startswith("<!-- ")}
    assert {name for name in marked if not name.startswith("end of ")} == set(page.SECTIONS)
    for name, section in page.SECTIONS.items():
        assert (SPEED.parent / section.script).exists(), name
        before, table, _ = page.parted(text, name)
        command = before.rpartition("`python benchmarks/")[2]
        assert command.startswith(f"{section.script} ") and command.count("\n\n") == 1, name
        assert section.keys == 0 or all(
            page.row_name(line, section.keys) for line in table.splitlines()[1:]
        ), name

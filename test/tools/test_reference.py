"""The page of passes is made from the code."""

from __future__ import annotations

from pathlib import Path

from davinci.tools.reference import passes

PAGE = Path(__file__).parents[2] / "docs" / "passes.md"


def test_page_is_current() -> None:
    hint = "run: python -m davinci.tools.reference docs"
    assert PAGE.read_text(encoding="utf-8") == passes(), hint

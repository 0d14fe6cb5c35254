"""The pages that are made from the code are those that this code makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from davinci.tools.reference import PAGES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str) -> None:
    hint = "run: python -m davinci.tools.reference docs"
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), hint

"""The glossary has the words that other pages and the tables of `npu-run` use."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
TERMS = re.findall(r"^### (.+)\n(.+)", (DOCS / "glossary.md").read_text(), re.MULTILINE)
NAMES = {name.lower() for heading, _ in TERMS for name in heading.split(", ")}
WORDS = """
    fractal slot share tile repeat block group member kernel launch crossing line flag pipe queue
    schedule piece part race barrier relay arena limit bottleneck node record key L0C L1 UB GM
"""


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("word", [*WORDS.split(), "event id", "unit of attention"])
def test_word_is_there(word: str) -> None:
    assert word.lower() in NAMES


def test_each_word_is_explained_once() -> None:
    headings = [heading for heading, _ in TERMS]
    assert len(headings) == len(set(headings)) > 50
    assert [heading for heading, text in TERMS if len(text) < 20] == []


def test_links_to_words_lead_to_one() -> None:
    pages = {path.name: path.read_text() for path in DOCS.glob("*.md")}
    linked = set(re.findall(r"glossary\.md#([\w-]+)", "".join(pages.values())))
    linked |= set(re.findall(r"\(#([\w-]+)\)", pages["glossary.md"]))
    assert linked <= {anchor(heading) for heading, _ in TERMS}
    assert len(linked) > 5

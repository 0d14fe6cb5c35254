"""The pages that are made from the code are those that this code makes."""

from __future__ import annotations

from pathlib import Path

import pytest

from davinci.passes.pipeline.rewrites import REWRITES
from davinci.tools.reference import KEPT, PAGES, as_markdown, renewed

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", PAGES)
def test_page_is_current(name: str) -> None:
    hint = "run: python -m davinci.tools.reference docs"
    found = (DOCS / name).read_text(encoding="utf-8")
    assert found == renewed(PAGES[name](), found), hint


def test_the_page_says_of_every_rewrite_what_it_is_and_what_it_gains() -> None:
    page = (DOCS / "rewrites.md").read_text(encoding="utf-8")
    (gains,) = KEPT.finditer(page)
    for name in REWRITES:
        assert f"| `{name}` |" in page.replace(gains[0], "")
        hint = "run: python benchmarks/speed/rewrites.py --write"
        assert f"\n{name} " in gains[3], hint


def test_what_a_benchmark_wrote_between_marks_is_kept() -> None:
    made = "# Title\n<!-- table -->\n<!-- end of table -->\nend\n"
    before = "# Old\n<!-- table -->\n1 2 3\n<!-- end of table -->\n<!-- x -->\n4<!-- end of x -->"
    assert renewed(made, before) == "# Title\n<!-- table -->\n1 2 3\n<!-- end of table -->\nend\n"
    assert renewed(made, "") == made
    assert renewed(before, "") == before.replace("1 2 3\n", "").replace("\n4<", "\n<")


def test_docstring_as_markdown() -> None:
    fence = "`" * 3
    ir = f"{fence}mlir\nscf.for {{\n  nop\n}}\n{fence}"
    text = "drops `nop`,\nwhich does nothing.\n\nbefore:\n    scf.for {\n      nop\n    }\n* a\n  b"
    made = as_markdown(text)
    assert made == f"Drops `nop`,\nwhich does nothing.\n\nbefore:\n\n{ir}\n\n* a\n  b"

"""docs/onnx-coverage.md lists the operators of com.microsoft that are compiled."""

from __future__ import annotations

import re

from onnx_coverage import MICROSOFT_TITLE, PAGE, with_microsoft

from davinci.frontends.onnx.operators import INPUTS, MICROSOFT

ROW = re.compile(r"^\| (\w+) \| (.*) \|$", re.MULTILINE)


def test_operators_of_microsoft() -> None:
    section = PAGE.read_text().partition(f"{MICROSOFT_TITLE}\n")[2].partition("\n## ")[0]
    shown = {name: inputs.split(", ") for name, inputs in ROW.findall(section)[1:]}
    assert shown == {name: named for (domain, name), named in INPUTS.items() if domain == MICROSOFT}


def test_section_is_written_anew_alone() -> None:
    page = "# ONNX coverage\n\nNone.\n\n## What Resize computes\n\nText.\n"
    made = with_microsoft(page)
    before, _, after = made.partition(f"{MICROSOFT_TITLE}\n")
    assert before == "# ONNX coverage\n\nNone.\n\n"
    assert after.endswith(".\n\n## What Resize computes\n\nText.\n")
    assert with_microsoft(made) == made

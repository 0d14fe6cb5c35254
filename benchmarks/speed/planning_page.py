"""Puts what a benchmark of plans printed into docs/planning.md.

    python benchmarks/speed/planning.py --networks --times > networks.txt
    python benchmarks/speed/planning_page.py networks networks.txt

Each of `SECTIONS` is made by the command that stands above its table. The benchmarks take from
minutes to hours, so each is put into the page by itself, and the other tables stay as they are.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "planning.md"

SECTIONS = ("networks", "problems", "stages", "limits", "cores")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("section", choices=SECTIONS, help="of the page")
    parser.add_argument("output", type=Path, help="file with what the benchmark printed")
    options = parser.parse_args()
    lines = options.output.read_text(encoding="utf-8").splitlines()
    text = "\n".join(line.rstrip() for line in lines)
    page = PAGE.read_text(encoding="utf-8")
    first, last = f"<!-- {options.section} -->\n", f"<!-- end of {options.section} -->"
    before, rest = page.split(first)
    _, after = rest.split(last)
    PAGE.write_text(f"{before}{first}```\n{text}\n```\n{last}{after}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

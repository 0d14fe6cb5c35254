"""The run of a small BERT that README shows: what npu-run prints, shortened.

    python benchmarks/speed/readme_sample.py [--write]

Prints the lines, and puts them into README.md with --write; `test/test_readme.py` fails where their
figures are no longer those of a run.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"
NETWORK = "zoo:bert,layers=2,hidden=768,heads=12,seq=128"
COMMAND = f"$ npu-run {NETWORK} --check --report bert.html --trace bert.json\n"

TABLE, SCHEDULES = 10, 3
"""Lines of the table and of the schedules that are shown."""

LEFT_OUT = ("took", "speed")
"""Lines about the computer that simulates."""


def shortened(printed: Sequence[str]) -> list[str]:
    """The first lines of each part of what npu-run prints, and all of its summary."""
    lines = [line.rstrip() for line in printed]
    end = next(i for i, line in enumerate(lines) if line.startswith("└"))
    summary = next(i for i, line in enumerate(lines) if line.startswith(" model "))
    said = [line for line in lines[summary:] if not line.lstrip().startswith(LEFT_OUT)]
    schedules = lines[end + 1 : end + 1 + SCHEDULES]
    return [*lines[:TABLE], "...", lines[end], *schedules, " ...", *said]


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--write", action="store_true", help="put the lines into README.md")
    options = parser.parse_args()
    command = [sys.executable, "-m", "davinci.tools.npu_run", NETWORK, "--check", "--no-cache"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    text = "\n".join(shortened(done.stdout.splitlines())) + "\n"
    print(text, end="")
    if options.write:
        before, rest = README.read_text(encoding="utf-8").split(COMMAND)
        after = rest[rest.index("```") :]
        README.write_text(before + COMMAND + text + after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

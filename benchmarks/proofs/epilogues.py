"""Random graphs of products, convolutions and what follows them against onnxruntime.

    python benchmarks/proofs/epilogues.py [--first SEED] [--count N] [--seconds T]

Each draw (test/random_epilogues.py) has whole numbers, whose results are exact, and runs with all
checks on one of the machines, with 1, 2 or all cores. Exits with 1 if any is wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "test"))

from random_draws import Draw, search

import random_epilogues


def draw(seed: int) -> Draw:
    """One graph and how it is checked."""
    drawn = random_epilogues.Draw(seed)
    epilogue = drawn.epilogue()
    where = ", ".join(f"{key} {value}" for key, value in epilogue.way.items())
    return Draw(drawn.kind, f"{where}: {epilogue.text}", epilogue.check)


if __name__ == "__main__":
    sys.exit(search(str(__doc__).partition("\n\n")[0], draw, count=2000))

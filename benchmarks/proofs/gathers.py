"""Random gathers of elements against NumPy.

    python benchmarks/proofs/gathers.py [--first SEED] [--count N] [--longest N]

Draws programs (test/random_gathers.py) that gather elements of rows along any axis, or runs of few
neighbours of a table: of all element types, with duplicates, edges and places outside, of i32 and
i64, none and one; and runs them on all machines, on 1 to 32 cores. Prints each that differs, and
how many kernels ran on which unit. Exits with 1 if any differs. 100 programs take 30 s.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np
from drawn_programs import judge

from random_gathers import Gather, random_gather


def difference(gather: Gather, found: list[Any]) -> str | None:
    """The first elements that are others than NumPy's, and those."""
    (mine,), wanted = found, gather.result
    if np.array_equal(mine, wanted):
        return None
    different = mine != wanted
    return f"{mine[different][:5]} {wanted[different][:5]}"


def main() -> int:
    return judge(str(__doc__), random_gather, difference, (300, "indices, and a row"))


if __name__ == "__main__":
    sys.exit(main())

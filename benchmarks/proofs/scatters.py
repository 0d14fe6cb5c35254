"""Random scatters against NumPy.

    python benchmarks/proofs/scatters.py [--first SEED] [--count N] [--longest N]

Draws programs (test/random_scatters.py) that scatter elements, rows and boxes, set, add, multiply,
or leave the least or largest, of floats, integers and booleans: with duplicates, places outside or
known, NaN, nothing, one element; and runs them on all machines, on 1 to 32 cores. Prints each that
differs, and how many kernels ran on which unit. Exits with 1 if any differs. 100 programs take
30 s.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np
from drawn_programs import judge

from random_scatters import Scatter, random_scatter


def difference(scatter: Scatter, found: list[Any]) -> str | None:
    """The first elements that are others than NumPy's, and those."""
    (mine,), wanted = found, scatter.result
    if np.array_equal(mine, wanted, equal_nan=mine.dtype.kind == "f"):
        return None
    different = ~((mine == wanted) | ((mine != mine) & (wanted != wanted)))
    return f"{mine[different][:5]} {wanted[different][:5]}"


def main() -> int:
    return judge(str(__doc__), random_scatter, difference, (300, "rows, and places"))


if __name__ == "__main__":
    sys.exit(main())

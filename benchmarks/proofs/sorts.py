"""Random sorts, argsorts and top-ks against NumPy.

    python benchmarks/proofs/sorts.py [--first SEED] [--count N] [--longest N]

Draws programs (test/random_sorts.py) with keys of every type, comparator and rank: duplicates,
zeros of both signs, infinities, NaN, nothing, one element; and runs them on all machines, on 1 to
32 cores. Prints each that differs, and how many kernels sorted on which unit. Exits with 1 if any
differs. 100 programs take 40 s.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

from drawn_programs import judge

from random_sorts import Sort, differs, random_sort


def difference(sort: Sort, found: list[Any]) -> str | None:
    """Empty where results are others than NumPy's: rows are too long to print."""
    return "" if differs(sort, found) else None


def main() -> int:
    return judge(str(__doc__), random_sort, difference, (700, "keys of a row"), is_sort)


def is_sort(operation: str) -> bool:
    return "sort" in operation


if __name__ == "__main__":
    sys.exit(main())

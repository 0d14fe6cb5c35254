"""The same kernels of Triton by the vendor's compilers and, from its adapter's text, by our passes.

    python benchmarks/speed/both_compilers.py
    python benchmarks/speed/both_compilers.py --write

Both run with data on the simulated 910B and must agree. Each tries the same tiles, and its quickest
counts. `--write` puts the table into docs/triton.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np
from page_section import print_table
from vendor_kernels import CASES, MOST_APART, PAGE, Case

import davinci.triton
import triton_kernels
from davinci.errors import CompileError
from davinci.triton.launch import LaunchReport

SECTION = "both compilers"
HEAD = "| kernel | theirs, cycles | its tiles | ours, cycles | its tiles | theirs / ours |\n" + (
    "|---" * 6 + "|"
)

Array = np.ndarray[Any, Any]


def quickest(
    case: Case, given: Mapping[str, Array], compiler: str
) -> tuple[LaunchReport, Array, str]:
    """The quickest choice of tiles by a compiler: its report, the result, and the tiles.

    Raises:
        CompileError: it takes none of them.
    """
    kernel, found, refused = getattr(triton_kernels, case.kernel), [], None
    for grid, constants in case.tries:
        out = np.zeros(case.arrays.output[1], case.arrays.output[0])
        arguments = (*given.values(), out, *case.rest)
        try:
            report = davinci.triton.run(kernel, grid, *arguments, compiler=compiler, **constants)
        except CompileError as error:
            refused = error
            continue
        tiles = " ".join(f"{name}={size}" for name, size in constants.items())
        found.append((report, out, tiles))
    if not found:
        assert refused is not None, "something was tried"
        raise refused
    return min(found, key=lambda each: each[0].cycles)


def row(case: Case) -> str:
    """A line of the table.

    Raises:
        SystemExit: the two do not agree.
    """
    given = case.arrays.random()
    theirs, expected, tiles = quickest(case, given, "vendor")
    start = f"| {case.label} | {theirs.cycles:,} | {tiles}"
    try:
        ours, out, own = quickest(case, given, "ours")
    except CompileError as error:
        return f"{start} | refused | {error.found} | |"
    wide, other = (array.astype(np.float64) for array in (expected, out))
    apart, most = np.abs(wide - other).max(), MOST_APART[case.arrays.output[0]]
    if not apart <= most * max(1.0, float(np.abs(wide).max())):
        sys.exit(f"{case.label}: results are {apart:.3g} apart")
    return f"{start} | {ours.cycles:,} | {own} | {theirs.cycles / ours.cycles:.2f} |"


def main() -> None:
    print_table((__doc__ or "").splitlines()[0], CASES, row, HEAD, (PAGE, SECTION))


if __name__ == "__main__":
    main()

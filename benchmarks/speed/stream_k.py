"""Products whose tiles are no whole rounds of all cores: cycles without stream-K, with it, and the
bound of the machine file.

    python benchmarks/speed/stream_k.py [--turned] [MxKxN[@cores] ...]

Operands and results are f16 rows on the 910B, B as k x n or, --turned, as n x k; all kernels
together, simulated without data. `tiles` counts those of 128 x 256 that C has for each core. A last
column has the schedules of products for which stream-K is chosen. Exits with 1 if one of them takes
more cycles than without.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from unittest import mock

from products import Shape
from timed import timed

from davinci import machine
from davinci.passes.ascend_to_cce.products import met

MACHINE, TILE = "ascend910b", 128 * 256

SHAPES = (
    "896x2048x896 896x4096x896 896x8192x896 640x4096x1280 640x8192x1408 768x8192x1152 "
    "1152x8192x768 1024x8192x896 896x16384x1024 512x4096x1664 512x8192x1664 384x8192x2176 "
    "1024x8192x1024 1280x2048x1280 1280x8192x1280 1408x8192x1408 640x16384x640 3072x3072x768 "
    "3328x4096x640 768x8192x1024"
)


@dataclass(frozen=True)
class Turned(Shape):
    """A shape of a product whose B is stored transposed, [n, k]."""

    @property
    def text(self) -> str:
        a, b, c = (f"tensor<{x}x{y}xf16>" for x, y in self.sides)
        return f"""
        func.func @main(%a: {a}, %b: {b}) -> {c} {{
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1] : ({a}, {b}) -> {c}
          return %0 : {c}
        }}"""

    @property
    def sides(self) -> list[tuple[int, int]]:
        return [(self.m, self.k), (self.n, self.k), (self.m, self.n)]


def cycles(shape: Shape) -> tuple[int, int, str]:
    """Simulated cycles of all kernels, their bound, and the schedules."""
    profile = timed(shape.text, machine=MACHINE, cores=shape.cores).profile
    said = " | ".join(kernel["schedule"] for kernel in profile["kernels"])
    return profile["total_cycles"], profile["bound_cycles"], said


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("shapes", nargs="*", default=SHAPES.split())
    parser.add_argument("--turned", action="store_true", help="B as rows of k")
    options = parser.parse_args()
    cores, kind = machine.load(MACHINE).cores, Turned if options.turned else Shape
    columns = ("tiles", "without", "with", "bound", "ratio")
    print(f"{'m x k x n @ cores':22}" + "".join(f"{name:>10}" for name in columns))
    slower = 0
    for text in options.shapes:
        given = Shape.of(text, cores)
        shape = kind(given.m, given.k, given.n, given.cores)
        with mock.patch.object(met, "stream_k_of", return_value=None):
            before, _, _ = cycles(shape)
        after, bound, said = cycles(shape)
        tiles = shape.m * shape.n / TILE / shape.cores
        row = f"{shape!s:22}{tiles:10.2f}{before:10,}{after:10,}{bound:10,}{after / bound:10.2f}"
        print(row + (f"  {said}" if "rows whole" in said else ""), flush=True)
        slower += after > before
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Products: the schedule that is chosen against the best of a search by timing-only simulation.

    python benchmarks/speed/product_search.py [--machine NAME] [--random N --seed S] [--trials T]
                                              [--cache DIR] [MxKxN[@cores][+KIND] ...]

Schedules that fit the memories are ranked by their estimates; up to T of them are simulated, all if
there are no more, as `--tune` does it. Operands and results are rows. KIND is f16 if nothing is
said, f32, bias (a row of f32 is added, the result f16) or residual (a row and an operand of f32 are
added, then tanh). `ratio` is the chosen one's cycles over the fewest found. Without shapes: 30 that
are square, thin, ragged and deep, with each of these, on one core and on all.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))

from products import Shape, drawn

import davinci
from davinci import machine

LARGEST = 1 << 26
"""Multiplications of a random product, so that a search of it ends."""

SHAPES = (
    "256x256x256 512x512x512 1024x1024x1024 256x256x256@1 96x256x192@1 512x768x768 128x768x768 "
    "1x1024x1024 7x768x768 16x512x2048 1x512x512@1 64x64x1024 37x80x48@1 100x300x200 333x517x129 "
    "50x333x77@1 64x4096x64 128x3072x128 32x2048x32@1 128x2304x768+bias 128x768x2304+bias "
    "512x768x768+bias 64x256x256@1+bias 128x3072x768+residual 64x768x768+residual "
    "512x256x256+residual 60x128x200@1+residual 256x256x256+f32 128x768x512+f32 100x300x200@1+f32"
)


@dataclass(frozen=True)
class Case:
    """A product with what is done to its result."""

    shape: Shape
    kind: str = "f16"

    @staticmethod
    def of(text: str, cores: int) -> Case:
        """A shape with its kind.

        Raises:
            KeyError: there is no such kind.
        """
        shape, _, kind = text.partition("+")
        return Case(Shape.of(shape, cores), kind or "f16")

    def __str__(self) -> str:
        return str(self.shape) if self.kind == "f16" else f"{self.shape}+{self.kind}"

    @property
    def text(self) -> str:
        if self.kind == "f16":
            return self.shape.text
        factor = "f32" if self.kind == "f32" else "f16"
        result = "f16" if self.kind == "bias" else "f32"
        (m, k), (_, n), _ = self.shape.sides
        a, b = f"tensor<{m}x{k}x{factor}>", f"tensor<{k}x{n}x{factor}>"
        sums, row = f"tensor<{m}x{n}xf32>", f"tensor<{n}xf32>"
        lines, last = [], "%0"
        if self.kind != "f32":
            lines = [
                f"%1 = stablehlo.broadcast_in_dim %r, dims = [1] : ({row}) -> {sums}",
                f"%2 = stablehlo.add %0, %1 : {sums}",
            ]
            last = "%2"
        if self.kind == "bias":
            lines.append(f"%3 = stablehlo.convert %2 : ({sums}) -> tensor<{m}x{n}xf16>")
            last = "%3"
        if self.kind == "residual":
            lines += [f"%3 = stablehlo.add %2, %x : {sums}", f"%4 = stablehlo.tanh %3 : {sums}"]
            last = "%4"
        inputs = {"f32": "", "bias": f", %r: {row}", "residual": f", %r: {row}, %x: {sums}"}
        body = "\n          ".join(lines)
        return f"""
        func.func @main(%a: {a}, %b: {b}{inputs[self.kind]}) -> tensor<{m}x{n}x{result}> {{
          %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({a}, {b}) -> {sums}
          {body}
          return {last} : tensor<{m}x{n}x{result}>
        }}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--cache", help="a folder that keeps what was measured")
    options = parser.parse_args()
    cores = machine.load(options.machine).cores
    random = drawn(options.random, options.seed, cores, LARGEST)
    texts = options.shapes or ([] if random else SHAPES.split())
    cases = [*(Case.of(text, cores) for text in texts), *map(Case, random)]
    print(f"{'m x k x n @ cores':26}{'tried':>8}{'chosen':>10}{'best':>10}{'ratio':>8}")
    ratios: list[float] = []
    for case in cases:
        found = davinci.tune(
            case.text,
            machine=options.machine,
            cores=case.shape.cores,
            trials=options.trials,
            cache=options.cache,
        )
        for kernel, chosen, tried in zip(found.kernels, found.untuned, found.measured, strict=True):
            ratios.append(chosen / kernel.cycles)
            print(
                f"{case!s:26}{tried:8}{chosen:10,}{kernel.cycles:10,}{ratios[-1]:8.3f}", flush=True
            )
    print(f"chosen over best: {median(ratios):.3f} (median), {max(ratios):.3f} at worst")


if __name__ == "__main__":
    main()

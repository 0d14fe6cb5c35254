"""Products: the schedule that is chosen against the best of a search by timing-only simulation.

    python benchmarks/speed/product_search.py [--machine NAME] [--random N --seed S] [--trials T]
                                              [--workers W] [--show] [--write]
                                              [MxKxN[@cores][+KIND] ...]

The space is wider than the one from which is chosen: three times as many shares of C, three times
as many tiles of each, down to a quarter as deep as L0 allows, in all orders, with all pieces and
buffers that fit the memories. T of these are simulated: half of them those of the best estimates
(all, if they are no more); a quarter drawn from all others; then, a quarter, neighbours of the best
found so far, which differ from it in one to three numbers of any kind (`neighbour`).

Operands and results are rows. KIND is f16 if nothing is said, f32, bias (a row of f32 is added, the
result f16) or residual (a row and an operand of f32 are added, then tanh). `ratio` is the chosen
one's cycles over the fewest found. Without shapes: 30 that are square, thin, ragged and deep, with
each of these, on one core and on all. --write writes docs/product-search.md.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from products import Shape, drawn

from davinci import frontends, machine
from davinci.compiler import lower
from davinci.errors import CompileError, DeviceFault
from davinci.machine import Machine
from davinci.mlir import make_context
from davinci.passes.analysis.kernels import kernels
from davinci.passes.ascend_to_cce.groups import group_of
from davinci.passes.pipeline import pipelines
from davinci.schedule.choices import to_data
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.choice import MOST_WRITTEN, choose
from davinci.schedule.products.estimate import estimate
from davinci.schedule.products.footprint import footprint
from davinci.schedule.products.group import read_group
from davinci.schedule.products.legality import require_legal
from davinci.schedule.products.product import Product, ProductSchedule, Share, Tile
from davinci.schedule.products.rolls import mads_written
from davinci.schedule.ranking import choices_of
from davinci.schedule.vector.space import NoSpace
from davinci.tuning.kernels import alone
from davinci.tuning.measure import measure, target_of
from davinci.units import ceil_div, even_cuts

PAGE = Path(__file__).parents[2] / "docs" / "product-search.md"

INTRODUCTION = """# What the choice of schedules loses

Written by `python benchmarks/speed/product_search.py --write`, which says what is searched: cycles
of products by the schedule that is chosen, and by the best of those that were simulated, on
{machine}.
"""

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


class Wide(Candidates):
    """More of everything than what is chosen from."""

    shares_kept, tiles_kept = (3 * kept for kept in (Candidates.shares_kept, Candidates.tiles_kept))

    def depths(self, m: int, n: int) -> list[int]:
        most, k = super().depths(m, n)[:1], self.whole.k
        return sorted(
            {ceil_div(k, ceil_div(k, ceil_div(d, i))) for d in most for i in (1, 2, 3, 4)}
        )


@dataclass(frozen=True)
class Searched:
    """A product as a kernel of its own, on some cores of a machine."""

    product: Product
    text: str
    machine: Machine
    cores: int

    @staticmethod
    def of(case: Case, name: str) -> Searched:
        module = frontends.load(case.text, make_context())
        options, cores = pipelines.Options(name, case.shape.cores), case.shape.cores
        stages = pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")]
        lower(module, options, lambda text: None, stages)
        (function,) = kernels(module.operation)
        product = read_group(group_of(function).graph).product
        return Searched(product, alone(function), machine.load(name), cores)

    def chosen(self) -> ProductSchedule:
        return choose(self.product, self.machine, self.cores, Wanted())

    def space(self) -> list[ProductSchedule]:
        """What fits the memories, by estimated cycles."""
        found = {
            schedule: estimate(self.product, schedule, self.machine, self.cores)
            for shallow in (False, True)
            for schedule in Wide(self.product, self.machine, self.cores, Wanted(), shallow).all()
            if self.is_legal(schedule)
        }
        return sorted(found, key=lambda schedule: found[schedule])

    def is_legal(self, schedule: ProductSchedule) -> bool:
        if footprint(self.product, schedule).excess(self.machine):
            return False
        return mads_written(self.product, schedule) <= MOST_WRITTEN

    def neighbour(self, best: ProductSchedule, random: np.random.Generator) -> ProductSchedule:
        """A legal schedule that differs from `best` in one to three numbers."""
        while True:
            found = best
            for _ in range(int(random.integers(1, 4))):
                found = changed(found, self.product, random)
            try:
                require_legal(self.product, found, self.machine)
            except NoSpace:
                continue
            if found != best and self.is_legal(found):
                return found

    def cycles(self, schedule: ProductSchedule) -> float:
        """Simulated cycles; none if it cannot be compiled."""
        choices = to_data(choices_of(schedule, self.cores))
        try:
            return measure(self.text, choices, target_of(self.machine.name, self.cores))
        except (CompileError, DeviceFault) as error:
            print(f"{schedule}: {error}", flush=True)
            return float("inf")


def changed(
    schedule: ProductSchedule, product: Product, random: np.random.Generator
) -> ProductSchedule:
    """A schedule with another number in one place, which may not be legal."""
    whole, share, tile = product.fractals, schedule.share, schedule.tile

    def some(low: int, high: int) -> int:
        return int(random.integers(low, max(low, high) + 1))

    def cut(size: int) -> int:
        return int(random.choice(even_cuts(size, size)))

    def shared() -> ProductSchedule:
        batch, m, n = cut(product.batch), cut(whole.m), cut(whole.n)
        new = replace(schedule, share=Share(batch, m, n))
        return tiled(new, Tile(min(tile.m, m), tile.k, min(tile.n, n)))

    side = str(random.choice(["a", "b"]))
    pieces = schedule.pieces(side)
    buffers = str(random.choice(["l0a", "l0b", "l0c", "inbox", "outbox", "loads", "leaving"]))
    ways = (
        shared,
        partial(tiled, schedule, replace(tile, m=cut(share.m))),
        partial(tiled, schedule, replace(tile, n=cut(share.n))),
        partial(tiled, schedule, replace(tile, k=cut(whole.k))),
        lambda: replace(schedule, **{side: replace(pieces, slots=some(1, 2 * pieces.slots))}),
        lambda: replace(schedule, **{side: replace(pieces, rows=some(1, 2 * pieces.rows))}),
        lambda: replace(schedule, **{side: replace(pieces, k=tile.k * some(1, 4))}),
        lambda: replace(schedule, **{buffers: some(1, 4)}),
        lambda: replace(schedule, ahead=some(1, 12)),
        lambda: replace(schedule, turn=some(1, 4)),
        lambda: replace(schedule, outer="n" if schedule.outer == "m" else "m"),
        lambda: replace(schedule, beside=(some(1, 2), some(1, 2))),
        lambda: replace(schedule, part=(some(1, tile.n), some(1, tile.m))),
    )
    return ways[int(random.integers(len(ways)))]()


def tiled(schedule: ProductSchedule, tile: Tile) -> ProductSchedule:
    """The schedule with another tile, and pieces for it."""
    a, b = schedule.a, schedule.b
    a = replace(a, other=tile.m, k=max(tile.k, a.k // tile.k * tile.k), together=tile.k)
    b = replace(b, other=tile.n, k=max(tile.k, b.k // tile.k * tile.k), together=1)
    part = min(schedule.part[0], tile.n), min(schedule.part[1], tile.m)
    return replace(schedule, tile=tile, a=a, b=b, part=part)


def searched(kernel: Searched, trials: int) -> dict[ProductSchedule, float]:
    """Cycles of schedules, the one that is chosen first."""
    random, space = np.random.default_rng(0), kernel.space()
    chosen, first, rest = kernel.chosen(), space[: trials // 2], space[trials // 2 :]
    some = (rest[i] for i in random.permutation(len(rest))[: trials // 4])
    found = {each: kernel.cycles(each) for each in dict.fromkeys([chosen, *first, *some])}
    for _ in range(trials // 4):
        each = kernel.neighbour(min(found, key=lambda schedule: found[schedule]), random)
        if each not in found:
            found[each] = kernel.cycles(each)
    return found


def found_for(case: Case, machine_name: str, trials: int) -> dict[ProductSchedule, float]:
    """What is searched for one product, in a process of its own."""
    return searched(Searched.of(case, machine_name), trials)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("shapes", nargs="*")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--random", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=160)
    parser.add_argument("--workers", type=int, default=1, help="products searched at once")
    parser.add_argument("--show", action="store_true", help="print both schedules")
    parser.add_argument("--write", action="store_true", help="write the page in docs")
    options = parser.parse_args()
    cores = machine.load(options.machine).cores
    random = drawn(options.random, options.seed, cores, LARGEST)
    texts = options.shapes or ([] if random else SHAPES.split())
    cases = [*(Case.of(text, cores) for text in texts), *map(Case, random)]
    lines = [f"{'m x k x n @ cores':26}{'tried':>8}{'chosen':>10}{'best':>10}{'ratio':>8}"]
    print(lines[0])
    ratios: list[float] = []
    search = partial(found_for, machine_name=options.machine, trials=options.trials)
    with ProcessPoolExecutor(options.workers) as pool:
        for case, found in zip(cases, pool.map(search, cases), strict=True):
            chosen, best = next(iter(found)), min(found, key=lambda schedule: found[schedule])
            ratios.append(found[chosen] / found[best])
            row = f"{len(found):8}{found[chosen]:10,.0f}{found[best]:10,.0f}{ratios[-1]:8.3f}"
            lines.append(f"{case!s:26}{row}")
            print(lines[-1], flush=True)
            if options.show:
                print(f"  chosen {chosen}\n  best   {best}", flush=True)
    lines.append(f"chosen over best: {median(ratios):.3f} (median), {max(ratios):.3f} at worst")
    print(lines[-1])
    if options.write:
        table = "\n".join(lines)
        head = INTRODUCTION.format(machine=options.machine)
        PAGE.write_text(f"{head}\n```\n{table}\n```\n", encoding="utf-8")


if __name__ == "__main__":
    main()

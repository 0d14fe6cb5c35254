"""Whether the simulator finds the configuration that a board finds fastest.

    python benchmarks/fidelity/tuned_configurations.py

Published measurements of one problem in several configurations: tiles, cores, sizes of transfers,
what is kept in the L2. For each the place of the fastest one among the simulated times, and
whether it is in the simulated best quarter, with what takes as long as the last one there: what an
autotuner that prunes by simulation measures (`davinci.triton.Ranking`). Of `add` in Triton only the
winner is published (triton-ascend 633: 98,432 numbers, which is not said of which type; f32
assumed, blocks of 16, 256, 512 and 1,024 on a 910B). Those of catlass were found after the model
was made, most of the others were known then (`published.Row.evidence`).
"""

from __future__ import annotations

import argparse
import functools
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import published_950
import published_950_cube
import published_memory
import published_products
import published_tiles
from published import Row

from davinci.triton.ranking import with_equals

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))


@dataclass(frozen=True)
class TunedConfiguration:
    """A configuration of a problem.

    Attributes:
        name: of it.
        measured: on a board; infinity where it is only known not to be the fastest.
        simulated: in the same unit.
    """

    name: str
    measured: float
    simulated: float


@dataclass(frozen=True)
class TunedProblem:
    """A problem whose configurations were measured."""

    name: str
    configurations: Sequence[TunedConfiguration]

    @property
    def fastest(self) -> TunedConfiguration:
        """The one that a board finds fastest."""
        return min(self.configurations, key=lambda c: c.measured)

    @property
    def quarter(self) -> int:
        """The number of configurations in the best quarter, rounded up."""
        return math.ceil(len(self.configurations) / 4)

    @property
    def kept(self) -> int:
        """With what takes as long as the last one of the quarter, as a `Ranking` keeps it."""
        return with_equals([c.simulated for c in self.configurations], self.quarter)

    @property
    def places(self) -> tuple[int, int]:
        """The first and the last place of the fastest one by simulated time: others that take as
        long may come before it or behind it."""
        mine = self.fastest.simulated
        first = 1 + sum(c.simulated < mine for c in self.configurations)
        return first, sum(c.simulated <= mine for c in self.configurations)

    @property
    def is_kept(self) -> bool:
        """Whether the configuration that was measured to be fastest is in the simulated quarter."""
        return self.places[0] <= self.quarter

    @property
    def needs_equals(self) -> bool:
        """Whether it is kept, and a quarter without further equal ones might be without it."""
        return self.is_kept and self.places[1] > self.quarter

    @property
    def loss(self) -> float:
        """How much longer the best of the quarter takes at worst than the fastest one takes, if the
        slower of equal ones are taken and no further ones are kept."""
        order = sorted(self.configurations, key=lambda c: (c.simulated, -c.measured))
        best = min(c.measured for c in order[: self.quarter])
        return best / self.fastest.measured - 1


Rows = Callable[[], Iterator[Row]]

FAMILIES: list[tuple[str, Rows, str]] = [
    ("product of 8192 f16, 910B1", published_products.products, r"C\d.*: task"),
    ("addition of 8192 x 8192 f16, 910B1", published_memory.vector_addition, r".*"),
    ("reading of 8192 x 8192 f16, 910B1", published_memory.data_copy, r"to UB, tiles of .*"),
    ("addition of 8192 x 8192 f16, 950PR", published_950.addition, r".*(?<!vector unit)"),
    ("GELU of 8192 x 8192 f32, 950PR", published_950.gelu_of_f32, r".*(?<!vector unit)"),
    ("reading of 8192 x 8192 f16, 950PR", published_950.reading, r"tiles of .*"),
    ("product of 8192 f16, 950PR", published_950_cube.products, r"C\d.*: task"),
    *(
        (f"{name}, catlass", functools.partial(published_tiles.tiles, name), r".*")
        for name in published_tiles.TILES
    ),
]
"""Names of problems, where their rows are, and the names of rows that are whole configurations."""

EXCEPTIONS = {
    "product of 8192 f16, 910B1": "tiling by constants and the unit flag save work of the scalar "
    "unit and of L0C that the cube hides here: four versions are bound by the same mads",
    "reading of 8192 x 8192 f16, 910B1": "tiles of 64 x 64 and of 64 x 1024 read the same bytes, "
    "and the bandwidth of global memory alone bounds them here; what the board loses by the "
    "smaller ones is not known",
    "reading of 8192 x 8192 f16, 950PR": "as on the 910B1",
    "product of 8192 f16, 950PR": "as on the 910B1; constant tiling is put 0.04 % before both",
    "20 x 6144 x 16384 f16, B in rows, catlass": "rows of 640 bytes, most of which begin inside a "
    "line of 512, take longer on the board than those of 512; here they do not, and the better "
    "balance of blocks over cores decides",
}
"""Why the fastest configuration of a problem is not in the quarter by its place alone."""


def problems() -> Iterator[TunedProblem]:
    """The problems that published rows measure, with what the simulator gives for each row."""
    for name, rows, pattern in FAMILIES:
        yield TunedProblem(name, list(configurations(rows(), pattern)))


def configurations(rows: Iterable[Row], pattern: str) -> Iterator[TunedConfiguration]:
    """The rows that a pattern matches as a whole."""
    for row in rows:
        if re.fullmatch(pattern, row.name):
            yield TunedConfiguration(row.name, row.measured, row.simulated)


TRITON_COUNT = 98_432
TRITON_BLOCKS = (16, 256, 512, 1024)
TRITON_WINNER = 1024


def triton_addition() -> TunedProblem:
    """`add` with blocks of several sizes, as the vendor's compilers make it."""
    import numpy as np

    import triton_kernels
    from davinci.triton import launch

    x, out = np.zeros(TRITON_COUNT, np.float32), np.zeros(TRITON_COUNT, np.float32)
    found = []
    for block in TRITON_BLOCKS:
        grid = -(-TRITON_COUNT // block)
        timed = launch.time(triton_kernels.add, (grid,), x, x, out, TRITON_COUNT, BLOCK=block)
        measured = 1.0 if block == TRITON_WINNER else math.inf
        found.append(TunedConfiguration(f"BLOCK={block}", measured, timed.time_us))
    return TunedProblem("add of Triton, 98,432 f32, 910B", found)


def table(found: Iterable[TunedProblem]) -> Iterator[str]:
    """A line for each problem, one for all, and one for each exception."""
    yield "| problem | configurations | measured fastest | simulated place | in the best quarter |"
    yield "|---|---|---|---|---|"
    problems = list(found)
    for problem in problems:
        first, last = problem.places
        place = str(first) if first == last else f"{first} to {last}, equal"
        answer = "yes" if problem.is_kept else f"no, {problem.loss:.1%} lost"
        if problem.needs_equals:
            answer = f"with its equals; without, at worst {problem.loss:.1%} lost"
        size = f"{len(problem.configurations)}, {problem.kept} kept"
        yield f"| {problem.name} | {size} | {problem.fastest.name} | {place} | {answer} |"
    held = sum(problem.is_kept for problem in problems)
    needing = [problem for problem in problems if problem.needs_equals or not problem.is_kept]
    yield ""
    yield (
        f"{held} of {len(problems)} are in the best quarter with its equals, "
        f"{len(problems) - len(needing)} by their place alone. Exceptions:"
    )
    for problem in needing:
        yield f"* {problem.name}: {EXCEPTIONS.get(problem.name, 'not explained')}."


def main() -> None:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    print("\n".join(table([*problems(), triton_addition()])))


if __name__ == "__main__":
    main()

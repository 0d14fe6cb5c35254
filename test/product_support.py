"""Products as kernels of one operator, for tests and benchmarks: operands in any layout."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from davinci.machine import Machine
from davinci.passes.ascend_to_cce.products import group as product_group
from davinci.schedule.products.candidates import Candidates, Wanted
from davinci.schedule.products.footprint import footprint
from davinci.schedule.products.legality import require_legal
from davinci.schedule.products.product import DENSE, Pieces, Product, ProductSchedule
from davinci.schedule.products.refined import ways_along_k
from davinci.schedule.products.rolls import mads_written
from davinci.units import ceil_div, even_cuts
from kernel_support import KernelRun, fractals, matrix_of, run_kernel

Array = npt.NDArray[Any]

CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Case:
    """C[m, n] = A[m, k] B[k, n], `batch` times if it is not 0.

    Attributes:
        layouts: of A, B and C, "n" for fractals (Nz), "r" for rows.
        turned: the operands given transposed, of "ab".
        result: element type of C.
    """

    m: int
    n: int
    k: int
    batch: int = 0
    layouts: str = "nnn"
    turned: str = ""
    result: str = "f32"

    def stored(self) -> list[tuple[int, int]]:
        """Rows and columns of what lies in GM for A, B and C."""
        a, b = (self.m, self.k), (self.k, self.n)
        a, b = (x[::-1] if side in self.turned else x for side, x in (("a", a), ("b", b)))
        return [a, b, (self.m, self.n)]

    def text(self) -> str:
        """A module with one kernel."""
        lead = f"{self.batch}x" if self.batch else ""
        lines, tensors, buffers, arguments = [], [], [], []
        for name, layout, (rows, columns), element in zip(
            "abc", self.layouts, self.stored(), ("f16", "f16", self.result), strict=True
        ):
            matrix = f"{lead}{rows}x{columns}x{element}"
            array = f"{lead}{ceil_div(columns, 16)}x{ceil_div(rows, 16)}x16x16x{element}"
            nz = layout == "n"
            tensors.append(f'tensor<{matrix}, #ascend.layout<"nz">>' if nz else f"tensor<{matrix}>")
            buffers.append(array if nz else matrix)
            arguments.append(f"%{name}: memref<{buffers[-1]}>")
        for name, tensor, buffer in zip("xy", tensors, buffers, strict=False):
            gm = "ab"["xy".index(name)]
            lines.append(
                f"%{name}_held = bufferization.to_tensor %{gm} restrict : memref<{buffer}> to "
                f"tensor<{buffer}>"
            )
            lines.append(f"%{name} = {CAST} %{name}_held : tensor<{buffer}> to {tensor}")
        a, b, c = tensors
        flags = ", ".join(f"transpose_{side}" for side in self.turned)
        name = "batch_matmul" if self.batch else "matmul"
        lines += [
            f'%z = "ascend.{name}"(%x, %y) {{{flags}}} : ({a}, {b}) -> {c}',
            f"%z_held = {CAST} %z : {c} to tensor<{buffers[2]}>",
            "bufferization.materialize_in_destination %z_held in restrict writable %c : "
            f"(tensor<{buffers[2]}>, memref<{buffers[2]}>) -> ()",
        ]
        body = "\n      ".join(lines)
        return f"""
    func.func @product({", ".join(arguments)})
        attributes {{ascend.kernel, ascend.op = "{name}", ascend.unit = "cube"}} {{
      {body}
      return
    }}"""

    def operands(self) -> tuple[Array, Array]:
        """A and B as they are multiplied."""
        random = np.random.default_rng(self.m + 1000 * self.k + 1000000 * self.n)
        lead = (self.batch,) if self.batch else ()
        a = random.standard_normal((*lead, self.m, self.k)).astype(np.float16)
        return a, random.standard_normal((*lead, self.k, self.n)).astype(np.float16)

    def inputs(self) -> list[Array]:
        """A and B as they lie in GM."""
        found = []
        for layout, side, x in zip(self.layouts, "ab", self.operands(), strict=False):
            stored = np.ascontiguousarray(x.swapaxes(-1, -2)) if side in self.turned else x
            found.append(fractals(stored) if layout == "n" else stored)
        return found

    def matrix(self, output: Array) -> Array:
        """C from what was written; padding of fractals has to be zero."""
        if self.layouts[2] == "r":
            return output
        found = matrix_of(output, self.m, self.n)
        np.testing.assert_array_equal(fractals(found), output, err_msg="padding")
        return found

    def check(self, **options: object) -> KernelRun:
        """Runs the product and compares with NumPy.

        Products of f16 are exact in f32, so the difference is that of the order of summation, at
        most k roundings of the largest partial sum (about sqrt(k)), and for f16 the rounding of
        the result.

        Args:
            options: of `ascend-to-cce`.
        """
        run = run_kernel(self.text(), self.inputs(), **options)
        a, b = self.operands()
        expected = a.astype(np.float64) @ b.astype(np.float64)
        rounding = 2.0**-11 if self.result == "f16" else 0.0
        limit = self.k * 2.0**-24 * (4 + np.abs(expected).max(initial=0))
        found = self.matrix(run.outputs[0])
        np.testing.assert_allclose(found, expected, rtol=rounding, atol=limit)
        return run

    @staticmethod
    def drawn(random: np.random.Generator) -> Case:
        """A product of sizes that end anywhere, up to a few tiles or a long sum."""
        m, n, k = (int(random.choice([1, 15, 16, 17, 33, 64, 100, 128, 257])) for _ in range(3))
        if random.random() < 0.2:
            k = int(random.integers(600, 2500))
        return Case(
            m,
            n,
            k,
            batch=int(random.choice([0, 0, 1, 3])),
            layouts="".join(random.choice(["n", "r"], 3)),
            turned=str(random.choice(["", "", "a", "b", "ab"])),
            result=str(random.choice(["f16", "f32"])),
        )


MOST_WRITTEN = 200
"""Mads of a random schedule that are written, so that it is compiled in a moment."""


def drawn_schedule(
    product: Product, machine: Machine, cores: int, random: np.random.Generator
) -> ProductSchedule:
    """A legal schedule of a product, as nobody would choose it."""

    def some(low: int, high: int) -> int:
        return int(random.integers(low, max(low, high) + 1))

    def some_rows(pieces: Pieces) -> int:
        return pieces.rows if some(0, 1) else some(1, pieces.rows)

    while True:
        found = _of_some_share(product, machine, cores, random)
        if found is None:
            continue
        deep = [piece.k % found.tile.k == 0 for piece in (found.a, found.b)]
        slots = [
            some(1 if whole else 2, 2 * piece.slots)
            for whole, piece in zip(deep, (found.a, found.b), strict=True)
        ]
        together = found.beside[0] * found.beside[1]
        changed = replace(
            found,
            turn=some(1, 4),
            a=replace(found.a, slots=slots[0], rows=some_rows(found.a)),
            b=replace(found.b, slots=slots[1], rows=some_rows(found.b)),
            part=(
                found.part[0] if found.ragged == DENSE else some(1, found.part[0]),
                some(1, found.part[1]),
            ),
            l0a=some(1, 4),
            l0b=some(1, 4),
            l0c=some(together, 4),
            ahead=some(1, 12),
            inbox=some(1, 4),
            outbox=some(1, 3),
            loads=some(1, 3),
            leaving=some(1, 3),
            backwards=bool(some(0, 1)),
        )
        ways = [changed, *ways_along_k(product, changed, several=True)]
        changed = ways[some(0, len(ways) - 1)]
        fits = not footprint(product, changed).excess(machine)
        if fits and mads_written(product, changed) <= MOST_WRITTEN:
            require_legal(product, changed, machine)
            return changed


def _of_some_share(
    product: Product, machine: Machine, cores: int, random: np.random.Generator
) -> ProductSchedule | None:
    """One of a random share, with random tiles; None if that came to nothing."""
    candidates, whole = Candidates(product, machine, cores, Wanted()), product.fractals
    share = random.choice(candidates.shares())  # type: ignore[arg-type]
    tiles = candidates.tiles(share)
    for _ in range(int(random.integers(0, 3))):
        tile = tiles[int(random.integers(len(tiles)))]
        m, n = (int(random.choice(even_cuts(size, size))) for size in (tile.m, tile.n))
        k = int(random.integers(1, min(whole.k, tile.k) + 1))
        tiles.append(replace(tile, m=m, k=k, n=n))
    tile = tiles[int(random.integers(len(tiles)))]
    loops = list(candidates.loops(share, tile))
    outer, beside = loops[int(random.integers(len(loops)))]
    found = list(candidates.completed(share, tile, outer, beside))
    return found[int(random.integers(len(found)))] if found else None


@contextmanager
def drawn_schedules(random: np.random.Generator) -> Iterator[list[ProductSchedule]]:
    """Products get random schedules; those that they got."""
    given: list[ProductSchedule] = []

    def draw(product: Product, machine: Machine, cores: int, wanted: Wanted) -> ProductSchedule:
        given.append(drawn_schedule(product, machine, cores, random))
        return given[-1]

    with patch.object(product_group, "choose", draw):
        yield given

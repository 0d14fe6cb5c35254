"""How fast attention is: a kernel for each operator, one for all of it, and what bounds it.

    python benchmarks/speed/attention.py [case ...] [--machine NAME] [--cores N] [--quick]

A case is HEADSxROWSxKEYSxDEPTH with letters behind it: `h` scores of f16 (else f32), `n` operands
and result in fractals (else rows), `k` a mask with a number for each key, `w` one for each score.
Printed are launches and cycles without and with fusion, simulated without data, the kernel's bounds
as the machine file gives them, and bytes between the L2 and the memory over those that must pass
once. The cube's bound counts both products; that of the vector unit what softmax is at least, in
repeats: scores come from L0C, are compared, lessened, exponentiated (two cycles) and, of f32, made
f16 (two).

--quick leaves out what takes more than some seconds.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import Any

from timed import timed

from davinci import machine as machines
from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.units import REPEAT_BYTES

CASES = (
    "12x512x512x64hn",
    "12x512x512x64h",
    "12x512x512x64n",
    "12x512x512x64",
    "12x512x512x64nk",
    "12x128x128x64nk",
    "12x197x197x64",
    "16x577x577x80n",
    "32x1x2048x128k",
    "8x256x256x128w",
    "4x77x77x256",
)
LARGE = ("12x1024x1024x64n", "12x4096x4096x64n", "12x4096x4096x64hn")

NZ = ', #ascend.layout<"nz">'


@dataclass(frozen=True)
class Case:
    """Attention of some heads."""

    heads: int
    rows: int
    keys: int
    depth: int
    letters: str

    @staticmethod
    def of(text: str) -> Case:
        sizes = text.rstrip("hnkw")
        return Case(*map(int, sizes.split("x")), text[len(sizes) :])

    @property
    def scores(self) -> str:
        return "f16" if "h" in self.letters else "f32"

    def kind(self, shape: tuple[int, ...], element: str, rows: bool = False) -> str:
        nz = NZ if "n" in self.letters and not rows else ""
        return f"tensor<{''.join(f'{n}x' for n in shape)}{element}{nz}>"

    def text(self) -> str:
        """It, as text of `ascend` on tensors."""
        h, m, n, d = self.heads, self.rows, self.keys, self.depth
        q, k, o = self.kind((h, m, d), "f16"), self.kind((h, n, d), "f16"), (h, m, d)
        s, row = self.kind((h, m, n), self.scores), self.kind((h, m), self.scores, rows=True)
        wide = self.kind(o, "f32")
        arguments = f"%q: {q}, %k: {k}, %v: {k}"
        lines = [
            f'%s = "ascend.batch_matmul"(%q, %k) {{transpose_b}} : ({q}, {k}) -> {s}',
            f'%c = "ascend.full"() {{value = {d**-0.5:.9e} : {self.scores}}} : () -> {s}',
            f'%x = "ascend.mul"(%s, %c) : ({s}, {s}) -> {s}',
        ]
        x = "%x"
        for letter, shape in (("k", (1, 1, n)), ("w", (1, m, n))):
            if letter in self.letters:
                mask = self.kind(shape, self.scores, rows=True)
                arguments += f", %mask_{letter}: {mask}"
                dims = "{dims = array<i64: 0, 1, 2>}"
                lines += [
                    f'%b{letter} = "ascend.broadcast"(%mask_{letter}) {dims} : ({mask}) -> {s}',
                    f'%x{letter} = "ascend.add"({x}, %b{letter}) : ({s}, {s}) -> {s}',
                ]
                x = f"%x{letter}"
        spread = "{dims = array<i64: 0, 1>}"
        half = self.kind((h, m, n), "f16")
        lines += [
            f'%m = "ascend.reduce"({x}) {{dims = array<i64: 2>, kind = "max"}} : ({s}) -> {row}',
            f'%mb = "ascend.broadcast"(%m) {spread} : ({row}) -> {s}',
            f'%y = "ascend.sub"({x}, %mb) : ({s}, {s}) -> {s}',
            f'%e = "ascend.exp"(%y) : ({s}) -> {s}',
            f'%l = "ascend.reduce"(%e) {{dims = array<i64: 2>, kind = "add"}} : ({s}) -> {row}',
            f'%lb = "ascend.broadcast"(%l) {spread} : ({row}) -> {s}',
            f'%p = "ascend.div"(%e, %lb) : ({s}, {s}) -> {s}',
        ]
        if self.scores == "f32":
            lines.append(f'%ph = "ascend.cast"(%p) : ({s}) -> {half}')
        p = "%ph" if self.scores == "f32" else "%p"
        lines += [
            f'%w = "ascend.batch_matmul"({p}, %v) : ({half}, {k}) -> {wide}',
            f'%o = "ascend.cast"(%w) : ({wide}) -> {q}',
            f"return %o : {q}",
        ]
        return f"func.func @main({arguments}) -> {q} {{\n" + "\n".join(lines) + "\n}"

    def bounds(self, machine: Machine, cores: int) -> tuple[float, float]:
        """Cycles of the cube and of the vector unit."""
        scores = self.heads * self.rows * self.keys / cores
        cube = 2 * scores * self.depth / (machine.cube.m * machine.cube.n * machine.cube.k_b16)
        bytes_each, passes = (2, 5) if self.scores == "f16" else (4, 7)
        return cube, scores * bytes_each / REPEAT_BYTES * passes


def run(case: Case, machine: str, cores: int, fusion: str) -> tuple[dict[str, Any], float]:
    """The record of a run without data, and bytes between the L2 and the memory over those that
    must pass once."""
    executable = timed(case.text(), machine=machine, cores=cores, fusion=fusion)
    passed = sum(x.traffic.filled_bytes + x.traffic.written_back_bytes for x in executable.launches)
    once = 2 * case.heads * case.depth * (case.rows + case.keys) * 2
    once += ("w" in case.letters) * case.rows * case.keys * (2 if "h" in case.letters else 4)
    return executable.profile, passed / once


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="leave out the largest")
    given = parser.parse_args()
    machine, cores = given.machine, given.cores
    file = machines.load(machine)
    print(
        f"{'case':<20}{'launches':>16}{'cycles':>25}{'':>8}{'cube':>9}{'vector':>9}{'of bound':>10}"
        f"{'memory':>8}"
    )
    for name in given.cases or (*CASES, *(() if given.quick else LARGE)):
        case = Case.of(name)
        after, over = run(case, machine, cores, "all")
        cycles, launches = after["total_cycles"], sum(k["launches"] for k in after["kernels"])
        cube, vector = case.bounds(file, cores or file.cores)
        try:
            before, _ = run(case, machine, cores, "none")
            number = sum(k["launches"] for k in before["kernels"])
            old = f"{number:>8} -> {launches:>4}{before['total_cycles']:>12,} -> {cycles:>9,}"
            old += f"{before['total_cycles'] / cycles:>7.1f}x"
        except CompileError as error:
            # Scores that no kernel of one operator can hold.
            old = f"{'-':>8} -> {launches:>4}{'-':>12} -> {cycles:>9,}{'':>8}"
            print(f"{name} without fusion: {error}", file=sys.stderr)
        print(
            f"{name:<20}{old}{cube:>9,.0f}{vector:>9,.0f}"
            f"{100 * max(cube, vector) / cycles:>9.0f}%{over:>8.2f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

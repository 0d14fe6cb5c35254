"""The source's comparison of matmul strategies, in cycles of the simulated machine.

    python benchmarks/speed/matmul_strategies.py

Names are the source's (a 2024 thesis on a compiler for this kind of machine): A is M x N, B is
N x K, C is M x K, a tile is (m, n, k), n the contracted dimension; what is BLAS's n is its k, and
the other way. For (M, N, K) = (512, 768, 768) it prints the four configurations that the source
compares and a sweep over n, on one core and on all, next to the elements of A and B that the
simulator counted and that the formulas give: kernels read less where L1 holds what is used again.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import davinci
from davinci import machine as machines
from davinci.simulator import LaunchProfile

MACHINE = "ascend910"
M, N, K = 512, 768, 768
COMPARED = [
    ("is", (32, 768, 32)),
    ("ws", (32, 768, 32)),
    ("os", (256, 128, 256)),
    ("os", (128, 256, 128)),
]
SWEEP_MK = [(256, 256), (128, 256), (256, 128), (128, 128), (64, 64), (32, 32)]
SWEEP_N = [16, 32, 64, 128, 256, 384, 512, 768]
BEST = ("os", (256, 128, 256))
"""What the source found to be fastest."""

NZ = '#ascend.layout<"nz">'
A, B, C = f"tensor<{M}x{N}xf16, {NZ}>", f"tensor<{N}x{K}xf16, {NZ}>", f"tensor<{M}x{K}xf32, {NZ}>"
TEXT = f"""
func.func @main(%a: {A}, %b: {B}) -> {C} {{
  %c = "ascend.matmul"(%a, %b) : ({A}, {B}) -> {C}
  return %c : {C}
}}
"""

Tile = tuple[int, int, int]
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Measurement:
    """One product: how long it took, and the elements of A and B it read."""

    cycles: int
    blocks: int
    read: int
    expected: int


def elements_read(strategy: str, tile: Tile) -> int:
    """The source's formula S."""
    m, _, k = tile
    return {
        "is": M * N + M * N * K // m,
        "ws": K * N + M * N * K // k,
        "os": M * N * K * (m + k) // (m * k),
    }[strategy]


def measure(strategy: str, tile: Tile, cores: int, inputs: list[Array]) -> Measurement:
    """Compiles and runs one configuration, and checks its numbers."""
    m, n, k = tile
    executable = davinci.compile(
        TEXT, machine=MACHINE, cores=cores, matmul_strategy=strategy, tile=(m, k, n), checks=False
    )
    names = [spec.name for spec in executable.inputs]
    (result,) = executable.run(dict(zip(names, map(fractals, inputs), strict=True))).values()
    expected = inputs[0].astype(np.float32) @ inputs[1].astype(np.float32)
    np.testing.assert_allclose(result, fractals(expected), rtol=0, atol=1e-2)
    profile: LaunchProfile = executable.launches[0]
    return Measurement(
        profile.cycles, profile.blocks, profile.gm_read_bytes // 2, elements_read(strategy, tile)
    )


def fractals(matrix: Array) -> Array:
    """A matrix in Nz."""
    m, n = matrix.shape
    return np.ascontiguousarray(matrix.reshape(m // 16, 16, n // 16, 16).transpose(2, 0, 1, 3))


def legal(tile: Tile) -> bool:
    """The source's constraints; they are those of the machine's buffers."""
    m, n, k = tile
    return m * n <= 1 << 15 and n * k <= 1 << 15 and m * k <= 1 << 16


def compare(cores: int, inputs: list[Array]) -> dict[tuple[str, Tile], Measurement]:
    """Prints the source's four configurations."""
    print(f"\n(M, N, K) = ({M}, {N}, {K}), {cores} core{'s' if cores > 1 else ''} of {MACHINE}")
    print(f"{'':4}{'(m, n, k)':>16}{'cycles':>10}{'blocks':>8}{'read':>12}{'formula':>12}")
    found = {}
    for strategy, tile in COMPARED:
        one = found[strategy, tile] = measure(strategy, tile, cores, inputs)
        print(
            f"{strategy.upper():4}{tile!s:>16}{one.cycles:>10}{one.blocks:>8}"
            f"{one.read:>12}{one.expected:>12}"
        )
        assert one.read <= one.expected
    return found


def sweep(cores: int, inputs: list[Array]) -> dict[tuple[str, Tile], Measurement]:
    """Prints cycles of output stationary against n."""
    print(
        f"\nOS, cycles against n, {cores} core{'s' if cores > 1 else ''}; '-' breaks a constraint"
    )
    print(f"{'(m, k)':>12}" + "".join(f"{f'n = {n}':>10}" for n in SWEEP_N))
    found = {}
    for m, k in SWEEP_MK:
        row = f"{f'({m}, {k})':>12}"
        for n in SWEEP_N:
            tile = (m, n, k)
            if not legal(tile):
                row += f"{'-':>10}"
                continue
            found["os", tile] = measure("os", tile, cores, inputs)
            row += f"{found['os', tile].cycles:>10}"
        print(row, flush=True)
    return found


def verdict(cores: int, found: dict[tuple[str, Tile], Measurement]) -> str:
    """Whether the source's finding holds: OS is best, and (256, 128, 256) is the best tile."""
    strategy, tile = min(found, key=lambda key: found[key].cycles)
    fastest, best = found[strategy, tile], found[BEST]
    where = "On one core" if cores == 1 else f"On {cores} cores"
    if (strategy, tile) == BEST:
        return f"{where} the source's finding holds: OS {tile} is fastest, {best.cycles} cycles."
    first = "OS is best" if strategy == "os" else f"{strategy.upper()} is best, not OS"
    more = 100 * (best.cycles - fastest.cycles) / fastest.cycles
    return (
        f"{where} the source's finding does not hold exactly: {first}, but {tile} is fastest with "
        f"{fastest.cycles} cycles ({fastest.blocks} of {cores} cores at work); (256, 128, 256) "
        f"takes {more:.1f} % more ({best.blocks} at work)."
    )


def main() -> None:
    argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0]).parse_args()
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(size).astype(np.float16) for size in ((M, N), (N, K))]
    verdicts = []
    for cores in (1, machines.load(MACHINE).cores):
        verdicts.append(verdict(cores, compare(cores, inputs) | sweep(cores, inputs)))
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()

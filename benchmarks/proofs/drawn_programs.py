"""What proofs by random programs share: each runs on a machine and a number of cores that its seed
chooses, and its results are held against those drawn with it."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

import davinci
from davinci import machine as machines
from davinci.errors import DavinciError

MACHINES = ("ascend910", "ascend310", "ascend310p", "ascend910b")
CORES = (1, 2, 3, 8, 32)


class Program(Protocol):
    """A program of StableHLO and its operands."""

    @property
    def text(self) -> str: ...

    @property
    def inputs(self) -> Iterable[npt.NDArray[Any]]: ...


Drawn = TypeVar("Drawn", bound=Program)


def judge(
    description: str,
    draw: Callable[[int, int], Drawn],
    difference: Callable[[Drawn, list[npt.NDArray[Any]]], str | None],
    longest: tuple[int, str],
    counts: Callable[[str], bool] = lambda operation: True,
) -> int:
    """Reads the command line, judges as many programs as it asks for, and prints each that differs
    or is refused, and on which units kernels ran; returns 1 if there was one, else 0.

    Args:
        description: of the command.
        draw: makes the program of a seed and of the longest size.
        difference: of results from those drawn, as text to print; None where there is none.
        longest: the size that is drawn at most where nobody says, and what it counts.
        counts: whether kernels of such an operation are counted.
    """
    size, what = longest
    parser = argparse.ArgumentParser(description=description.partition("\n\n")[0])
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--longest", type=int, default=size, help=what)
    options = parser.parse_args()
    failed, units = 0, Counter[str]()
    for seed in range(options.first, options.first + options.count):
        program, machine = draw(seed, options.longest), MACHINES[seed % len(MACHINES)]
        cores = min(CORES[seed // 4 % len(CORES)], machines.load(machine).cores)
        try:
            executable = davinci.compile(program.text, machine=machine, cores=cores)
            found = list(executable.run(*program.inputs).values())
        except DavinciError as error:
            failed += 1
            print(f"seed {seed}, {machine}: {error}", flush=True)
            continue
        if (different := difference(program, [np.asarray(array) for array in found])) is not None:
            failed += 1
            print(f"seed {seed}, {machine}, {cores} cores: other values\n{program.text}")
            print(different, flush=True)
        kernels = executable.profile["kernels"]
        units.update(kernel["unit"] for kernel in kernels if counts(kernel["op"]))
    print(f"{options.count} programs, {failed} wrong")
    for unit, count in sorted(units.items()):
        print(f"{count:6} kernels on the {unit} unit")
    return int(failed > 0)

"""Tunes the kernels of a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from davinci import frontends
from davinci.compiler import check_options, lower, model_name, require_kernels, require_main
from davinci.errors import InputError
from davinci.mlir import make_context
from davinci.passes.pipeline import pipelines
from davinci.schedule.choices import to_data
from davinci.schedule.schedule_file import KernelChoices, text_of
from davinci.tuning.kernels import Kernel, tunable
from davinci.tuning.measure import target_of

TRIALS = 24
"""Candidates of a kernel that are measured."""


@dataclass(frozen=True)
class Tuned:
    """What tuning found.

    Attributes:
        machine: name of the machine.
        kernels: with the best choices that were measured, and their cycles.
        untuned: cycles of what the cost model chooses, of each kernel.
        measured: candidates of each kernel.
    """

    machine: str
    kernels: tuple[KernelChoices, ...]
    untuned: tuple[int, ...]
    measured: tuple[int, ...]

    def summary(self) -> dict[str, int]:
        """For the record of a run: kernels, candidates, kernels that got faster, and the cycles of
        a launch of each of these, before and after."""
        pairs = list(zip(self.untuned, (kernel.cycles for kernel in self.kernels), strict=True))
        faster = [(before, after) for before, after in pairs if after < before]
        return {
            "kernels": len(pairs),
            "candidates": sum(self.measured),
            "faster": len(faster),
            "cycles_before": sum(before for before, _ in faster),
            "cycles_after": sum(after for _, after in faster),
        }

    def text(self) -> str:
        """The text of a file that `davinci.compile` takes as `schedules`."""
        return text_of(self.machine, self.kernels)


def tune(
    model: Any,
    *,
    example_inputs: Any = None,
    machine: str = "ascend910",
    cores: int = 0,
    precision: str = "mixed",
    fusion: str = "all",
    winograd: str = "cost",
    trials: int = TRIALS,
    cache: str | os.PathLike[str] | None = None,
    workers: int = 1,
    scheduler: str = "",
    progress: Callable[[str], None] = lambda text: None,
) -> Tuned:
    """Simulates the kernels of a model in several ways, and says which is best for each.

    Args:
        model, example_inputs, machine, cores, precision, fusion, winograd: as of
            `davinci.compile`.
        trials: candidates of a kernel that are measured at most.
        cache: a folder that keeps what was measured for the next time; several processes may share
            it.
        workers: processes that measure, on this computer.
        scheduler: address of a Dask scheduler, whose workers measure instead.
        progress: called with what is done next.

    Raises:
        InputError: a wrong option, or a package that tuning needs and that is not there.
        CompileError: the model cannot be compiled.
    """
    for name, value in (("trials", trials), ("workers", workers)):
        if not isinstance(value, int) or value < 1:
            raise InputError("bad value", where=name, found=repr(value), expected="1 or more")
    try:
        from davinci.tuning import search
        from davinci.tuning import workers as crew
    except ImportError as error:
        raise InputError(
            f"tuning needs {error.name}", hint="pip install 'davinci-mlir[tune]'"
        ) from None
    options = pipelines.Options(machine, cores, precision, fusion=fusion, winograd=winograd)
    description = check_options(options)
    progress("reading the model")
    module = frontends.load(model, make_context(), example_inputs)
    require_main(module, model_name(model))
    require_kernels(module, description, model_name(model))
    lower(module, options, progress, pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")])
    count = cores or description.cores
    kernels = list(tunable(module, description, count))
    storage = search.open_storage(Path(cache) if cache is not None else None)
    target = target_of(machine, count)
    found, untuned, measured = [], [], []
    with crew.open_workers(workers, scheduler) as (run, together):
        for number, kernel in enumerate(kernels, 1):
            progress(f"tuning {kernel.name}, {number} of {len(kernels)}")

            def measure(numbers: Sequence[int], kernel: Kernel = kernel) -> Sequence[Any]:
                return run(kernel.text, [to_data(kernel.candidates[i]) for i in numbers], target)

            cycles = search.search(kernel, storage, trials, together, measure)
            if not cycles:
                continue
            best = min(cycles, key=lambda i: (cycles[i], i))
            choices = kernel.candidates[best]
            found.append(KernelChoices(kernel.key, kernel.name, cycles[best], choices))
            untuned.append(cycles.get(0, cycles[best]))
            measured.append(len(cycles))
    return Tuned(description.name, tuple(found), tuple(untuned), tuple(measured))

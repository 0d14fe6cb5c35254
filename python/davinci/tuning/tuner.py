"""Tunes the kernels of a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from davinci import frontends, input_ranges
from davinci import machine as machines
from davinci.compiler import check_options, lower, model_name, require_kernels, require_main
from davinci.errors import InputError
from davinci.frontends import own_kernels
from davinci.mlir import make_context
from davinci.passes.pipeline import pipelines
from davinci.schedule.choices import to_data
from davinci.schedule.schedule_file import KernelChoices, text_of
from davinci.tuning.gains import WORTH, Account, Prospect, has_patience
from davinci.tuning.kernels import TunedKernel, tunable
from davinci.tuning.measure import target_of

TRIALS = 24
"""Candidates of a kernel that are measured."""


@dataclass(frozen=True)
class Tuned:
    """The schedules that tuning found, and their gain.

    Attributes:
        machine: The name of the machine.
        kernels: The kernels, each with the best schedule that was measured and its cycles.
        untuned: For each kernel the cycles of the schedule that the cost model chooses.
        measured: For each kernel the number of schedules that were measured.
        account: The cycles of all kernels, those that could be won at most, and those that were.
        stopped: Why kernels were left as they are; "" if all were tuned.
    """

    machine: str
    kernels: tuple[KernelChoices, ...]
    untuned: tuple[int, ...]
    measured: tuple[int, ...]
    account: Account
    stopped: str = ""

    def summary(self) -> dict[str, int | str]:
        """For the record of a run: kernels, candidates, kernels that got faster, the cycles of a
        launch of each of these, before and after, and of all launches what they took, what could
        be won at most and what was, and why tuning stopped early."""
        pairs = list(zip(self.untuned, (kernel.cycles for kernel in self.kernels), strict=True))
        faster = [(before, after) for before, after in pairs if after < before]
        return {
            "kernels": len(pairs),
            "candidates": sum(self.measured),
            "faster": len(faster),
            "cycles_before": sum(before for before, _ in faster),
            "cycles_after": sum(after for _, after in faster),
            "total_cycles": self.account.total,
            "most_cycles": self.account.most,
            "won_cycles": self.account.won,
            "stopped": self.stopped,
        }

    def text(self) -> str:
        """The text of a file that `davinci.compile` takes as `schedules`."""
        return text_of(self.machine, self.kernels)


@machines.read_once()
def tune(
    model: Any,
    *,
    example_inputs: Any = None,
    machine: str = "ascend910",
    cores: int = 0,
    precision: str = "mixed",
    fusion: str = "all",
    winograd: str = "cost",
    rewrites: str = "all",
    plan: str = "time",
    ranges: input_ranges.Given = None,
    kernels: own_kernels.Given = (),
    trials: int = TRIALS,
    worth: float = WORTH,
    cache: str | os.PathLike[str] | None = None,
    workers: int = 1,
    scheduler: str = "",
    progress: Callable[[str], None] = lambda text: None,
    say: Callable[[str], None] = lambda text: None,
) -> Tuned:
    """Simulates the kernels of a model in several ways, and says which is best for each.

    Each kernel is simulated once at first, which tells what could be won at most. Those that can
    win most come first; a kernel is left alone when ways of it stop to gain, all others when too
    little is left or to be expected.

    Args:
        model, example_inputs, machine, cores, precision, fusion: as of `davinci.compile`.
        winograd, rewrites, plan, ranges, kernels: as of `davinci.compile`.
        trials: candidates of a kernel that are measured at most.
        worth: share of all cycles, 0 to 1, below which a gain is too little to look for; 0 to try
            everything.
        cache: a folder that keeps what was measured for the next time; several processes may share
            it.
        workers: processes that measure, on this computer.
        scheduler: address of a Dask scheduler, whose workers measure instead.
        progress: called with what is done next.
        say: called with what could be won, and with what was and why it ended.

    Raises:
        InputError: a wrong option, or a package that tuning needs and that is not there.
        CompileError: the model cannot be compiled.
    """
    for name, value in (("trials", trials), ("workers", workers)):
        if not isinstance(value, int) or value < 1:
            raise InputError("bad value", where=name, found=repr(value), expected="1 or more")
    if not 0 <= worth < 1:
        raise InputError("bad value", where="worth", found=repr(worth), expected="0 to 1")
    try:
        from davinci.tuning import search
        from davinci.tuning import workers as crew
    except ImportError as error:
        raise InputError(
            f"tuning needs {error.name}", hint="pip install 'davinci-mlir[tune]'"
        ) from None
    options = pipelines.Options(
        machine,
        cores,
        precision,
        fusion=fusion,
        winograd=winograd,
        rewrites=rewrites,
        plan=plan,
    )
    description = check_options(options)
    progress("reading the model")
    module = frontends.load(model, make_context(), example_inputs, kernels=kernels)
    require_main(module, model_name(model))
    require_kernels(module, description, model_name(model))
    if ranges is not None:
        input_ranges.require_scaling(precision)
        input_ranges.declare(module, input_ranges.ranges_of(ranges))
    lower(module, options, progress, pipelines.STAGES[: pipelines.STAGES.index("ascend-to-cce")])
    count = cores or description.cores
    found = list(tunable(module, description, count))
    storage = search.open_storage(Path(cache) if cache is not None else None)
    target = target_of(machine, count)
    with crew.open_workers(workers, scheduler) as (run, together):

        def look(kernel: TunedKernel, most: int, go_on: GoOn) -> dict[int, int]:

            def measure(numbers: Sequence[int]) -> Sequence[Any]:
                return run(kernel.text, [to_data(kernel.candidates[i]) for i in numbers], target)

            return search.search(kernel, storage, most, together, measure, go_on)

        return _Tuning(found, worth, trials, look, progress, say).all(description.name)


GoOn = Callable[[Mapping[int, int | None]], bool]
"""Whether to measure more ways of a kernel, by the cycles of those that were measured."""

Look = Callable[[TunedKernel, int, GoOn], dict[int, int]]
"""Measures ways of a kernel, at most so many."""


@dataclass
class _Tuning:
    """Tunes kernels, those that can win most first."""

    kernels: Sequence[TunedKernel]
    worth: float
    trials: int
    look: Look
    progress: Callable[[str], None]
    say: Callable[[str], None]

    def all(self, machine: str) -> Tuned:
        """Simulates each kernel once, then those that can win most in more ways."""
        known: dict[str, dict[int, int]] = {}
        for number, kernel in enumerate(self.kernels, 1):
            self.progress(f"simulating {kernel.name}, {number} of {len(self.kernels)}")
            known[kernel.name] = self.look(kernel, 1, lambda cycles: True)
        prospects = {
            kernel.name: Prospect(
                kernel.launches, known[kernel.name].get(0, kernel.least), kernel.least
            )
            for kernel in self.kernels
        }
        account = Account(
            sum(each.total for each in prospects.values()),
            sum(each.most for each in prospects.values()),
            self.worth,
        )
        stopped = ""
        if self.kernels:
            self.say(account.opening(len(self.kernels)))
            stopped = self._try(known, prospects, account)
            self.say(account.closing() + (f"; {stopped}" if stopped else ""))
        chosen, untuned, measured = [], [], []
        for kernel in self.kernels:
            if cycles := known[kernel.name]:
                best = min(cycles, key=lambda i: (cycles[i], i))
                choices = kernel.candidates[best]
                chosen.append(KernelChoices(kernel.key, kernel.name, cycles[best], choices))
                untuned.append(cycles.get(0, cycles[best]))
                measured.append(len(cycles))
        return Tuned(machine, tuple(chosen), tuple(untuned), tuple(measured), account, stopped)

    def _try(
        self, known: dict[str, dict[int, int]], prospects: dict[str, Prospect], account: Account
    ) -> str:
        """Measures more ways of each kernel; why it ended before all were tuned."""
        ranked = sorted(self.kernels, key=lambda kernel: -prospects[kernel.name].most)
        for number, kernel in enumerate(ranked, 1):
            if self.worth and (reason := account.reason_to_stop()):
                return f"{len(ranked) - number + 1} kernels were left as they are: {reason}"
            self.progress(f"tuning {kernel.name}, {number} of {len(ranked)}: {account.closing()}")
            found = self.look(kernel, self.trials, self._goes_on)
            known[kernel.name] = found
            best = min(found.values(), default=prospects[kernel.name].cycles)
            account.tuned(prospects[kernel.name], best)
        return ""

    def _goes_on(self, cycles: Mapping[int, int | None]) -> bool:
        return not self.worth or has_patience(cycles, self.worth)

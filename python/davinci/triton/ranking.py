"""Ranks configurations of an autotuner by simulated time, several at once.

ranking = davinci.triton.Ranking(lambda: matmul, keep=0.25, processes=4)

@triton.autotune(configs, key=["M", "N", "K"],
                 prune_configs_by={"early_config_prune": ranking})
@triton.jit
def matmul(...): ...

matmul[grid](...)   # the autotuner times the best quarter only
print(ranking)      # all of them, with times, or why there is none
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from davinci.errors import CompileError, DavinciError, InputError
from davinci.triton import launch
from davinci.triton import source as sources
from davinci.triton.launch import BoundLaunch
from davinci.triton.source import KernelSource
from davinci.tuning.workers import open_client


@dataclass(frozen=True)
class RankedConfig:
    """A configuration and what simulation says of it.

    Attributes:
        config: of Triton.
        time_us: simulated microseconds; infinity if it cannot run.
        limit: the unit that is busy most, and its share of the time.
        refused: why it cannot run, "" if it can.
    """

    config: Any
    time_us: float
    limit: str = ""
    refused: str = ""


class Ranking:
    """A function for `prune_configs_by={"early_config_prune": ...}` of `triton.autotune`.

    Args:
        kernel: a function without arguments that gives the kernel: it is made later than this.
        keep: how many configurations are left, or which part of them (below 1); those that take
            as long as the last one of them are left, too.
        processes: in which configurations are compiled and simulated at the same time.
        scheduler: the address of a Dask scheduler, whose workers are used instead.

    Attributes:
        rows: of the last ranking, the fastest first.
    """

    def __init__(
        self,
        kernel: Callable[[], Any],
        keep: float = 0.25,
        processes: int = 1,
        scheduler: str = "",
    ) -> None:
        if keep <= 0:
            raise InputError("no configuration would be left", found=f"keep={keep}")
        self._kernel, self._keep = kernel, keep
        self._processes, self._scheduler = processes, scheduler
        self.rows: list[RankedConfig] = []

    def __call__(
        self, configs: Sequence[Any], named_args: Mapping[str, Any], **named: Any
    ) -> list[Any]:
        """The best of some configurations, the fastest first.

        Raises:
            InputError: the launch has no grid.
            CompileError: none of them can run.
        """
        kernel = innermost(self._kernel())
        options = dict(named)
        grid = options.pop("grid", None)
        options.pop("warmup", None)
        if grid is None:
            raise InputError("configurations are ranked for a launch", found="no grid")
        sources_of = [
            prepared(kernel, grid, {**named_args, **options, **config.all_kwargs()})
            for config in configs
        ]
        times = self._measured(sources_of)
        rows = [RankedConfig(config, *found) for config, found in zip(configs, times, strict=True)]
        self.rows = sorted(rows, key=lambda row: row.time_us)
        if all(row.refused for row in self.rows):
            raise CompileError(
                "no configuration can run", where=kernel.fn.__name__, found=self.rows[0].refused
            )
        return [row.config for row in self.rows[: self.kept]]

    @property
    def kept(self) -> int:
        """The number of configurations that the autotuner is left with: which of equal ones a
        board finds faster is not known."""
        wanted = math.ceil(len(self.rows) * self._keep) if self._keep < 1 else int(self._keep)
        return with_equals([row.time_us for row in self.rows if not row.refused], wanted)

    def _measured(self, candidates: Sequence[ConfigLaunch | str]) -> list[Measured]:
        if self._processes <= 1 and not self._scheduler:
            return [measured(candidate) for candidate in candidates]
        with open_client(self._processes, self._scheduler) as client:
            futures = [client.submit(measured, candidate, pure=False) for candidate in candidates]
            return list(client.gather(futures))

    def __str__(self) -> str:
        """A table of the last ranking."""
        best = min((row.time_us for row in self.rows), default=0.0)
        lines = [f"{'us':>10} {'to best':>8}  {'busiest':14} configuration"]
        for number, row in enumerate(self.rows):
            config = ", ".join(f"{name}: {value}" for name, value in row.config.kwargs.items())
            if row.refused:
                lines.append(f"{'-':>10} {'':>8}  {'':14} {config}: {row.refused}")
                continue
            kept = " *" if number < self.kept else ""
            ratio = row.time_us / best
            lines.append(f"{row.time_us:10.2f} {ratio:8.2f}  {row.limit:14} {config}{kept}")
        return "\n".join(lines)


def with_equals(times: Sequence[float], count: int) -> int:
    """How many of some times are among the `count` least, or equal to the longest of those."""
    if not times:
        return 0
    longest = sorted(times)[min(max(1, count), len(times)) - 1]
    return sum(time <= longest for time in times)


@dataclass(frozen=True)
class ConfigLaunch:
    """A launch with one configuration, as another process measures it."""

    call: BoundLaunch
    made: KernelSource


Measured = tuple[float, str, str]
"""Microseconds, what limits them, why there are none."""


def innermost(kernel: Any) -> Any:
    """The function with `@triton.jit` inside autotuners and heuristics."""
    while not hasattr(kernel, "params"):
        kernel = kernel.fn
    return kernel


def prepared(kernel: Any, grid: launch.Grid, values: Mapping[str, Any]) -> ConfigLaunch | str:
    """A launch before the vendor's compilers, or why Triton refuses it."""
    on_host = {
        name: value.cpu() if hasattr(value, "cpu") else value for name, value in values.items()
    }
    try:
        call = launch.bound_launch(kernel, grid, (), on_host)
        return ConfigLaunch(call, sources.source_of(kernel, call.given))
    except DavinciError as error:
        return str(error)


def measured(candidate: ConfigLaunch | str) -> Measured:
    """Compiles and simulates a launch, without data."""
    if isinstance(candidate, str):
        return math.inf, "", candidate
    try:
        made = launch.made_of(candidate.made)
        report = launch.launched(candidate.call, made, timing_only=True)
    except DavinciError as error:
        return math.inf, "", str(error)
    pipes = report.profile["pipes"]
    busiest = max(pipes, key=lambda pipe: pipes[pipe]["ratio"])
    share = f"{busiest.removeprefix('PIPE_')} {pipes[busiest]['ratio']:.0%}"
    return report.time_us, share, ""

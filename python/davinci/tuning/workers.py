"""Where candidates are measured: in this process, or in the processes of a Dask cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

from davinci.errors import CompileError, DeviceFault, InputError
from davinci.tuning.measure import TuningTarget, measure

Outcome = int | CompileError | DeviceFault
Run = Callable[[str, Sequence[Any], TuningTarget], list[Outcome]]
"""Measures a kernel computed by each of several choices."""

CONNECT_SECONDS = 30


def outcome(text: str, choices: Any, target: TuningTarget) -> Outcome:
    """Cycles, or why there are none."""
    try:
        return measure(text, choices, target)
    except (CompileError, DeviceFault) as error:
        return error


def here(text: str, all_choices: Sequence[Any], target: TuningTarget) -> list[Outcome]:
    """One after the other, in this process."""
    return [outcome(text, choices, target) for choices in all_choices]


@contextmanager
def open_workers(count: int, scheduler: str) -> Iterator[tuple[Run, int]]:
    """What measures, and how many candidates it measures at the same time.

    Args:
        count: processes on this computer; with 1 there are no others than this.
        scheduler: the address of a Dask scheduler, whose workers are used instead.

    Raises:
        InputError: nobody answers at the address, or nobody works for it.
    """
    if count <= 1 and not scheduler:
        yield here, 1
        return
    with open_client(count, scheduler) as client:

        def run(text: str, all_choices: Sequence[Any], target: TuningTarget) -> list[Outcome]:
            futures = [client.submit(outcome, text, c, target, pure=False) for c in all_choices]
            return list(client.gather(futures))

        yield run, len(client.nthreads())


@contextmanager
def open_client(count: int, scheduler: str) -> Iterator[Any]:
    """A client of Dask with workers.

    Args:
        count: processes on this computer.
        scheduler: the address of a Dask scheduler, whose workers are used instead.

    Raises:
        InputError: nobody answers at the address, or nobody works for it.
    """
    with (
        _cluster(count) if not scheduler else nullcontext(scheduler) as found,
        _client(found, scheduler) as client,
    ):
        yield client


def _client(cluster: Any, scheduler: str) -> Any:
    from distributed import Client

    try:
        client = Client(cluster, timeout=CONNECT_SECONDS)
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:  # a TimeoutError is an OSError
        raise InputError(
            "no Dask scheduler with workers answers",
            where=scheduler,
            found=str(error) or type(error).__name__,
            expected="the address of one, tcp://host:8786",
        ) from None
    return client


@contextmanager
def _cluster(count: int) -> Iterator[Any]:
    """A scheduler in this process and workers in others, which do not import the main program."""
    from distributed.deploy.subprocess import SubprocessCluster

    quiet = {"dashboard": False, "dashboard_address": None}
    with SubprocessCluster(
        n_workers=count,
        worker_kwargs={"nthreads": 1, **quiet},
        scheduler_kwargs=quiet,
        silence_logs=logging.CRITICAL,
    ) as cluster:
        yield cluster

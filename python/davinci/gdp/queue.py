"""The device's queue: programs run in order while the caller goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from threading import Lock
from typing import Any

import numpy as np

from davinci.errors import InputError
from davinci.gdp.models import Arrays, Model
from davinci.runtime.executable import Executable
from davinci.runtime.profiling import Profile
from davinci.runtime.profiling import profile as profiled


@dataclass(frozen=True)
class Finished:
    """What a run left.

    Attributes:
        outputs: by name.
        profile: times of the device, None unless they were asked for.
        host_seconds: from the call of `run_async` to the end of the run on this host, compilation
            for new shapes and simulation included.
    """

    outputs: Arrays
    profile: Profile | None
    host_seconds: float


class Task:
    """A run that was queued."""

    def __init__(self, future: Future[Finished]) -> None:
        self._future = future

    @property
    def done(self) -> bool:
        """Whether the run has ended."""
        return self._future.done()

    def result(self) -> Arrays:
        """Waits for the run; its outputs by name.

        Raises:
            DeviceFault: the simulated machine found a fault.
        """
        return self._future.result().outputs

    @property
    def host_seconds(self) -> float:
        """Waits for the run; seconds of this host that it took, waiting in the queue included."""
        return self._future.result().host_seconds

    @property
    def profile(self) -> Profile:
        """Waits for the run; what it took on the device, printable, with `record` and `report`.

        Raises:
            InputError: it was not asked for.
        """
        found = self._future.result().profile
        if found is None:
            raise InputError(
                "no profile of this run", where="gdp", hint="gdp.run_async(..., profile=True)"
            )
        return found


_lock = Lock()
_waiting: list[Task] = []
"""Queued since the last `sync`."""


@cache
def _device() -> ThreadPoolExecutor:
    """The one thread that runs programs: there is one device."""
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix="gdp-device")


def run_async(
    model: Model,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] | None = None,
    profile: bool = False,
) -> Task:
    """Queues a run and returns at once; inputs are copied, so the caller may change them.

    Args:
        inputs: arrays by name. For shapes that the model has not met it is compiled first.
        outputs: arrays by name that the results are written into, none or some.
        profile: whether the task keeps times of the device.

    Raises:
        InputError: inputs or outputs do not fit the program.
        CompileError: it cannot be compiled for these shapes.
    """
    start = time.perf_counter()
    for role, given in (("inputs", inputs), ("outputs", outputs or {})):
        if not isinstance(given, Mapping):
            raise InputError(
                f"{role} are arrays by name",
                where="gdp.run_async",
                found=type(given).__name__,
                expected="a dictionary",
            )
    executable, arrays = model.prepared(inputs)
    wanted = dict(outputs or {})
    check_outputs(executable, wanted)

    def run() -> Finished:
        times = None
        if profile:
            with profiled() as times:
                made = executable.run(arrays)
        else:
            made = executable.run(arrays)
        for name, array in wanted.items():
            np.copyto(array, made[name])
        return Finished(made, times, time.perf_counter() - start)

    task = Task(_device().submit(run))
    with _lock:
        _waiting.append(task)
    return task


def check_outputs(executable: Executable, wanted: Mapping[str, Any]) -> None:
    """Raises an `InputError` unless results fit into the arrays that a caller has for them."""
    specs = {spec.name: spec for spec in executable.outputs}
    for name, array in wanted.items():
        spec = specs.get(name)
        if spec is None:
            raise InputError(
                "no such output",
                where="gdp.run_async",
                found=repr(name),
                expected=", ".join(specs),
            )
        fits = isinstance(array, np.ndarray) and array.flags.writeable
        if not fits or (array.shape, array.dtype) != (spec.shape, spec.dtype):
            found = getattr(array, "dtype", type(array).__name__), getattr(array, "shape", ())
            raise InputError(
                "an output does not fit",
                where=f"output {name!r}",
                found=f"{found[0]}{list(found[1])}",
                expected=f"a writable array {spec}",
            )


def sync() -> None:
    """Waits for all runs that were queued; results are then in the arrays given for them.

    Raises:
        DavinciError: the first error of a run.
    """
    with _lock:
        tasks, _waiting[:] = list(_waiting), []
    errors = [error for task in tasks if (error := task._future.exception()) is not None]
    if errors:
        raise errors[0]

"""`kernel[grid](...)`, the launch that people know, on the simulated 910B.

While it is active, functions with `@triton.jit` run through `davinci.triton.run`; what autotuners
time is simulated time.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.triton import launch
from davinci.triton.toolchain import TARGET, NoRoom, tools
from davinci.triton.ways import MACHINE


class Last:
    """The report of the last launch, under the names of its attributes."""

    def __init__(self) -> None:
        self.found: launch.LaunchReport | None = None

    def __getattr__(self, name: str) -> Any:
        if self.found is None:
            raise AttributeError(f"no kernel was launched yet, so there is no {name}")
        return getattr(self.found, name)


last = Last()


def run(kernel: Any, grid: launch.Grid, *args: Any, **named: Any) -> launch.LaunchReport:
    """See `davinci.triton.launch.run`; `davinci.triton.last` has what it returns, too."""
    tools()
    target = kernel
    while not hasattr(target, "params"):  # autotuners and heuristics around the function
        if not hasattr(target, "fn"):
            raise TypeError(f"found {type(kernel).__name__}, expected a function with @triton.jit")
        target = target.fn
    if target is not kernel:
        with active():
            kernel[grid](*args, **named)
        assert last.found is not None, "a kernel was launched"
        return last.found
    last.found = launch.run(kernel, grid, *args, **named)
    return last.found


class Utilities:
    """What scripts ask about the device: how many cores it has."""

    def get_device_properties(self, device: object) -> dict[str, int]:
        machine = machines.load(MACHINE)
        vectors = machine.core_types["AIV"].count
        return {
            "num_aicore": machine.cores,
            "num_vectorcore": machine.cores * vectors,
            "max_shared_mem": machine.buffers.UB.bytes,
        }

    def get_arch(self) -> str:
        return TARGET

    def get_aicore_num(self) -> int:
        return self.get_device_properties(0)["num_aicore"]

    def get_aivector_core_num(self) -> int:
        return self.get_device_properties(0)["num_vectorcore"]


class Driver:
    """What Triton asks a driver for, of a device that is simulated."""

    utils = Utilities()

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        return GPUTarget("npu", TARGET, 0)

    def get_benchmarker(self) -> Callable[..., Any]:
        """Times a launch, without its data unless it is lost without them, as one that divides by
        what it computes: all quantiles are the simulated milliseconds of one; infinity where
        buffers do not fit, which tuners take for a bad choice."""

        def timed(call: Callable[[], None], *, quantiles: Any = None, **options: Any) -> Any:
            milliseconds = math.inf
            with contextlib.suppress(NoRoom):
                try:
                    with timing():
                        call()
                except DeviceFault:
                    call()
                milliseconds = last.time_us / 1000
            return [milliseconds] * len(quantiles) if quantiles else milliseconds

        return timed


def _launched(kernel: Any, *args: Any, grid: launch.Grid, warmup: bool, **named: Any) -> Any:
    """In place of `JITFunction.run`."""
    for hook in kernel.pre_run_hooks:
        hook(*args, **named)
    if warmup:
        return None
    start = launch.time if TIMING.get() else launch.run
    last.found = start(kernel, grid, *args, **named)
    return last.found


TIMING = ContextVar("TIMING", default=False)
"""Whether launches are only timed."""


@contextmanager
def timing() -> Iterator[None]:
    """Inside, launches compute no data."""
    before = TIMING.set(True)
    try:
        yield
    finally:
        TIMING.reset(before)


@contextmanager
def active() -> Iterator[None]:
    """Inside, launches of Triton go to the simulated device.

    Raises:
        InputError: the extra is not installed.
    """
    restore = activate()
    try:
        yield
    finally:
        restore()


def activate() -> Callable[[], None]:
    """Launches of Triton go to the simulated device from now on.

    Returns:
        What undoes it.

    Raises:
        InputError: the extra is not installed.
    """
    tools()
    from triton.runtime.driver import driver
    from triton.runtime.jit import JITFunction

    before, known = JITFunction.run, driver.active
    JITFunction.run = _launched
    driver.set_active(Driver())

    def restore() -> None:
        JITFunction.run = before
        driver.set_active(known)

    return restore

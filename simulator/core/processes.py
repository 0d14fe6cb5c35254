"""Launches whose data several processes compute.

This process and workers, copies of it that `fork` makes, take the blocks of a launch one by one,
when the launches before it are complete, and compute what they write in a global memory that all
of them share. This one finds the times of the others' blocks too, and so the profile. A launch
whose scalar programs access memory may issue what depends on data: it runs here as a whole.

This is for programs without a fault. If anything is wrong, wherever it was found, the launches are
to be run again in this process alone: the first fault is the same each time.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context
from typing import Any, Final, Protocol

from davinci.errors import DeviceFault, InputError
from davinci.isa import cube, halves
from davinci.machine import Machine
from davinci.simulator.checks.block_races import BlockBytes, conflict, touched
from davinci.simulator.core.coupled import CoupledLaunch
from davinci.simulator.core.half_range import Lost
from davinci.simulator.core.launch import FreeCores, JoinedKernels
from davinci.simulator.timing import layout
from davinci.simulator.timing.profile import LaunchProfile

NATIVE: Final = (layout.LIBRARY, halves.CONVERSION, halves.ARITHMETIC, cube.LIBRARY)
"""Functions that computing data calls: compiled before workers start, which then all have them."""

METHOD: Final = "fork"
"""How workers start: nothing else gives them the compiled programs."""

LOOK_SECONDS = 1.0
"""After how long this process, when it waits for workers, looks whether they are there."""

PR_SET_PDEATHSIG = 1
"""The option of `prctl` that says which signal a process gets when its parent ends."""


MOST = 8
"""Processes that a command takes unless it is told: each learns all kernels for itself."""


def processors() -> int:
    """That this process may use, up to `MOST`; 1 where the host is no Linux."""
    if sys.platform != "linux":
        return 1
    return min(MOST, len(os.sched_getaffinity(0)))


class Host(Protocol):
    """The device, as this module needs it: of a coupled machine, with data."""

    cores: FreeCores
    clocks: FreeCores
    """Cores that find times only."""
    machine: Machine
    checks: bool

    def profile_of(self, launch: JoinedKernels, kept: Sequence[int]) -> list[LaunchProfile]:
        """Runs a launch as a whole."""

    def settle(self, launch: CoupledLaunch) -> list[LaunchProfile]:
        """The profiles of the kernels of a launch whose blocks have run."""


@dataclass(frozen=True)
class Computed:
    """What a worker found of a block besides its data.

    Attributes:
        launch, block: their numbers.
        lost: values that left the range of f16.
        touched: in global memory; None without checks.
    """

    launch: int
    block: int
    lost: Lost
    touched: BlockBytes | None


class SharedProgress:
    """Which block is next and which launches are complete: memory that the processes share."""

    def __init__(self, launches: Sequence[JoinedKernels]) -> None:
        self._launches = launches
        context = get_context(METHOD)
        self._changed = context.Condition()
        self._next = context.RawArray("q", len(launches))
        self._left = context.RawArray("q", [1 if x.alone else x.blocks for x in launches])
        self._complete = context.RawValue("q", 0)
        self._wrong = context.RawValue("b", 0)

    @property
    def wrong(self) -> bool:
        """Whether a process has found that something is."""
        return bool(self._wrong.value)

    def blocks(self, launch: int, look: Callable[[], None] = lambda: None) -> Iterator[int]:
        """Blocks of a launch that this process is to run, each complete when the next is asked for;
        `look` as in `await_turn`."""
        self.await_turn(launch, look)
        while not self.wrong:
            with self._changed:
                block = self._next[launch]
                self._next[launch] += 1
            if block >= self._launches[launch].blocks:
                return
            yield block
            self.finish(launch)

    def await_turn(self, launch: int, look: Callable[[], None] = lambda: None) -> None:
        """Waits until all before this launch are complete or something is wrong; `look` raises if
        that will never be."""
        with self._changed:
            while self._complete.value < launch and not self.wrong:
                if not self._changed.wait(LOOK_SECONDS):
                    look()

    def finish(self, launch: int) -> None:
        """A block of the launch, or all of one that runs alone, is complete."""
        with self._changed:
            self._left[launch] -= 1
            while self._complete.value < len(self._left) and not self._left[self._complete.value]:
                self._complete.value += 1
                self._changed.notify_all()

    def fail(self) -> None:
        """Something is wrong."""
        with self._changed:
            self._wrong.value = 1
            self._changed.notify_all()


class Workers:
    """The processes that compute data. Killed ones are found out by those who wait for them."""

    def __init__(self) -> None:
        self._processes: list[Any] = []
        self._results: list[connection.Connection] = []

    def start(self, work: Callable[[connection.Connection], None], count: int) -> None:
        """Starts so many."""
        context = get_context(METHOD)
        for _ in range(count):
            result, given = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(given,), daemon=True)
            process.start()
            given.close()  # so that a result ends with its worker
            self._processes.append(process)
            self._results.append(result)

    def look(self) -> None:
        """Looks for workers that were killed.

        Raises:
            InputError: there is one.
        """
        for process in self._processes:
            if process.exitcode:
                raise InputError(
                    "a process that computed data was killed",
                    where="simulation",
                    found=f"exit code {process.exitcode}",
                    hint="the host may be short of memory: use fewer processes (--processes)",
                )

    def results(self) -> list[Computed]:
        """What they have found, from all that came to an end; the others found something wrong."""
        found: list[Computed] = []
        waiting = list(self._results)
        while waiting:
            for ready in connection.wait(waiting):
                assert isinstance(ready, connection.Connection), "it waits for connections only"
                waiting.remove(ready)
                try:
                    found += ready.recv()
                except EOFError:
                    self._processes[self._results.index(ready)].join()
                    self.look()
        return found

    def close(self) -> None:
        """Ends them."""
        for process in self._processes:
            process.kill()
            process.join()
        for result in self._results:
            result.close()


@contextmanager
def opened(
    host: Host, launches: Sequence[JoinedKernels], order: SharedProgress, count: int
) -> Iterator[Workers]:
    """Workers for launches; none is left behind."""
    parent = os.getpid()

    def work(given: connection.Connection) -> None:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before
            os._exit(0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent
        gc.freeze()  # what is shared with the parent stays so
        found: list[Computed] = []
        try:
            for number, launch in enumerate(launches):
                if launch.alone:
                    continue
                coupled = CoupledLaunch(host.machine, launch, [0] * len(launch.kernels))
                for block in order.blocks(number):
                    core = coupled.compute(block, host.cores)
                    ranges = touched(core) if host.checks else None
                    found.append(Computed(number, block, core.lost, ranges))
            given.send(found)
        except BaseException:  # found again by the parent
            order.fail()
        finally:
            os._exit(0)  # without what the parent does at its end

    for library in NATIVE:
        library.prepare()
    workers = Workers()
    try:
        workers.start(work, count)
        yield workers
    finally:
        workers.close()


def run(
    host: Host, launches: Sequence[JoinedKernels], kept: Sequence[Sequence[int]], count: int
) -> list[list[LaunchProfile]] | None:
    """Runs launches in order.

    Args:
        kept: of each kernel of each launch, blocks whose rows are kept, the first ones.
        count: of processes, this one among them.

    Returns:
        The profiles of the kernels of each, or None if something is wrong: then memory holds what
        it may.

    Raises:
        InputError: a worker was killed.
        OSError: the host gives no processes, or no semaphores.
    """
    order = SharedProgress(launches)
    profiles: list[list[LaunchProfile]] = []
    ranges: defaultdict[int, dict[int, BlockBytes]] = defaultdict(dict)
    with opened(host, launches, order, count - 1) as workers:
        for number, launch in enumerate(launches):
            try:
                if launch.alone:
                    order.await_turn(number, workers.look)
                    profiles.append(host.profile_of(launch, kept[number]))
                    order.finish(number)
                    continue
                coupled = CoupledLaunch(host.machine, launch, kept[number])
                others = set(range(launch.blocks))
                for block in order.blocks(number, workers.look):
                    core = coupled.run(block, host.cores)
                    others.remove(block)
                    if host.checks:
                        ranges[number][block] = touched(core)
                for block in sorted(others):
                    coupled.run(block, host.clocks)
                profiles.append(host.settle(coupled))
            except DeviceFault:
                order.fail()
            if order.wrong:
                return None
        computed = workers.results()
    for found in computed:
        kernel, _ = launches[found.launch].of_block(found.block)
        profiles[found.launch][kernel].lost += found.lost
        if found.touched is not None:
            ranges[found.launch][found.block] = found.touched
    return None if order.wrong or any(map(conflict, ranges.values())) else profiles

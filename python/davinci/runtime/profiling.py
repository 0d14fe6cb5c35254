"""`with davinci.profile() as p:` what everything that runs inside takes, as one record.

    model = torch.compile(net, backend="davinci")
    with torch.no_grad(), davinci.profile() as p:
        model(x)
        model(y)
    print(p)                     # tables
    p.report("r.html")           # the page of npu-run --report
    p.trace("t.json")            # a timeline for Perfetto
    p.record["time_us"]          # the record of npu-run --json, and p.runs, run by run

A profile has the runs that begin and end while it is open, of any executable and in any thread, in
the order in which they end. Profiles may be nested: what runs inside both is in both. A run that
fails is in none. Every run begins with a launch by the host; the launches after it are queued.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from davinci.errors import InputError
from davinci.files import check_writable, write_atomically
from davinci.machine import Machine
from davinci.report import Kernel, ProgramFacts, Record, build
from davinci.simulator import LaunchProfile

if TYPE_CHECKING:
    from davinci.runtime.executable import Executable

Rows = Literal["none", "first", "all"]

WHERE = "davinci.profile"

LONGEST_KERNELS, WIDTH = 20, 160
"""Most kernels, and characters of a line, in the tables that `print` shows."""

_open: list[Profile] = []
_lock = threading.Lock()


@dataclass(frozen=True)
class ProfiledRun:
    """A run that ended while a profile was open.

    Attributes:
        executable: The executable that ran.
        launches: The profile of each of its launches.
        simulate_seconds: Seconds of the host that the simulation took.
        thread: The name of the thread that ran it.
    """

    executable: Executable
    launches: list[LaunchProfile]
    simulate_seconds: float
    thread: str

    @property
    def record(self) -> Record:
        """The record of this run alone."""
        exe = self.executable
        made = build(self.launches, exe.facts, exe.machine, exe.cores, exe.launching)
        return {**exe.details, **made, "simulate_seconds": self.simulate_seconds}


class Profile:
    """The runs that began and ended while it was open; `davinci.profile` makes one.

    Printed, it shows the tables of npu-run.

    Attributes:
        runs: The runs, a `ProfiledRun` each, in the order in which they ended.
        timeline: Which instructions leave a row in their launches, as of `Executable.run`.
    """

    def __init__(self, timeline: Rows) -> None:
        self.runs: list[ProfiledRun] = []
        self.timeline: Rows = timeline

    @property
    def launches(self) -> list[LaunchProfile]:
        """The launches of all runs, with the names that their kernels have in `record`."""
        return self._joined()[1]

    @property
    def record(self) -> Record:
        """The record of all runs, one after the other, as `--json` writes it, with `runs` beside.

        Raises:
            InputError: nothing has run, or runs were on different machines.
        """
        facts, launches = self._joined()
        machine, launching = self._common()
        cores = max(run.executable.cores for run in self.runs)
        made = build(launches, facts, machine, cores, launching)
        seconds = sum(run.simulate_seconds for run in self.runs)
        shared = self._details()
        return {**shared, **made, "simulate_seconds": seconds, "runs": list(map(_line, self.runs))}

    def report(self, path: str) -> None:
        """Writes all runs as one page of HTML.

        Raises:
            InputError: as of `record`, or the file cannot be written.
        """
        from davinci.report.page import as_html

        self._write(path, lambda machine, _: as_html(machine, self.record, self.launches))

    def trace(self, path: str) -> None:
        """Writes a timeline of all runs for Perfetto; errors as of `report`."""
        from davinci.report.trace import trace_json

        facts, launches = self._joined()
        self._write(path, lambda machine, how: trace_json(machine, launches, how, facts))

    def __str__(self) -> str:
        """The tables that npu-run prints."""
        if not self.runs:
            return repr(self)
        from rich.console import Console

        from davinci.report.tables import print_tables

        text = io.StringIO()
        print_tables(self.record, Console(file=text, width=WIDTH), LONGEST_KERNELS)
        return text.getvalue().rstrip()

    def __repr__(self) -> str:
        launches = sum(len(run.launches) for run in self.runs)
        return f"<davinci.Profile of {len(self.runs)} runs, {launches} launches>"

    def _write(self, path: str, text: Callable[[Machine, str], str]) -> None:
        check_writable(path)
        write_atomically(path, text(*self._common()).encode())

    def _common(self) -> tuple[Machine, str]:
        """The machine of all runs, and how they launch kernels."""
        if not self.runs:
            raise InputError(
                "nothing has run",
                where=WHERE,
                expected="a run of an executable inside the with block",
                hint="run a model once more: torch.compile compiles when it first runs",
            )
        found = [(run.executable.machine, run.executable.launching) for run in self.runs]
        if any(other != found[0] for other in found):
            names = dict.fromkeys(f"{machine.name}, {how}" for machine, how in found)
            raise InputError(
                "runs on different machines make no common record",
                where=WHERE,
                found="; ".join(names),
                hint="each run has its own: profile.runs[0].record",
            )
        return found[0]

    def _details(self) -> Record:
        """What the executables' details have in common; of models the names of all."""
        every = [run.executable.details for run in self.runs]
        shared = {k: v for k, v in every[0].items() if all(d.get(k) == v for d in every)}
        names = dict.fromkeys(str(details.get("model", "")) for details in every)
        return {**shared, "model": ", ".join(filter(None, names))}

    def _joined(self) -> tuple[ProgramFacts, list[LaunchProfile]]:
        """The facts of all executables as those of one program, and all launches.

        Kernels of one name that are not the same are told apart by a number behind it.
        """
        kernels: dict[str, Kernel] = {}
        scopes: dict[str, str] = {}
        launches: list[LaunchProfile] = []
        names: dict[int, Mapping[str, str]] = {}
        weights = arena = unplanned = least = 0
        for run in self.runs:
            facts = run.executable.facts
            if id(run.executable) not in names:
                names[id(run.executable)] = _named_apart(facts.kernels, kernels)
                scopes |= facts.scopes
                weights += facts.weights_bytes
                arena += facts.arena_bytes
                unplanned += facts.arena_unplanned_bytes
                least += facts.arena_lower_bound_bytes
            name_of = names[id(run.executable)]
            launches += [replace(each, name=name_of[each.name]) for each in run.launches]
        # Numbers of launches are those of one run.
        values = self.runs[0].executable.facts.arena if len(self.runs) == 1 else ()
        return ProgramFacts(kernels, weights, arena, unplanned, least, scopes, values), launches


def _named_apart(own: Mapping[str, Kernel], known: dict[str, Kernel]) -> dict[str, str]:
    """Adds kernels to those that are known; gives the name that each has there."""
    found = {}
    for name, kernel in own.items():
        free, number = name, 1
        while known.get(free, kernel) != kernel:
            number += 1
            free = f"{name}_{number}"
        known[free] = kernel
        found[name] = free
    return found


def _line(run: ProfiledRun) -> Record:
    """What `runs` of a record says of a run."""
    record = run.record
    keys = ("model", "total_cycles", "time_us", "simulate_seconds")
    line = {key: record.get(key, "") for key in keys}
    return {**line, "launches": len(run.launches), "thread": run.thread}


@contextmanager
def profile(timeline: Rows = "first") -> Iterator[Profile]:
    """Collects the runs of all executables inside a `with` block, PyTorch's included::

        with davinci.profile() as p:
            executable.run(x)
        print(p)
        p.report("r.html")

    Args:
        timeline: what reports and traces draw: the "first" launch of each kernel and its first
            block, "all" of them, or "none".

    Raises:
        InputError: no such `timeline`.
    """
    if timeline not in ("none", "first", "all"):
        raise InputError(
            "bad value", where="timeline", found=repr(timeline), expected="none, first, all"
        )
    made = Profile(timeline)
    with _lock:
        _open.append(made)
    try:
        yield made
    finally:
        with _lock:
            _open[:] = [each for each in _open if each is not made]


def watching() -> list[Profile]:
    """The profiles that are open."""
    with _lock:
        return list(_open)


def note(
    profiles: list[Profile],
    executable: Executable,
    launches: list[LaunchProfile],
    simulate_seconds: float,
) -> None:
    """Adds a run that has ended to those of `profiles` that are still open."""
    made = ProfiledRun(executable, launches, simulate_seconds, threading.current_thread().name)
    with _lock:
        for each in profiles:
            if any(each is other for other in _open):
                each.runs.append(made)

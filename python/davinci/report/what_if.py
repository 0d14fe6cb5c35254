"""Times of a run on machines that are faster somewhere: its launches are timed again.

The simulator is deterministic: what programs issue does not depend on times, so the answers are
those of a run with a changed machine file, for the same program. A change is
`[kernel=NAME:]WHAT=HOW`:

    mte2.port=2x            a number of the machine file, by its key or the beginning of it
    flag_cycles=0           the same, by the last part of its key
    gm=2x                   all rates of a section
    launch=2x               all times of a section that has no rates
    v=2x                    all instructions of a pipe; all=2x: those of all pipes
    kernel=matmul_3:v=2x    the same in one kernel only

`2x` is twice as fast: rates are multiplied, times divided (numbers that a machine file
has only as whole ones are rounded).
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from davinci.errors import InputError, did_you_mean
from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.machine.reader import parse
from davinci.report.launching import HOST, cycles_of, gap_us, gaps_us, launches_of, link_waits_us
from davinci.simulator import LaunchProfile, Tables
from davinci.simulator.timing.retime import IssuedStream

Record = dict[str, Any]

TIMES = ("_cycles", "_us")
RATES = ("_per_cycle", "stall_bytes")
"""How keys end that a change of times may touch: of what takes less if it is less, and if it is
more."""

TABLES = ("vector.fixed_cycles_of", "vector.cycles_per_repeat", "gm.same_line_percent")
"""Further keys of the first kind; all keys in tables of that name."""

KERNEL = "kernel="
WHERE = "--what-if"
TWICE = "2x"


@dataclass(frozen=True)
class MachineChange:
    """One change.

    Attributes:
        text: as the user wrote it.
        kernel: the only one that it is for; "" for all.
        machine: with it.
        faster: by pipe, how many times as fast its instructions are.
    """

    text: str
    kernel: str
    machine: Machine
    faster: Mapping[int, float] = field(default_factory=dict)


def answers(
    machine: Machine, launches: Sequence[LaunchProfile], question: str, launching: str
) -> list[Record]:
    """The gain of each change, the largest first; of several ones also that of all together.

    Args:
        machine: on which they ran.
        launches: of a run.
        launching: how, see `launching.gaps_us`.
        question: changes, separated by commas; or "all": every rate and time of the machine file,
            every pipe, and every pipe of every kernel, twice as fast or without the cycles.

    Raises:
        InputError: a change that cannot be read or made, an unknown kernel.
    """
    kernels = list(dict.fromkeys(launch.name for launch in launches))
    if question.strip() == "all":
        texts = list(everything(machine, launches))
    else:
        texts = [text.strip() for text in question.split(",")]
    changes = [read(text, machine, kernels) for text in texts]
    retimed = Retimed(machine, launches, launching)
    found = [retimed.answer(change.text, [change]) for change in changes]
    found.sort(key=lambda row: -row["saved_us"])
    if question.strip() == "all":
        return [row for row in found if row["saved_us"] > 0]
    return [*found, retimed.answer("all of them", changes)] if len(changes) > 1 else found


def check(machine: Machine, question: str, kernels: Collection[str] | None = None) -> None:
    """Checks a question before there is a run.

    Args:
        kernels: names of all kernels; None where they are not known yet.

    Raises:
        InputError: a change that cannot be read or made, an unknown kernel.
    """
    if question.strip() != "all":
        for text in question.split(","):
            read(text.strip(), machine, kernels)


def read(text: str, machine: Machine, kernels: Collection[str] | None) -> MachineChange:
    """Reads a change.

    Args:
        kernels: names of all kernels; None where they are not known yet.

    Raises:
        InputError: it cannot be read or made.
    """
    kernel, rest = "", text
    if text.startswith(KERNEL):
        kernel, colon, rest = text.removeprefix(KERNEL).partition(":")
        if not colon or (kernels is not None and kernel not in kernels):
            raise InputError(
                "no such kernel",
                where=WHERE,
                found=repr(kernel),
                expected=", ".join(kernels or ()),
                hint=did_you_mean(kernel, kernels or ()) or "kernel=NAME:v=2x",
            )
    what, equals, how = rest.partition("=")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)(x?)", how)
    if not equals or match is None or (match[2] and not float(match[1])):
        raise InputError(
            "no change of times",
            where=WHERE,
            found=repr(text),
            expected="WHAT=2x (twice as fast) or WHAT=NUMBER",
            hint="mte2.port=2x, flag_cycles=0, v=2x, kernel=NAME:v=2x",
        )
    number, times = float(match[1]), bool(match[2])
    if what.upper() in Pipe.__members__:
        if not times:
            raise InputError(
                "a pipe has no number", where=WHERE, found=repr(text), expected=f"{what}=2x"
            )
        pipes = Pipe if what.upper() == Pipe.ALL.name else [Pipe[what.upper()]]
        return MachineChange(text, kernel, machine, {int(pipe): number for pipe in pipes})
    data = machine.model_dump()
    exact, whole = dict[Path, float](), dict[Path, float]()
    for key, path in keys_of(what, data).items():
        old: Any = functools.reduce(operator.getitem, path, data)
        new = number
        if times:
            new = old * number if key.endswith(RATES) else old / number
        exact[path], whole[path] = new, round(new) if isinstance(old, int) else new
    try:
        return MachineChange(text, kernel, with_values(data, exact, text))
    except InputError:
        return MachineChange(text, kernel, with_values(data, whole, text))


def with_values(data: dict[str, Any], values: Mapping[Path, float], text: str) -> Machine:
    """The machine of a file's data with other values, which `text` asks for.

    Raises:
        InputError: the machine file may not have them.
    """
    for (*names, last), new in values.items():
        functools.reduce(operator.getitem, names, data)[last] = new
    return parse(data, f"{WHERE} {text}")


Path = tuple[str, ...]


def keys_of(what: str, data: Mapping[str, Any]) -> dict[str, Path]:
    """Keys of a machine's times and rates that a word names, and where they are in its data.

    Raises:
        InputError: none, or several that are neither all rates nor all times of a section.
    """
    keys = dict(timing_keys(data))
    if what in data and what not in keys:
        mine = {k: p for k, p in keys.items() if p[0] == what}
        if mine:
            return {k: p for k, p in mine.items() if k.endswith(RATES)} or mine
    for found in (
        {key: path for key, path in keys.items() if key == what},
        {key: path for key, path in keys.items() if path[-1] == what},
        {key: path for key, path in keys.items() if "." in what and key.startswith(what)},
    ):
        if len(found) == 1:
            return found
        if found:
            raise InputError(
                "several keys", where=WHERE, found=repr(what), expected=" or ".join(found)
            )
    raise InputError(
        "no time or rate of the machine file",
        where=WHERE,
        found=repr(what),
        expected="a pipe, a section, or a key that ends with _cycles, _us or _per_cycle",
        hint=did_you_mean(what, keys),
    )


def timing_keys(data: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[str, Path]]:
    """Keys of the numbers that change times and nothing of what a program issues."""
    for name, value in data.items():
        place = (*path, name)
        key = ".".join(place)
        if isinstance(value, dict):
            yield from timing_keys(value, place)
        elif isinstance(value, (int, float)) and (
            key.endswith((*TIMES, *RATES)) or key.startswith(TABLES)
        ):
            yield key, place


def everything(machine: Machine, launches: Sequence[LaunchProfile]) -> Iterator[str]:
    """Lists changes that say what each resource costs."""
    data = machine.model_dump()
    pipes = {pipe for core in machine.core_types.values() for pipe in core.pipes}
    for pipe in sorted(pipes):
        yield f"{pipe.lower()}={TWICE}"
    for section in ("gm", "l2"):
        yield f"{section}={TWICE}"
    for key, (section, *_, last) in timing_keys(data):
        if section in ("gm", "l2") or key.startswith(TABLES):
            continue
        if section == "host_link" and not any(launch.fetches for launch in launches):
            continue
        # Nothing of these takes no time.
        positive = key.endswith(RATES) or section == "scalar"
        if not (section == "scalar" and data[section][last] == 1):
            yield f"{key}={TWICE if positive else 0}"
    for kernel in dict.fromkeys(launch.name for launch in launches):
        yield f"{KERNEL}{kernel}:all={TWICE}"
        for pipe in sorted(pipes):
            yield f"{KERNEL}{kernel}:{pipe.lower()}={TWICE}"


class Retimed:
    """Times the launches of a run again."""

    def __init__(self, machine: Machine, launches: Sequence[LaunchProfile], launching: str) -> None:
        self._machine, self._launches = machine, launches_of(launches)
        self._launching = launching
        self._gaps = sum(gaps_us(machine, launches, launching))
        self._cycles = sum(map(cycles_of, self._launches))
        self._tables: dict[tuple[int, str, tuple[tuple[int, float], ...]], Tables] = {}

    def answer(self, text: str, changes: Sequence[MachineChange]) -> Record:
        """Returns the gain of changes that are made together.

        Returns:
            `change`, `cycles` of all launches with it, `saved_cycles`, `saved_us` with those of
            launching, and `saved_ratio` of the time.
        """
        found = [self._launch(number, changes) for number in range(len(self._launches))]
        cycles, machine = sum(taken for taken, _ in found), self._machine
        times = [taken / machine.clock_mhz for taken, _ in found]
        gaps = [gap for _, gap in found]
        everywhere = [change for change in changes if not change.kernel]
        changed = combined(machine, everywhere)[0] if everywhere else machine
        waits = link_waits_us(changed, self._launches, times, gaps)
        time = self._cycles / machine.clock_mhz + self._gaps
        new = sum(times) + sum(gaps) + sum(waits)
        return {
            "change": text,
            "cycles": cycles,
            "saved_cycles": self._cycles - cycles,
            "saved_us": time - new,
            "saved_ratio": (time - new) / time if time else 0.0,
        }

    def _launch(self, number: int, changes: Sequence[MachineChange]) -> tuple[int, float]:
        """Cycles of a launch with those changes that are for its kernels, and us to launch it."""
        launch = self._launches[number]
        by_host = self._launching == HOST or number == 0 or launch[0].begins_run
        recording = launch[0].recording
        assert recording is not None, "launches of a device are recorded"
        mine = [[x for x in changes if x.kernel in ("", kernel.name)] for kernel in launch]
        if not any(mine):
            return cycles_of(launch), gap_us(self._machine, launch, by_host)
        changed = [combined(self._machine, own) for own in mine]
        texts = [m.model_dump_json() if m != self._machine else "" for m, _ in changed]

        def setting(stream: IssuedStream) -> tuple[Machine, Tables]:
            machine, faster = changed[stream.kernel]
            if not mine[stream.kernel]:
                return machine, stream.tables
            key = id(stream.tables), texts[stream.kernel], tuple(sorted(faster.items()))
            found = self._tables.get(key)
            if found is None:
                found = self._tables[key] = stream.tables.changed(machine, faster)
            return machine, found

        gap = min(gap_us(machine, launch, by_host) for machine, _ in changed)
        return recording.cycles(setting), gap


def combined(
    machine: Machine, changes: Sequence[MachineChange]
) -> tuple[Machine, dict[int, float]]:
    """A machine with several changes, and how much faster its pipes are."""
    faster: dict[int, float] = {}
    for change in changes:
        for pipe, times in change.faster.items():
            faster[pipe] = faster.get(pipe, 1) * times
    changed = [change.machine for change in changes if change.machine != machine]
    if len(changed) < 2:
        return (changed or [machine])[0], faster
    data, old = machine.model_dump(), machine.model_dump()
    for other in changed:
        overlay(data, old, other.model_dump())
    return parse(data, WHERE), faster


def overlay(data: dict[str, Any], old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Puts new values into the data of a machine file."""
    for name, value in new.items():
        if isinstance(value, dict):
            overlay(data[name], old[name], value)
        elif value != old[name]:
            data[name] = value

"""Mutation of programs for cube and vector cores, of AscendNPU-IR and of our own: flags, barriers
and flags between cores removed or moved.

A kernel runs once with every check on, and what each of its cores issues is kept. A mutant lacks
one of these instructions, a flag with the wait that it answers, or all sets and waits of a flag
between cores, or has one instruction at another place. The simulator runs it, and `happens_before`
says independently whether the machine still orders what meets in memory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.isa.core import Pipe, Space
from davinci.simulator import JoinedKernels, KernelCall
from davinci.simulator.core.host_threads import one_thread
from fuzz.happens_before import Order
from fuzz.interleaving_fuzz import early
from fuzz.recorded_launches import RecordedLaunch
from fuzz.stream_steps import AWAIT, SIGNAL, SYNC, Conflicts, Step, decode, matched

OTHER_RESULTS = "ordered, other results"
OUTCOMES = (
    "reported",
    "redundant",
    "ordered by an early wait",
    OTHER_RESULTS,
    "escaped",
    "false alarm",
)
MOVES = (-3, -1, 1, 3)
"""By how many instructions one is moved."""

Program = tuple[int, ...]
"""Numbers of the instructions of a core, in order."""


class MutatedLaunch:
    """Judges the mutants of a launch."""

    def __init__(self, launch: RecordedLaunch) -> None:
        self.launch, self.where = launch, list(launch.streams)
        self.streams = list(launch.streams.values())
        self.steps = [decode(records, core) for core, records in enumerate(self.streams)]
        machine = machines.load("ascend910b")
        self.sequential = [Pipe[name] for name in machine.sync.sequential_pipes]
        self.places = [seat.place for seat in self.where]
        self.conflicts = Conflicts([step for steps in self.steps for step in steps])
        self.whole = [tuple(range(len(steps))) for steps in self.steps]

    def fault(self, programs: Sequence[Program]) -> str:
        """What the simulator says of these programs, "" if nothing."""
        rows = {
            (seat.kind, seat.block, seat.sub_block): records[list(program)]
            for seat, records, program in zip(self.where, self.streams, programs, strict=True)
        }

        def replay(kind: str) -> Any:
            def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
                # The scalar unit's stores are not in the records.
                core.memory(Space.UB).written[:] = True
                core.consume(rows[kind, block, core.sub_block])

            return run

        kinds = {seat.kind: replay(seat.kind) for seat in self.where}
        blocks, foreign = self.launch.blocks, self.launch.foreign
        call = KernelCall("k", kinds, (), blocks, (), alone=True, foreign=foreign)
        try:
            with one_thread():
                self.launch.device.profile_of(JoinedKernels((call,)), [0])
        except DeviceFault as fault:
            return str(fault)
        return ""

    def sound(self, programs: Sequence[Program]) -> bool:
        """Whether the order that is worked out independently finds nothing wrong."""
        steps = [step for part in self.parts(programs) for step in part]
        order = Order(steps, self.sequential, places=self.places, queued=self.launch.foreign)
        return order.sound(Conflicts(steps, known=self.conflicts))

    def parts(self, programs: Sequence[Program]) -> list[list[Step]]:
        return [
            [steps[i] for i in program] for steps, program in zip(self.steps, programs, strict=True)
        ]

    def outcome(self, programs: Sequence[Program]) -> tuple[str, str]:
        """One of `OUTCOMES`, and what the simulator said."""
        said, sound = self.fault(programs), self.sound(programs)
        if bool(said) != sound:
            return ("reported" if said else "redundant"), said
        if said and any(map(early, self.parts(programs))):
            return "ordered by an early wait", said
        return ("false alarm" if said else "escaped"), said

    def mutants(self) -> Iterator[tuple[str, Callable[[], list[Program]]]]:
        """All mutants of the kernel: what is removed or moved in each, and what makes it."""
        between: dict[int, set[tuple[int, int]]] = defaultdict(set)
        for core, steps in enumerate(self.steps):
            for i, step in enumerate(steps):
                if step.name in (SIGNAL, AWAIT):
                    between[step.values["flag"]].add((core, i))
                if step.name not in (*SYNC, SIGNAL, AWAIT):
                    continue
                yield f"{step.name} removed", partial(self.without, {(core, i)})
                for by in MOVES:
                    if 0 <= i + by < len(steps):
                        yield f"{step.name} moved", partial(self.moved, core, i, i + by)
            for pair in matched(self.streams[core].tolist()):
                yield "flag removed", partial(self.without, {(core, i) for i in pair})
        for flag in between.values():
            yield "flag between cores removed", partial(self.without, flag)

    def without(self, left_out: set[tuple[int, int]]) -> list[Program]:
        return [
            tuple(i for i in program if (core, i) not in left_out)
            for core, program in enumerate(self.whole)
        ]

    def moved(self, core: int, i: int, to: int) -> list[Program]:
        programs = list(self.whole)
        order = list(programs[core])
        order.insert(to, order.pop(i))
        programs[core] = tuple(order)
        return programs


@dataclass
class HivmOutcomes:
    """Counts of the verdicts on the mutants of some kernels.

    Attributes:
        counts: (kind, one of `OUTCOMES`) -> number.
        messages: first words of what the simulator said -> number.
        wrong: a line for each escape and false alarm, and for kernels that are reported as they
            are.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    kernels: int = 0
    instructions: int = 0

    @property
    def mutants(self) -> int:
        return sum(self.counts.values())

    def total(self, outcome: str) -> int:
        return sum(count for (_, name), count in self.counts.items() if name == outcome)


def judge(judged: MutatedLaunch, outcomes: HivmOutcomes, every: int = 1) -> None:
    """Judges a launch as it is, and each `every`th of its mutants."""
    name = judged.launch.name
    outcomes.kernels += 1
    outcomes.instructions += sum(map(len, judged.whole))
    found, said = judged.outcome(judged.whole)
    if found != "redundant":
        outcomes.wrong.append(f"{name} as it is: {found}: {said}")
    for kind, made in islice(judged.mutants(), 0, None, every):
        note(outcomes, name, kind, *judged.outcome(made()))


def note(outcomes: HivmOutcomes, name: str, kind: str, found: str, said: str) -> None:
    """Counts a mutant of a launch, what it was found to be, and what the simulator said."""
    outcomes.counts[kind, found] += 1
    if said:
        outcomes.messages[called(said)] += 1
    if found in ("escaped", "false alarm"):
        outcomes.wrong.append(f"{name}, {kind}: {found}: {said}")


def called(message: str) -> str:
    """What kind of fault a message is about."""
    for name in ("race between cores", "race between blocks", "race", "deadlock", "left set"):
        if name in message:
            return name
    return "set twice" if "set twice" in message else "other"


def table(outcomes: HivmOutcomes) -> list[str]:
    """A line for each kind of mutants."""
    kinds = sorted({kind for kind, _ in outcomes.counts})
    heads = ("mutants", *OUTCOMES)
    rows = {"": heads}
    for kind in [*kinds, "all"]:
        numbers = [
            sum(n for (k, o), n in outcomes.counts.items() if o == name and kind in (k, "all"))
            for name in OUTCOMES
        ]
        rows[kind] = tuple(map(str, (sum(numbers), *numbers)))
    first = max(map(len, rows))
    return [
        f"{title:<{first}}" + "".join(f"  {x:>{len(h)}}" for x, h in zip(row, heads, strict=True))
        for title, row in rows.items()
    ]

"""Holds the simulator's verdict on random programs against random interleavings of them.

A program without a reported fault must give the bytes that the simulator computed in every
interleaving, and none may get stuck. For a program with a reported race an interleaving is looked
for that gives other bytes, or at least one in which the two accesses come the other way round: two
writes may write the same bytes, or bytes that are overwritten later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from davinci.isa.core import Pipe, Space
from fuzz.happens_before import Order, Place
from fuzz.interleaving import Bytes, Run, Window, event_of
from fuzz.random_cores import CoresPool, Team, seats
from fuzz.random_programs import Pool, Writer
from fuzz.stream_steps import Conflicts, Event, Step

RACE = re.compile(
    r"kernel random, (?P<core>[^,]+), instruction #(?P<second>\d+) .*"
    r"race: it (?P<does>reads|writes) .*"
    r"which #(?P<first>\d+) .* (?P<did>reads|writes), without an order"
)
CORES_RACE = re.compile(
    r"race between cores: (?P<core>AI.+) (?P<does>reads|writes) GM .* \(#(?P<second>\d+) .*\), "
    r"which (?P<other>AI.+) (?P<did>reads|writes) \(#(?P<first>\d+) .*, without an order"
)

OTHERS = (
    "race between blocks",
    "deadlock",
    "left set",
    "set again",
    "set twice",
    "either order",
    "nobody receives",
)
"""Faults that are no races of two accesses."""

SHAPES = (
    (("AIC", "AIV"), 1),
    (("AIC", "AIV"), 2),
    (("AIV",), 4),
    (("AIC",), 3),
)
"""Kinds of cores and blocks of launches on a split machine."""

Memory = Mapping[Space, Bytes]


@dataclass(frozen=True)
class Launch:
    """Programs that run at the same time.

    Attributes:
        names: of the cores, as in messages.
        memories: of each core at the start.
        places: of the cores of a split machine, if they have flags between them.
    """

    programs: Sequence[Sequence[Step]]
    names: Sequence[str]
    memories: Sequence[Mapping[Space, Window]]
    places: Sequence[Place] = ()

    def sound(self, sequential: Iterable[Pipe]) -> bool:
        """Whether the order worked out independently finds nothing wrong; blocks: with each."""
        if self.places:
            together = [[step for steps in self.programs for step in steps]]
        else:
            together = [list(steps) for steps in self.programs]
        return all(
            Order(steps, sequential, places=self.places).verdict(Conflicts(steps)).sound
            for steps in together
        )

    def text(self, what: str) -> str:
        """The programs, after what is to be said of them."""
        lines = [what]
        for name, steps in zip(self.names, self.programs, strict=True):
            for i, step in enumerate(steps):
                if step.name != "set_va_reg":
                    lines.append(
                        f"    {name} #{i} {step.pipe.name} {step.record.mnemonic} {step.values}"
                    )
        return "\n".join(lines)


@dataclass
class Tally:
    """Numbers of programs.

    Attributes:
        counts: by verdict of the simulator and what the interleavings showed.
        compared: programs whose bytes were compared with the simulator's.
        escapes: programs without a reported fault that went wrong in some interleaving.
        false_alarms: programs with a reported race that no interleaving showed, although the order
            worked out independently says that nothing is missing.
        unexplained: those where it says that something is missing.
    """

    counts: Counter[str] = field(default_factory=Counter)
    programs: int = 0
    compared: int = 0
    interleavings: int = 0
    instructions: int = 0
    escapes: list[str] = field(default_factory=list)
    false_alarms: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        return Tally(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def numbers(self) -> list[int]:
        """As `HEADINGS` names them."""
        sound = sum(n for text, n in self.counts.items() if text.startswith("no fault reported"))
        ends = map(len, (self.escapes, self.false_alarms, self.unexplained))
        return [self.programs, self.interleavings, sound, self.programs - sound, *ends]


HEADINGS = (
    "programs",
    "interleavings",
    "no fault",
    "fault",
    "escapes",
    "false alarms",
    "not shown",
)
WIDTHS = tuple(len(heading) + 2 for heading in HEADINGS)


def table(tallies: Mapping[str, Tally]) -> list[str]:
    """A line for each, one for all together, and what the faults were."""
    together = Tally()
    for tally in tallies.values():
        together = together.plus(tally)
    rows: list[tuple[str, Sequence[int | str]]] = [("", HEADINGS)]
    rows += [(name, tally.numbers()) for name, tally in {**tallies, "together": together}.items()]
    lines = [
        f"{name:<38}" + "".join(f"{cell:>{w}}" for cell, w in zip(cells, WIDTHS, strict=True))
        for name, cells in rows
    ]
    lines.append(f"{together.instructions} instructions; bytes also those of the simulator:")
    lines[-1] += f" {together.compared} programs"
    return lines + [f"  {name:<70}{count:>8}" for name, count in sorted(together.counts.items())]


def early(steps: Sequence[Step]) -> bool:
    """Whether a wait precedes its set in program order. What lies between runs in another order
    than the simulator computes it, so it reports conflicts there although the machine orders them.
    """
    balance: Counter[Event] = Counter()
    for step in steps:
        if step.name in ("set_flag", "wait_flag"):
            balance[step.event] += 1 if step.name == "set_flag" else -1
            if balance[step.event] < 0:
                return True
    return False


def difference(first: Bytes, second: Bytes) -> str:
    """Where two memories differ, "" if nowhere.

    NaNs of one width count as equal: NumPy lets the layout of arrays decide which payload and sign
    of two NaN operands a result has.
    """
    same = first == second
    for dtype in (np.float16, np.float32):
        a, b = first.view(dtype), second.view(dtype)
        same |= np.repeat(np.isnan(a) & np.isnan(b), a.itemsize)
    if same.all():
        return ""
    at = int(np.argmin(same)) // 4 * 4
    return f"{at:#x}: {first[at : at + 4].tobytes().hex()} {second[at : at + 4].tobytes().hex()}"


class Fuzzer:
    """Random programs on one machine from one seed."""

    def __init__(
        self,
        machine: str,
        kind: str,
        seed: int,
        clean_runs: int,
        race_runs: int,
        tries: int = 100,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._pool = Pool(machine, kind, self._rng, tries)
        self._split = self._pool.device.machine.split
        self._kind = kind
        self._judge = Judge(self._pool, self._rng, clean_runs, race_runs)
        self.single, self.blocks = Tally(), Tally()

    def one_block(self) -> None:
        """One more program for one block."""
        rng, pool = self._rng, self._pool
        scalar = bool(rng.integers(2))
        rows = Writer(pool, rng, int(rng.integers(4, 16)), scalar).rows
        verdict = pool.simulate([rows])
        memory = {space: pool.memory(space).copy() for space in pool.memories}
        steps = pool.steps(rows)
        exact = not any(step.name == "scalar_access" for step in steps)
        self._judge.judge(self.single, self._launch([steps]), verdict, memory if exact else {})

    def two_blocks(self) -> None:
        """One more pair of programs for two blocks; each by itself is mostly sound."""
        rng, pool = self._rng, self._pool
        programs = [Writer(pool, rng, int(rng.integers(1, 5)), scalar=False).rows for _ in range(2)]
        verdict = pool.simulate(programs)
        launch = self._launch([pool.steps(rows) for rows in programs])
        self._judge.judge(self.blocks, launch, verdict, {})

    def _launch(self, programs: Sequence[Sequence[Step]]) -> Launch:
        if self._split:
            names = [str(seat) for seat in seats([self._kind], len(programs))]
        else:
            names = [f"block {block}" for block in range(len(programs))]
        return Launch(programs, names, [self._pool.memories] * len(programs))


class CoresFuzzer:
    """Random programs for the cores of a split machine, with flags between them."""

    def __init__(self, seed: int, clean_runs: int, race_runs: int, tries: int = 100) -> None:
        self._rng = np.random.default_rng(seed)
        self._pool = CoresPool(self._rng, tries)
        self._judge = Judge(self._pool, self._rng, clean_runs, race_runs)
        self.tally = Tally()

    def launch(self) -> None:
        """One more launch of several cores."""
        rng, pool = self._rng, self._pool
        where = list(seats(*SHAPES[rng.integers(len(SHAPES))]))
        members = Team(pool, rng, where, int(rng.integers(3, 14))).members
        verdict = pool.simulate(where, [member.rows for member in members])
        launch = Launch(
            [member.steps() for member in members],
            [str(seat) for seat in where],
            [pool.pools[seat.kind].memories for seat in where],
            [seat.place for seat in where],
        )
        self._judge.judge(self.tally, launch, verdict, {Space.GM: pool.gm_bytes()})


class Judge:
    """Holds a verdict of the simulator against interleavings."""

    def __init__(
        self, pool: Pool | CoresPool, rng: np.random.Generator, clean_runs: int, race_runs: int
    ) -> None:
        self._pool, self._rng = pool, rng
        self._clean_runs, self._race_runs = clean_runs, race_runs

    def _run(
        self, launch: Launch, straight: bool = False, held_back: tuple[int, str, int] | None = None
    ) -> Run:
        pool, programs = self._pool, launch.programs
        return Run(
            programs, launch.memories, pool.sequential, pool.depth, self._rng, straight,
            launch.places, held_back,
        )  # fmt: skip

    def judge(self, tally: Tally, launch: Launch, verdict: str, memory: Memory) -> None:
        """Runs a launch in random interleavings.

        Args:
            tally: what is counted.
            verdict: the fault, or "".
            memory: what the simulator computed on the first core, where that is known.
        """
        tally.programs += 1
        tally.instructions += sum(map(len, launch.programs))
        straight = self._run(launch, straight=True)
        if memory and not verdict:
            tally.compared += 1
            for space, data in memory.items():
                if other := difference(data, straight.cores[0].memories[space].data[: data.size]):
                    what = f"other bytes than the simulator in {space.name}: {other}"
                    tally.escapes.append(launch.text(what))
        if not verdict:
            self._clean(tally, launch, straight)
        elif match := RACE.search(verdict) or CORES_RACE.search(verdict):
            self._race(tally, launch, straight, match)
        else:
            self._other(tally, launch, straight, verdict)

    def _clean(self, tally: Tally, launch: Launch, straight: Run) -> None:
        for _ in range(self._clean_runs):
            tally.interleavings += 1
            run = self._run(launch)
            if run.outcome != straight.outcome or len(run.outcome) == 1:
                what = run.outcome[0] if len(run.outcome) == 1 else "other bytes"
                tally.counts[f"no fault reported: ESCAPED, {what!s}"] += 1
                tally.escapes.append(launch.text(str(what)))
                return
        tally.counts["no fault reported: the same bytes in every interleaving"] += 1

    def _race(self, tally: Tally, launch: Launch, straight: Run, match: re.Match[str]) -> None:
        core = launch.names.index(match["core"])
        other = launch.names.index(match.groupdict().get("other", match["core"]))
        first, second = (other, int(match["first"])), (core, int(match["second"]))
        did, does = match["did"], match["does"]
        if len(straight.outcome) == 1:
            tally.counts[f"race: and in every interleaving {straight.outcome[0]!s}"] += 1
            return
        seen = set()
        for number in range(self._race_runs):
            tally.interleavings += 1
            # Half of the time the first of the two accesses comes as late as it can.
            step = launch.programs[first[0]][first[1]]
            held_back = (first[0], event_of(step, did), first[1]) if number % 2 else None
            run = self._run(launch, held_back=held_back)
            if run.outcome != straight.outcome:
                tally.counts["race: other bytes in some interleaving"] += 1
                return
            seen.add(run.before(first, did, second, does))
        if len(seen) == 2 or (core == other and False in seen):
            tally.counts["race: the same bytes, but the accesses came in both orders"] += 1
            return
        if any(map(early, launch.programs)):
            tally.counts["race: ordered by a wait that precedes its set in the program"] += 1
            return
        tally.counts["race: never seen the other way round"] += 1
        sound = launch.sound(self._pool.sequential)
        (tally.false_alarms if sound else tally.unexplained).append(launch.text(match[0]))

    def _other(self, tally: Tally, launch: Launch, straight: Run, verdict: str) -> None:
        what = next(text for text in (*OTHERS, "") if text in verdict)
        for _ in range(self._race_runs):
            tally.interleavings += 1
            run = self._run(launch)
            if run.outcome != straight.outcome or len(run.outcome) == 1:
                tally.counts[f"{what}: wrong in some interleaving"] += 1
                return
        tally.counts[f"{what}: right in all interleavings tried"] += 1
        if what != "race between blocks" and launch.sound(self._pool.sequential):
            tally.false_alarms.append(launch.text(verdict))
        elif not what:
            tally.unexplained.append(launch.text(verdict))

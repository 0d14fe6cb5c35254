"""Holds the simulator's verdict on random programs against random interleavings of them.

A program without a reported fault must give the bytes that the simulator computed in every
interleaving, and none may get stuck. For a program with a reported race an interleaving is looked
for that gives other bytes, or at least one in which the two accesses come the other way round: two
writes may write the same bytes, or bytes that are overwritten later.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from davinci.isa.core import Space
from happens_before import Conflicts, Event, Order, Step
from interleaving import Bytes, Run
from random_programs import Pool, Writer

RACE = re.compile(
    r"instruction #(?P<second>\d+) .*race: it (?P<does>reads|writes) .*"
    r"which #(?P<first>\d+) .* (?P<did>reads|writes), without an order"
)

OTHERS = (
    "race between blocks",
    "race between cores",
    "deadlock",
    "left set",
    "set again",
    "set twice",
)
"""Faults that are no races of two accesses of one block."""

Memory = Mapping[Space, Bytes]


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

    def lines(self) -> list[str]:
        head = (
            f"{self.programs} programs, {self.instructions} instructions, "
            f"{self.interleavings} interleavings, {self.compared} compared with the simulator"
        )
        found = [f"  {name:<64}{count:>8}" for name, count in sorted(self.counts.items())]
        ends = {
            "escapes": self.escapes,
            "false alarms": self.false_alarms,
            "unexplained": self.unexplained,
        }
        return [head, *found, *(f"  {name:<64}{len(texts):>8}" for name, texts in ends.items())]


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

    def __init__(self, machine: str, kind: str, seed: int, clean_runs: int, race_runs: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._pool = Pool(machine, kind, self._rng)
        self._clean_runs, self._race_runs = clean_runs, race_runs
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
        self._judge(self.single, [steps], verdict, memory if exact else {})

    def two_blocks(self) -> None:
        """One more pair of programs for two blocks; each by itself is mostly sound."""
        rng, pool = self._rng, self._pool
        programs = [Writer(pool, rng, int(rng.integers(1, 5)), scalar=False).rows for _ in range(2)]
        verdict = pool.simulate(programs)
        self._judge(self.blocks, [pool.steps(rows) for rows in programs], verdict, {})

    def _run(self, programs: Sequence[Sequence[Step]], straight: bool = False) -> Run:
        pool = self._pool
        return Run(programs, pool.memories, pool.sequential, pool.depth, self._rng, straight)

    def _judge(
        self, tally: Tally, programs: Sequence[Sequence[Step]], verdict: str, memory: Memory
    ) -> None:
        tally.programs += 1
        tally.instructions += sum(map(len, programs))
        straight = self._run(programs, straight=True)
        if memory and not verdict:
            tally.compared += 1
            for space, data in memory.items():
                if other := difference(data, straight.cores[0].memories[space].data[: data.size]):
                    what = f"other bytes than the simulator in {space.name}: {other}"
                    tally.escapes.append(self._text(programs, what))
        if not verdict:
            self._clean(tally, programs, straight)
        elif match := RACE.search(verdict):
            self._race(tally, programs, straight, match)
        else:
            self._other(tally, programs, straight, verdict)

    def _clean(self, tally: Tally, programs: Sequence[Sequence[Step]], straight: Run) -> None:
        for _ in range(self._clean_runs):
            tally.interleavings += 1
            run = self._run(programs)
            if run.outcome != straight.outcome or len(run.outcome) == 1:
                what = run.outcome[0] if len(run.outcome) == 1 else "other bytes"
                tally.counts[f"no fault reported: ESCAPED, {what!s}"] += 1
                tally.escapes.append(self._text(programs, str(what)))
                return
        tally.counts["no fault reported: the same bytes in every interleaving"] += 1

    def _race(
        self, tally: Tally, programs: Sequence[Sequence[Step]], straight: Run, match: re.Match[str]
    ) -> None:
        first, second = int(match["first"]), int(match["second"])
        if len(straight.outcome) == 1:
            tally.counts[f"race: and in every interleaving {straight.outcome[0]!s}"] += 1
            return
        reversed_pair = False
        for _ in range(self._race_runs):
            tally.interleavings += 1
            run = self._run(programs)
            if run.outcome != straight.outcome:
                tally.counts["race: other bytes in some interleaving"] += 1
                return
            if run.reversed_pair(first, match["did"], second, match["does"]):
                reversed_pair = True
        if reversed_pair:
            tally.counts["race: the same bytes, but the accesses came in both orders"] += 1
            return
        if any(map(early, programs)):
            tally.counts["race: ordered by a wait that precedes its set in the program"] += 1
            return
        tally.counts["race: never seen the other way round"] += 1
        sound = self._sound(programs)
        (tally.false_alarms if sound else tally.unexplained).append(self._text(programs, match[0]))

    def _other(
        self, tally: Tally, programs: Sequence[Sequence[Step]], straight: Run, verdict: str
    ) -> None:
        what = next(text for text in (*OTHERS, "") if text in verdict)
        for _ in range(self._race_runs):
            tally.interleavings += 1
            run = self._run(programs)
            if run.outcome != straight.outcome or len(run.outcome) == 1:
                tally.counts[f"{what}: wrong in some interleaving"] += 1
                return
        tally.counts[f"{what}: right in all interleavings tried"] += 1
        if not what.startswith("race between") and self._sound(programs):
            tally.false_alarms.append(self._text(programs, verdict))
        elif not what:
            tally.unexplained.append(self._text(programs, verdict))

    def _sound(self, programs: Sequence[Sequence[Step]]) -> bool:
        return all(
            Order(steps, self._pool.sequential).verdict(Conflicts(steps)).sound
            for steps in programs
        )

    def _text(self, programs: Sequence[Sequence[Step]], what: str) -> str:
        lines = [what]
        for block, steps in enumerate(programs):
            for i, step in enumerate(steps):
                if step.name != "set_va_reg":
                    lines.append(
                        f"    {block} #{i} {step.pipe.name} {step.record.mnemonic} {step.values}"
                    )
        return "\n".join(lines)

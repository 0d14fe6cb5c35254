"""Mutation of programs for several cores: without any of their flags and barriers.

As in `sync_mutation`: single instructions, flags of a core with the wait that they answer, and
flags between cores with all their sets and waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from davinci.isa.core import INSTRUCTIONS
from fuzz.happens_before import Order
from fuzz.interleaving_fuzz import SHAPES, early
from fuzz.random_cores import FLAG_BIT, CoresPool, Seat, Team, seats
from fuzz.random_programs import Row
from fuzz.stream_steps import AWAIT, SIGNAL, SYNC, Conflicts, Step, matched, opcode_of

EARLY = "ordered by an early wait"
"""What is reported though it is ordered: a wait precedes its set (`interleaving_fuzz.early`)."""

OUTCOMES = ("mutants", "reported", "redundant", EARLY, "escaped", "false alarm")
OPCODES = {name: INSTRUCTIONS[name].opcode for name in (*SYNC, SIGNAL, AWAIT)}
Programs = Sequence[Sequence[Row]]


def without(programs: Programs, left_out: set[tuple[int, int]]) -> list[list[Row]]:
    """The programs without some rows: core and number."""
    return [
        [row for i, row in enumerate(rows) if (core, i) not in left_out]
        for core, rows in enumerate(programs)
    ]


def mutants(programs: Programs) -> Iterator[list[list[Row]]]:
    """All of them: each instruction, each flag of a core, each flag between cores."""
    between: dict[int, set[tuple[int, int]]] = {}
    for core, rows in enumerate(programs):
        for i, row in enumerate(rows):
            opcode, word = opcode_of(row), row[1]
            if opcode in OPCODES.values():
                yield without(programs, {(core, i)})
            if opcode == OPCODES[SIGNAL]:
                between.setdefault(word >> FLAG_BIT, set()).add((core, i))
            elif opcode == OPCODES[AWAIT]:
                between.setdefault(word, set()).add((core, i))
        for pair in matched(rows):
            yield without(programs, {(core, i) for i in pair})
    for left_out in between.values():
        yield without(programs, left_out)


def steps_of(pool: CoresPool, where: Sequence[Seat], programs: Programs) -> list[list[Step]]:
    """Of each core."""
    return [
        pool.pools[seat.kind].steps(rows, core)
        for core, (seat, rows) in enumerate(zip(where, programs, strict=True))
    ]


def alarm(pool: CoresPool, where: Sequence[Seat], programs: Programs) -> str:
    """What a report on sound programs counts as."""
    return EARLY if any(map(early, steps_of(pool, where, programs))) else "false alarm"


def sound(pool: CoresPool, where: Sequence[Seat], programs: Programs) -> bool:
    """Whether the order worked out independently finds nothing wrong."""
    steps = list(chain(*steps_of(pool, where, programs)))
    order = Order(steps, pool.sequential, places=[seat.place for seat in where])
    return order.verdict(Conflicts(steps)).sound


def judge(seed: int, programs: int) -> Counter[str]:
    """Writes random programs and runs all mutants of those that are sound.

    Returns:
        Numbers of `OUTCOMES`, and of sound programs.
    """
    rng = np.random.default_rng(seed)
    pool = CoresPool(rng, tries=30)
    counts: Counter[str] = Counter()
    for number in range(programs):
        where = list(seats(*SHAPES[number % len(SHAPES)]))
        rows = [member.rows for member in Team(pool, rng, where, 10).members]
        if not sound(pool, where, rows):
            continue
        counts["programs"] += 1
        counts[alarm(pool, where, rows)] += bool(pool.simulate(where, rows))
        for mutant in mutants(rows):
            fault, fine = bool(pool.simulate(where, mutant)), sound(pool, where, mutant)
            counts["mutants"] += 1
            if fault:
                counts[alarm(pool, where, mutant) if fine else "reported"] += 1
            else:
                counts["redundant" if fine else "escaped"] += 1
    return counts

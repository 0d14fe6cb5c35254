"""Random programs for several cores of a split machine, with flags between them.

As in `random_programs`, each instruction is followed by the synchronisation that `happens_before`
misses, most of the time; then some programs are damaged.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa.core import INSTRUCTIONS, Pipe, Space
from fuzz.happens_before import Order, Place, Verdict, scope
from fuzz.interleaving import Bytes
from fuzz.random_programs import CARE, GM_ORIGIN, WINDOW_BYTES, Pool, Row, Writer, pick
from fuzz.stream_steps import AWAIT, SIGNAL, SYNC, Conflicts, Step, opcode_of

MACHINE = "ascend910b"
GM_BYTES = 1024
FLAG_BIT = 8
FLAGS_OF_A_MODE, FLAG_IDS = 3, 11
VECTOR_CORES = 2
"""Of a cube core."""

DAMAGES = {"move": 2, "remove": 2, "set on another pipe": 1, "remove the flag": 2}
DAMAGES |= {"rename the flag": 1}
"""What happens to the set of a flag between cores that is damaged, by weight. Others are moved or
removed."""


@dataclass(frozen=True)
class Seat:
    """One program of a launch."""

    kind: str
    block: int
    sub_block: int
    place: Place

    def __str__(self) -> str:
        which = f" {self.sub_block}" if self.kind == "AIV" else ""
        return f"{self.kind}{which} of block {self.block}"


def seats(kinds: Sequence[str], blocks: int) -> Iterator[Seat]:
    """The programs of a launch; see docs/architecture.md, "Kinds of machines"."""
    for block in range(blocks):
        if "AIC" not in kinds:
            yield Seat("AIV", block, 0, Place("AIV", block // VECTOR_CORES))
            continue
        yield Seat("AIC", block, 0, Place("AIC", block))
        if "AIV" in kinds:
            for sub_block in range(VECTOR_CORES):
                yield Seat("AIV", block, sub_block, Place("AIV", block))


class CoresPool:
    """Instructions for both kinds of cores, on one device with one GM."""

    def __init__(self, rng: np.random.Generator, tries: int = 100) -> None:
        self.pools = {kind: Pool(MACHINE, kind, rng, tries, GM_BYTES) for kind in ("AIC", "AIV")}
        first = self.pools["AIC"]
        self.device, self.sequential, self.depth = first.device, first.sequential, first.depth
        self.gm = self.pools["AIV"].memories[Space.GM] = first.memories[Space.GM]

    def simulate(self, where: Sequence[Seat], programs: Sequence[Sequence[Row]]) -> str:
        """Runs each program on its core; returns the fault, or "". See `gm_bytes` for the bytes."""
        self.device.write(GM_ORIGIN, self.gm.data[: WINDOW_BYTES[Space.GM]])
        rows = {(s.kind, s.block, s.sub_block): r for s, r in zip(where, programs, strict=True)}

        def program(kind: str) -> Any:
            def run(arguments: Any, block: int, blocks: int, core: Any) -> None:
                self._core = core
                self.pools[kind].run_on(core, rows[kind, block, core.sub_block])

            return run

        kinds = {seat.kind: program(seat.kind) for seat in where}
        try:
            self.device.launch("random", kinds, [], 1 + max(seat.block for seat in where))
        except DeviceFault as fault:
            return str(fault)
        return ""

    def gm_bytes(self) -> Bytes:
        """The bytes of GM after `simulate`."""
        data: Bytes = self._core.memory(Space.GM).data[GM_ORIGIN:][: WINDOW_BYTES[Space.GM]]
        return data


class Member(Writer):
    """The program of one core of a team; flags and barriers go in as in any other program."""

    def __init__(self, pool: Pool, rng: np.random.Generator, number: int, team: Team) -> None:
        super().__init__(pool, rng, 0, scalar=False)
        self._number, self._team = number, team
        movers = {Pipe.MTE2, Pipe.MTE3, Pipe.FIX}
        # Cores meet in GM only.
        self._weights = np.array([3.0 if pipe in movers else 1.0 for pipe in self._pipes])

    def add(self) -> None:
        """One more random instruction."""
        pipe = self._rng.choice(len(self._pipes), p=self._weights / self._weights.sum())
        rows = self._pool.rows[self._pipes[pipe]]
        self.rows.append(rows[self._rng.integers(len(rows))])

    def steps(self) -> list[Step]:
        return self._pool.steps(self.rows, self._number)

    def order(self, i: int, j: int) -> None:
        """Puts a flag or barrier between two of its steps, of which j is the last."""
        self._steps = self.steps()
        self._order(i, j)

    def put(self, last: bool, name: str, **values: int) -> None:
        """A flag between cores, at the end or before the last instruction."""
        self.rows.insert(len(self.rows) - (not last), self._sync(name, **values))

    def any_pipe(self) -> Pipe:
        """One that executes instructions."""
        return self._pipes[self._rng.integers(len(self._pipes))]

    def _verdict(self) -> Verdict:
        return self._team.verdict()


class Team:
    """Writes random programs for the cores of one launch.

    Attributes:
        members: a program for each seat.
    """

    def __init__(
        self, pool: CoresPool, rng: np.random.Generator, where: Sequence[Seat], length: int
    ) -> None:
        self._rng, self._pool, self._places = rng, pool, [seat.place for seat in where]
        self.members = [
            Member(pool.pools[seat.kind], rng, number, self) for number, seat in enumerate(where)
        ]
        care = CARE[rng.integers(len(CARE))]
        for _ in range(length):
            self._instruction(int(rng.integers(len(self.members))), care)
        while rng.random() < 0.35:
            self._damage()

    def verdict(self) -> Verdict:
        """What is wrong with the programs; numbers of steps count through all of them."""
        self._parts = [member.steps() for member in self.members]
        steps = [step for part in self._parts for step in part]
        order = Order(steps, self._pool.sequential, places=self._places)
        return order.verdict(Conflicts(steps))

    def _instruction(self, core: int, care: float) -> None:
        self.members[core].add()
        for _ in range(12):
            pairs = self.verdict().unordered
            places = [(c, i) for c, part in enumerate(self._parts) for i in range(len(part))]
            last = (core, len(self._parts[core]) - 1)
            others = [places[b if places[a] == last else a] for a, b in pairs
                      if last in (places[a], places[b])]  # fmt: skip
            if not others or self._rng.random() > care:
                return
            other, i = others[self._rng.integers(len(others))]
            if other == core:
                self.members[core].order(i, last[1])
            else:
                self._order(other, self._parts[other][i].pipe, core)

    def _order(self, first: int, pipe: Pipe, second: int) -> None:
        """Orders the last instruction of `second` after what `pipe` of `first` did."""
        a, b = self._places[first], self._places[second]
        if a.kind == b.kind:
            mode = int(a.group == b.group and a.kind == "AIV" and self._rng.integers(2))
            self._signal(first, pipe, mode, second)
        elif a.group == b.group:
            self._signal(first, pipe, 2, second)
        else:
            near = [c for c, p in enumerate(self._places) if p == Place(a.kind, b.group)]
            self._signal(first, pipe, 0, second)
            self._signal(near[0], Pipe.S, 2, second)

    def _signal(self, first: int, pipe: Pipe, mode: int, second: int) -> None:
        """A flag set by the group of `first`; `second` has it before its last instruction."""
        rng = self._rng
        flag = FLAGS_OF_A_MODE * mode + int(rng.integers(FLAGS_OF_A_MODE))
        if rng.random() < 0.05:
            flag = int(rng.integers(FLAG_IDS))
        setters, receivers = scope(self._places, first, mode)
        for core in setters:
            own = pipe if core == first else self.members[core].any_pipe()
            self.members[core].put(core != second, SIGNAL, pipe=own, mode=mode, flag=flag)
        for core in receivers:
            self.members[core].put(core != second, AWAIT, flag=flag)

    def _damage(self) -> None:
        """Removes, moves or changes a flag or barrier."""
        rng = self._rng
        opcodes = {INSTRUCTIONS[name].opcode for name in (*SYNC, SIGNAL, AWAIT)}
        places = [(member, i) for member in self.members
                  for i, row in enumerate(member.rows) if opcode_of(row) in opcodes]  # fmt: skip
        if not places:
            return
        member, i = places[rng.integers(len(places))]
        rows = member.rows
        row, damage = rows[i], pick(rng, DAMAGES)
        if damage == "move":
            rows.pop(i)
            rows.insert(int(rng.integers(len(rows) + 1)), row)
        elif damage == "remove" or opcode_of(row) != INSTRUCTIONS[SIGNAL].opcode:
            rows.pop(i)
        elif damage == "set on another pipe":
            rows[i] = [row[0], row[1] & ~0xF | member.any_pipe(), *row[2:]]
        elif damage == "remove the flag":
            self._remove(row[1] >> FLAG_BIT)
        else:
            flags = 0, int(rng.integers(FLAG_IDS))
            self._rename(row[1] >> FLAG_BIT, flags[rng.integers(2)])

    def _remove(self, flag: int) -> None:
        """Removes the last set and the last wait of a flag from every program."""
        for member in self.members:
            for name, shift in ((SIGNAL, FLAG_BIT), (AWAIT, 0)):
                opcode = INSTRUCTIONS[name].opcode
                there = [i for i, row in enumerate(member.rows)
                         if row[0] == opcode and row[1] >> shift == flag]  # fmt: skip
                if there:
                    member.rows.pop(there[-1])

    def _rename(self, flag: int, other: int) -> None:
        """Gives a flag another number in all programs: it may be in use there."""
        for member in self.members:
            for i, (head, word, *rest) in enumerate(member.rows):
                if head == INSTRUCTIONS[SIGNAL].opcode and word >> FLAG_BIT == flag:
                    low = word & (1 << FLAG_BIT) - 1
                    member.rows[i] = [head, low | other << FLAG_BIT, *rest]
                elif head == INSTRUCTIONS[AWAIT].opcode and word == flag:
                    member.rows[i] = [head, other, *rest]

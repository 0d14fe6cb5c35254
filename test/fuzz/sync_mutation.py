"""Mutation of synchronisation: instruction streams with flags and barriers taken out.

A static mutant lacks one instruction of the kernel's code, in every iteration and on every block; a
dynamic one lacks a single execution of it. Taking out half a flag always leaves the other half, so
flags are also taken out whole: a set with the waits that it answers. Each mutant runs on the
simulator, and `happens_before` says independently whether something is wrong with it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from davinci import machine as machines
from davinci.isa.core import BY_OPCODE, OPCODE_MASK, Pipe, Records, Space
from fuzz.happens_before import Order
from fuzz.order_replay import faults
from fuzz.recorded_kernels import LOCATION, Kernel
from fuzz.stream_steps import SCALAR, SYNC, Conflicts, Step, decode, matched

SCALAR_BOUNDS, SCALAR_SPACE = slice(3, 7), 7
"""Words of a `scalar_access`: lowest and highest address of its loads and stores; the memory."""

OUTCOMES = ("reported", "redundant", "escaped", "false alarm")


@dataclass
class Mutant:
    """A kernel without some of its synchronisation.

    Attributes:
        left_out: for each of its streams the numbers of steps.
        blocks: that the same can be done to.
    """

    kind: str
    what: str
    left_out: dict[int, set[int]]
    blocks: int = 1


@dataclass
class Outcomes:
    """Of all mutants, by kind.

    Attributes:
        counts: (kind, one of `OUTCOMES`) -> number.
        messages: first words of what the simulator said -> number.
        redundant: a line for each static mutant that is.
        wrong: a line for each escape and false alarm, also those of kernels as compiled.
        relays: flags, execution by execution, to a pipe that does nothing but answer them.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    redundant: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    kernels: int = 0
    blocks: int = 0
    instructions: int = 0
    relays: int = 0

    def total(self, outcome: str) -> int:
        return sum(count for (_, name), count in self.counts.items() if name == outcome)


@dataclass(frozen=True)
class Stream:
    """What some blocks of a kernel issue: the same instructions, of which the same ones conflict,
    at different places of global memory.

    Attributes:
        first: of these blocks.
        blocks: how many they are.
    """

    records: Records
    steps: Sequence[Step]
    conflicts: Conflicts
    first: int
    blocks: int


def streams_of(kernel: Kernel) -> list[Stream]:
    """The different ones of its blocks."""
    found: dict[Any, Stream] = {}
    for block, records in enumerate(kernel.streams):
        steps = decode(records)
        conflicts = Conflicts(steps)
        key = (
            without_gm_addresses(records).tobytes(),
            tuple(conflicts.after_write),
            tuple(conflicts.after_read),
        )
        known = found.get(key)
        found[key] = (
            replace(known, blocks=known.blocks + 1)
            if known
            else Stream(records, steps, conflicts, block, 1)
        )
    return list(found.values())


def without_gm_addresses(records: Records) -> Records:
    """The records with zeros for what names places in global memory."""
    kept = records.copy()
    opcodes = records[:, 0] & OPCODE_MASK
    for opcode in set(opcodes.tolist()):
        which, record = opcodes == opcode, BY_OPCODE[opcode]
        for word, operand in enumerate(record.operands, 1):
            if operand.space == Space.GM:
                kept[which, word] = 0
        if record.name == SCALAR:
            kept[which & (records[:, SCALAR_SPACE] == Space.GM), SCALAR_BOUNDS] = 0
    return kept


def mutants(kernel: Kernel, streams: Sequence[Stream]) -> Iterator[Mutant]:
    """All mutants of a kernel."""
    statics: dict[int, dict[int, set[int]]] = defaultdict(dict)
    groups: dict[int, int] = {number: number for number in kernel.statics}

    def root(number: int) -> int:
        while groups[number] != number:
            number = groups[number]
        return number

    pairs = []
    for number, stream in enumerate(streams):
        places = (stream.records[:, 0] >> LOCATION).tolist()
        for i, place in enumerate(places):
            if place in kernel.statics:
                statics[place].setdefault(number, set()).add(i)
        for first, second in matched(stream.records.tolist()):
            pairs.append((number, {first, second}))
            groups[root(places[first])] = root(places[second])
    together: dict[int, dict[int, set[int]]] = defaultdict(dict)
    for place, left_out in statics.items():
        yield Mutant("static instruction", kernel.statics[place], left_out)
        if "pipe_barrier" not in kernel.statics[place]:
            for number, which in left_out.items():
                together[root(place)].setdefault(number, set()).update(which)
    for place, left_out in together.items():
        yield Mutant("static flag", f"the flag of {kernel.statics[place]}", left_out)
    for place, left_out in statics.items():
        for number, which in left_out.items():
            stream = streams[number]
            for i in sorted(which):
                text = f"#{i} of block {stream.first}: {kernel.statics[place]}"
                yield Mutant("dynamic instruction", text, {number: {i}}, stream.blocks)
    for number, which in pairs:
        stream = streams[number]
        what = " and ".join(f"#{i} {stream.steps[i].name}" for i in sorted(which))
        text = f"{what} of block {stream.first}"
        yield Mutant("dynamic flag", text, {number: which}, stream.blocks)


def judge(kernel: Kernel, sequential: Sequence[Pipe], outcomes: Outcomes, every: int = 1) -> None:
    """Runs a kernel's streams as they are, then all its mutants, or each `every`th of them."""
    streams = streams_of(kernel)
    outcomes.kernels += 1
    for stream in streams:
        outcomes.blocks += stream.blocks
        outcomes.instructions += stream.blocks * len(stream.steps)
        outcomes.relays += stream.blocks * relays(stream.steps)
    chosen = list(islice(mutants(kernel, streams), 0, None, every))
    judged = []
    for number, stream in enumerate(streams):
        wanted = {frozenset(m.left_out[number]) for m in chosen if number in m.left_out}
        found = faults(kernel.machine, stream.records, {frozenset(), *wanted})
        judged.append({left_out: Finding.of(stream, sequential, left_out, said)
                       for left_out, said in found.items()})  # fmt: skip
    for stream, findings in zip(streams, judged, strict=True):
        whole = findings[frozenset()]
        if whole.message or not whole.sound:
            where = f"{kernel.name}, block {stream.first}"
            outcomes.wrong.append(f"{where}, as compiled: {whole.message or 'order'}")
    for mutant in chosen:
        parts = [judged[i][frozenset(which)] for i, which in mutant.left_out.items()]
        outcome, message = outcome_of(parts)
        outcomes.counts[mutant.kind, outcome] += mutant.blocks
        if outcome in ("escaped", "false alarm"):
            outcomes.wrong.append(f"{kernel.name}: {mutant.kind} {mutant.what}: {outcome}")
        elif message:
            outcomes.messages[message] += mutant.blocks
        elif mutant.kind.startswith("static"):
            outcomes.redundant.append(f"{kernel.name}: {mutant.what}")


@dataclass(frozen=True)
class Finding:
    """Of a stream without something.

    Attributes:
        message: of the simulator, "" if it finds nothing.
        sound: whether the order that is worked out independently is.
    """

    message: str
    sound: bool

    @classmethod
    def of(
        cls, stream: Stream, sequential: Sequence[Pipe], left_out: frozenset[int], message: str
    ) -> Finding:
        order = Order(stream.steps, sequential, left_out)
        return cls(message, order.sound(stream.conflicts))


def outcome_of(parts: Sequence[Finding]) -> tuple[str, str]:
    """What became of a mutant, and what the simulator called it: of one of its streams."""
    for part in parts:
        if bool(part.message) == part.sound:
            return ("false alarm" if part.sound else "escaped"), part.message
    message = next((part.message for part in parts if part.message), "")
    if not message:
        return "redundant", ""
    return "reported", "race" if "race: " in message else message.split(":")[0]


def relays(steps: Sequence[Step]) -> int:
    """Flags to pipes without work: the other pipe gets one back, and knows that it is done."""
    working = {step.pipe for step in steps if step.name not in SYNC}
    sets = [step.values["dst_pipe"] for step in steps if step.name == "set_flag"]
    return sum(Pipe(dst) not in working for dst in sets)


def sequential_pipes(machine: str = "ascend910") -> list[Pipe]:
    """Pipes whose own instructions never overlap, as the machine file lists them."""
    return [Pipe[name] for name in machines.load(machine).sync.sequential_pipes]


def table(outcomes: Mapping[str, Outcomes]) -> list[str]:
    """A line for each title, then one for each kind of mutants of all of them."""
    heads = ("kernels", "blocks", "instructions", "relays", "mutants", *OUTCOMES)
    rows = {"": list(heads)}
    for title, each in outcomes.items():
        sizes = (each.kernels, each.blocks, each.instructions, each.relays)
        totals = [each.total(name) for name in OUTCOMES]
        rows[title] = list(map(str, (*sizes, sum(totals), *totals)))
    counts = sum((each.counts for each in outcomes.values()), Counter[tuple[str, str]]())
    for kind in dict.fromkeys(kind for kind, _ in counts):
        totals = [counts[kind, name] for name in OUTCOMES]
        rows[f"{kind}s"] = [*[""] * 4, *map(str, (sum(totals), *totals))]
    widths = [max(len(row[i]) for row in rows.values()) for i in range(len(heads))]
    first = max(map(len, rows))
    return [
        "  ".join([f"{title:<{first}}", *(f"{x:>{w}}" for x, w in zip(row, widths, strict=True))])
        for title, row in rows.items()
    ]

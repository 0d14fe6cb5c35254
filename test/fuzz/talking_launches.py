"""Launches whose blocks wait for each other by counters, as plain data that can be changed.

    launch -> blocks -> units -> operations

A unit is what a core does to one purpose: it writes a part of a buffer, loads one, posts its
counter or waits for counters. An operation becomes one instruction or, where the scalar unit counts
or looks, those around it. `judge` says from the operations alone, without running anything, whether
all cores are ordered; `fault` runs them with all checks of the simulator.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.isa.core import Records
from davinci.isa.counters import LINE_BYTES
from fuzz.happens_before import Order
from fuzz.stream_steps import Conflicts, decode
from fuzz.sync_mutation import sequential_pipes
from talking_support import DATA, LINES, OWN, PART, READ, Program, Talking

SLOTS = 4
"""Places in UB to which parts are loaded, in turn."""

OVER_LINES = -2
"""The part of the buffer where the lines of counters are, in front of it."""

MASK = (1 << 64) - 1
LONG = PART // LINE_BYTES


@dataclass(frozen=True)
class Op:
    """An operation: its name and what it is about.

    set, wait     source and destination pipe of a flag
    fill          the value that the vector unit writes into what will be stored
    store         a part of the buffer
    load          a part, and the slot in UB
    count         the number that the scalar unit puts into the line in UB
    send          the line in memory to which that goes
    post          the line, and the number that it holds
    poll          the first line, how many, and the number to wait for; what is loaded in each look,
                  if anything is, as in load, and whether behind the counters
    """

    name: str
    args: tuple[int, ...]


Unit = tuple[Op, ...]
Block = tuple[Unit, ...]
Launch = tuple[Block, ...]


def flag(source: Pipe, target: Pipe) -> Unit:
    """A flag that is waited for at once."""
    pipes = int(source), int(target)
    return Op("set", pipes), Op("wait", pipes)


def write(part: int, value: int) -> Unit:
    """A part of the buffer gets a value."""
    done, filled = flag(Pipe.MTE3, Pipe.V), flag(Pipe.V, Pipe.MTE3)
    return (*done, Op("fill", (value,)), *filled, Op("store", (part,)))


def post(line: int, number: int) -> Unit:
    """A core posts its counter, when all it loads is there."""
    loaded, counted = flag(Pipe.MTE2, Pipe.MTE3), flag(Pipe.S, Pipe.MTE3)
    told = Op("count", (number,)), *counted, Op("send", (line,)), Op("post", (line, number))
    return (*loaded, *told, *flag(Pipe.MTE3, Pipe.S))


def poll(first: int, count: int, number: int, *loaded: int) -> Unit:
    return (Op("poll", (first, count, number, *loaded)),)


def load(part: int, slot: int) -> Unit:
    return (Op("load", (part, slot)),)


def issue(program: Program, op: Op) -> None:
    """Issues an operation on the core of a program."""
    rig, args = program.rig, op.args
    if op.name in ("set", "wait"):
        program.emit(f"{op.name}_flag", src_pipe=args[0], dst_pipe=args[1], event=0)
    elif op.name == "fill":
        program.emit("set_vector_mask", low=MASK)
        program.emit("vector_dup.s32", dst=DATA, repeat=4, dst_rep_stride=8, value=args[0])
    elif op.name == "store":
        address = rig.data + args[0] * PART
        program.emit("copy_ubuf_to_gm", dst=address, src=DATA, n_burst=1, len_burst=LONG)
    elif op.name == "load":
        address, place = rig.data + args[0] * PART, READ + args[1] * PART
        program.emit("copy_gm_to_ubuf", dst=place, src=address, n_burst=1, len_burst=LONG)
    elif op.name == "count":
        program.store(OWN, args[0])
    elif op.name == "send":
        program.emit("copy_ubuf_to_gm", dst=_line(rig, args[0]), src=OWN, n_burst=1, len_burst=1)
    elif op.name == "post":
        program.emit("post_counter", line=_line(rig, args[0]), value=args[1])
    else:
        first, count, number, *loaded = args
        if loaded:
            part, slot, ordered = loaded
            program.wait(number, first, count, part, slot, bool(ordered))
        else:
            program.wait(number, first, count)


def _line(rig: Talking, number: int) -> int:
    return rig.lines + number * LINE_BYTES


class _Paper:
    """Takes the place of a core where nothing runs: every look sees what it waits for."""

    def __init__(self) -> None:
        self._bytes = np.zeros(READ, np.uint8)
        self.written: Sequence[int] = ()
        self.parts: list[Records] = []

    @property
    def data(self) -> Any:
        return self._bytes

    def memory(self, space: Any) -> _Paper:
        return self

    def see(self, number: int) -> None:
        """Puts a number into all lines at which the scalar unit may look."""
        self._bytes[LINES:DATA].view(np.int32)[:] = number

    def consume(self, records: Records) -> None:
        self.parts.append(records.copy())


def streams(rig: Talking, launch: Launch, new_asm: Callable[[], Any]) -> list[Records]:
    """The instructions of each block, without running any."""
    found = []
    for number, block in enumerate(launch):
        paper = _Paper()
        program = Program(rig, new_asm(), paper, number, len(launch))
        for op in operations(block):
            if op.name == "poll":
                paper.see(op.args[2])
            issue(program, op)
        program.send()
        found.append(np.concatenate(paper.parts))
    return found


def operations(block: Block) -> Iterator[Op]:
    return (op for unit in block for op in unit)


def judge(rig: Talking, launch: Launch, new_asm: Callable[[], Any]) -> str:
    """What is wrong with a launch, "" if nothing is; found without running it."""
    if len(launch) > rig.machine.cores:
        return "more blocks than cores"
    for block in launch:
        if text := _wrongly_counted(block):
            return text
    numbers = {n for block in launch for op in operations(block) for n in _lines_of(op)}
    lines = {_line(rig, number) for number in numbers}
    steps = [
        step
        for number, records in enumerate(streams(rig, launch, new_asm))
        for step in decode(records, number)
    ]
    verdict = Order(steps, sequential_pipes()).verdict(Conflicts(steps, lines))
    if verdict.unmatched:
        return "flags or counters"
    if verdict.stuck:
        return "deadlock"
    if verdict.unordered:
        return "race"
    return "" if verdict.sound else "flag set again"


def _lines_of(op: Op) -> range:
    """Lines of counters that an operation posts to, or looks at."""
    if op.name == "post":
        return range(op.args[0], op.args[0] + 1)
    return range(op.args[0], op.args[0] + op.args[1]) if op.name == "poll" else range(0)


def _wrongly_counted(block: Block) -> str:
    """Whether a block posts another number than it has stored into the line."""
    counted, stored = 0, Counter[int]()
    for op in operations(block):
        if op.name == "count":
            counted = op.args[0]
        elif op.name == "send":
            stored[op.args[0]] = counted
        elif op.name == "post" and stored[op.args[0]] != op.args[1]:
            return "another counter than was stored"
    return ""


def fault(rig: Talking, launch: Launch) -> str:
    """Runs a launch; returns the first words of its fault, or ""."""

    def build(program: Program) -> None:
        for op in operations(launch[program.block]):
            issue(program, op)

    rig.clear()
    try:
        rig.run(build, len(launch))
    except DeviceFault as error:
        return said(error)
    return ""


def said(error: DeviceFault) -> str:
    """The first words of a fault, without the flag that it names."""
    text = str(error.message)
    return "a wait without a set" if text.startswith("wait_flag") else text.split(":")[0]


def random_launch(rng: np.random.Generator) -> Launch:
    """Phases in which blocks write parts and load those of others, between them meetings: of all,
    of groups, or of neighbours."""
    blocks, phases = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    size = [blocks, 1, max(1, blocks // 2)][rng.integers(3)]
    turns = int(rng.integers(1, 4))
    launch: list[list[Unit]] = [[] for _ in range(blocks)]
    slots = [0] * blocks
    for phase in range(phases):
        for number, units in enumerate(launch):
            place = number + blocks * (phase % turns)
            units += [write(place, 100 * phase + number), post(number, phase + 1)]
            if size == 1:
                seen = [(number + 1) % blocks]
                first, count = seen[0], 1
            else:
                first = number // size * size
                count = min(size, blocks - first)
                seen = list(range(first, first + count))
            loads: list[tuple[int, int]] = []
            for _ in range(rng.integers(1, 3)):
                other = seen[rng.integers(len(seen))]
                loads.append((other + blocks * (phase % turns), slots[number] % SLOTS))
                slots[number] += 1
            early = (*loads.pop(0), 1) if rng.integers(2) else ()
            units.append(poll(first, count, phase + 1, *early))
            units += [load(*each) for each in loads]
    return tuple(map(tuple, launch))


@dataclass(frozen=True)
class Mutant:
    """A launch of which one thing was changed.

    Attributes:
        kind: "flag", "count", "core set", "placement" or "order".
    """

    kind: str
    launch: Launch


def mutants(launch: Launch, rng: np.random.Generator) -> Iterator[Mutant]:
    """A launch with each thing changed in turn; places to which something moves are random."""
    for number, block in enumerate(launch):
        for i, unit in enumerate(block):

            def put(*units: Unit, number: int = number, i: int = i) -> Launch:
                changed = (*launch[number][:i], *units, *launch[number][i + 1 :])
                return (*launch[:number], changed, *launch[number + 1 :])

            for kind, changed in changes(unit, len(launch), rng):
                yield Mutant(kind, put(changed))
            yield Mutant("order", put())
            if i + 1 < len(block):
                rest = block[i + 2 :]
                swapped = (*block[:i], block[i + 1], unit, *rest)
                yield Mutant("order", (*launch[:number], swapped, *launch[number + 1 :]))
            others = [*block[:i], *block[i + 1 :]]
            others.insert(int(rng.integers(len(others) + 1)), unit)
            yield Mutant("order", (*launch[:number], tuple(others), *launch[number + 1 :]))
        cut = int(rng.integers(len(block)))
        yield Mutant("core set", (*launch[:number], block[:cut], *launch[number + 1 :]))
        yield Mutant("core set", (*launch[:number], (), *launch[number + 1 :]))
        yield Mutant("core set", (*launch[:number], *launch[number + 1 :]))


def changes(unit: Unit, blocks: int, rng: np.random.Generator) -> Iterator[tuple[str, Unit]]:
    """Yields each change of a unit: its kind, and the unit as it is then."""
    for i, op in enumerate(unit):

        def put(*args: int, i: int = i, op: Op = op) -> Unit:
            return (*unit[:i], Op(op.name, args), *unit[i + 1 :])

        if op.name == "set":
            yield "flag", (*unit[:i], *unit[i + 2 :])
            yield "flag", (*unit[:i], *unit[i + 1 :])
            yield "flag", (*unit[: i + 1], *unit[i + 2 :])
        elif op.name in ("count", "post"):
            *where, value = op.args
            yield "count", put(*where, value + 1)
            if value > 1:
                yield "count", put(*where, value - 1)
        elif op.name == "poll":
            first, count, value, *loaded = op.args
            for other in (value - 1, value + 1, value + 7):
                if other > 0:
                    yield "count", put(first, count, other, *loaded)
            yield "core set", put(first, count + 1, value, *loaded)
            yield "core set", put((first + 1) % blocks, count, value, *loaded)
            if count > 1:
                yield "core set", put(first, count - 1, value, *loaded)
                yield "core set", put(first + 1, count - 1, value, *loaded)
            if loaded:
                _, slot, ordered = loaded
                yield "order", put(first, count, value, *loaded[:2], 0)
                for part in (*rng.integers(3 * blocks, size=2).tolist(), OVER_LINES):
                    yield "placement", put(first, count, value, part, slot, ordered)
        elif op.name in ("store", "load"):
            for part in (*rng.integers(3 * blocks, size=2).tolist(), OVER_LINES):
                yield "placement", put(part, *op.args[1:])
        elif op.name == "send":
            other = int(rng.integers(blocks + 1))
            moved = {"send": (other,), "post": (other, *unit[i + 1].args[1:])}
            yield "placement", tuple(Op(o.name, moved.get(o.name, o.args)) for o in unit)
    posted = [op for op in unit if op.name == "post"]
    for op in posted:
        line, value = op.args
        larger = {"count": (value + 1,), "post": (line, value + 1)}
        yield "count", tuple(Op(o.name, larger.get(o.name, o.args)) for o in unit)

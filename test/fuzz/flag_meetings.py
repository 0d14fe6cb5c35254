"""Launches of a split machine whose cores meet by flags between phases, as plain data that can be
changed.

    launch -> programs of cube and vector cores -> operations, each one instruction

In a phase cores store parts of a buffer, behind a meeting they load parts of others. Meetings are
those of `join-launches` (`davinci.passes.cce.meeting_kernels`), of both kinds of cores or of one
kind, or vector cores alone that wait for nothing but their stores. `judge` says from the
instructions alone, without running any, whether all cores are ordered; `fault` runs them with all
checks of the simulator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe, Space
from davinci.passes.cce.meeting_kernels import CAME, GO, MET
from davinci.simulator import Device
from fuzz.happens_before import Order
from fuzz.random_cores import Seat, seats
from fuzz.stream_steps import Conflicts, decode
from fuzz.sync_mutation import sequential_pipes
from fuzz.talking_launches import Op, said

MACHINE = "ascend910b"
PART = 1024
"""Bytes of a part of the buffer: a fractal of f32."""

SLOTS = 8
"""Places on a core to which parts are loaded, in turn."""

ALL, IN_GROUP = 0, 2
"""Modes of flags: of all cores of a kind, and between a cube core and its vector cores."""

ALONE = 4
"""The flag of a meeting of vector cores alone."""

STORES = {"AIC": Pipe.FIX, "AIV": Pipe.MTE3}
FLAGS, PIPES = range(5), (Pipe.MTE2, Pipe.MTE3, Pipe.FIX, Pipe.S)


@dataclass(frozen=True)
class Member:
    """The program of a core.

    Operations are store (part), load (part, slot), barrier (), signal (pipe, mode, flag) and await
    (flag).
    """

    seat: Seat
    ops: tuple[Op, ...]


Launch = tuple[Member, ...]


def meeting(kind: str, kinds: Sequence[str]) -> Iterator[Op]:
    """The operations of a core of one kind in a meeting of all cores of `kinds`."""
    stores = int(STORES[kind])
    yield Op("barrier", ())
    if len(kinds) > 1 and kind == "AIV":
        yield from (Op("signal", (stores, IN_GROUP, CAME)), Op("await", (GO,)))
        return
    if len(kinds) > 1:
        yield Op("await", (CAME,))
    yield from (Op("signal", (stores, ALL, MET)), Op("await", (MET,)))
    if len(kinds) > 1:
        yield Op("signal", (stores, IN_GROUP, GO))


def vector_cores_meet(kind: str) -> Iterator[Op]:
    """What a core does where vector cores meet alone, with nothing to wait for but their stores."""
    if kind == "AIV":
        yield from (Op("signal", (int(Pipe.MTE3), ALL, ALONE)), Op("await", (ALONE,)))


def random_launch(rng: np.random.Generator) -> Launch:
    """Phases between which cores meet, of both kinds, of vector cores, or of cube cores."""
    kinds = [("AIC", "AIV"), ("AIV",), ("AIC",)][rng.choice(3, p=[0.6, 0.2, 0.2])]
    where = list(seats(kinds, int(rng.integers(1 + len(kinds) % 2, 4))))
    programs: list[list[Op]] = [[] for _ in where]
    count, loads = len(where), [0] * len(where)
    writers = [i for i, seat in enumerate(where) if seat.kind == "AIV" or len(kinds) == 1]
    for phase in range(int(rng.integers(1, 4))):
        # Parts of every second phase are others, so that a meeting is enough between two phases.
        first = count * (phase % 2)
        alone = kinds[-1] == "AIV" and bool(rng.integers(2))
        for i, ops in enumerate(programs):
            if not alone or where[i].kind == "AIV":
                ops.append(Op("store", (first + i,)))
        for seat, ops in zip(where, programs, strict=True):
            ops += vector_cores_meet(seat.kind) if alone else meeting(seat.kind, kinds)
        for i, ops in enumerate(programs):
            if alone and where[i].kind != "AIV":
                continue
            for _ in range(rng.integers(1, 3)):
                others = writers if alone else range(count)
                part = first + int(others[rng.integers(len(others))])
                ops.append(Op("load", (part, loads[i] % SLOTS)))
                loads[i] += 1
        if alone:  # What follows may overwrite what was loaded, and cube cores come with it.
            for seat, ops in zip(where, programs, strict=True):
                ops += meeting(seat.kind, kinds)
    return tuple(Member(seat, tuple(ops)) for seat, ops in zip(where, programs, strict=True))


class FlagMeetings:
    """A 910B with a buffer in its memory, on which launches run or are written down."""

    def __init__(self, new_asm: Callable[[], Any]) -> None:
        self._new = new_asm
        self._machine = machine.load(MACHINE)
        self._device = Device(self._machine, 1 << 24)
        self._buffer = self._device.allocate(1 << 16)
        self._device.write(self._buffer, np.zeros(1 << 16, np.uint8))

    def records(self, member: Member) -> Any:
        """The instructions of a core."""
        asm, cube = self._new(), member.seat.kind == "AIC"
        for op in member.ops:
            if op.name == "barrier":
                asm.emit("pipe_barrier", pipe=Pipe.ALL)
            elif op.name == "signal":
                pipe, mode, flag = op.args
                asm.emit("ffts_cross_core_sync", pipe=pipe, mode=mode, flag=flag)
            elif op.name == "await":
                asm.emit("wait_flag_dev", flag=op.args[0])
            elif op.name == "store" and cube:
                there = self._buffer + op.args[0] * PART
                asm.emit("fixpipe.f32", dst=there, src=0, n_size=16, m_size=16)
            elif op.name == "store":
                there = self._buffer + op.args[0] * PART
                asm.emit("copy_ubuf_to_gm", dst=there, src=0, n_burst=1, len_burst=PART // 32)
            else:
                part, slot = op.args
                name, place = "copy_gm_to_" + ("cbuf" if cube else "ubuf"), (1 + slot) * PART
                source = self._buffer + part * PART
                asm.emit(name, dst=place, src=source, n_burst=1, len_burst=PART // 32)
        return asm.array()

    def judge(self, launch: Launch) -> str:
        """What is wrong with a launch, "" if nothing is; found without running it."""
        if any(self._names_others_pipe(member) for member in launch):
            return "a pipe that the core has not"
        streams = [decode(self.records(member), i) for i, member in enumerate(launch)]
        steps = list(chain(*streams))
        places = [member.seat.place for member in launch]
        verdict = Order(steps, sequential_pipes(MACHINE), places=places).verdict(Conflicts(steps))
        if verdict.unmatched:
            return "flags"
        if verdict.stuck:
            return "deadlock"
        if verdict.unordered:
            return "race"
        return "" if verdict.sound else "flag set again"

    def _names_others_pipe(self, member: Member) -> bool:
        """Whether a flag is set on a pipe that only the other kind of core has."""
        pipes = self._machine.core_types[member.seat.kind].pipes
        named = [op.args[0] for op in member.ops if op.name == "signal"]
        return any(Pipe(pipe).name not in pipes for pipe in named)

    def fault(self, launch: Launch) -> str:
        """Runs a launch; the first words of its fault, or ""."""
        records = {(m.seat.kind, m.seat.block, m.seat.sub_block): self.records(m) for m in launch}

        def program(kind: str) -> Any:
            def run(arguments: Any, block: int, blocks: int, core: Any) -> None:
                for space in (Space.L0C,) if kind == "AIC" else (Space.UB,):
                    core.memory(space).written[:PART] = True
                core.consume(records[kind, block, core.sub_block])

            return run

        kinds = {member.seat.kind: program(member.seat.kind) for member in launch}
        blocks = 1 + max(member.seat.block for member in launch)
        try:
            self._device.launch("random", kinds, [], blocks)
        except DeviceFault as error:
            return said(error)
        return ""


def mutants(launch: Launch, rng: np.random.Generator) -> Iterator[tuple[str, Launch]]:
    """A launch with each thing changed in turn, and the kind of the change; places to which
    something moves are random."""
    parts = 2 * len(launch)
    for number, member in enumerate(launch):

        def put(*ops: Op, number: int = number, member: Member = member) -> Launch:
            changed = Member(member.seat, ops)
            return (*launch[:number], changed, *launch[number + 1 :])

        for i, op in enumerate(member.ops):
            before, after = member.ops[:i], member.ops[i + 1 :]
            for kind, args in changes(op, parts, rng):
                yield kind, put(*before, Op(op.name, args), *after)
            kind = "order" if op.name in ("store", "load") else "flag"
            yield kind, put(*before, *after)
            yield kind, put(*before, op, op, *after)
            others = [*before, *after]
            others.insert(int(rng.integers(len(others) + 1)), op)
            yield "order", put(*others)
        yield "core set", put()
        yield "core set", put(*member.ops[: int(rng.integers(len(member.ops)))])


def changes(op: Op, parts: int, rng: np.random.Generator) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields each change of an operation: its kind, and what the operation is about then."""
    if op.name == "signal":
        pipe, mode, flag = op.args
        for other in FLAGS:
            if other != flag:
                yield "number", (pipe, mode, other)
        yield "core set", (pipe, ALL + IN_GROUP - mode, flag)
        yield "flag", (int(PIPES[rng.integers(len(PIPES))]), mode, flag)
    elif op.name == "await":
        yield from (("number", (other,)) for other in FLAGS if other != op.args[0])
    elif op.name in ("store", "load"):
        for part in rng.integers(parts, size=2).tolist():
            yield "placement", (part, *op.args[1:])

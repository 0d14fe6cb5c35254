"""Runs streams of instructions on a tiny machine whose pipes overlap in any order that is allowed.

Made from docs/architecture.md ("Ordering that the machine gives by itself") and the instruction
records; it shares nothing with the simulator. What may happen next is chosen at random:

* the scalar unit issues the next instruction into the queue of its pipe;
* a pipe starts the instruction at the head of its queue, which reads all its sources (a sequential
  pipe: if nothing is under way on it);
* an instruction under way on a pipe, any of them, writes all its results; one that adds to what is
  in global memory reads that only then, so that no other store comes between.

A `set_flag` leaves the queue at once and fires when what was under way on its pipe has written; a
`wait_flag` stays at the head until the flag is there. Flags between cores count; their waits hold
the scalar unit. Scalar accesses, whose data a stream does not
tell, read late, when they write; they write a digest of what the scalar unit has read so far.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.isa.core import Access, Pipe, Registers, Space
from fuzz.happens_before import Place, scope
from fuzz.stream_steps import AWAIT, SCALAR, SIGNAL, Event, Step

Bytes = npt.NDArray[np.uint8]
Action = tuple[int, str, Pipe, int]
"""Core, what ("issue", "start", "write"), pipe, step."""

SLACK_BYTES = 1 << 14
"""Behind each memory: views with masked tails may reach there."""


class Stuck(Exception):
    """No instruction can go on, or a flag is lost: what went wrong."""


@dataclass
class Window:
    """The part of a memory that programs use, from address `origin`."""

    origin: int
    data: Bytes

    def copy(self) -> Window:
        return Window(self.origin, self.data.copy())

    def view(self, access: Access) -> npt.NDArray[Any]:
        return np.ndarray(
            access.shape, access.dtype, self.data, access.address - self.origin, access.strides
        )


class CrossFlags:
    """The flags between the cores of a split machine."""

    def __init__(self, places: Sequence[Place]) -> None:
        self._places = places
        self._sets: dict[tuple[tuple[int, ...], int, int], dict[int, int]] = {}
        self.counts: dict[tuple[int, int], int] = defaultdict(int)
        """Core and flag -> how often it may still be waited for."""
        self.told = 0
        """How often flags that all setters of a group had set were counted on their receivers."""

    def set(self, core: int, mode: int, flag: int) -> None:
        """Counts on the receivers once all of the core's group have set it."""
        setters, receivers = scope(self._places, core, mode)
        sets = self._sets.setdefault((setters, mode, flag), dict.fromkeys(setters, 0))
        sets[core] += 1
        if all(sets.values()):
            for setter in setters:
                sets[setter] -= 1
            for receiver in receivers:
                self.counts[receiver, flag] += 1
            self.told += 1

    @property
    def left(self) -> bool:
        """Whether a flag is set."""
        return any(self.counts.values()) or any(any(s.values()) for s in self._sets.values())


@dataclass
class _Pending:
    """A set_flag, of this core or of others, that waits for steps under way."""

    step: Step
    steps: set[int]


@dataclass
class Core:
    """One core that executes one program."""

    number: int
    steps: Sequence[Step]
    memories: dict[Space, Window]
    sequential: frozenset[Pipe]
    depth: int
    cross: CrossFlags
    issued: int = 0
    blocked: bool = False
    flags: set[Event] = field(default_factory=set)
    queues: dict[Pipe, deque[int]] = field(default_factory=lambda: defaultdict(deque))
    running: dict[Pipe, list[int]] = field(default_factory=lambda: defaultdict(list))
    results: dict[int, Sequence[npt.NDArray[Any]]] = field(default_factory=dict)
    added: dict[int, Sequence[npt.NDArray[Any]]] = field(default_factory=dict)
    pending: list[_Pending] = field(default_factory=list)
    vector: Registers = field(default_factory=Registers)
    seen: bytes = b""

    def actions(self) -> list[Action]:
        """What may happen next."""
        found: list[Action] = []
        if self.issued < len(self.steps) and not self.blocked:
            pipe = self.steps[self.issued].pipe
            quiet = not any(self.queues.values()) and not any(self.running.values())
            if quiet if pipe == Pipe.ALL else len(self.queues[pipe]) < self.depth:
                found.append((self.number, "issue", pipe, self.issued))
        for pipe, queue in self.queues.items():
            if queue and self._may_start(pipe, self.steps[queue[0]]):
                found.append((self.number, "start", pipe, queue[0]))
        for pipe, running in self.running.items():
            found += [(self.number, "write", pipe, i) for i in running]
        return found

    def _may_start(self, pipe: Pipe, step: Step) -> bool:
        if step.name == "wait_flag":
            return step.event in self.flags
        if step.name == AWAIT:
            return self.cross.counts[self.number, step.values["flag"]] > 0
        if step.name in ("set_flag", SIGNAL):
            return True
        if pipe == Pipe.S and step.name != SCALAR:
            # Setting a register waits for no load or store.
            return True
        if step.name == "pipe_barrier" or pipe in self.sequential:
            return not self.running[pipe]
        return True

    def act(self, action: Action) -> None:
        """Does one of the actions that may happen next.

        Raises:
            Stuck: a flag is set that is set already.
        """
        _, what, pipe, i = action
        step = self.steps[i]
        if what == "issue":
            self.issued += 1
            if pipe != Pipe.ALL:
                self.queues[pipe].append(i)
            self.blocked = pipe == Pipe.S and step.name in ("wait_flag", AWAIT)
        elif what == "write":
            self._write(pipe, i)
        else:
            self.queues[pipe].popleft()
            if step.name in ("wait_flag", AWAIT):
                if step.name == AWAIT:
                    self.cross.counts[self.number, step.values["flag"]] -= 1
                else:
                    self.flags.remove(step.event)
                if pipe == Pipe.S:
                    self.blocked = False
            elif step.name in ("set_flag", SIGNAL):
                self.pending.append(_Pending(step, set(self.running[pipe])))
                self._fire()
            elif step.name != "pipe_barrier":
                self.running[pipe].append(i)
                if step.name != SCALAR:
                    self._read(i)

    def _read(self, i: int) -> None:
        step = self.steps[i]
        reads, writes = step.accesses
        if step.name == SCALAR:
            data = [self.memories[access.space].view(access).tobytes() for access in reads]
            known = self.seen + b"".join(data) + i.to_bytes(4, "little")
            self.seen = hashlib.sha256(known).digest()
            self.results[i] = [
                np.resize(np.frombuffer(self.seen, np.uint8), access.shape) for access in writes
            ]
        elif step.adds:
            self.added[i] = [self._now(access) for access in reads[:-1]]
        else:
            self.results[i] = self._computed(step, [self._now(access) for access in reads])

    def _now(self, access: Access) -> npt.NDArray[Any]:
        """A copy of the elements that an access finds in memory at this moment."""
        return self.memories[access.space].view(access).copy()

    def _computed(self, step: Step, arrays: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        # What instructions write as they run, flags of comparisons, stays as it is.
        registers = replace(step.registers, cmpmask=self.vector.cmpmask)
        found = [np.array(x) for x in step.record.compute(step.values, registers, arrays)]
        self.vector.cmpmask = registers.cmpmask
        return found

    def _write(self, pipe: Pipe, i: int) -> None:
        step = self.steps[i]
        reads, writes = step.accesses
        if step.name == SCALAR:
            self._read(i)
        elif step.adds:
            self.results[i] = self._computed(step, [*self.added.pop(i), self._now(reads[-1])])
        for access, result in zip(writes, self.results.pop(i), strict=True):
            view = self.memories[access.space].view(access)
            where: Any = True if access.mask is None else access.mask
            np.copyto(view, result, where=where, casting="unsafe")
        self.running[pipe].remove(i)
        for pending in self.pending:
            pending.steps.discard(i)
        self._fire()

    def _fire(self) -> None:
        waiting = []
        for pending in self.pending:
            # Step numbers are unique in a core, so an empty set is a set_flag that is due.
            step = pending.step
            if pending.steps:
                waiting.append(pending)
            elif step.name == SIGNAL:
                self.cross.set(self.number, step.values["mode"], step.values["flag"])
            elif step.event in self.flags:
                raise Stuck("flag set twice")
            else:
                self.flags.add(step.event)
        self.pending = waiting


def event_of(step: Step, access: str) -> str:
    """When an instruction "reads" or "writes"."""
    return "start" if access == "reads" and step.name != SCALAR else "write"


class Run:
    """One interleaving of one or more cores that share GM.

    Attributes:
        outcome: all bytes at the end and what the scalar units saw, or what went wrong.
        log: what happened, in order.
    """

    def __init__(
        self,
        programs: Sequence[Sequence[Step]],
        memories: Sequence[Mapping[Space, Window]],
        sequential: frozenset[Pipe],
        depth: int,
        rng: np.random.Generator,
        straight: bool = False,
        places: Sequence[Place] = (),
        held_back: tuple[int, str, int] | None = None,
    ) -> None:
        """Runs to the end.

        Args:
            memories: of each core, contents at the start; all have the GM of the first.
            straight: in program order, one instruction and one core after the other.
            places: of the cores, on a split machine.
            held_back: what happens only when nothing else can: core, "start" or "write", step.
        """
        gm = memories[0][Space.GM].copy()
        self._cross = CrossFlags(places)
        self.cores = []
        for number, (steps, windows) in enumerate(zip(programs, memories, strict=True)):
            own = {space: gm if space == Space.GM else w.copy() for space, w in windows.items()}
            self.cores.append(Core(number, steps, own, sequential, depth, self._cross))
        self.log: list[Action] = []
        self._rng, self._straight, self._held_back = rng, straight, held_back
        # Pipes of very different speed make more different orders than fair ones.
        self._speed: dict[tuple[int, str, Pipe], float] = defaultdict(
            lambda: float(10 ** rng.uniform(-2, 2))
        )
        self.outcome = self._run()

    def _run(self) -> tuple[str | bytes, ...]:
        try:
            with np.errstate(all="ignore"):
                ready = [core.actions() for core in self.cores]
                while actions := [action for own in ready for action in own]:
                    action = self._choose(actions)
                    self.log.append(action)
                    core, told = self.cores[action[0]], self._cross.told
                    core.act(action)
                    if self._cross.told == told:  # what others may do is as it was
                        ready[core.number] = core.actions()
                    else:
                        ready = [each.actions() for each in self.cores]
        except Stuck as stuck:
            return (str(stuck),)
        for core in self.cores:
            if core.issued < len(core.steps) or any(core.queues.values()):
                return ("deadlock",)
            if core.flags or self._cross.left:
                return ("flags left set",)
        windows = [core.memories for core in self.cores]
        return (
            windows[0][Space.GM].data.tobytes(),
            *(w.data.tobytes() for own in windows for s, w in own.items() if s != Space.GM),
            *(core.seen for core in self.cores),
        )

    def _choose(self, actions: list[Action]) -> Action:
        if self._held_back is not None:
            actions = [a for a in actions if (a[0], a[1], a[3]) != self._held_back] or actions
        if len(actions) == 1:
            return actions[0]
        if self._straight:
            return max(actions, key=lambda a: (-a[0], a[1] != "issue", -a[3]))
        weights = [self._speed[a[:3]] for a in actions]
        pick = self._rng.random() * sum(weights)
        for action, weight in zip(actions, weights, strict=True):
            pick -= weight
            if pick <= 0:
                return action
        return actions[-1]

    def before(self, first: tuple[int, int], did: str, second: tuple[int, int], does: str) -> bool:
        """Whether an access came before another one.

        Args:
            first, second: core and step.
            did, does: "reads" or "writes", the accesses of the two.
        """
        times = {(core, what, i): t for t, (core, what, _, i) in enumerate(self.log)}

        def time(core: int, i: int, access: str) -> int | None:
            return times.get((core, event_of(self.cores[core].steps[i], access), i))

        a, b = time(*first, did), time(*second, does)
        return a is not None and (b is None or a < b)

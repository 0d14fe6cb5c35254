"""Runs a kernel's synchronisation on paper: which earlier operations is each one sure of?

Every loop is run twice, and zero times and once where its trip count is unknown; branches are run
one after the other and joined. The operations and waits of a pipe are numbered in order, and each
pipe has a clock: for every pipe the number up to which all is complete before its next operation
starts. `set_flag` sends the clock of its pipe, with all of the pipe's own so far; `wait_flag` takes
it over; a barrier adds its pipe.

Why twice is enough: a third iteration stands to the second as the second to the first, and what a
pipe knows never shrinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from davinci.isa.core import Pipe
from davinci.passes.cce.sync_memory import Memory
from davinci.passes.cce.sync_plan import Action, Flag, Plan, Sync
from davinci.passes.cce.sync_program import Block, Branch, Leaf, Loop, Node, Program
from davinci.passes.cce.sync_record import Clock, Instance, Record
from davinci.passes.cce.sync_teachers import Teachers

PIPES = [pipe for pipe in Pipe if pipe < Pipe.ALL]
FlagPair = tuple[Pipe, Pipe]


@dataclass
class State:
    """What is known at a point of the trace.

    Attributes:
        clocks: of each pipe.
        sent: for each set flag, what its waiter will know.
        waited: for each flag, the number of its latest wait.
        live: for each pair of pipes, flags of which the setter may not know that they are clear.
    """

    clocks: list[Clock]
    sent: dict[Flag, Clock] = field(default_factory=dict)
    waited: dict[Flag, int] = field(default_factory=dict)
    live: dict[FlagPair, set[Flag]] = field(default_factory=dict)

    def copy(self) -> State:
        live = {pair: set(flags) for pair, flags in self.live.items()}
        return State([[*clock] for clock in self.clocks], {**self.sent}, {**self.waited}, live)


@dataclass(frozen=True)
class _Path:
    """One of the ways through a loop or branch: `numbers` of each pipe where it begins and ends."""

    state: State
    begin: Clock
    end: Clock


class Observer(Protocol):
    """Who wants to know what a trace finds."""

    def missing(self, trace: Trace, earlier: Instance, later: Leaf) -> None:
        """`earlier` must be complete before the operation `later`, which comes now, and its pipe
        does not know that it is. The trace goes on as if it did."""

    def unclear(self, trace: Trace, earlier: Instance, pipe: Pipe, node: Node) -> None:
        """The wait `earlier` must be over before `pipe` sets the flag again, after `node`, and is
        not known to be. The trace goes on as if it were."""

    def sets(self, flag: Flag, others: set[Flag]) -> None:
        """A flag is set while `others` of the same pipes may not be clear."""


class Trace:
    """One run over a program with a plan, which the observer may extend.

    Attributes:
        state: what is known now.
        loops, iteration: the loops around this point, and the iteration of each.
        instances: of each pipe, those so far.
        waits: for flags from one pipe to another in a block, the waits so far, in order: (order of
            what it comes before, number that its pipe is past when it is over).
    """

    def __init__(
        self,
        program: Program,
        memory: Memory,
        plan: Plan,
        observer: Observer,
        teachers: Teachers | None = None,
    ) -> None:
        """Runs the program.

        Args:
            teachers: who is told of each lesson and of all that pipes must know, if somebody is.
        """
        self._plan, self._observer, self._teachers = plan, observer, teachers
        self._record = Record(memory)
        self.instances: list[list[Instance]] = [[] for _ in PIPES]
        self.waits: dict[tuple[Block, Pipe, Pipe], list[tuple[int, int]]] = {}
        self.state = State([[0] * len(PIPES) for _ in PIPES])
        self.loops: tuple[Loop, ...] = ()
        self.iteration: tuple[int, ...] = ()
        self._work = [0] * len(PIPES)
        self._order = 0
        self._absent: list[tuple[int, int]] = []
        self._block(program.body)

    def work(self, pipe: Pipe) -> int:
        """Number of operations of a pipe so far."""
        return self._work[pipe]

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            for action in self._plan.before(node):
                self._act(action, node)
            if isinstance(node, Leaf):
                self._leaf(node)
            elif isinstance(node, Loop):
                self._loop(node)
            elif isinstance(node, Branch):
                self._branch(node)
            for action in self._plan.after(node):
                self._act(action, node)

    def _leaf(self, leaf: Leaf) -> None:
        """Executes an operation."""
        clock = self.state.clocks[leaf.pipe]
        known = [0] * len(PIPES) if self._teachers else [*clock]
        for earlier in self._record.before(leaf, self.iteration, known, self._absent):
            if earlier.number > clock[earlier.pipe]:
                self._observer.missing(self, earlier, leaf)
                learn(clock, earlier.clock)
            if self._teachers:
                self._teachers.require(leaf.pipe, earlier.pipe, earlier.number)
        self._record.add(self._issue(leaf, leaf.pipe, is_wait=False))
        self._work[leaf.pipe] += 1

    def _issue(self, node: Node, pipe: Pipe, is_wait: bool) -> Instance:
        """Adds an instance."""
        instances = self.instances[pipe]
        clock = [*self.state.clocks[pipe]]
        clock[pipe] = len(instances) + 1
        instance = Instance(
            node,
            is_wait,
            pipe,
            clock[pipe],
            self._order,
            self._work[pipe],
            self.loops,
            self.iteration,
            clock,
        )
        instances.append(instance)
        self._order += 1
        return instance

    def _loop(self, loop: Loop) -> None:
        trips = 2 if loop.trips is None else min(loop.trips, 2)
        paths = []
        begin = self._numbers()
        for iteration in range(trips):
            if loop.trips is None:
                paths.append(_Path(self.state.copy(), begin, self._numbers()))
            with self._inside(loop, iteration):
                self._block(loop.body)
        if loop.trips is None:
            paths.append(_Path(self.state, begin, self._numbers()))
            self._join(paths, begin)

    @contextmanager
    def _inside(self, loop: Loop, iteration: int) -> Iterator[None]:
        outside = self.loops, self.iteration
        self.loops, self.iteration = (*self.loops, loop), (*self.iteration, iteration)
        yield
        self.loops, self.iteration = outside

    def _branch(self, branch: Branch) -> None:
        start, begin, order = self.state, self._numbers(), self._order
        paths = []
        for block in branch.blocks:
            self.state = start.copy()
            own = self._numbers()
            for clock in self.state.clocks:
                for pipe in PIPES:
                    # What the branches before did is not there.
                    if clock[pipe] >= begin[pipe]:
                        clock[pipe] = own[pipe]
            self._absent.append((order, self._order))
            self._block(block)
            self._absent.pop()
            paths.append(_Path(self.state, own, self._numbers()))
        if len(paths) == 1:
            paths.append(_Path(start, begin, begin))
        self._join(paths, begin)

    def _join(self, paths: list[_Path], begin: Clock) -> None:
        """Keeps what is known on every path; what a path does not execute is complete there.

        Args:
            begin: numbers where the paths split.
        """
        end = self._numbers()

        def known(path: _Path, clock: Clock) -> Clock:
            return [_reach(clock[p], begin[p], path.begin[p], path.end[p], end[p]) for p in PIPES]

        def least(clocks: list[Clock]) -> Clock:
            return [min(numbers) for numbers in zip(*clocks, strict=True)]

        states = [path.state for path in paths]
        joined = State(
            [least([known(path, path.state.clocks[pipe]) for path in paths]) for pipe in PIPES]
        )
        # A flag that the observer has added meanwhile is on some paths only.
        sent: dict[Flag, list[Clock]] = {}
        for path in paths:
            for flag, clock in path.state.sent.items():
                sent.setdefault(flag, []).append(known(path, clock))
        joined.sent = {flag: least(clocks) for flag, clocks in sent.items()}
        for state in states:
            for flag, number in state.waited.items():
                joined.waited[flag] = max(number, joined.waited.get(flag, 0))
            for pair, flags in state.live.items():
                joined.live.setdefault(pair, set()).update(flags)
        self.state = joined

    def _numbers(self) -> Clock:
        return [len(instances) for instances in self.instances]

    def _act(self, action: Action, node: Node) -> None:
        sync, flag = action.sync, action.flag
        if flag is None:
            self.barrier(sync)
        elif action.kind == "set":
            self._set(flag, node)
        else:
            # What the observer has added meanwhile may have no set in this run.
            sent = self.state.sent.pop(flag, None)
            if sent is not None:
                self.wait(sync, flag, sent, node)

    def barrier(self, sync: Sync) -> None:
        """All pipes, or one, learn what they have done."""
        numbers, everything = self._numbers(), sync.dst == Pipe.ALL
        told = [n if everything or pipe == sync.dst else 0 for pipe, n in enumerate(numbers)]
        for clock in self.state.clocks if everything else [self.state.clocks[sync.dst]]:
            learn(clock, told)
        if self._teachers:
            for pipe in PIPES if everything else [sync.dst]:
                self._teachers.barrier(sync, pipe, told)

    def _set(self, flag: Flag, node: Node) -> None:
        clock = self.state.clocks[flag.src]
        # What the scalar unit waited for is over before anything else is issued.
        number = 0 if flag.dst == Pipe.S else self.state.waited.get(flag, 0)
        if number > clock[flag.dst]:
            earlier = self.instances[flag.dst][number - 1]
            self._observer.unclear(self, earlier, flag.src, node)
            learn(clock, earlier.clock)
        if self._teachers:
            if number:
                self._teachers.require(flag.src, flag.dst, number)
            self._teachers.sets(flag)
        live = self.state.live.setdefault((flag.src, flag.dst), set())
        live -= {other for other in live if self._is_clear(other)}
        self._observer.sets(flag, live - {flag})
        live.add(flag)
        sent = self.state.sent[flag] = [*clock]
        sent[flag.src] = len(self.instances[flag.src])

    def _is_clear(self, flag: Flag) -> bool:
        """Whether the pipe that sets a flag knows that the latest wait for it is over."""
        if flag in self.state.sent:
            return False
        known = self.state.clocks[flag.src][flag.dst]
        return flag.dst == Pipe.S or self.state.waited.get(flag, 0) <= known

    def wait(self, sync: Sync, flag: Flag, sent: Clock, node: Node) -> None:
        """The pipe that waits learns what was sent."""
        # While the scalar pipe waits it issues nothing: what it learns holds for all pipes.
        for pipe in PIPES if flag.dst == Pipe.S else [flag.dst]:
            learn(self.state.clocks[pipe], sent)
            if self._teachers:
                self._teachers.wait(sync, flag, pipe, sent)
        instance = self._issue(node, flag.dst, is_wait=True)
        self.state.waited[flag] = instance.number
        waits = self.waits.setdefault((sync.block, flag.src, flag.dst), [])
        waits.append((instance.order, instance.number))


def learn(clock: Clock, told: Clock) -> None:
    """Adds to a clock what another one knows."""
    for pipe, number in enumerate(told):
        if number > clock[pipe]:
            clock[pipe] = number


def _reach(number: int, begin: int, own_begin: int, own_end: int, end: int) -> int:
    """Up to which number all is complete on a path that knows of `number`.

    A path splits off at `begin`, executes what is numbered above `own_begin` up to `own_end`, and
    nothing else up to `end`.
    """
    if number < begin:
        return number
    if number >= own_end or own_begin == own_end:
        return end
    return max(number, own_begin)

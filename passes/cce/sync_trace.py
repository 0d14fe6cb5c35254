"""Runs a kernel's synchronisation on paper: which earlier operations is each one sure of?

Every loop is run twice, and zero times and once where its trip count is unknown; branches are run
one after the other and joined. The operations and waits of a pipe are numbered in order, and each
pipe has a clock: for every pipe the number up to which all is complete before its next operation
starts. `set_flag` sends the clock of its pipe, with all of the pipe's own so far; `wait_flag` takes
it over; a barrier adds its pipe. The wait of a sync that is left out has its number all the same,
and nothing else.

Why twice is enough: a third iteration stands to the second as the second to the first, and what a
pipe knows never shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from davinci.passes.cce.sync_clock import PIPES, Clock, learn
from davinci.passes.cce.sync_plan import Action, PipeFlag, Sync, SyncPlan
from davinci.passes.cce.sync_program import Branch, Leaf, SyncBlock, SyncLoop, SyncNode
from davinci.passes.cce.sync_queues import Queue
from davinci.passes.cce.sync_record import Record
from davinci.passes.cce.sync_teachers import Teachers
from davinci.passes.cce.sync_visits import (
    NodeVisit,
    NodeVisits,
    PipeKnowledge,
    VisitOutcome,
    left_out_in,
)

FlagPair = tuple[Queue, Queue]

Listener = Callable[[PipeFlag, set[PipeFlag]], None]
"""Is told of each flag that is set, and of those of the same pipes that may not be clear then."""


@dataclass
class TraceState:
    """What is known at a point of the trace.

    Attributes:
        clocks: of each pipe.
        sent: for each set flag, what its waiter will know.
        live: for each pair of pipes, flags of which the setter may not know that they are clear;
            kept for a listener.
    """

    clocks: list[Clock]
    sent: dict[PipeFlag, Clock] = field(default_factory=dict)
    live: dict[FlagPair, set[PipeFlag]] = field(default_factory=dict)

    def copy(self) -> TraceState:
        live = {pair: set(flags) for pair, flags in self.live.items()}
        return TraceState([[*clock] for clock in self.clocks], {**self.sent}, live)


@dataclass(frozen=True)
class _Path:
    """One of the ways through a loop or branch: of each pipe the number where it begins, and the
    last one that it issued, or the former if it issued none."""

    state: TraceState
    begin: Clock
    end: Clock


class Incomplete(Exception):
    """Ends a trace at the first thing missing."""


class Trace:
    """One run over a program with a plan.

    Attributes:
        state: what is known now.
        loops, iteration: the loops around this point, and the iteration of each.
        numbers: of each pipe, how many operations and waits it had so far, with those left out.
    """

    def __init__(
        self,
        record: Record,
        plan: SyncPlan,
        teachers: Teachers | None = None,
        listener: Listener | None = None,
        without: Collection[Sync] = (),
        visits: NodeVisits | None = None,
    ) -> None:
        """Runs the program.

        Raises:
            Incomplete: something is missing.

        Args:
            teachers: who is told of each lesson and of all that pipes must know, if somebody is.
            listener: who is told of flags that are set, if somebody is.
            without: syncs of the plan that are left out.
            visits: of other traces with the same plan, which are not repeated; without teachers and
                listeners.
        """
        self._plan, self._teachers = plan, teachers
        self._listener, self._without = listener, without
        self._visits, self._left_out = visits, left_out_in(without) if visits else {}
        self._before = record.before
        self._executed: list[int] = []
        self._waited: dict[PipeFlag, int] = {}
        """Number of the latest wait for each flag, on any path: the blocks in which a flag is set
        and waited for lie around each other, so branches never see each other's flags."""
        self.numbers = [0] * len(PIPES)
        self._issued = [0] * len(PIPES)
        """The last number of each pipe that is not a wait left out."""
        self.state = TraceState([[0] * len(PIPES) for _ in PIPES])
        self.loops: tuple[SyncLoop, ...] = ()
        self.iteration: tuple[int, ...] = ()
        self._block(record.program.body)

    def _block(self, block: SyncBlock) -> None:
        for node in block.nodes:
            for action in self._plan.before(node):
                self._act(action, node)
            if isinstance(node, Leaf):
                self._leaf(node)
            elif self._visits is None:
                self._enter(node)
            else:
                self._visit(node, self._visits)
            for action in self._plan.after(node):
                self._act(action, node)

    def _enter(self, node: SyncLoop | Branch) -> None:
        """Executes a loop or branch."""
        if isinstance(node, SyncLoop):
            self._loop(node)
        else:
            self._branch(node)

    def _visit(self, node: SyncLoop | Branch, visits: NodeVisits) -> None:
        """Executes a loop or branch, or does what another trace did there that entered it in the
        same state."""
        start = len(self._executed)
        visit = NodeVisit(node, start, self._left_out.get(node, frozenset()))
        state = PipeKnowledge(self.state.clocks, self.state.sent)
        if outcome := visits.find(visit, state):
            self.state = TraceState(*outcome.knowledge.copy())
            self.numbers, self._issued = [*outcome.numbers], [*outcome.issued]
            self._executed += outcome.executed
            self._waited.update(outcome.waited)
            return
        entry, before = state.copy(), [*self.numbers]
        self._enter(node)
        left = PipeKnowledge(self.state.clocks, self.state.sent).copy()
        waited = {flag: n for flag, n in self._waited.items() if n > before[flag.dst]}
        made = VisitOutcome(left, [*self.numbers], [*self._issued], self._executed[start:], waited)
        visits.add(visit, entry, made)

    def _leaf(self, leaf: Leaf) -> None:
        """Executes an operation."""
        clock = self.state.clocks[leaf.pipe]
        for pipe, execution in self._before[len(self._executed)]:
            number = self._executed[execution]
            if number > clock[pipe]:
                self._missing(pipe, number, leaf)
            if self._teachers:
                self._teachers.require(leaf.pipe, pipe, number)
        for pipe in leaf.behind:  # It may touch memory before it waits for them.
            learn(clock, self._told(pipe))
        self._executed.append(self._issue(leaf, leaf.pipe, is_wait=False))

    def _issue(self, node: SyncNode, pipe: Queue, is_wait: bool) -> int:
        """Counts an operation, or a wait that precedes or follows a node; its number."""
        self.numbers[pipe] += 1
        self._issued[pipe] = self.numbers[pipe]
        return self.numbers[pipe]

    def _missing(self, pipe: Queue, number: int, later: Leaf) -> None:
        """What has a number on a pipe must be complete before the operation `later`, which comes
        now, and is not known to be."""
        raise Incomplete

    def _unclear(self, flag: PipeFlag, number: int, node: SyncNode) -> None:
        """The wait of a number must be over before the flag is set again, after `node`, and is not
        known to be."""
        raise Incomplete

    def _loop(self, loop: SyncLoop) -> None:
        paths = []
        split, begin = [*self._issued], [*self.numbers]
        for iteration in range(loop.turns):
            if loop.trips is None:
                paths.append(self._path(self.state.copy(), begin))
            with self._inside(loop, iteration):
                self._block(loop.body)
        if loop.trips is None:
            paths.append(self._path(self.state, begin))
            self._join(paths, split)

    def _path(self, state: TraceState, begin: Clock) -> _Path:
        """A path that ends here, given the numbers where it begins."""
        return _Path(state, begin, [*map(max, begin, self._issued)])

    @contextmanager
    def _inside(self, loop: SyncLoop, iteration: int) -> Iterator[None]:
        outside = self.loops, self.iteration
        self.loops, self.iteration = (*self.loops, loop), (*self.iteration, iteration)
        yield
        self.loops, self.iteration = outside

    def _branch(self, branch: Branch) -> None:
        start, split = self.state, [*self._issued]
        paths = []
        for block in branch.blocks:
            self.state = start.copy()
            own = [*self.numbers]
            for clock in self.state.clocks:
                for pipe in PIPES:
                    # What the branches before did is not there.
                    if clock[pipe] >= split[pipe]:
                        clock[pipe] = own[pipe]
            self._block(block)
            paths.append(self._path(self.state, own))
        if len(paths) == 1:
            paths.append(_Path(start, split, split))
        self._join(paths, split)

    def _join(self, paths: list[_Path], split: Clock) -> None:
        """Keeps what is known on every path; what a path does not execute is complete there.

        Args:
            split: the last numbers that pipes issued before the paths split.
        """
        end = [*self.numbers]

        def known(path: _Path, clock: Clock) -> Clock:
            return [_reach(clock[p], split[p], path.begin[p], path.end[p], end[p]) for p in PIPES]

        def least(clocks: list[Clock]) -> Clock:
            return [min(numbers) for numbers in zip(*clocks, strict=True)]

        states = [path.state for path in paths]
        joined = TraceState(
            [least([known(path, path.state.clocks[pipe]) for path in paths]) for pipe in PIPES]
        )
        # A flag that the observer has added meanwhile is on some paths only.
        sent: dict[PipeFlag, list[Clock]] = {}
        for path in paths:
            for flag, clock in path.state.sent.items():
                sent.setdefault(flag, []).append(known(path, clock))
        joined.sent = {flag: least(clocks) for flag, clocks in sent.items()}
        for state in states:
            for pair, flags in state.live.items():
                joined.live.setdefault(pair, set()).update(flags)
        self.state = joined

    def _act(self, action: Action, node: SyncNode) -> None:
        sync, flag = action.sync, action.flag
        if sync in self._without:
            if flag is not None and action.kind == "wait":
                self.numbers[flag.dst] += 1
            return
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
        """Records a barrier: all pipes, or the one it names, know from then on what they have
        done."""
        if sync.dst != Queue.ALL:
            self.state.clocks[sync.dst][sync.dst] = self.numbers[sync.dst]
            if self._teachers:
                told = [n if pipe == sync.dst else 0 for pipe, n in enumerate(self.numbers)]
                self._teachers.barrier(sync, sync.dst, told)
            return
        for pipe, clock in zip(PIPES, self.state.clocks, strict=True):
            clock[:] = self.numbers
            if self._teachers:
                self._teachers.barrier(sync, pipe, [*self.numbers])

    def _set(self, flag: PipeFlag, node: SyncNode) -> None:
        clock = self.state.clocks[flag.src]
        # What the scalar unit waited for is over before anything else is issued.
        number = 0 if flag.dst == Queue.S else self._waited.get(flag, 0)
        if number > clock[flag.dst]:
            self._unclear(flag, number, node)
        if self._teachers:
            if number:
                self._teachers.require(flag.src, flag.dst, number)
            self._teachers.sets(flag)
        if self._listener:
            live = self.state.live.setdefault((flag.src, flag.dst), set())
            live -= {other for other in live if self._is_clear(other)}
            self._listener(flag, live - {flag})
            live.add(flag)
        self.state.sent[flag] = self._told(flag.src)

    def _told(self, pipe: Queue) -> Clock:
        """The clock of a pipe once it has done all of its operations so far."""
        clock = [*self.state.clocks[pipe]]
        clock[pipe] = self.numbers[pipe]
        return clock

    def _is_clear(self, flag: PipeFlag) -> bool:
        """Whether the pipe that sets a flag knows that the latest wait for it is over."""
        if flag in self.state.sent:
            return False
        known = self.state.clocks[flag.src][flag.dst]
        return flag.dst == Queue.S or self._waited.get(flag, 0) <= known

    def wait(self, sync: Sync, flag: PipeFlag, sent: Clock, node: SyncNode) -> None:
        """The pipe that waits learns what was sent."""
        # While the scalar pipe waits it issues nothing: what it learns holds for all pipes.
        for pipe in PIPES if flag.dst == Queue.S else [flag.dst]:
            learn(self.state.clocks[pipe], sent)
            if self._teachers:
                self._teachers.wait(sync, flag, pipe, sent)
        self._waited[flag] = self._issue(node, flag.dst, is_wait=True)


def _reach(number: int, split: int, own_begin: int, own_end: int, end: int) -> int:
    """Up to which number all is complete on a path that knows of `number`.

    A path splits off at `split`, executes what is numbered above `own_begin` up to `own_end`, and
    nothing else up to `end`.
    """
    if number < split:
        return number
    if number >= own_end or own_begin == own_end:
        return end
    return max(number, own_begin)

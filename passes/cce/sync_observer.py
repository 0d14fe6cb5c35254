"""A trace for who wants to add what is missing: it keeps all that was executed, and goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from davinci.passes.cce.sync_clock import PIPES, Clock, learn
from davinci.passes.cce.sync_plan import PipeFlag, Sync, SyncPlan
from davinci.passes.cce.sync_program import Leaf, SyncBlock, SyncLoop, SyncNode
from davinci.passes.cce.sync_queues import Queue
from davinci.passes.cce.sync_record import Record
from davinci.passes.cce.sync_trace import Trace


@dataclass(eq=False)
class Instance:
    """One execution of an operation, or of a wait.

    Attributes:
        node: the operation, or the node that the wait precedes or follows.
        is_wait: which of the two it is.
        pipe, number: where it runs, and its number there, from 1.
        order: its number among all.
        work: number of operations that its pipe had before.
        loops, iteration: loops around it, outermost first, and the iteration of each.
        clock: what is complete once it is, it too.
    """

    node: SyncNode
    is_wait: bool
    pipe: Queue
    number: int
    order: int
    work: int
    loops: tuple[SyncLoop, ...]
    iteration: tuple[int, ...]
    clock: Clock


class Observer(Protocol):
    """Who wants to know what a trace finds."""

    def missing(self, trace: ObservedTrace, earlier: Instance, later: Leaf) -> None:
        """`earlier` must be complete before the operation `later`, which comes now, and its pipe
        does not know that it is. The trace goes on as if it did."""

    def unclear(self, trace: ObservedTrace, earlier: Instance, pipe: Queue, node: SyncNode) -> None:
        """The wait `earlier` must be over before `pipe` sets the flag again, after `node`, and is
        not known to be. The trace goes on as if it were."""


class ObservedTrace(Trace):
    """A run over a program with a plan, which the observer may extend.

    Attributes:
        instances: of each pipe, those so far.
        waits: for flags from one pipe to another in a block, the waits so far, in order: (order of
            what it comes before, number that its pipe is past when it is over).
    """

    def __init__(self, record: Record, plan: SyncPlan, observer: Observer) -> None:
        """Runs the program."""
        self._observer = observer
        self.instances: list[list[Instance]] = [[] for _ in PIPES]
        self.waits: dict[tuple[SyncBlock, Queue, Queue], list[tuple[int, int]]] = {}
        self._work = [0] * len(PIPES)
        self._order = 0
        super().__init__(record, plan)

    def work(self, pipe: Queue) -> int:
        """Number of operations of a pipe so far."""
        return self._work[pipe]

    def wait(self, sync: Sync, flag: PipeFlag, sent: Clock, node: SyncNode) -> None:
        super().wait(sync, flag, sent, node)
        waits = self.waits.setdefault((sync.block, flag.src, flag.dst), [])
        waits.append((self._order - 1, self.numbers[flag.dst]))

    def _issue(self, node: SyncNode, pipe: Queue, is_wait: bool) -> int:
        number = super()._issue(node, pipe, is_wait)
        clock = [*self.state.clocks[pipe]]
        clock[pipe] = number
        instance = Instance(
            node,
            is_wait,
            pipe,
            number,
            self._order,
            self._work[pipe],
            self.loops,
            self.iteration,
            clock,
        )
        self.instances[pipe].append(instance)
        self._order += 1
        self._work[pipe] += not is_wait
        return number

    def _missing(self, pipe: Queue, number: int, later: Leaf) -> None:
        earlier = self.instances[pipe][number - 1]
        self._observer.missing(self, earlier, later)
        learn(self.state.clocks[later.pipe], earlier.clock)

    def _unclear(self, flag: PipeFlag, number: int, node: SyncNode) -> None:
        earlier = self.instances[flag.dst][number - 1]
        self._observer.unclear(self, earlier, flag.src, node)
        learn(self.state.clocks[flag.src], earlier.clock)

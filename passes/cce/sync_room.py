"""Where a flag in a straight line can be set so that there is an event id for it.

Flags of a pair of pipes are waited for in the order in which they are set, else one would imply
the other. So with four event ids a flag can be set once its pipe knows that the wait for the fourth
before it is over. Often it does. Else it is set *late*: just before the first later operation of
its pipe that has learnt of it from other flags, with all that the pipe has done by then.

If there is none, the pipe has to ask. If the fourth wait comes before the operation in the text,
the operation waits for an *answer*, a flag that there is for the event id only:

    load 1 .. 4      MTE2                       load 1 .. 4      MTE2
    work 1           V                          work 1           V
    load 5           MTE2            =>         set_flag V -> MTE2
    ...                                         ...
                                                wait_flag V -> MTE2
                                                load 5           MTE2
                                                set_flag MTE2 -> V
    work 5           V                          work 5           V

If it comes after, the flag is late there, and the pipe asks before it sets the flag:

    load 1 .. 5      MTE2                       load 1 .. 5      MTE2
    work 1           V               =>         set_flag V -> MTE2; wait_flag V -> MTE2
                                                set_flag MTE2 -> V
                                                work 1           V
    work 5           V                          work 5           V
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator
from dataclasses import dataclass

from davinci.passes.cce.sync_clock import Clock, learn
from davinci.passes.cce.sync_observer import Instance, ObservedTrace
from davinci.passes.cce.sync_plan import PipeFlag, Scarcity, Sync
from davinci.passes.cce.sync_program import SyncBlock
from davinci.passes.cce.sync_queues import EventIds, Queue

_LAST = 1 << 62
"""More than any number of an instance."""


@dataclass(frozen=True)
class Point:
    """Behind an operation of a pipe or, if `late`, just before it, behind its waits."""

    instance: Instance
    late: bool = False

    @property
    def scarcity(self) -> Scarcity:
        return Scarcity.LATE if self.late else Scarcity.NONE

    @property
    def work(self) -> int:
        """Operations of the pipe before it."""
        return self.instance.work + (not self.late)

    @property
    def sent(self) -> Clock:
        """What a flag carries that is set here."""
        clock = [*self.instance.clock]
        clock[self.instance.pipe] -= self.late
        return clock


class EventRoom:
    """The event ids of flags that lie in a block.

    Args:
        event_ids: of each pair of pipes.
    """

    def __init__(self, trace: ObservedTrace, block: SyncBlock, event_ids: EventIds) -> None:
        self._trace, self._block, self._event_ids = trace, block, event_ids

    def first(self, earlier: Instance, dst: Queue) -> Point | None:
        """The first point behind `earlier` where its pipe can set a flag for `dst`, if any."""
        oldest = self._oldest(earlier.pipe, dst)
        if earlier.clock[dst] >= oldest:
            return Point(earlier)
        for instance in self._operations(earlier.pipe, earlier.number + 1):
            if instance.clock[dst] >= oldest:
                return Point(instance, late=True)
        return None

    def make(self, earlier: Instance, dst: Queue) -> tuple[Point, Sync | None]:
        """A point behind `earlier` where its pipe can set a flag for `dst`, and the answer that it
        needs. An answered flag is late at an operation of `dst`."""
        point, oldest = self.first(earlier, dst), self._oldest(earlier.pipe, dst)
        if point:
            return point, None
        waiter = next(self._operations(dst, oldest), None)
        if waiter and waiter.order < earlier.order:
            answer = self._answer(waiter, earlier)
            if answer:
                return Point(earlier), answer
        for asker in self._operations(dst, oldest):
            if asker.order > earlier.order and self._is_clear(asker, earlier.pipe, asker.order):
                return Point(asker, late=True), None
        return Point(earlier), None

    def exchange(self, sync: Sync, point: Point) -> Clock:
        """What the last flag of an answered flag carries, which is late at `point`."""
        question, trace = sync.flags[0], self._trace
        own = trace.instances[question.dst]
        last = own[bisect_right(own, point.instance.order, key=lambda each: each.order) - 1]
        self._teach(question, (point.instance.order, last.number + 1), point.sent)
        sent = [*last.clock]
        learn(sent, point.sent)
        return sent

    def _answer(self, waiter: Instance, earlier: Instance) -> Sync | None:
        """A flag that tells `earlier` that `waiter` is complete; None if it finds no event id."""
        if not self._is_clear(waiter, earlier.pipe, earlier.order):
            return None
        route = (waiter.pipe, earlier.pipe)
        sync = Sync(route, self._block, waiter.node, earlier.node, scarcity=Scarcity.ANSWER)
        self._teach(sync.flags[0], (earlier.order, earlier.number), waiter.clock)
        return sync

    def _teach(self, flag: PipeFlag, wait: tuple[int, int], told: Clock) -> None:
        """Notes a flag whose wait lies behind; what its pipe did after knows what it carried."""
        trace, (_, number) = self._trace, wait
        for instance in trace.instances[flag.dst][number - 1 :]:
            learn(instance.clock, told)
        learn(trace.state.clocks[flag.dst], told)
        insort(trace.waits.setdefault((self._block, flag.src, flag.dst), []), wait)

    def _is_clear(self, setter: Instance, dst: Queue, order: int) -> bool:
        """Whether there is an event id for a flag that `setter` sets for `dst` to wait for before
        the instance `order`."""
        return setter.clock[dst] >= self._oldest(setter.pipe, dst, order)

    def _oldest(self, src: Queue, dst: Queue, order: int = _LAST) -> int:
        """The number that `src` must know `dst` to be past before it sets a flag that is waited
        for before the instance `order`, so that there is an event id for it."""
        waits = self._trace.waits.get((self._block, src, dst), [])
        count = bisect_right(waits, (order, _LAST))
        # The scalar unit's waits are over before anything else is issued.
        event_ids = self._event_ids.of(src, dst)
        if dst == Queue.S or count < event_ids:
            return 0
        return waits[count - event_ids][1]

    def _operations(self, pipe: Queue, first: int) -> Iterator[Instance]:
        """Those of a pipe that lie in the block, from number `first` on."""
        instances = self._trace.instances[pipe]
        for i in range(first - 1, len(instances)):
            if not instances[i].is_wait and instances[i].node.block is self._block:
                yield instances[i]

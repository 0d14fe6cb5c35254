"""How two operations are ordered: by a flag, a relay or a barrier, and where.

Between two pipes the first sets a flag and the second waits for it:

    copy GM -> a     MTE2                       copy GM -> a     MTE2
    vexp a -> b      V                          set_flag MTE2 -> V
                                        =>      wait_flag MTE2 -> V
                                                vexp a -> b      V

Within a pipe whose instructions overlap, a barrier keeps the pipe still until all before it is
complete, and about 20 cycles more. If the pipe has other work between the two, a relay takes as
long, but that work fills the time: any instruction keeps its pipe for about as long as two flags
take. The barrier serves all dependences at its place, a relay those on what comes before its set.

    vexp a -> b      V                          vexp a -> b      V
                                                set_flag V -> M
                                                wait_flag V -> M
                                        =>      set_flag M -> V
    vexp c -> d      V                          vexp c -> d      V
                                                wait_flag M -> V
    vabs b -> b      V                          vabs b -> b      V

What lies in different loops or branches is ordered in the innermost block around both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from davinci.passes.analysis.accesses import FORWARD
from davinci.passes.cce.sync_observer import Instance, ObservedTrace
from davinci.passes.cce.sync_plan import Sync, SyncPlan
from davinci.passes.cce.sync_program import (
    Leaf,
    SyncBlock,
    SyncNode,
    ancestor,
    common_block,
    common_loops,
)
from davinci.passes.cce.sync_queues import EventIds, Queue
from davinci.passes.cce.sync_record import differs_at
from davinci.passes.cce.sync_room import EventRoom

Place = Callable[[SyncBlock], SyncNode]
"""Around which statement a flag for a later iteration of a loop's body is set and waited for."""


@dataclass(frozen=True)
class Resources:
    """What there is for synchronisation.

    Attributes:
        event_ids: of each pair of pipes.
        relays: for pipes whose instructions overlap, an idle pipe of its own, if there is one.
    """

    event_ids: EventIds
    relays: Mapping[Queue, Queue]


class Completion:
    """Adds what a trace misses to its plan.

    Args:
        steady: whether to leave the first iteration of loops alone. What two operations of a body
            need they need in the second too, and there the flags of the iteration before are known,
            with which they share event ids.

    Attributes:
        asked, added: how often something was missing, and how many syncs were added for it.
    """

    def __init__(self, plan: SyncPlan, resources: Resources, place: Place, steady: bool) -> None:
        self._plan, self._place, self._steady = plan, place, steady
        self._event_ids, self._relays = resources.event_ids, resources.relays
        self._keys = {sync.key for sync in plan.syncs}
        self.asked = self.added = 0

    def missing(self, trace: ObservedTrace, earlier: Instance, later: Leaf) -> None:
        block, after, before = _span(trace, earlier, later)
        if after is not earlier.node or before is not later:
            self._order(block, after, before, earlier.pipe, later.pipe)
        elif earlier.pipe == later.pipe:
            self._within_pipe(trace, earlier, later)
        else:
            self._between_pipes(trace, earlier, later)

    def unclear(self, trace: ObservedTrace, earlier: Instance, pipe: Queue, node: SyncNode) -> None:
        self._order(*_span(trace, earlier, node), earlier.pipe, pipe)

    def _order(
        self, block: SyncBlock, after: SyncNode, before: SyncNode, src: Queue, dst: Queue
    ) -> None:
        """A flag or barrier for operations of which one lies in an inner loop or branch, or that
        the trace has passed. It is in place when the trace is run again."""
        if src == dst:
            self._add(Sync((src,), block, before, before))
            return
        around = self._place(block) if after.index > before.index else None
        self._add(Sync((src, dst), block, after, before, around))

    def _add(self, sync: Sync) -> None:
        """Adds a sync to the plan unless the plan has one that does the same."""
        self.asked += 1
        if sync.key not in self._keys:
            self._keys.add(sync.key)
            self._plan.add(sync)
            self.added += 1

    def _add_here(self, trace: ObservedTrace, sync: Sync) -> None:
        """Adds a sync of operations that the trace passes now, or does as if."""
        if self._steady and trace.loops and trace.loops[-1].trips != 1 and not trace.iteration[-1]:
            self.asked += 1
        else:
            self._add(sync)

    def _within_pipe(self, trace: ObservedTrace, earlier: Instance, later: Leaf) -> None:
        """A relay, or a barrier if there is nothing between the two that fills its time."""
        pipe, block = later.pipe, later.block
        over = self._relays.get(pipe)
        room = EventRoom(trace, block, self._event_ids)
        point = None if over is None else room.first(earlier, over)
        if over is None or point is None or trace.work(pipe) == point.work:
            barrier = Sync((pipe,), block, later, later)
            self._add_here(trace, barrier)
            trace.barrier(barrier)
            return
        after = point.instance.node
        around = self._place(block) if after.index >= later.index else None
        relay = Sync((pipe, over, pipe), block, after, later, around, point.scarcity)
        self._add_here(trace, relay)
        trace.wait(relay, relay.flags[0], point.sent, after)
        sent = [*trace.state.clocks[over]]
        sent[over] = trace.numbers[over]
        trace.wait(relay, relay.flags[1], sent, later)

    def _between_pipes(self, trace: ObservedTrace, earlier: Instance, later: Leaf) -> None:
        """A flag, perhaps a late one, or one that needs an answer."""
        src, dst, block = earlier.pipe, later.pipe, later.block
        room = EventRoom(trace, block, self._event_ids)
        point, answer = room.make(earlier, dst)
        if answer:
            carried = answer.after.index > answer.before.index
            answer.around = self._place(block) if carried else None
            self._add_here(trace, answer)
        after = point.instance.node
        route = (src, dst) if point.instance.pipe == src else (dst, src, dst)
        around = self._place(block) if after.index > later.index else None
        sync = Sync(route, block, after, later, around, point.scarcity)
        self._add_here(trace, sync)
        sent = point.sent if sync.is_flag else room.exchange(sync, point)
        trace.wait(sync, sync.flags[-1], sent, later)


def _span(
    trace: ObservedTrace, earlier: Instance, later: SyncNode
) -> tuple[SyncBlock, SyncNode, SyncNode]:
    """The block where a sync from an instance to a node lies, and its nodes that contain the two:
    of several iterations the body of the outermost loop that they differ in."""
    depth = common_loops(earlier.loops, trace.loops)
    carrier = differs_at(earlier.iteration, trace.iteration, depth)
    block = common_block(earlier.node, later)
    if carrier != FORWARD:
        block = trace.loops[carrier].body
    return block, ancestor(earlier.node, block), ancestor(later, block)

"""The flags and barriers of a kernel, and where their operations lie."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from itertools import chain
from typing import Literal

from davinci.passes.cce.sync_program import SyncBlock, SyncNode
from davinci.passes.cce.sync_queues import Queue


@dataclass(eq=False)
class PipeFlag:
    """A flag from one pipe to another; `event` is its id, once allocated."""

    src: Queue
    dst: Queue
    event: int = -1


class Scarcity(Enum):
    """What a sync is, or is like, only because event ids ran out."""

    NONE = auto()
    LATE = auto()
    """It does not follow its node `after` but precedes it, behind the waits there."""
    ANSWER = auto()
    """It tells a pipe that a flag is clear whose id it needs."""
    MERGED = auto()
    """It does the work of two, or of a relay."""


@dataclass(eq=False)
class Sync:
    """Orders what precedes `after` on one pipe before what follows `before` on another, or on it.

    Attributes:
        route: pipes that it goes through, each but the first waiting for a flag of the one before.
            (V,) is a barrier of V, (ALL,) one of all pipes; (MTE2, V) is a flag; (V, M, V) is a
            relay, by which V waits for what it did before, over an idle pipe; (V, MTE2, V) is an
            answered flag from MTE2 to V: MTE2 sets it when it knows what V is past.
        block: where all of its operations lie.
        after: node of the block that everything but the last wait follows; unused for a barrier.
        before: node of the block that the last wait or barrier precedes. If a flag's `before` is
            the same node as `after`, set and wait both follow it.
        around: for a dependence on the iteration before (the wait precedes the set): the outermost
            statement around which the last flag is set first and waited for last.
        scarcity: whether it is as it is for want of event ids.
    """

    route: tuple[Queue, ...]
    block: SyncBlock
    after: SyncNode
    before: SyncNode
    around: SyncNode | None = None
    scarcity: Scarcity = Scarcity.NONE
    flags: tuple[PipeFlag, ...] = field(init=False)

    def __post_init__(self) -> None:
        pairs = zip(self.route, self.route[1:], strict=False)
        self.flags = tuple(PipeFlag(src, dst) for src, dst in pairs)

    @property
    def dst(self) -> Queue:
        return self.route[-1]

    @property
    def is_barrier(self) -> bool:
        return len(self.route) == 1

    @property
    def is_flag(self) -> bool:
        return len(self.route) == 2

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for syncs that do the same."""
        return (self.route, self.before, None if self.is_barrier else self.after)


@dataclass(frozen=True)
class Action:
    """An operation of a sync: `flag` is set or waited for, or there is a barrier."""

    kind: Literal["set", "wait", "barrier"]
    sync: Sync
    flag: PipeFlag | None = None


class ActionOrder(IntEnum):
    """The order of actions between two nodes. After a node:

    the last wait of flags around it, sets, answered flags and relays, flags that it both sets and
    waits for; before a node: waits, barriers, what is late, the first set of flags around it.
    """

    LAST_WAIT = 0
    SET = 1
    EXCHANGE = 2
    TURN = 3
    WAIT = 4
    BARRIER = 5
    LATE = 6
    FIRST_SET = 7


STAGES = len(ActionOrder)


class SyncPlan:
    """The syncs of a kernel, with their actions by the node they follow or precede."""

    def __init__(self, syncs: Iterable[Sync] = ()) -> None:
        self._syncs: dict[Sync, None] = {}
        self._after: dict[SyncNode, list[list[Action]]] = {}
        self._before: dict[SyncNode, list[list[Action]]] = {}
        for sync in syncs:
            self.add(sync)

    @property
    def syncs(self) -> list[Sync]:
        """In the order in which they were added."""
        return list(self._syncs)

    def add(self, sync: Sync) -> None:
        self._syncs[sync] = None
        for node, stage, action in _actions(sync):
            self._at(node, stage).append(action)

    def remove(self, sync: Sync) -> None:
        del self._syncs[sync]
        for node, stage, action in _actions(sync):
            self._at(node, stage).remove(action)

    def _at(self, node: SyncNode, stage: ActionOrder) -> list[Action]:
        """Actions of a stage between a node and the next or the one before."""
        if stage < ActionOrder.WAIT:
            return _stages(self._after, node, ActionOrder.WAIT)[stage]
        return _stages(self._before, node, STAGES - ActionOrder.WAIT)[stage - ActionOrder.WAIT]

    def nodes(self) -> Iterable[SyncNode]:
        """Those with actions before or after them."""
        return {**self._after, **self._before}

    def after(self, node: SyncNode) -> Iterable[Action]:
        """What follows a node, in order."""
        return chain.from_iterable(self._after[node]) if node in self._after else ()

    def before(self, node: SyncNode) -> Iterable[Action]:
        """What precedes a node, in order."""
        return chain.from_iterable(self._before[node]) if node in self._before else ()


def _stages(
    nodes: dict[SyncNode, list[list[Action]]], node: SyncNode, count: int
) -> list[list[Action]]:
    """The actions of a node, stage by stage."""
    if node not in nodes:
        nodes[node] = [[] for _ in range(count)]
    return nodes[node]


def _actions(sync: Sync) -> Iterator[tuple[SyncNode, ActionOrder, Action]]:
    """The actions of a synchronisation, each with the operation and the side of it where it
    goes."""
    if sync.is_barrier:
        yield sync.before, ActionOrder.BARRIER, Action("barrier", sync)
        return
    last, stage = sync.flags[-1], ActionOrder.SET if sync.is_flag else ActionOrder.EXCHANGE
    if sync.scarcity == Scarcity.LATE:
        stage = ActionOrder.LATE
    elif sync.is_flag and sync.after is sync.before:
        stage = ActionOrder.TURN
    for flag in sync.flags[:-1]:
        yield sync.after, stage, Action("set", sync, flag)
        yield sync.after, stage, Action("wait", sync, flag)
    yield sync.after, stage, Action("set", sync, last)
    yield (
        sync.before,
        stage if stage == ActionOrder.TURN else ActionOrder.WAIT,
        Action("wait", sync, last),
    )
    if sync.around:
        yield sync.around, ActionOrder.FIRST_SET, Action("set", sync, last)
        yield sync.around, ActionOrder.LAST_WAIT, Action("wait", sync, last)

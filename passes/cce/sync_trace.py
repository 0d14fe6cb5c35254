"""Runs a kernel's synchronisation on paper: which earlier operations is each one sure of?

Every loop is run twice, and zero times and once where its trip count is unknown; branches are run
one after the other and joined. For each pipe the trace keeps the set of operations (instances of
leaves and of waits) known to be complete before the pipe's next one starts: `set_flag` sends that
set together with all of its own pipe so far, `wait_flag` receives it, a barrier adds its pipe. Sets
are bit masks of instances, numbered in order of execution.

Why twice is enough: a third iteration stands to the second as the second to the first, and what a
pipe knows never shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from davinci.isa.core import Pipe
from davinci.passes.analysis.accesses import FORWARD
from davinci.passes.cce.sync_program import Block, Branch, Conflict, Leaf, Loop, Node, Program

PIPES = [pipe for pipe in Pipe if pipe < Pipe.ALL]


@dataclass(eq=False)
class Sync:
    """Synchronisation of two pipes, or of one with itself.

    Attributes:
        src, dst: pipes; equal for a barrier, both ALL for a barrier of all.
        block: where the set and the wait lie.
        after: node of the block that the set follows; unused for a barrier.
        before: node of the block that the wait or barrier precedes. If `before` is the same node as
            `after`, set and wait both follow it.
        around: for a dependence on the iteration before (the wait precedes the set): the outermost
            statement around which the flag is set first and waited for last.
        event: id, once allocated.
    """

    src: Pipe
    dst: Pipe
    block: Block
    after: Node
    before: Node
    around: Node | None = None
    event: int = -1

    @property
    def is_barrier(self) -> bool:
        return self.src == self.dst

    @property
    def key(self) -> tuple[object, ...]:
        return (self.src, self.dst, self.before, None if self.is_barrier else self.after)


Action = tuple[str, Sync]
"""("set" | "wait" | "barrier", sync)."""


class Gaps:
    """The actions of a list of syncs, by the node they follow or precede."""

    def __init__(self, syncs: Sequence[Sync]) -> None:
        self.before: dict[Node, list[Action]] = {}
        self.after: dict[Node, list[Action]] = {}
        for sync in syncs:
            if sync.around:
                self._add(self.after, sync.around, "wait", sync)
        for sync in syncs:
            if not sync.is_barrier and sync.after is not sync.before:
                self._add(self.after, sync.after, "set", sync)
                self._add(self.before, sync.before, "wait", sync)
        for sync in syncs:
            if not sync.is_barrier and sync.after is sync.before:
                self._add(self.after, sync.after, "set", sync)
                self._add(self.after, sync.after, "wait", sync)
        for sync in syncs:
            if sync.is_barrier:
                self._add(self.before, sync.before, "barrier", sync)
        for sync in syncs:
            if sync.around:
                self._add(self.before, sync.around, "set", sync)

    def _add(self, gaps: dict[Node, list[Action]], node: Node, kind: str, sync: Sync) -> None:
        gaps.setdefault(node, []).append((kind, sync))


@dataclass
class State:
    """What is known at a point of the trace; masks of instances.

    Attributes:
        known: for each pipe, what is complete before its next operation.
        issued: for each pipe, all its operations so far.
        sent: for each set flag, what its waiter will know.
        waited: for each flag, the latest wait.
    """

    known: list[int]
    issued: list[int]
    sent: dict[Sync, int] = field(default_factory=dict)
    waited: dict[Sync, int] = field(default_factory=dict)

    def copy(self) -> State:
        return State([*self.known], [*self.issued], {**self.sent}, {**self.waited})


@dataclass(frozen=True)
class Missing:
    """An instance that has to be complete before `later` and is not known to be.

    Attributes:
        earlier: node of the operation, or the node that a wait precedes.
        later: node of the operation, or the node that a set follows.
        carrier: outermost loop around both whose iteration differs, None if there is none.
    """

    earlier: Node
    later: Node
    src: Pipe
    dst: Pipe
    carrier: Loop | None


@dataclass(frozen=True)
class _Instance:
    node: Node
    pipe: Pipe
    loops: tuple[Loop, ...]
    iteration: tuple[int, ...]
    done: int
    """What is complete once it is: itself, its pipe before it, and what that knew."""


Found = Callable[[Missing], None]
Watch = Callable[[Sync, State, int], None]
"""Called at every set with the state and what the source pipe knows."""


class Trace:
    """One run over a program with some syncs in place."""

    def __init__(
        self, program: Program, syncs: Sequence[Sync], found: Found, watch: Watch | None = None
    ) -> None:
        self._gaps = Gaps(syncs)
        self._found, self._watch = found, watch
        self._instances: list[_Instance] = []
        self._of_leaf: dict[Leaf, list[int]] = {leaf: [] for leaf in program.leaves}
        self._mask_of_leaf: dict[Leaf, int] = dict.fromkeys(program.leaves, 0)
        self._loops: tuple[Loop, ...] = ()
        self._iteration: tuple[int, ...] = ()
        self._state = State([0] * len(PIPES), [0] * len(PIPES))
        self._block(program.body)

    def _block(self, block: Block) -> None:
        for node in block.nodes:
            for kind, sync in self._gaps.before.get(node, ()):
                self._act(kind, sync, node)
            if isinstance(node, Leaf):
                self._leaf(node)
            elif isinstance(node, Loop):
                self._loop(node)
            elif isinstance(node, Branch):
                self._branch(node)
            for kind, sync in self._gaps.after.get(node, ()):
                self._act(kind, sync, node)

    def _loop(self, loop: Loop) -> None:
        trips = 2 if loop.trips is None else min(loop.trips, 2)
        paths = []
        begin = len(self._instances)
        for iteration in range(trips):
            if loop.trips is None:
                paths.append((self._state.copy(), self._mask_since(begin)))
            with self._inside(loop, iteration):
                self._block(loop.body)
        if loop.trips is None:
            paths.append((self._state, self._mask_since(begin)))
            self._join(paths, begin)

    @contextmanager
    def _inside(self, loop: Loop, iteration: int) -> Iterator[None]:
        outside = self._loops, self._iteration
        self._loops, self._iteration = (*self._loops, loop), (*self._iteration, iteration)
        yield
        self._loops, self._iteration = outside

    def _branch(self, branch: Branch) -> None:
        begin = len(self._instances)
        start, paths = self._state, []
        for block in branch.blocks:
            self._state = start.copy()
            others = self._mask_since(begin)
            self._state.known = [known | others for known in self._state.known]
            first = len(self._instances)
            self._block(block)
            paths.append((self._state, self._mask_since(first)))
        if len(paths) == 1:
            paths.append((start, 0))
        self._join(paths, begin)

    def _join(self, paths: list[tuple[State, int]], begin: int) -> None:
        """Keeps what is known on every path; what a path does not execute is complete there.

        Args:
            paths: state at the end of each path, and the instances on it since `begin`.
            begin: number of the first instance after the paths split.
        """
        everything = self._mask_since(begin)
        joined = paths[0][0].copy()
        joined.known = [-1] * len(PIPES)
        for flag in joined.sent:
            joined.sent[flag] = -1
        for state, own in paths:
            absent = everything & ~own
            for pipe in PIPES:
                joined.known[pipe] &= state.known[pipe] | absent
                joined.issued[pipe] |= state.issued[pipe]
            for flag, sent in state.sent.items():
                joined.sent[flag] &= sent | absent
            for flag, waited in state.waited.items():
                joined.waited[flag] = joined.waited.get(flag, 0) | waited
        self._state = joined

    def _mask_since(self, begin: int) -> int:
        return (1 << len(self._instances)) - (1 << begin)

    def _leaf(self, leaf: Leaf) -> None:
        needed = 0
        for conflict in leaf.conflicts:
            needed |= self._needed(conflict)
        self._require(needed, leaf, leaf.pipe)
        number = self._issue(leaf, leaf.pipe)
        self._of_leaf[leaf].append(number)
        self._mask_of_leaf[leaf] |= 1 << number

    def _needed(self, conflict: Conflict) -> int:
        if conflict.always:
            return self._mask_of_leaf[conflict.earlier]
        needed = 0
        for number in self._of_leaf[conflict.earlier]:
            iteration = self._instances[number].iteration
            if _carrier(iteration, self._iteration, conflict.depth) in conflict.carriers:
                needed |= 1 << number
        return needed

    def _issue(self, node: Node, pipe: Pipe) -> int:
        """Adds an instance and returns its number."""
        state, number = self._state, len(self._instances)
        state.issued[pipe] |= 1 << number
        done = state.known[pipe] | state.issued[pipe]
        self._instances.append(_Instance(node, pipe, self._loops, self._iteration, done))
        return number

    def _require(self, needed: int, later: Node, pipe: Pipe) -> None:
        """Reports what of `needed` is not known to `pipe`, the latest first, and goes on as if
        synchronisation with what was reported had been there."""
        known = self._state.known
        missing = needed & ~known[pipe]
        while missing:
            earlier = self._instances[missing.bit_length() - 1]
            depth = 0
            for a, b in zip(earlier.loops, self._loops, strict=False):
                if a is not b:
                    break
                depth += 1
            carrier = _carrier(earlier.iteration, self._iteration, depth)
            loop = None if carrier == FORWARD else self._loops[carrier]
            self._found(Missing(earlier.node, later, earlier.pipe, pipe, loop))
            known[pipe] |= earlier.done
            missing &= ~known[pipe]

    def _act(self, kind: str, sync: Sync, node: Node) -> None:
        state, src, dst = self._state, sync.src, sync.dst
        if kind == "barrier":
            if src == Pipe.ALL:
                everything = (1 << len(self._instances)) - 1
                state.known = [known | everything for known in state.known]
            else:
                state.known[src] |= state.issued[src]
        elif kind == "set":
            self._require(state.waited.get(sync, 0), node, src)
            if self._watch:
                self._watch(sync, state, state.known[src])
            state.sent[sync] = state.known[src] | state.issued[src]
        else:
            sent = state.sent.pop(sync)
            # While the scalar pipe waits it issues nothing: what it learns holds for all pipes.
            for pipe in PIPES if dst == Pipe.S else [dst]:
                state.known[pipe] |= sent
            state.waited[sync] = 1 << self._issue(node, dst)


def _carrier(earlier: tuple[int, ...], later: tuple[int, ...], depth: int) -> int:
    """The first of `depth` loops in whose iteration two instances differ, or FORWARD."""
    for level in range(depth):
        if earlier[level] != later[level]:
            return level
    return FORWARD

"""Which chains of operators are cut in how many parts, so that a limit of memory holds.

The arena was planned without cuts: it is known which launch computes which operators, and what is
live during each. Around every run of launches at which too much is live, chains are looked for that
begin and end at a launch near it and have one result. Cut along a dimension of that, a chain has
live: what was made in front of it and is needed in it or behind it, its whole result, and a part of
what lies between. Of the chains with which that fits, the one with the fewest launches is taken.
What was estimated too low shows when the arena is planned again; then the chain is chosen anew for
less memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir
from davinci.passes.ascend import boxes
from davinci.passes.ascend.chain_cuts import Cut, Demands, Uncut, demands, part_box, ranges_of
from davinci.passes.ascend.memory_limit import Attempt
from davinci.passes.ascend.tensor_ops import defining_op, is_elementwise, readers_of, size_bytes
from davinci.planning import Buffer, live_bytes

PARTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""Numbers of parts that are tried."""

SHOWN_PARTS = 8
"""Parts of a chain that is tried although it is not expected to be enough."""

NEAR = 3
"""Launches in front of those at which too much is live, and behind them, at which a chain may begin
and end."""

FOLLOWING = frozenset(f"ascend.{name}" for name in ("reshape", "broadcast", "transpose"))
"""Operators that are computed again in each part, besides elementwise ones of one operand, rather
than that their result is kept: they only lead on to what they read."""


@dataclass(frozen=True)
class LiveValue:
    """What lies in the arena: its bytes, the stage that writes it and the last that reads it."""

    size: int
    first: int
    last: int


@dataclass(frozen=True)
class ArenaProfile:
    """What a planned arena holds when.

    Attributes:
        stages: numbers of the operators that each stage computes.
        values: in the arena.
        height: bytes of the arena.
        bound: the most bytes that are live at once.
    """

    stages: tuple[frozenset[int], ...]
    values: tuple[LiveValue, ...]
    height: int
    bound: int

    @staticmethod
    def of(attempt: Attempt) -> ArenaProfile:
        """The profile of an attempt whose launches name their operators by numbers."""
        stages = [
            frozenset(int(name) for launch in launches for name in launch.operators)
            for launches in attempt.staged.launches
        ]
        problem = attempt.placed.problem
        parts = (part for parts in problem.parts for part in parts)
        values = [LiveValue(part.end - part.begin, part.lower, part.upper - 1) for part in parts]
        return ArenaProfile(
            tuple(stages), tuple(values), attempt.placed.height, problem.lower_bound
        )

    @cached_property
    def live(self) -> list[int]:
        """Bytes that are live at each stage."""
        buffers = [Buffer(value.size, value.first, value.last + 1) for value in self.values]
        return [int(size) for size in live_bytes(buffers, len(self.stages))]

    def above(self, limit: int) -> list[int]:
        """Stages at which more is live than may be, with what lies unused between values added."""
        target = limit - (self.height - self.bound)
        most = max(self.live, default=0)
        return [at for at, size in enumerate(self.live) if size > target or size == most]


@dataclass(frozen=True)
class LaunchChain:
    """Operators from one launch to another, with one result that others read.

    Attributes:
        first, last: the launches, by their places in the order.
        ops: numbers of the operators, in order; the last one has the result.
        own: of these the ones that do not only lead on to what they read, which other chains may
            compute as well.
        alone: whether the launches have no other result.
    """

    first: int
    last: int
    ops: tuple[int, ...]
    own: frozenset[int]
    alone: bool = True


@dataclass(frozen=True)
class ChainCut:
    """A chain, how it is cut, and the bytes that are expected to be live then."""

    chain: LaunchChain
    cut: Cut
    live: int

    @property
    def launches(self) -> int:
        """About how many there are more."""
        return (len(self.cut.ranges) - 1) * (self.chain.last - self.chain.first + 1)


@dataclass
class LiveWindow:
    """Launches that follow each other, at which too much is live.

    Attributes:
        target: bytes that the choice is made for.
        choice: what was chosen; None if no chain can be cut.
    """

    first: int
    last: int
    target: int
    choice: ChainCut | None = None


class CutChooser:
    """Chooses cuts of the chains of a block, the more the less the last ones were enough.

    Args:
        operations: of the block, by their numbers.
        profile: of the arena without cuts.
        limit: in bytes.
    """

    def __init__(self, operations: Sequence[Op], profile: ArenaProfile, limit: int) -> None:
        self._operations, self.profile, self.limit = operations, profile, limit
        self._graph = LaunchGraph(operations, profile)
        self._windows: list[LiveWindow] = []

    def more(self, profile: ArenaProfile) -> list[Cut]:
        """The cuts to try next, after a trial had this profile; none if there are no others."""
        above = profile.above(self.limit)
        computed = frozenset(op for at in above for op in profile.stages[at])
        changed, held = False, set[int]()
        for window in self._windows:
            if window.choice is None:
                continue
            held.update(window.choice.chain.own)
            mine = [at for at in above if profile.stages[at] & window.choice.chain.own]
            if mine:
                over = max(profile.live[at] for at in mine) + profile.height - profile.bound
                window.target = min(window.target - (over - self.limit), window.choice.live - 1)
                changed |= self._choose(window)
        stages = [at for at, ops in enumerate(self.profile.stages) if ops & computed and ops - held]
        for window in self._windows_of(stages):
            self._windows.append(window)
            changed |= self._choose(window)
        return [w.choice.cut for w in self._windows if w.choice is not None] if changed else []

    def _windows_of(self, stages: Sequence[int]) -> list[LiveWindow]:
        """Runs of launches that are in no window yet."""
        known = {at for w in self._windows for at in range(w.first, w.last + 1)}
        found: list[LiveWindow] = []
        for at in stages:
            if at in known:
                continue
            if found and found[-1].last == at - 1:
                found[-1].last = at
            else:
                found.append(LiveWindow(at, at, self.limit))
        return found

    def _choose(self, window: LiveWindow) -> bool:
        """Chooses anew; says whether there is another choice than before.

        Where no chain holds all launches of the window, one that holds the largest is taken; where
        none is enough, first the one that leaves least, so that it is known what that gives.
        """
        choice = self._best(window.first, window.last, window.target)
        if choice is None and window.last > window.first:
            live = self.profile.live
            peak = max(range(window.first, window.last + 1), key=live.__getitem__)
            choice = self._best(peak, peak, window.target)
        if choice is None and window.choice is None:
            most = max(self.profile.live[window.first : window.last + 1])
            choices = self._near(window.first, window.last, most, (SHOWN_PARTS,))
            choice = min(choices, key=lambda each: each.live, default=None)
        if choice is None or (window.choice and choice.cut == window.choice.cut):
            return False
        window.choice = choice
        return True

    def _best(self, first: int, last: int, target: int) -> ChainCut | None:
        """The choice with the fewest launches, of chains that are all of their launches if there
        are such: of others it is less sure what is live."""
        choices = self._near(first, last, target, PARTS)
        return min(choices, key=lambda each: (not each.chain.alone, each.launches), default=None)

    def _near(
        self, first: int, last: int, target: int, counts: Sequence[int]
    ) -> Iterator[ChainCut]:
        """Choices with at most `target` live bytes, of chains that hold launches and some near."""
        others = {
            op
            for window in self._windows
            if window.choice is not None and not first <= window.first <= last
            for op in window.choice.chain.own
        }
        for begin in range(first, max(first - NEAR, 0) - 1, -1):
            for end in range(last, min(last + NEAR, len(self.profile.stages) - 1) + 1):
                chain = self._graph.chain(begin, end)
                if chain is not None and not others & chain.own:
                    yield from self._choices(chain, target, counts)

    def _choices(
        self, chain: LaunchChain, target: int, counts: Sequence[int]
    ) -> Iterator[ChainCut]:
        """The fewest parts with which a chain fits, along each dimension of its result."""
        ops = [self._operations[number] for number in chain.ops]
        shape = tensor_of(ops[-1].results[0].type).shape
        room = ChainRoom(self.profile, chain)
        for dim, size in enumerate(shape):
            for count in counts:
                if count > size or room.live_bytes(1 / count, frozenset()) > target:
                    continue
                for ranges in ranges_of(ops, dim, count):
                    cut = Cut(chain.ops[-1], chain.ops, dim, ranges)
                    live = self._live(ops, cut, room)
                    if live is not None and live <= target:
                        yield ChainCut(chain, cut, live)
                        break
                else:
                    continue
                break

    def _live(self, ops: Sequence[Op], cut: Cut, room: ChainRoom) -> int | None:
        """Bytes that are live with a cut; None if it cannot be made."""
        largest, whole = 0.0, set[int]()
        try:
            for at in (cut.ranges[0], cut.ranges[len(cut.ranges) // 2], cut.ranges[-1]):
                part = demands(ops, part_box(ops[-1].results[0], cut.dim, at))
                largest = max(largest, self._graph.share(part, cut.chain))
                whole |= self._graph.computed_whole(part, cut.chain)
        except Uncut:
            return None
        return room.live_bytes(largest, frozenset(whole))


@dataclass(frozen=True)
class ChainRoom:
    """What is live while a chain of launches runs."""

    profile: ArenaProfile
    chain: LaunchChain

    def live_bytes(self, share: float, whole: frozenset[int]) -> int:
        """Bytes that are live at most when a share of what lies inside the chain is.

        Args:
            whole: launches whose results are computed as a whole.
        """
        first, last = self.chain.first, self.chain.last
        near = (v for v in self.profile.values if v.last >= first and v.first <= last)
        kept = sum(v.size for v in near if not self._is_inside(v, whole))
        return int(kept + self.inside(whole) * share)

    def inside(self, whole: frozenset[int]) -> int:
        """The most bytes that are live at once of what launches of the chain make and read up."""
        first, last = self.chain.first, self.chain.last
        live = [0] * (last - first + 1)
        for value in self.profile.values:
            if self._is_inside(value, whole):
                for at in range(value.first, value.last + 1):
                    live[at - first] += value.size
        return max(live)

    def _is_inside(self, value: LiveValue, whole: frozenset[int]) -> bool:
        inside = self.chain.first <= value.first and value.last <= self.chain.last
        return inside and value.first not in whole


class LaunchGraph:
    """The operators of a block that are not computed from constants alone, and the launches that
    compute them."""

    def __init__(self, operations: Sequence[Op], profile: ArenaProfile) -> None:
        self._operations = operations
        self._numbers = {op: number for number, op in enumerate(operations)}
        self._chains: dict[tuple[int, int], LaunchChain | None] = {}
        self._home: dict[int, int] = {}
        homes: dict[int, int] = {}
        for at, ops in enumerate(profile.stages):
            for number in ops:
                homes.setdefault(number, at)
        for number, op in enumerate(operations):
            read = self._read(op)
            if read or any(defining_op(value) is None for value in op.operands):
                before = max((self._home[each] for each in read), default=0)
                self._home[number] = max(homes.get(number, before), before)

    def _read(self, op: Op) -> list[int]:
        """Numbers of the operators whose results another one reads, constants left out."""
        owners = (defining_op(value) for value in op.operands)
        numbers = (self._numbers[owner] for owner in owners if owner is not None)
        return [number for number in numbers if number in self._home]

    def chain(self, first: int, last: int) -> LaunchChain | None:
        """The operators that lead to a result of launches from one to another, where no other of
        their results is among them; of several results that with most operators."""
        if (first, last) not in self._chains:
            self._chains[first, last] = self._found(first, last)
        return self._chains[first, last]

    def _found(self, first: int, last: int) -> LaunchChain | None:
        inside = {number for number, at in self._home.items() if first <= at <= last}
        waiting = [number for number in inside if self._leaves(number, inside)]
        ends = set[int]()
        while waiting:  # what only leads on to a result is computed again where that is needed
            number = waiting.pop()
            if not self._follows(number):
                ends.add(number)
            else:
                waiting += (n for n in self._read(self._operations[number]) if n in inside)
        chains = (self._to(end, inside, first, last) for end in sorted(ends))
        alone = (each for each in chains if each is not None and len(ends & each.own) == 1)
        best = max(alone, key=lambda each: len(each.own), default=None)
        return best and replace(best, alone=len(ends) == 1)

    def _to(self, end: int, inside: set[int], first: int, last: int) -> LaunchChain | None:
        """The operators of a set that lead to the result of one of them."""
        chain, waiting = set[int](), [end]
        while waiting:
            number = waiting.pop()
            op = self._operations[number]
            if not op.name.startswith("ascend.") or len(op.results) != 1 or len(op.regions):
                return None
            if number not in chain:
                chain.add(number)
                read = self._read(op)
                waiting += [each for each in read if each in inside or self._follows(each)]
                chain.update(self._repeated(op))
        own = frozenset(n for n in chain if n in self._home and not self._follows(n))
        return LaunchChain(first, last, tuple(sorted(chain)), own)

    def _repeated(self, op: Op) -> list[int]:
        """Numbers of the broadcasts of constants that an operator reads, of which parts are made
        from the same constants."""
        owners = (defining_op(value) for value in op.operands)
        found = (owner for owner in owners if owner is not None and owner.name in FOLLOWING)
        return [self._numbers[owner] for owner in found if self._numbers[owner] not in self._home]

    def _leaves(self, number: int, inside: set[int]) -> bool:
        """Whether others than operators of a set read a result."""
        return any(self._numbers[user] not in inside for user in self._users(number))

    def _users(self, number: int) -> list[Op]:
        return [user for r in self._operations[number].results for user in readers_of(r)]

    def _follows(self, number: int) -> bool:
        """Whether a result only leads on to another one that is no larger."""
        op = self._operations[number]
        read = [value for value in op.operands if self._known(value)]
        if len(read) != 1 or not (is_elementwise(op) or op.name in FOLLOWING):
            return False
        return size_of(read[0]) <= size_of(op.results[0])

    def _known(self, value: ir.Value) -> bool:
        """Whether a value is not computed from constants alone."""
        owner = defining_op(value)
        return owner is None or self._numbers[owner] in self._home

    def share(self, part: Demands, chain: Sequence[int]) -> float:
        """The largest share of a result that a part computes and that lies in the arena."""
        counts: dict[int, int] = {}
        for value, box in part.rules:
            number = self._numbers[value.owner]
            counts[number] = counts.get(number, 0) + math.prod(boxes.shape_of(box))
        end = tensor_of(self._operations[chain[-1]].results[0].type).count
        found = math.prod(boxes.shape_of(part.box)) / max(end, 1)
        for number in chain[:-1]:
            users = [self._numbers[user] for user in self._users(number)]
            crosses = any(self._home.get(user) != self._home.get(number) for user in users)
            if number in counts and number in self._home and crosses and not self._follows(number):
                whole = tensor_of(self._operations[number].results[0].type).count
                found = max(found, counts[number] / max(whole, 1))
        return found

    def computed_whole(self, part: Demands, chain: Sequence[int]) -> set[int]:
        """Launches that compute all of a result."""
        numbers = (self._numbers[value.owner] for value in part.whole)
        return {self._home[number] for number in numbers if number in self._home}


def size_of(value: ir.Value) -> int:
    return size_bytes(tensor_of(value.type))

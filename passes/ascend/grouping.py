"""Which operators become one kernel: groups are joined as long as it pays, see `ascend_fuse`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS
from davinci.operators.layouts import slice_offset
from davinci.operators.tensors import NZ
from davinci.passes.analysis.group_graph import graph_of
from davinci.passes.ascend.group_judge import Judge
from davinci.passes.ascend.image_parts import joins_images
from davinci.passes.ascend.layout_support import IN_PLACE, joins_in_place, joins_rows
from davinci.passes.ascend.overlapping_windows import parts_at_windows
from davinci.passes.ascend.product_grouping import is_widening, outputs_of
from davinci.passes.ascend.tensor_ops import defining_op, merged_reshape, users_of
from davinci.schedule.moves.piece_rules import RULES
from davinci.schedule.vector.space import MOVES

FREE = frozenset({"ascend.broadcast", "ascend.reshape", "ascend.slice"})
"""Operators that cost nothing inside a group: a slice is a region of what it reads."""

BEGINS = "ascend.begins"
"""Attribute of a free operator that begins a kernel: it never reads what the same kernel makes."""

MOST_OPERATORS = 128
"""Operators up to which a group grows: one more saves little then, and takes the weighing of
all."""

MOVES_ONLY = frozenset(f"ascend.{name}" for name in RULES)
"""Operators that only put elements in other places: chains of them are one kernel."""


@dataclass(eq=False)
class FusedGroup:
    """Operators that become one kernel.

    Attributes:
        ops: in their order in the block.
    """

    ops: list[Op]


GROWN_PAYS = 0.9
"""What one kernel may take of the estimate of two grown groups, which overlap where phases do."""


class Grouping:
    """Finds the groups of a block.

    Args:
        fuse: whether groups have several operators.
        beside: whether groups that do not wait for each other become one kernel.
    """

    def __init__(self, block: ir.Block, judge: Judge, fuse: bool, beside: bool) -> None:
        self._block, self._judge, self._fuse, self._beside = block, judge, fuse, beside
        self._growing = True
        self._group: dict[Op, FusedGroup] = {}
        self._weighed: dict[FusedGroup, int | None] = {}
        """Cycles of groups that grow."""
        self._read_block()

    def _read_block(self) -> None:
        self._ops: list[Op] = [op.operation for op in self._block.operations]
        self._place = {op: place for place, op in enumerate(self._ops)}
        made = {op: map(defining_op, op.operands) for op in self._ops}
        self._producers = {op: [p for p in found if p is not None] for op, found in made.items()}

    def groups(self) -> list[FusedGroup]:
        """The groups that become kernels, in an order in which they can run."""
        self._group = {op: FusedGroup([op]) for op in self._ops}
        for op in self._ops:
            if is_candidate(op):
                self._join(op)
        self._join_ends()
        self._join_grown()
        self._merge_reshapes()
        self._growing = False
        for group in dict.fromkeys(self._group.values()):
            if len(group.ops) > 1 and not self._holds(self._trimmed(group)):
                self._part(group)
        if self._fuse:
            for group in dict.fromkeys(self._group.values()):
                self._part_at_windows(group)
        if self._beside:
            self._share_views()
            self._side_by_side()
        found = [self._trimmed(group) for group in self._ordered() if self._computes(group)]
        return [group for group in found if self._holds(group)]

    def _read_by(self, group: FusedGroup) -> Iterator[FusedGroup]:
        """Yields, for each operand that another group computes, that group."""
        for op in group.ops:
            for producer in self._producers[op]:
                if self._group[producer] is not group:
                    yield self._group[producer]

    def _holds(self, group: FusedGroup) -> bool:
        return not group.ops or self._cycles(group.ops) is not None

    def _computes(self, group: FusedGroup) -> bool:
        """Whether a group is more than views, or slices that may be views."""
        needed = any(op.name == "ascend.broadcast" or takes_time(op) for op in group.ops)
        return needed and all(map(is_candidate, group.ops))

    def _part(self, group: FusedGroup) -> None:
        """Parts what turned out to be no kernel: as many of its first operators as one can hold,
        and as many of those that are left."""
        left = group.ops
        while left:
            part = FusedGroup(self._beginning(left))
            for op in part.ops:
                self._group[op] = part
            left = [op for op in left if self._group[op] is not part]

    def _part_at_windows(self, group: FusedGroup) -> None:
        """Parts a group where a value of which windows overlap, and each half of it likewise, if
        that takes less time: it is computed once then."""
        whole = self._cycles(self._trimmed(group).ops) if len(group.ops) > 1 else None
        if whole is None:
            return
        found: tuple[int, list[FusedGroup]] = whole, []
        for ops in parts_at_windows(group.ops):
            halves = [FusedGroup(half) for half in ops]
            trimmed = [self._trimmed(half).ops for half in halves]
            cycles = [self._cycles(half) if half else None for half in trimmed]
            if None in cycles:
                continue
            apart = sum(c for c in cycles if c is not None) - self._judge.launch + self._judge.phase
            found = min(found, (apart, halves), key=lambda way: way[0])
        for half in found[1]:
            for op in half.ops:
                self._group[op] = half
        for half in found[1]:
            self._part_at_windows(half)

    def _beginning(self, ops: list[Op]) -> list[Op]:
        """As many of the first operators as one kernel can hold, at least one: found by halving,
        for what holds some operators mostly holds fewer."""
        held, least, most = ops[:1], 1, len(ops)
        while least < most:
            middle = (least + most + 1) // 2
            tried = _without_loose_ends(ops[:middle])
            if tried and self._holds(self._trimmed(FusedGroup(tried))):
                held, least = tried, middle
            else:
                most = middle - 1
        return held

    def _side_by_side(self) -> None:
        """Joins groups that wait for equally many others, and so not for each other, where one
        launch of all takes no more time. Reshapes at their ends stay outside: one that reads what
        the joined group computes must stand behind all of it."""
        levels: dict[int, list[FusedGroup]] = {}
        for group, level in self._levels().items():
            alone = self._trimmed(group)
            if any(map(takes_time, alone.ops)) and self._holds(alone):
                levels.setdefault(level, []).append(group)
        for groups in levels.values():
            joined = groups[0]
            for group in groups[1:]:
                both = [self._trimmed(g).ops for g in (joined, group)]
                ops = sorted((*both[0], *both[1]), key=self._place.__getitem__)
                cycles, apart = self._cycles(ops), map(self._cycles, both)
                if cycles is None or cycles > sum(c or 0 for c in apart):
                    joined = group
                    continue
                views = {*joined.ops, *group.ops}.difference(ops)
                self._group |= {op: FusedGroup([op]) for op in views}
                joined = FusedGroup(ops)
                self._group |= dict.fromkeys(ops, joined)

    def _levels(self) -> dict[FusedGroup, int]:
        """How many groups that compute, one after the other, are before each candidate group:
        constants and views are there without a launch."""
        level: dict[FusedGroup, int] = {}
        for group in self._in_order():
            level[group] = max(
                (level[g] + self._computes(g) for g in self._read_by(group)), default=0
            )
        return {g: n for g, n in level.items() if self._computes(g)}

    def _ordered(self) -> list[FusedGroup]:
        """The groups, each after those it reads; moves their operators in the block into that
        order."""
        found = self._in_order()
        end = self._ops[-1]
        for group in found:
            for op in group.ops:
                if op is not end:
                    op.move_before(end)
        return found

    def _in_order(self) -> list[FusedGroup]:
        """The groups, each after those it reads."""
        found: dict[FusedGroup, None] = {}
        for op in self._ops:
            stack = [self._group[op]]
            while stack:
                group = stack[-1]
                waiting = [g for g in dict.fromkeys(self._read_by(group)) if g not in found]
                if waiting:
                    stack += waiting
                else:
                    found[stack.pop()] = None
        return list(found)

    def _trimmed(self, group: FusedGroup) -> FusedGroup:
        """Without reshapes at its ends, which are views."""
        ops = set(group.ops)
        changed = True
        while changed:
            changed = False
            for op in list(ops):
                if op.name != "ascend.reshape":
                    continue
                users = users_of(op)
                producer = defining_op(op.operands[0])
                if producer not in ops or not any(user in ops for user in users):
                    ops.discard(op)
                    changed = True
        return FusedGroup([op for op in group.ops if op in ops])

    def _join(self, op: Op) -> None:
        """Lets an operator join the groups of what it reads, where that pays."""
        if is_free(op):
            return
        for value in op.operands:
            chain, producer = self._chain(value)
            if producer is not None and self._fuse and self._try(op, chain, [producer]):
                continue
            if chain and not self._try(op, chain, []):
                read = next((i for i, o in enumerate(chain) if o.name == "ascend.slice"), None)
                if read is not None:
                    self._try(op, chain[: read + 1], [])

    def _join_ends(self) -> None:
        """Lets slices that nothing has taken join what they are parts of."""
        for op in self._ops:
            alone = op.name == "ascend.slice" and len(self._group[op].ops) == 1
            if alone and self._fuse and not is_part(op):
                chain, producer = self._chain(op.operands[0])
                if producer is not None:
                    self._try(op, chain, [producer])

    def _join_grown(self) -> None:
        """Lets whole groups join what they read: an operator that read it may have found no profit
        in that alone, which what has joined it since then shares. One kernel has to take clearly
        less time than both as phases of one launch."""
        if not self._fuse:
            return
        for op in self._ops:
            for producer in self._producers[op]:
                groups = (self._group[producer], self._group[op])
                if groups[0] is groups[1] or not all(map(self._computes, groups)):
                    continue
                apart = sum(self._cycles_of(group) or 0 for group in groups)
                most = GROWN_PAYS * (apart - self._judge.launch + self._judge.phase)
                self._try(op, [], [producer], most)

    def _merge_reshapes(self) -> None:
        """Makes one of the equal reshapes of a group: at its beginning they are views, and several
        would be as many arrays that have no axis in common."""
        groups = list(dict.fromkeys(self._group.values()))
        for group in groups:
            first: dict[tuple[ir.Value, ir.Type], Op] = {}
            kept = []
            for op in group.ops:
                if op.name != "ascend.reshape" or merged_reshape(op, first) is op:
                    kept.append(op)
            group.ops = kept
        # What an operation is called in a dictionary depends on its operands.
        self._read_block()
        self._group = {op: group for group in groups for op in group.ops}

    def _share_views(self) -> None:
        """Takes the reshapes that groups begin with, which are views, out of them, and makes one of
        those that are equal: what reads an array in one shape then reads one value."""
        groups = list(dict.fromkeys(self._group.values()))
        first: dict[tuple[ir.Value, ir.Type], Op] = {}
        for group in groups:
            inside = set(group.ops)
            begins = [
                op
                for op in group.ops
                if op.name == "ascend.reshape" and inside.isdisjoint(self._producers[op])
            ]
            if len(begins) == len(group.ops):
                continue
            group.ops = [op for op in group.ops if op not in begins]
            for op in begins:
                merged_reshape(op, first)
        shared = [FusedGroup([op]) for op in first.values()]
        self._read_block()
        self._group = {op: group for group in (*groups, *shared) for op in group.ops}

    def _chain(self, value: ir.Value) -> tuple[list[Op], ir.OpView | None]:
        """The free operators that lead to a value, and the candidate that they begin with; none
        before what has to begin a kernel."""
        chain: list[Op] = []
        producer = defining_op(value)
        while producer is not None and is_free(producer) and len(self._group[producer].ops) == 1:
            chain.append(producer)
            if BEGINS in producer.attributes:
                return chain, None
            producer = defining_op(producer.operands[0])
        return chain, producer if producer is not None and is_candidate(producer) else None

    def _try(self, op: Op, chain: list[Op], producers: list[Op], most: float = math.inf) -> bool:
        """Joins an operator's group with operators in front of it, if one kernel can hold all of
        them in no more time, and in `most` cycles where there is such a limit."""
        own = self._group[op]
        others = [self._group[producer] for producer in producers]
        if own in others:
            others.remove(own)
        links = [self._group[link] for link in chain]
        members = [own, *links, *others]
        if sum(len(group.ops) for group in members) > MOST_OPERATORS:
            return False
        if self._close_a_circle(members):
            return False
        ops = sorted((o for g in members for o in g.ops), key=self._place.__getitem__)
        cycles = self._cycles(ops)
        apart = [c for g in (own, *others) if (c := self._cycles_of(g)) is not None]
        if all(o.name in MOVES_ONLY for o in ops):
            # Each of them could be a kernel.
            apart += [self._cycles_of(g) or 0 for g in links if not may_be_view(g.ops[0])]
            if not self._fuse or cycles is None or cycles > sum(apart):
                return False
        if cycles is None or (others and len(apart) > 1 and cycles > sum(apart)):
            return False
        if cycles > most or self._repeats_apart(links, cycles - sum(apart)):
            return False
        joined = FusedGroup(ops)
        self._weighed[joined] = cycles
        for member in ops:
            self._group[member] = joined
        return True

    def _repeats_apart(self, links: list[FusedGroup], saved: int) -> bool:
        """Whether what free operators repeat is made by kernels of their own in fewer cycles than a
        group takes more with it: rows of a few numbers, each of which is repeated along the lanes,
        take the vector unit as long as whole repeats."""
        repeats = [group for group in links if group.ops[0].name == "ascend.broadcast"]
        if not repeats or saved <= len(repeats) * self._judge.launch:
            return False
        made = [self._cycles_of(group) for group in repeats]
        return None not in made and saved > sum(c for c in made if c is not None)

    def _close_a_circle(self, members: list[FusedGroup]) -> bool:
        """Whether something outside of groups needs one of them and is needed by another, so that
        as one group they would wait for it and it for them."""
        inside, seen = set(members), set[FusedGroup]()
        first = min(self._place[member.ops[0]] for member in members)
        waiting = [g for member in members for g in self._read_by(member) if g not in inside]
        while waiting:
            group = waiting.pop()
            if group in inside:
                return True
            # What ends before the first of them is computed from operators before it only.
            if group not in seen and self._place[group.ops[-1]] > first:
                seen.add(group)
                waiting += self._read_by(group)
        return False

    def _cycles_of(self, group: FusedGroup) -> int | None:
        """Cycles of a group that others may join, found once: its operators and their readers stay
        as they are while groups grow."""
        if group not in self._weighed:
            self._weighed[group] = self._cycles(group.ops)
        return self._weighed[group]

    def _cycles(self, ops: list[Op]) -> int | None:
        graph, _ = graph_of(ops, outputs_of(ops))
        return self._judge.cycles(graph, self._growing)


def _without_loose_ends(ops: list[Op]) -> list[Op]:
    """Without free operators of which none of the others needs the result."""
    found: list[Op] = []
    for op in reversed(ops):
        users = users_of(op) if is_free(op) else []
        if not is_free(op) or any(user in found for user in users):
            found.insert(0, op)
    return found


def is_free(op: Op) -> bool:
    """Whether an operator costs next to nothing in the group that needs its result: free ones, and
    casts to wider numbers of what leaves the group that makes it anyway, which brings fewer bytes.
    """
    if not is_widening(op):
        return op.name in FREE and not is_part(op)
    return not all(is_widening(use.owner.operation) for use in op.operands[0].uses)


def is_candidate(op: Op) -> bool:
    """Whether a group may hold the operator."""
    name = op.name.removeprefix("ascend.")
    if not op.name.startswith("ascend.") or len(op.results) != 1:
        return False
    in_place = op.name == "ascend.concat" and (joined_in_place(op) or joins_images(op))
    if in_place or is_part(op):
        return False
    if op.name in MOVES_ONLY or name in (*MOVES, "gather"):
        return True
    record = OPERATORS.get(name)
    return record is not None and (record.elementwise or record.made_of is not None)


def joined_in_place(op: Op) -> bool:
    """Whether buffers of an operator's operands are parts of that of its result: in nz, and in rows
    where the operands are parts that are computed one after the other (`ascend-cut-chains`)."""
    if tensor_of(op.results[0].type).layout == NZ:
        return joins_in_place(op)
    return IN_PLACE in op.attributes and joins_rows(op)


def is_part(op: Op) -> bool:
    """Whether an operator is a slice that is to be a view of what it reads, and can be."""
    return op.name == "ascend.slice" and IN_PLACE in op.attributes and may_be_view(op)


def takes_time(op: Op) -> bool:
    """Whether an operator alone is a kernel; broadcasts are what others do by the way."""
    if op.name == "ascend.slice":
        return not may_be_view(op) or is_result(op)
    return op.name not in FREE


def is_result(op: Op) -> bool:
    """Whether an operator's result, perhaps reshaped, is one of the function: it has a buffer of
    its own then, and is copied there if it is a part of another value."""
    return any(
        user.name == "func.return" or (user.name == "ascend.reshape" and is_result(user))
        for user in users_of(op)
    )


def may_be_view(op: Op) -> bool:
    """Whether the buffer of an operator's operand may hold its result."""
    if op.name == "ascend.reshape":
        return True
    if op.name != "ascend.slice" or defining_op(op.operands[0]) is None:
        return False
    operand, result = (tensor_of(value.type) for value in (op.operands[0], op.result))
    return (
        slice_offset(operand, result, attribute(op, "starts"), attribute(op, "strides")) is not None
    )

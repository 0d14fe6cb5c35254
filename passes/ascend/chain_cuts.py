"""A chain of operators that is computed in parts, one after the other.

before:
    %h = "ascend.matmul"(%x, %w) : (tensor<128x768xf16>, tensor<768x3072xf16>) -> ..
    %g = "ascend.gelu"(%h) : (tensor<128x3072xf32>) -> tensor<128x3072xf32>
    %c = "ascend.cast"(%g) : (tensor<128x3072xf32>) -> tensor<128x3072xf16>
    %y = "ascend.matmul"(%c, %v) : (tensor<128x3072xf16>, tensor<3072x768xf16>) -> ..
after, cut in two along the rows of %y:
    %x0 = "ascend.slice"(%x) {starts = array<i64: 0, 0>, limits = array<i64: 64, 768>, ..}
    (the four operators on 64 rows)
    %x1 = "ascend.slice"(%x) {starts = array<i64: 64, 0>, limits = array<i64: 128, 768>, ..}
    (the four operators on 64 rows)
    %y = "ascend.concat"(%y0, %y1) {dim = 0 : i64} : (tensor<64x768xf32>, tensor<64x768xf32>) -> ..

What lies between the values that a chain reads and its end is so live in part only. What is read
for a part of a result follows from the windows of the operators' records (`part_rules`): rows of
products and of images with their halo, heads of attention, columns of products, whose weights are
cut then. Where an operator needs all of a value for any part of its result, the value is computed
once, as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import Op, ir
from davinci.operators.conv import geometry
from davinci.passes.ascend import boxes
from davinci.passes.ascend.boxes import Box, TakenIndices, plain
from davinci.passes.ascend.layout_support import IN_PLACE
from davinci.passes.ascend.part_rules import PartRule, part_of
from davinci.passes.ascend.tensor_ops import OF_WINDOWS, TensorOps, readers_of
from davinci.units import ceil_div, round_up

ROWS = 16
"""Rows of a fractal: parts of what cannot be cut evenly begin at multiples of it."""


@dataclass(frozen=True)
class Cut:
    """A chain of operators to compute in parts, by numbers of operators in their block.

    Attributes:
        end: number of the operator whose result is put together from parts.
        chain: numbers of the operators that may be computed in parts, in order; the last is `end`.
        dim: dimension of the result that is cut.
        ranges: indices of it that each part computes.
    """

    end: int
    chain: tuple[int, ...]
    dim: int
    ranges: tuple[range, ...]

    def apply(self, operations: Sequence[Op]) -> None:
        """Rebuilds the chain in parts; operators that nobody needs any more are left.

        Args:
            operations: of the block, by their numbers.
        """
        end = operations[self.end]
        result = end.results[0]
        users = readers_of(result)
        block: list[Op] = list(end.block.operations)
        front = ir.InsertionPoint(block[block.index(end) + 1])
        parts = [
            _Rebuilding(part, front).value(result, part.box) for part in self.demands(operations)
        ]
        with end.location, front:
            ops = TensorOps()
            whole = ops.concat(parts, self.dim)
        for made in ops.built:
            made.attributes[IN_PLACE] = ir.UnitAttr.get()
        for user in users:
            for number, operand in enumerate(user.operands):
                if operand == result:
                    user.operands[number] = whole

    def demands(self, operations: Sequence[Op]) -> list[Demands]:
        """What each part of the result needs.

        Raises:
            Uncut: a part cannot be computed without all of the result.
        """
        chain = [operations[number] for number in self.chain]
        result = chain[-1].results[0]
        return [demands(chain, part_box(result, self.dim, at)) for at in self.ranges]


def part_box(value: ir.Value, dim: int, at: range) -> Box:
    """The box of some indices of one dimension of a value."""
    shape = tensor_of(value.type).shape
    return tuple(
        (TakenIndices(size, at),) if number == dim else boxes.all_of(size)
        for number, size in enumerate(shape)
    )


class Uncut(Exception):
    """A chain has no parts along a dimension."""


@dataclass(frozen=True)
class Demands:
    """What a part of the end of a chain needs.

    Attributes:
        box: of the end's result.
        rules: how each part of a result in the chain is computed.
        outer: for boxes that are cut from a larger part, the box of that.
        whole: results in the chain that have to be computed as a whole.
    """

    box: Box
    rules: dict[tuple[ir.Value, Box], PartRule]
    outer: dict[tuple[ir.Value, Box], Box]
    whole: frozenset[ir.Value]


def demands(chain: Sequence[Op], box: Box) -> Demands:
    """Goes from the end of a chain back to what it reads.

    Raises:
        Uncut: no part of the end's result can be computed alone.
    """
    end = chain[-1].results[0]
    reads: dict[ir.Value, list[Box]] = {end: [box]}
    rules: dict[tuple[ir.Value, Box], PartRule] = {}
    outer: dict[tuple[ir.Value, Box], Box] = {}
    whole = set()
    for op in reversed(chain):
        value = op.results[0]
        wanted = reads.get(value, [])
        merged = _merged(wanted)
        for read in wanted:
            outer[value, read] = next(each for each in merged if _holds(each, read))
        for part in merged:
            rule = None if boxes.is_whole(part) else part_of(op, part)
            if rule is None:
                whole.add(value)
                continue
            rules[value, part] = rule
            for operand, needed in zip(op.operands, rule.operands, strict=True):
                if needed is not None and needed not in reads.setdefault(operand, []):
                    reads[operand].append(needed)
    if end in whole:
        raise Uncut
    return Demands(box, rules, outer, frozenset(whole))


def _merged(wanted: Sequence[Box]) -> list[Box]:
    """Boxes of a value that are computed: two as one where that computes no more."""
    found: list[Box] = []
    for box in wanted:
        for number, other in enumerate(found):
            both = boxes.union(box, other)
            fits = all(_holds(both, each) for each in wanted if _holds(other, each))
            if fits and _holds(both, box) and _count(both) <= _count(box) + _count(other):
                found[number] = both
                break
        else:
            found.append(box)
    return found


def _holds(outer: Box, inner: Box) -> bool:
    """Whether a box is part of another one, and it can be said where."""
    for a, b in zip(inner, outer, strict=True):
        x, y = plain(a), plain(b)
        if a != b and (x is None or y is None or not set(x) <= set(y)):
            return False
    return boxes.within(inner, outer) is not None


def _count(box: Box) -> int:
    """Elements of a box."""
    return math.prod(boxes.shape_of(box))


class _Rebuilding:
    """Builds one part of a chain."""

    def __init__(self, part: Demands, front: ir.InsertionPoint) -> None:
        self._part, self._front = part, front
        self._made: dict[tuple[ir.Value, Box], ir.Value] = {}

    def value(self, end: ir.Value, box: Box) -> ir.Value:
        """The part of a result that is in a box, made once, after all that it needs."""
        waiting = [(end, box)]
        while waiting:
            key = waiting[-1]
            needed = [] if key in self._made else self._needed(key)
            missing = [each for each in needed if each is not None and each not in self._made]
            waiting += missing
            if not missing:
                waiting.pop()
                if key not in self._made:
                    self._made[key] = self._emitted(key, needed)
        return self._made[end, box]

    def _needed(self, key: tuple[ir.Value, Box]) -> list[tuple[ir.Value, Box] | None]:
        """What a part of a value, in a box, is made from: the larger part that it is cut out of, or
        a part of each operand of its operation, None for those of which nothing is read.

        Nothing is needed of values that are not computed anew: the part is cut out of them."""
        value, box = key
        outer = self._part.outer.get(key, box)
        if outer != box and (value, outer) in self._part.rules:
            return [(value, outer)]
        rule = self._part.rules.get(key)
        if rule is None:
            return []
        pairs = zip(value.owner.operands, rule.operands, strict=True)
        return [None if read is None else (operand, read) for operand, read in pairs]

    def _emitted(
        self, key: tuple[ir.Value, Box], needed: Sequence[tuple[ir.Value, Box] | None]
    ) -> ir.Value:
        """Emits the operations of a part, given what it is made from (`_needed`), in front of the
        chain; slices of values that are there already are marked as read in place."""
        value, box = key
        ops = TensorOps()
        argument = isinstance(value, ir.BlockArgument)
        with ir.Location.unknown() if argument else value.owner.location, self._front:
            if key not in self._part.rules:
                outer = self._part.outer.get(key, box)
                source = self._made.get((value, outer)) if outer != box else None
                inner = box if source is None else boxes.within(box, outer)
                assert inner is not None, f"{box} in {outer}"
                part = boxes.cut(value if source is None else source, inner, ops)
                for made in ops.built:
                    if made.name == "ascend.slice":
                        made.attributes[IN_PLACE] = ir.UnitAttr.get()
                return part
            operands = [None if each is None else self._made[each] for each in needed]
            return self._part.rules[key].emit(operands, ops)


def ranges_of(chain: Sequence[Op], dim: int, count: int) -> Iterator[tuple[range, ...]]:
    """Ways to cut a dimension of the end of a chain in `count` parts, the best first: equal ones,
    whole rows of an image, whole fractals."""
    size = tensor_of(chain[-1].results[0].type).shape[dim]
    steps = [size // count] if size % count == 0 else []
    for op in chain:
        if op.name in OF_WINDOWS:
            windows = geometry(call_of(op).attributes).windows
            if math.prod(windows) == size:
                steps.append(windows[1])
    seen = set()
    for step in (*steps, ROWS):
        length = round_up(ceil_div(size, count), step)
        found = tuple(range(at, min(at + length, size)) for at in range(0, size, length))
        if len(found) > 1 and found not in seen:
            seen.add(found)
            yield found

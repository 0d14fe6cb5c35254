"""Masks of attention as its kernel takes them, made in front of it.

before:
    %m = "ascend.broadcast"(%flags)                      booleans, for scores [.., rows, keys]
    %x = "ascend.select"(%m, %s, %low)
after:
    %b = "ascend.select"(%flags, %most, %low)            outside: a bound of each score
    %t = "ascend.transpose"(%b), %n = "ascend.relayout"(%t)
    %r = "ascend.relayout"(%n), %u = "ascend.transpose"(%r), %m = "ascend.broadcast"(%u)
    %x = "ascend.min"(%s, %m)                            inside

Scores are computed keys first, so a mask with a number for each score is turned once, outside, and
lies in fractals. A selection between scores and a number that none is below is the lesser of the
score and a bound. The kernel reads what it takes through the operators that undo this.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.elements import Array
from davinci.mlir import Op, ir, owner_of
from davinci.operators import Tensor
from davinci.operators.tensors import ND, NZ
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import TensorOps, full_value
from davinci.schedule.attention.blocks import LOWEST
from davinci.schedule.attention.group import AttentionGroup
from davinci.schedule.attention.terms import Selection

MOST = {element: -number for element, number in LOWEST.items()}
"""A bound of what is not hidden."""


@dataclass
class MaskWriter:
    """Writes masks anew; those that several groups use once.

    Attributes:
        known: what was made, by what it was made of.
    """

    known: dict[Hashable, ir.Value] = field(default_factory=dict)

    def ready(self, group: AttentionGroup, ops: list[Op], values: dict[int, ir.Value]) -> list[Op]:
        """The operators of a group with masks as its kernel takes them.

        Args:
            ops: in their order in the block.
            values: of the graph that the group was read from, by number.
        """
        upright = set(group.upright)
        for selection in group.selections:
            ops = self._bounded(selection, ops, values, selection.flags in upright)
        for number in upright - {selection.flags for selection in group.selections}:
            ops = self._turned_in(values[number], ops)
        return ops

    def _turned_in(self, mask: ir.Value, ops: list[Op]) -> list[Op]:
        """Turns a mask; what reads it reads it turned back."""
        users = [op for op in ops if mask in list(op.operands)]
        first = min(users, key=ops.index)
        with ir.InsertionPoint(first), first.location:
            turned, value = self._turned(mask), mask
            number = full_value(turned)
            if number is None:
                back = self._back(turned, tensor_of(mask.type).layout)
                value = back[-1].results[0]
            else:
                back, value = [], filled(mask.type, number)
        for op in users:
            for i, operand in enumerate(op.operands):
                if operand == mask:
                    op.operands[i] = value
        return [*back, *ops]

    def _bounded(
        self, selection: Selection, ops: list[Op], values: dict[int, ir.Value], turned: bool
    ) -> list[Op]:
        """Makes a selection the lesser of scores and a bound."""
        flags, select = values[selection.flags], values[selection.result].owner
        scores = select.operands[1 if selection.kept else 2]
        element = tensor_of(scores.type).element
        value = select.operands[0]
        path: list[Op] = []
        while value != flags:
            path.insert(0, owner_of(value))
            value = path[0].operands[0]
        with ir.InsertionPoint(select), select.location:
            bound = self._bound(flags, element, selection)
            number = full_value(bound)
            if number is None:
                layout = tensor_of(flags.type).layout
                made = self._back(self._turned(bound), layout) if turned else []
                value = made[-1].results[0] if made else TensorOps().relayout(bound, layout)
            else:
                made, value = [], filled(scores.type, number)
            for op in path if number is None else ():
                kind = replace(tensor_of(op.results[0].type), element=element)
                attributes = {name: op.attributes[name] for name in op.attributes}
                made.append(builder.op(op.name, [value], [tensor_type(kind)], **attributes))
                value = made[-1].results[0]
            least = builder.op("ascend.min", [scores, value], [scores.type])
        select.results[0].replace_all_uses_with(least.results[0])
        at = ops.index(select.operation)
        found = [*ops[:at], least.operation, *ops[at + 1 :]]
        select.operation.erase()
        for op in reversed(path):
            if not list(op.results[0].uses):
                found = [other for other in found if other != op.operation]
                op.operation.erase()
        return [*(op.operation for op in made), *found]

    def _bound(self, flags: ir.Value, element: str, selection: Selection) -> ir.Value:
        """A number that scores must not exceed, for each of the flags, in rows."""
        key = ("bound", flags, element, selection.fill, selection.kept)
        if key not in self.known:
            kind = Tensor(tensor_of(flags.type).shape, element)
            ops = TensorOps()
            numbers = [MOST[element], selection.fill]
            most, low = (ops.full(kind.shape, element, number) for number in numbers)
            first, second = (most, low) if selection.kept else (low, most)
            rows = ops.relayout(flags, ND)
            self.known[key] = ops.emit("select", [rows, first, second], kind)
        return self.known[key]

    def _turned(self, mask: ir.Value) -> ir.Value:
        """Rows and columns exchanged, in fractals."""
        if mask not in self.known:
            ops, kind = TensorOps(), replace(tensor_of(mask.type), layout=ND)
            *lead, rows, keys = kind.shape
            turned = replace(kind, shape=(*lead, keys, rows))
            permutation = exchange(len(kind.shape))
            upright = ops.relayout(mask, ND)
            value = ops.emit("transpose", [upright], turned, permutation=permutation)
            self.known[mask] = ops.emit("relayout", [value], replace(turned, layout=NZ))
        return self.known[mask]

    def _back(self, turned: ir.Value, layout: str) -> list[Op]:
        """The operators that undo it, and give a layout."""
        kind = tensor_of(turned.type)
        rows = replace(kind, layout=ND)
        *lead, keys, height = kind.shape
        upright = replace(rows, shape=(*lead, height, keys))
        permutation = builder.as_attribute(exchange(len(kind.shape)))
        laid = builder.op("ascend.relayout", [turned], [tensor_type(rows)])
        turn = builder.op(
            "ascend.transpose", [laid.results[0]], [tensor_type(upright)], permutation=permutation
        )
        found: list[Op] = [laid.operation, turn.operation]
        if layout != ND:
            given = tensor_type(replace(upright, layout=layout))
            found.append(builder.op("ascend.relayout", [turn.results[0]], [given]).operation)
        return found


def filled(kind: ir.Type, number: Array) -> ir.Value:
    """A value of the type `kind` that is a number everywhere."""
    found = tensor_of(kind)
    return TensorOps().full(found.shape, found.element, number[()], found.layout)


def exchange(rank: int) -> list[int]:
    """The permutation that exchanges rows and columns."""
    return [*range(rank - 2), rank - 1, rank - 2]

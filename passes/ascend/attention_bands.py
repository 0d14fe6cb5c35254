"""Masks of attention that are known at compile time, as ends of what each row of scores keeps.

before:
    %m = "ascend.broadcast"(%flags)             constants, or what is computed of constants
    %x = "ascend.select"(%m, %s, %low)          or "ascend.add"(%s, %mask)
after:
    %x = "ascend.band"(%s) {runs = array<i64: 4096, 0, 0, 1, 1>, fill = -0x1p+128 : f64}

A kernel of cube and vector cores then takes no array of a number for each score, nor does anything
make one, and it leaves out what no row of a unit sees. Needs a mask of which every row keeps scores
side by side, as they are or all with one number added, and hides all others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.elements import Array
from davinci.mlir import Op, ir
from davinci.operators.band import runs_of
from davinci.passes import builder
from davinci.passes.ascend.known_arrays import evaluated
from davinci.passes.ascend.tensor_ops import (
    CARRIED,
    TensorOps,
    defining_op,
    evaluate,
    readers_of,
)
from davinci.schedule.attention.attention import HIDDEN
from davinci.schedule.attention.group import AttentionGroup
from davinci.schedule.attention.steps import keeps_order

MOST_RUNS = 1 << 12
"""Numbers that say which keys rows see: with more of them a mask follows no rule."""


@dataclass(frozen=True)
class FoundBand:
    """A mask of a group that is known.

    Attributes:
        op: the operator that hides scores by it.
        scores: its operand.
        runs, each, fill: attributes of `ascend.band`.
    """

    op: Op
    scores: ir.Value
    runs: list[int]
    each: int
    fill: float


@dataclass(frozen=True)
class RowEnds:
    """What rows of a mask keep, as runs, and what scores of other keys are."""

    runs: list[int]
    fill: float


def band_of(
    group: AttentionGroup,
    ops: list[Op],
    values: Mapping[int, ir.Value],
    known: dict[Hashable, RowEnds | None],
) -> FoundBand | None:
    """The mask of a group, if it has one only, which is known and does nothing but hide.

    Args:
        ops: of the group.
        values: of the graph that the group was read from, by number.
        known: masks that were asked for before.
    """
    chain = group.attention.chain
    if len(chain.extras) != 1 or not chain.extras[0].whole or not group.upright:
        return None
    (extra,), (number,) = chain.extras, group.extras
    at = next(i for i, step in enumerate(chain.steps) if extra.value in step.sources)
    if not all(map(keeps_order, chain.steps[at + 1 :])):
        return None
    mask = values[number]
    key: Hashable
    if group.selections:
        (selection,) = group.selections
        op = values[selection.result].owner
        scores, fill = op.operands[1 if selection.kept else 2], selection.fill
        key = (mask, selection.kept, fill)
        if key not in known:
            flags = evaluated(mask)
            kept = flags if flags is None or selection.kept else ~flags
            known[key] = None if kept is None else ends_of_mask(kept, fill)
    else:
        found = reader(mask, ops)
        if found is None or found[0].name != "ascend.add":
            return None
        op, operand = found
        scores = next(x for x in op.operands if x != operand)
        key = (mask,)
        if key not in known:
            known[key] = ends_of_added(evaluated(mask))
    ends, turn = known[key], extra.turn
    if ends is None or sum(ends.runs[::5]) != turn.count * group.attention.rows:
        return None
    return FoundBand(op.operation, scores, ends.runs, turn.each, ends.fill)


def reader(mask: ir.Value, ops: list[Op]) -> tuple[Op, ir.Value] | None:
    """The one operator of a group that reads a mask, and its operand: the mask, or what carries it;
    None if there are several."""
    value = mask
    while True:
        users = [user for user in readers_of(value) if user in ops]
        if len(users) != 1:
            return None
        if users[0].name not in CARRIED:
            return users[0], value
        value = users[0].results[0]


def ends_of_mask(kept: Array, fill: float) -> RowEnds | None:
    """The runs of flags [.., rows, keys], if true ones of each row lie side by side."""
    flags = kept.reshape(-1, kept.shape[-1]).astype(np.bool_, copy=False)
    keys = flags.shape[-1]
    count = flags.sum(-1)
    some = count > 0
    first = np.argmax(flags, axis=-1) * some
    last = (keys - np.argmax(flags[:, ::-1], axis=-1)) * some
    if not np.array_equal(last - first, count):
        return None
    runs = runs_of(first, last)
    return RowEnds(runs, fill) if len(runs) <= MOST_RUNS else None


def ends_of_added(mask: Array | None) -> RowEnds | None:
    """The same of numbers that are added to scores: in each row the largest, which changes no
    weight, or one so much less that it leaves none."""
    if mask is None:
        return None
    numbers = mask.astype(np.float32, copy=False)
    highest = numbers.max(-1, keepdims=True)
    if not np.isfinite(highest).all():
        return None
    kept = numbers == highest
    if not (kept | (numbers <= highest + np.float32(HIDDEN))).all():
        return None
    return ends_of_mask(kept, -np.inf)


def with_band(found: FoundBand, ops: list[Op]) -> list[Op]:
    """The operators of a group with `ascend.band` in place of its mask."""
    with ir.InsertionPoint(found.op), found.op.location:
        attributes = {
            "runs": builder.as_attribute(found.runs),
            "each": builder.as_attribute(found.each),
            "fill": ir.FloatAttr.get(ir.F64Type.get(), float(found.fill)),
        }
        band = builder.op("ascend.band", [found.scores], [found.scores.type], **attributes)
    sources = [defining_op(operand) for operand in found.op.operands]
    found.op.results[0].replace_all_uses_with(band.results[0])
    at = ops.index(found.op)
    made = [*ops[:at], band.operation, *ops[at + 1 :]]
    found.op.erase()
    for owner in sources:
        while owner is not None and owner.operation in made and owner.name in CARRIED:
            if list(owner.results[0].uses):
                break
            above = defining_op(owner.operands[0])
            made.remove(owner.operation)
            owner.erase()
            owner = above
    return made


def expand_bands(block: ir.Block) -> None:
    """Bands in no kernel of attention are selections by constants.

    band(x) {runs, fill}   ->   select(kept, x, fill)
    """
    for op in [o.operation for o in block.operations if o.operation.name == "ascend.band"]:
        kind = tensor_of(op.operands[0].type)
        given = {name: python_value(op.attributes[name]) for name in op.attributes}
        ones = np.broadcast_to(np.float32(1), kind.shape)
        kept = evaluate("band", [ones], kind, {**given, "fill": 0.0}).astype(np.bool_)
        with op.location, ir.InsertionPoint(op):
            ops = TensorOps()
            flags = ops.constant(kept, "i1")
            other = ops.full(kind.shape, kind.element, given["fill"])
            new = ops.emit("select", [flags, op.operands[0], other], kind)
        op.results[0].replace_all_uses_with(new)
        op.erase()

"""ascend-simplify-moves: drops what moves or converts elements and moves or converts them back.

before:
    %0 = "ascend.transpose"(%x) {permutation = array<i64: 0, 2, 3, 1>} : (..)
    %1 = "ascend.relu"(%0) : (..)
    %2 = "ascend.transpose"(%1) {permutation = array<i64: 0, 3, 1, 2>} : (..)
    %3 = "ascend.slice"(%2) {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 8, 9, 9>, ..}
    %4 = "ascend.slice"(%2) {starts = array<i64: 0, 8, 0, 0>, limits = array<i64: 1, 16, 9, 9>, ..}
    %5 = "ascend.concat"(%3, %4) {dim = 1} : (..)
    %6 = "ascend.cast"(%5) : (tensor<1x16x9x9xf16>) -> tensor<1x16x9x9xf32>
    %7 = "ascend.cast"(%6) : (tensor<1x16x9x9xf32>) -> tensor<1x16x9x9xf16>
after:
    %7 = "ascend.relu"(%x) : (..)

Networks converted from channels-last frameworks transpose images around each operator, exporters
cut tensors into parts that are joined again, and convert flags to integers and back. A cast to a
type that holds all numbers of the first one, and back, is dropped; one to a narrower type, which
rounds, stays. Operators that compute the same are one, whatever the order of the operands of sums,
products and limits. Numbers stay the same to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute, python_value
from davinci.mlir import Op, ir, owner_of
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.known_numbers import known_number
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    defining_op,
    definitions,
    erase_unused,
    full_value,
    is_elementwise,
    merge_equal,
    read_once,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import REWRITES_HELP
from davinci.passes.pipeline.rewrites import chosen, expected

SLICE, CONCAT, CAST, TRANSPOSE = (f"ascend.{x}" for x in ("slice", "concat", "cast", "transpose"))

WIDER = {
    "i1": frozenset({"i8", "i16", "i32", "i64", "f16", "f32"}),
    "i8": frozenset({"i16", "i32", "i64", "f16", "f32"}),
    "i16": frozenset({"i32", "i64", "f32"}),
    "i32": frozenset({"i64"}),
    "f16": frozenset({"f32"}),
}
"""Types that hold all numbers of an element type."""

MOST_BETWEEN = 16
"""Elementwise operators between two transposes, a limit to the search."""

Rule = Callable[[Op, TensorOps], ir.Value | None]


@register_pass
@dataclass(frozen=True)
class AscendSimplifyMovesPass(Pass):
    """Drop what moves or converts elements and moves or converts them back."""

    NAME = "ascend-simplify-moves"

    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        names, counts = chosen(self.rewrites), Counter[str]()
        rules = {key: rule for key, rule in RULES.items() if rule[0] in names}
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            while found := sweep(block, rules):
                counts += found
            if "common-subexpressions" in names:
                counts["common-subexpressions"] += merge_equal(block)
        for name, count in counts.items():
            note(op, name, count)


def sweep(block: ir.Block, rules: dict[str, tuple[str, Rule]]) -> Counter[str]:
    """Tries the rules once on each operator; how often each rewrite was done."""
    counts = Counter[str]()
    for operation in list(block.operations):
        if operation.operation.name in rules:
            name, rule = rules[operation.operation.name]
            counts[name] += replaced(operation.operation, rule)
    erase_unused(block)
    return +counts


def replaced(op: Op, rule: Rule) -> bool:
    """Has the users of a result take what a rule makes in its place; whether it applies. The
    operation itself is left, so that those behind it can still be looked at."""
    with op.location, ir.InsertionPoint(op):
        made = rule(op, TensorOps())
    if made is None:
        return False
    op.results[0].replace_all_uses_with(made)
    return True


def drop_cast(op: Op, ops: TensorOps) -> ir.Value | None:
    """A cast of a cast to a wider type, back to the first one -> the operand."""
    inner = defining_op(op.operands[0])
    if inner is None or inner.name != CAST or inner.operands[0].type != op.results[0].type:
        return None
    first, between = (tensor_of(v.type).element for v in (inner.operands[0], op.operands[0]))
    return inner.operands[0] if between in WIDER.get(first, ()) else None


def drop_flags(op: Op, ops: TensorOps) -> ir.Value | None:
    """Whether a flag as a number is not 0 -> the flag."""
    first, second = op.operands
    inner = defining_op(first)
    if inner is None or inner.name != CAST or attribute(op, "predicate") != "NE":
        return None
    flags = tensor_of(inner.operands[0].type).element == "i1"
    return inner.operands[0] if flags and known_number(second) == 0 else None


def merge_slices(op: Op, ops: TensorOps) -> ir.Value | None:
    """A slice of a slice -> one slice."""
    inner = defining_op(op.operands[0])
    if inner is None or inner.name != SLICE:
        return None
    (outer_at, _, outer_steps), (inner_at, _, inner_steps) = bounds(op), bounds(inner)
    sizes = tensor_of(op.results[0].type).shape
    starts = [a + b * s for a, b, s in zip(inner_at, outer_at, inner_steps, strict=True)]
    strides = [a * b for a, b in zip(inner_steps, outer_steps, strict=True)]
    if not all(sizes):
        return None
    last = zip(starts, strides, sizes, strict=True)
    fuse(inner, [op.location])
    limits = [start + stride * (size - 1) + 1 for start, stride, size in last]
    return ops.cut(inner.operands[0], starts, limits, strides)


def join_slices(op: Op, ops: TensorOps) -> ir.Value | None:
    """Slices of one value that lie behind each other, joined -> one slice, or the value."""
    parts, dim = definitions(op.operands, SLICE), attribute(op, "dim")
    if not parts or any(part.operands[0] != parts[0].operands[0] for part in parts):
        return None
    starts, limits, strides = bounds(parts[0])
    if strides[dim] != 1:
        return None
    for part in parts[1:]:
        at, end, steps = bounds(part)
        rest = [i for i in range(len(at)) if i != dim]
        alike = all((at[i], end[i], steps[i]) == (starts[i], limits[i], strides[i]) for i in rest)
        if not alike or steps[dim] != 1 or at[dim] != limits[dim]:
            return None
        limits = [*limits[:dim], end[dim], *limits[dim + 1 :]]
    return ops.cut(parts[0].operands[0], starts, limits, strides)


def bounds(op: Op) -> tuple[list[int], list[int], list[int]]:
    """Starts, limits and strides of a slice."""
    starts, limits, strides = (list(attribute(op, x)) for x in ("starts", "limits", "strides"))
    return starts, limits, strides


def cancel_transposes(op: Op, ops: TensorOps) -> ir.Value | None:
    """A transpose of elementwise operators on transposed values -> the operators on the values, if
    each of them comes from a transpose the other way, or is a number."""
    permutation = list(attribute(op, "permutation"))
    between = elementwise_between(op.operands[0], permutation)
    if between is None:
        return None
    known: dict[ir.Value, ir.Value] = {}

    def turned(value: ir.Value) -> ir.Value:
        number = full_value(value)
        found = tensor_of(value.type)
        shape = tuple(found.shape[i] for i in permutation)
        if number is not None:
            return ops.full(shape, found.element, number[()])
        owner = owner_of(value)
        if owner.operation not in between:
            return owner.operands[0]
        if value not in known:
            attributes = {key: python_value(owner.attributes[key]) for key in owner.attributes}
            operands = [turned(operand) for operand in owner.operands]
            with owner.location:
                name = owner.name.removeprefix("ascend.")
                known[value] = ops.emit(name, operands, replace(found, shape=shape), **attributes)
        return known[value]

    return turned(op.operands[0])


def update_as_it_lies(op: Op, ops: TensorOps) -> ir.Value | None:
    """An update of a transposed value that is transposed back -> the update of the value, by
    updates that are transposed, and a transpose, which the one behind it cancels."""
    array, updates, indices = op.operands
    inner = defining_op(array)
    if inner is None or inner.name != TRANSPOSE:
        return None
    moved = list(attribute(inner, "permutation"))
    backwards = (
        use.owner
        for use in op.results[0].uses
        if use.owner.name == TRANSPOSE and undone(moved, list(attribute(use.owner, "permutation")))
    )
    if next(backwards, None) is None:
        return None
    order = [moved.index(d) for d in range(len(moved))]
    given = {name: [attribute(op, name)[d] for d in order] for name in ("starts", "batch")}
    changed = ops.emit(
        "update_blocks",
        [inner.operands[0], ops.transpose(updates, [0, *(1 + d for d in order)]), indices],
        tensor_of(inner.operands[0].type),
        axes=[moved[axis] for axis in attribute(op, "axes")],
        wrap=list(attribute(op, "wrap")),
        skip=attribute(op, "skip"),
        **given,
    )
    return ops.transpose(changed, moved)


def elementwise_between(value: ir.Value, permutation: list[int]) -> set[Op] | None:
    """The elementwise operators, read nowhere else, between a value and transposes of which
    `permutation` is the inverse; None if it has other sources."""
    found: set[Op] = set()
    waiting = [value]
    turns = 0
    while waiting:
        current = waiting.pop()
        owner = defining_op(current)
        if owner is None or len(found) > MOST_BETWEEN:
            return None
        if owner.name == TRANSPOSE and undone(list(attribute(owner, "permutation")), permutation):
            turns += 1
        elif is_elementwise(owner) and (owner.operation in found or alone(current, found)):
            found.add(owner.operation)
            waiting += owner.operands
        elif full_value(current) is None:
            return None
    return found if turns else None


def alone(value: ir.Value, found: set[Op]) -> bool:
    """Whether a value has one use, or all its uses are operators that were found."""
    return read_once(value) or all(use.owner.operation in found for use in value.uses)


def undone(first: list[int], second: list[int]) -> bool:
    """Whether the second permutation puts back what the first one moved."""
    return [first[i] for i in second] == sorted(first)


RULES: dict[str, tuple[str, Rule]] = {
    CAST: ("drop-casts", drop_cast),
    "ascend.compare": ("drop-casts", drop_flags),
    SLICE: ("merge-slices", merge_slices),
    CONCAT: ("merge-slices", join_slices),
    TRANSPOSE: ("cancel-transposes", cancel_transposes),
    "ascend.update_blocks": ("cancel-transposes", update_as_it_lies),
}
"""The rewrite that an operator may be part of, and what does it."""

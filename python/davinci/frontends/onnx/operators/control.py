"""If, Loop and Scan, and the sequences and optional values that they hand on.

Sequences are lists while the graph is walked: where they are put together and taken apart at known
places, nothing of them is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.operators import operator
from davinci.frontends.onnx.scan import UNROLLED_STEPS, scan
from davinci.frontends.onnx.tensor import Flowing, OnnxTensor, Refused, constant

if TYPE_CHECKING:
    from davinci.frontends.onnx.importer import NodeCall

MOST_STEPS = 1 << 40
"""Most steps of a loop whose trip count is not given, for which ONNX has no limit."""


@operator("If")
def lower_if(node: NodeCall) -> tuple[Flowing, ...]:
    """A known condition chooses a branch; of another both are computed and one is selected."""
    condition = node.take(0)
    if condition.known is not None:
        taken = "then_branch" if condition.known.all() else "else_branch"
        node.ignore("then_branch", "else_branch")
        return tuple(node.subgraph(taken))
    condition = ops.reshape(condition, ())
    then, otherwise = node.subgraph("then_branch"), node.subgraph("else_branch")
    return tuple(chosen(condition, a, b) for a, b in zip(then, otherwise, strict=True))


def chosen(condition: OnnxTensor, a: Flowing, b: Flowing) -> OnnxTensor:
    if not isinstance(a, OnnxTensor) or not isinstance(b, OnnxTensor):
        raise Refused("a branch gives a sequence or an optional value", "a known condition")
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        raise Refused(f"the branches give {a} and {b}", "the same, or a known condition")
    return ops.where(condition, a, b)


@operator("Loop")
def lower_loop(node: NodeCall) -> tuple[Flowing, ...]:
    """Step by step as long as it is known to go on, else a loop of the machine."""
    limit, condition = node.optional(0), node.optional(1)
    states = [node.flowing(i) for i in range(2, node.count)]
    known = (limit is None or limit.known is not None) and (
        condition is None or condition.known is not None
    )
    if known:
        steps = MOST_STEPS if limit is None else int(np.ravel(limit.known)[0])  # type: ignore[arg-type]
        goes_on = condition is None or bool(np.all(condition.known))
        unrolled = unrolled_loop(node, steps if goes_on else 0, states)
        if unrolled is not None:
            return unrolled
    return kept_loop(node, limit, condition, states)


def unrolled_loop(node: NodeCall, steps: int, states: list[Flowing]) -> tuple[Flowing, ...] | None:
    """The loop step by step; None if its end is not known, or too far off."""
    rows: list[list[Flowing]] = []
    while len(rows) < steps:
        if len(rows) == UNROLLED_STEPS:
            return None
        number = constant(np.array(len(rows), np.int64))
        outputs = node.subgraph("body", [number, constant(np.array(True)), *states])
        goes_on, after = outputs[0], outputs[1:]
        if not isinstance(goes_on, OnnxTensor) or goes_on.known is None:
            return None
        states = after[: len(states)]
        rows.append(after[len(states) :])
        if not goes_on.known.all():
            break
    scanned = len(node.attr("body").output) - 1 - len(states)
    if scanned and not rows:
        raise Refused("a loop of no steps gives outputs of unknown shape", "one step or more")
    columns = [tensors_of([row[i] for row in rows]) for i in range(scanned)]
    return (*states, *(ops.stack(parts) for parts in columns))


def kept_loop(
    node: NodeCall, limit: OnnxTensor | None, condition: OnnxTensor | None, states: list[Flowing]
) -> tuple[Flowing, ...]:
    """A `stablehlo.while` over the number of the step, the condition and the states."""
    start = tensors_of(states)
    if len(node.attr("body").output) - 1 > len(start):
        node.refuse(
            "the number of steps depends on data, and so does the shape of an output",
            "a known number of steps, or no scan outputs",
        )
    most = constant(np.array(MOST_STEPS, np.int64)) if limit is None else ops.reshape(limit, ())

    def holds(number: OnnxTensor, goes_on: OnnxTensor, *carried: OnnxTensor) -> OnnxTensor:
        return ops.compare("LT", number, most) & goes_on

    def body(number: OnnxTensor, goes_on: OnnxTensor, *carried: OnnxTensor) -> list[OnnxTensor]:
        again, *after = tensors_of(node.subgraph("body", [number, goes_on, *carried]))
        for old, new in zip(carried, after, strict=True):
            if (old.dtype, old.shape) != (new.dtype, new.shape):
                raise Refused(f"a loop changes a value from {old} to {new}", "static shapes")
        return [number + 1, ops.reshape(again, ()), *after]

    first = constant(np.array(True)) if condition is None else ops.reshape(condition, ())
    _, _, *results = ops.while_loop(holds, body, [constant(np.array(0, np.int64)), first, *start])
    return tuple(results)


def tensors_of(values: Sequence[Flowing]) -> list[OnnxTensor]:
    found = [value for value in values if isinstance(value, OnnxTensor)]
    if len(found) != len(values):
        raise Refused("a loop carries a sequence or an optional value", "a known number of steps")
    return found


@operator("Scan")
def lower_scan(node: NodeCall) -> tuple[Flowing, ...]:
    """Lowers Scan; that of operator set 8 goes over axis 1 for each element of the batch, axis
    0."""
    count = int(node.attr("num_scan_inputs"))
    if node.version >= 9:
        values = node.tensors()
        states, inputs = values[: len(values) - count], values[len(values) - count :]
        return scanned(node, states, inputs, "scan_input_directions", "scan_input_axes")
    if node.has(0):
        node.refuse("input 0 (sequence_lens) is not supported")
    values = node.tensors(1)
    rows = []
    for i in range(values[0].shape[0]):
        one = [ops.squeeze(ops.cut_axis(x, 0, i, i + 1), [0]) for x in values]
        states, inputs = one[: len(one) - count], one[len(one) - count :]
        rows.append(scanned(node, states, inputs, "directions", ""))
    return tuple(ops.stack(tensors_of(parts)) for parts in zip(*rows, strict=True))


def scanned(
    node: NodeCall, states: list[OnnxTensor], inputs: list[OnnxTensor], directions: str, axes: str
) -> tuple[Flowing, ...]:
    """Final states and outputs, for one batch."""
    backwards = [bool(d) for d in node.attr(directions) or [0] * len(inputs)]
    places = (node.attr(axes) if axes else None) or [0] * len(inputs)
    moved = [ops.move_axis(x, axis, 0) for x, axis in zip(inputs, places, strict=True)]
    turned = [ops.reverse(x, [0]) if back else x for x, back in zip(moved, backwards, strict=True)]
    if len({x.shape[0] for x in turned}) > 1:
        node.refuse("scan inputs are of different length")

    def step(
        number: OnnxTensor, current: list[OnnxTensor], slices: list[OnnxTensor]
    ) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
        outputs = tensors_of(node.subgraph("body", [*current, *slices]))
        return outputs[: len(states)], outputs[len(states) :]

    final, stacked = scan(step, states, turned, turned[0].shape[0])
    turns = node.attr("scan_output_directions") or [0] * len(stacked)
    stacked = [ops.reverse(x, [0]) if turn else x for x, turn in zip(stacked, turns, strict=True)]
    targets = node.attr("scan_output_axes") or [0] * len(stacked)
    return (*final, *(ops.move_axis(x, 0, to) for x, to in zip(stacked, targets, strict=True)))


# Sequences.


def sequence_of(node: NodeCall, number: int) -> list[OnnxTensor]:
    found = node.flowing(number)
    if not isinstance(found, list):
        raise Refused(f"input {number} is not a sequence")
    return found


def place_in(node: NodeCall, number: int, size: int, default: int) -> int:
    """A known place in a sequence of `size`, counted from the front."""
    known = node.known(number)
    place = default if known is None else int(np.ravel(known)[0])
    if not -size <= place <= size:
        raise Refused(f"place {place} is not in a sequence of {size}")
    return place + size if place < 0 else place


@operator("SequenceEmpty")
def lower_sequence_empty(node: NodeCall) -> Flowing:
    node.ignore("dtype")
    return []


@operator("SequenceConstruct")
def lower_sequence_construct(node: NodeCall) -> Flowing:
    return node.tensors()


@operator("SequenceInsert")
def lower_sequence_insert(node: NodeCall) -> Flowing:
    found = sequence_of(node, 0)
    at = place_in(node, 2, len(found), len(found))
    return [*found[:at], node.take(1), *found[at:]]


@operator("SequenceErase")
def lower_sequence_erase(node: NodeCall) -> Flowing:
    found = sequence_of(node, 0)
    at = place_in(node, 1, len(found), len(found) - 1)
    return [*found[:at], *found[at + 1 :]]


@operator("SequenceAt")
def lower_sequence_at(node: NodeCall) -> Flowing:
    found = sequence_of(node, 0)
    at = place_in(node, 1, len(found), 0)
    if at == len(found):
        node.refuse(f"place {at} is not in a sequence of {len(found)}")
    return found[at]


@operator("SequenceLength")
def lower_sequence_length(node: NodeCall) -> Flowing:
    return constant(np.array(len(sequence_of(node, 0)), np.int64))


@operator("SplitToSequence")
def lower_split_to_sequence(node: NodeCall) -> Flowing:
    """Parts of sizes that input 1 gives, of its one size, or of size 1, without the axis then."""
    x = node.take(0)
    axis = ops.axis_of(node.attr("axis"), x.rank)
    sizes, keepdims = node.known(1), node.attr("keepdims")
    if sizes is None:
        parts = ops.split(x, axis, [1] * x.shape[axis])
        return parts if keepdims else [ops.squeeze(part, [axis]) for part in parts]
    if sizes.ndim:
        return ops.split(x, axis, [int(size) for size in sizes])
    whole, rest = divmod(x.shape[axis], int(sizes))
    return ops.split(x, axis, [int(sizes)] * whole + ([rest] if rest else []))


@operator("ConcatFromSequence")
def lower_concat_from_sequence(node: NodeCall) -> Flowing:
    join = ops.stack if node.attr("new_axis") else ops.concat
    return join(sequence_of(node, 0), node.attr("axis"))


@operator("SequenceMap")
def lower_sequence_map(node: NodeCall) -> tuple[Flowing, ...]:
    """The graph on every element of a sequence, with the other operands or their elements."""
    operands = [node.flowing(i) for i in range(node.count)]
    rows = []
    for i in range(len(sequence_of(node, 0))):
        given = [x[i] if isinstance(x, list) else x for x in operands]
        rows.append(tensors_of(node.subgraph("body", given)))
    return tuple(list(parts) for parts in zip(*rows, strict=True))


# Optional values.


@operator("Optional")
def lower_optional(node: NodeCall) -> Flowing:
    node.ignore("type")
    return node.flowing(0)


@operator("OptionalHasElement")
def lower_optional_has_element(node: NodeCall) -> Flowing:
    return constant(np.array(node.flowing(0) is not None))


@operator("OptionalGetElement")
def lower_optional_get_element(node: NodeCall) -> Flowing:
    found = node.flowing(0)
    return found if found is not None else node.refuse("the optional value has no element")

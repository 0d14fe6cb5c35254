"""Repeats a computation along an axis: what Scan, Loop and recurrent layers have in common.

A short loop is built step by step, so that every product of a step is one of the network; a longer
one is a `stablehlo.while` that counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from davinci.frontends.onnx import ops
from davinci.frontends.onnx.tensor import BadNode, OnnxTensor, constant, emit

UNROLLED_STEPS = 128
"""A longer loop is kept as one."""

Step = Callable[
    [OnnxTensor, list[OnnxTensor], list[OnnxTensor]], tuple[list[OnnxTensor], list[OnnxTensor]]
]
"""From the number of the step (int64, rank 0), the states and the slices of the inputs to the next
states and the slices of the outputs."""


def scan(
    step: Step,
    states: Sequence[OnnxTensor],
    inputs: Sequence[OnnxTensor],
    count: int,
    backwards: bool = False,
    kept: bool = False,
) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
    """Final states, and outputs stacked along a new first axis.

    Args:
        inputs: [count, ..] each; a step gets one slice of each.
        backwards: goes from the last slice to the first; outputs stay in the order of the inputs.
        kept: as a loop, however short it is.

    Raises:
        Invalid: there are no steps, or a state changes its shape in a loop that is kept.
    """
    if count < 1:
        raise BadNode("a loop of no steps gives outputs of unknown shape", "one step or more")
    numbers = range(count)[::-1] if backwards else range(count)
    if count == 1 or (count <= UNROLLED_STEPS and not kept):
        return _unrolled(step, states, inputs, numbers)
    return _kept(step, states, inputs, numbers)


def slice_of(x: OnnxTensor, number: OnnxTensor) -> OnnxTensor:
    """Slice `number` of the first axis, without it."""
    if number.known is not None:
        at = int(number.known)
        return ops.squeeze(ops.cut_axis(x, 0, at, at + 1), [0])
    zero = constant(np.array(0, number.dtype))
    starts = [number, *[zero] * (x.rank - 1)]
    sizes = [1, *x.shape[1:]]
    cut = emit("dynamic_slice", [x, *starts], x.dtype, sizes, slice_sizes=sizes)
    return ops.squeeze(cut, [0])


def with_slice(x: OnnxTensor, number: OnnxTensor, part: OnnxTensor) -> OnnxTensor:
    """`x` with slice `number` of the first axis replaced."""
    zero = constant(np.array(0, number.dtype))
    starts = [number, *[zero] * (x.rank - 1)]
    update = ops.expand_dims(part, [0])
    return emit("dynamic_update_slice", [x, update, *starts], x.dtype, x.shape)


def _unrolled(
    step: Step, states: Sequence[OnnxTensor], inputs: Sequence[OnnxTensor], numbers: range
) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
    current, made = list(states), {}
    for i in numbers:
        number = constant(np.array(i, np.int64))
        current, made[i] = step(number, current, [slice_of(x, number) for x in inputs])
    rows = [made[i] for i in sorted(made)]
    return current, [ops.stack(parts) for parts in zip(*rows, strict=True)]


def _kept(
    step: Step, states: Sequence[OnnxTensor], inputs: Sequence[OnnxTensor], numbers: range
) -> tuple[list[OnnxTensor], list[OnnxTensor]]:
    """The first step is built apart for the shapes of the outputs; nobody needs its values."""
    first = constant(np.array(numbers[0], np.int64))
    _, parts = step(first, list(states), [slice_of(x, first) for x in inputs])
    count = len(states)
    buffers = [ops.full((len(numbers), *part.shape), part.dtype, 0) for part in parts]
    limit = numbers.stop

    def holds(number: OnnxTensor, *carried: OnnxTensor) -> OnnxTensor:
        return ops.compare("NE", number, limit)

    def body(number: OnnxTensor, *carried: OnnxTensor) -> list[OnnxTensor]:
        given = [slice_of(x, number) for x in inputs]
        following, made = step(number, list(carried[:count]), given)
        for old, new in zip(carried, following, strict=False):
            if (old.shape, old.dtype) != (new.shape, new.dtype):
                raise BadNode(f"a state of a loop changes from {old} to {new}")
        filled = [
            with_slice(buffer, number, part)
            for buffer, part in zip(carried[count:], made, strict=True)
        ]
        return [number + numbers.step, *following, *filled]

    _, *results = ops.while_loop(holds, body, [first, *states, *buffers])
    return results[:count], results[count:]

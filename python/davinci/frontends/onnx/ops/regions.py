"""Operations that hold code: sorting and loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.frontends.onnx.ops.shapes import axis_of
from davinci.frontends.onnx.tensor import OnnxTensor, emit_all


def sort(
    operands: Sequence[OnnxTensor],
    axis: int,
    before: Callable[..., OnnxTensor],
    stable: bool = True,
) -> list[OnnxTensor]:
    """Sorts tensors of one shape together along an axis.

    Args:
        before: whether an element comes first; takes two elements of each operand, in turn.
    """
    arguments = [(t.dtype, ()) for t in operands for _ in range(2)]
    return emit_all(
        "sort",
        operands,
        [(t.dtype, t.shape) for t in operands],
        [(arguments, lambda *elements: [before(*elements)])],
        dimension=axis_of(axis, operands[0].rank),
        is_stable=stable,
    )


def while_loop(
    holds: Callable[..., OnnxTensor],
    step: Callable[..., Sequence[OnnxTensor]],
    start: Sequence[OnnxTensor],
) -> list[OnnxTensor]:
    """Repeats `step` on what it carries while `holds` gives true; shapes do not change."""
    carried = [(t.dtype, t.shape) for t in start]
    return emit_all("while", start, carried, [(carried, lambda *x: [holds(*x)]), (carried, step)])

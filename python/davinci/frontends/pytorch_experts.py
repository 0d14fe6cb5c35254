"""Operators of PyTorch by which mixtures of experts compute, as ONNX.

before:
    torch._grouped_mm(x, weights, offs=ends)          x [S, K], weights [E, K, N], ends [E]
after, of few rows:
    y = Squeeze(MatMul(Unsqueeze(x), Gather(weights, group of each row)))
and of many:
    wide = x where the row is of group e, else 0      [S, E K]
    y = MatMul(wide, Reshape(weights))                [E K, N]

Rows are sorted by the expert that they go to, so a group is a range of rows; where it ends is known
only when the model runs. PyTorch's exporter has neither this product nor `histc`, which counts
the rows of each expert.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np


def expert_translations() -> dict[Any, Callable[..., Any]]:
    """The operators that are translated here: PyTorch's own, and the one that transformers takes in
    place of it, if it is loaded."""
    import torch

    found: dict[Any, Callable[..., Any]] = {torch.ops.aten.histc.default: histogram}
    for namespace, name in (("aten", "_grouped_mm"), ("transformers", "grouped_mm_fallback")):
        operator = getattr(getattr(torch.ops, namespace), name, None)
        if operator is not None:
            found[operator.default] = grouped_product
    return found


def grouped_product(
    rows: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """The product of each row and the matrix of its group; rows behind the last group give zeros.

    Args:
        rows: [S, K], group after group.
        weights: [E, K, N], a matrix for each group.
        offs: [E], integers: where each group ends.

    Raises:
        ValueError: operands of other ranks, a bias, or a type given for the result.
    """
    from onnxscript import ir
    from onnxscript import opset18 as op

    shapes = [list(rows.shape), list(weights.shape)]
    other = offs is None or bias is not None or out_dtype is not None
    if other or [len(shape) for shape in shapes] != [2, 3]:
        raise ValueError(
            f"a product of groups of {shapes[0]} and {shapes[1]}; only [S, K] and [E, K, N] with "
            "the ends of the groups, without a bias and in their own type, is translated"
        )
    count, (groups, depth, width) = int(shapes[0][0]), (int(size) for size in shapes[1])
    numbers = op.Constant(value=ir.tensor(np.arange(count, dtype=np.int32)[:, None]))
    ends = op.Cast(offs, to=ir.DataType.INT32)
    zero = op.Constant(value=ir.tensor(np.zeros((), rows.dtype.numpy())))
    # Behind a group, for each row and group: [S, E].
    behind = op.GreaterOrEqual(numbers, ends)
    if 3 * count < groups:  # gathered matrices are read, written and read again
        second = op.Constant(value_ints=[1])
        passed = op.ReduceSum(op.Cast(behind, to=ir.DataType.INT32), second, keepdims=0)
        last = op.Constant(value=ir.tensor(np.array(groups - 1, np.int32)))
        inside = op.Unsqueeze(op.LessOrEqual(passed, last), second)
        each = op.Gather(weights, op.Min(passed, last), axis=0)
        found = op.Squeeze(op.MatMul(op.Unsqueeze(rows, second), each), second)
        return op.Where(inside, found, zero)
    first = op.Constant(value=ir.tensor(np.ones((count, 1), bool)))
    started = op.Concat(first, op.Slice(behind, [0], [groups - 1], [1]), axis=1)
    inside = op.And(started, op.Not(behind))
    apart = op.Unsqueeze(rows, op.Constant(value_ints=[1]))
    wide = op.Where(op.Unsqueeze(inside, op.Constant(value_ints=[2])), apart, zero)
    return op.MatMul(
        op.Reshape(wide, op.Constant(value_ints=[count, groups * depth])),
        op.Reshape(weights, op.Constant(value_ints=[groups * depth, width])),
    )


def histogram(values: Any, bins: int = 100, min: float = 0.0, max: float = 0.0) -> Any:
    """How many values lie in each of `bins` equal parts from `min` to `max`, which is in the last.

    Values that were integers are compared as integers, exactly.

    Raises:
        ValueError: no range, which PyTorch would take from the values.
    """
    from onnxscript import ir
    from onnxscript import opset18 as op

    if min >= max:
        raise ValueError(f"histc without a range; found min = {min}, max = {max}")
    element = values.dtype
    source = values.producer()
    if source is not None and source.op_type == "Cast" and source.inputs[0].dtype.is_integer():
        values = source.inputs[0]
    edges = [min + (max - min) * number / bins for number in range(bins)]
    if values.dtype.is_integer():
        values = op.Cast(values, to=ir.DataType.INT32)
        bounds = np.array([*map(math.ceil, edges), math.floor(max) + 1], np.int32)
    else:
        bounds = np.array([*edges, max], values.dtype.numpy())
        bounds[-1] = np.nextafter(bounds[-1], bounds.dtype.type(np.inf))
    upright = op.Reshape(values, op.Constant(value_ints=[-1, 1]))
    reached = op.GreaterOrEqual(upright, op.Constant(value=ir.tensor(bounds)))
    counts = op.ReduceSum(
        op.Cast(reached, to=ir.DataType.INT32), op.Constant(value_ints=[0]), keepdims=0
    )
    below, above = op.Slice(counts, [0], [bins], [0]), op.Slice(counts, [1], [bins + 1], [0])
    return op.Cast(op.Sub(below, above), to=element)

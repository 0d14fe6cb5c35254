"""Finds operators that make other numbers of the zeros that pad fractals, cleared again behind.

    %s = logistic %x        0 -> 0.5 in the padding
    %y = mul %x, %s         0 * 0.5 = 0 again

Values in fractals have zeros behind their last rows and columns, which products and reductions rely
on. An operator that makes other numbers of them may compute in fractals all the same where
everything that reads its result is elementwise and makes zeros of them, or is such an operator
itself: SiLU, hard swish and the like need not go to rows and back for one of their steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import python_value
from davinci.element_types import dtype_of
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Tensor
from davinci.operators.core import FLOATS
from davinci.passes.ascend.tensor_ops import full_value, is_elementwise, users_of

Numbers = tuple[float, ...]
"""Sample numbers that the elements of a value may have in the padding of its fractals."""

ANYTHING: Numbers = (0.0, 1.0, -2.5)
"""Samples of what is repeated over all rows, the padding too."""

ROUGHLY = 1 + 2**-7
"""A factor by which units may be off: a difference that is zero for exact numbers only is not."""

MOST_NUMBERS = 8
"""Samples of one value beyond which nothing is said of it."""


def cleared_behind(block: ir.Block) -> set[Op]:
    """Elementwise operators that make other finite numbers of zeros, of which all readers make
    zeros again."""
    padding: dict[ir.Value, Numbers] = {}
    dirty: list[Op] = []
    for operation in block.operations:
        op: Op = operation.operation
        if op.name == "ascend.broadcast":
            padding[op.results[0]] = ANYTHING
        elif is_elementwise(op):
            found = _numbers_made(op, [_numbers_of(value, padding) for value in op.operands])
            if found != (0.0,):
                padding[op.results[0]] = found
                dirty.append(op)
    cleared, others = set[Op](), set(dirty)
    for op in reversed(dirty):
        readers = users_of(op)
        if (
            readers
            and padding[op.results[0]]
            and all(
                is_elementwise(user) and (user in cleared or user not in others) for user in readers
            )
        ):
            cleared.add(op)
    return cleared


def _numbers_of(value: ir.Value, padding: dict[ir.Value, Numbers]) -> Numbers:
    """What a value has in the padding: zeros, if nothing else is known of it."""
    known = full_value(value)
    return padding.get(value, (0.0,)) if known is None else (float(known),)


def _numbers_made(op: Op, operands: Sequence[Numbers]) -> Numbers:
    """What an elementwise operator makes of the padding of its operands; nothing if some of it is
    not finite or beyond its type, or there is too much to say."""
    result = Tensor((), tensor_of(op.results[0].type).element)
    kinds = [dtype_of(tensor_of(value.type).element) for value in op.operands]
    attributes = {key: python_value(op.attributes[key]) for key in op.attributes}
    record = OPERATORS[op.name.removeprefix("ascend.")]
    found: set[float] = set()
    for numbers in itertools.product(*operands):
        try:
            with np.errstate(over="ignore"):
                inputs = [np.asarray(n, kind) for n, kind in zip(numbers, kinds, strict=True)]
        except OverflowError:  # of whole numbers
            return ()
        made = float(record.values(inputs, result, attributes))
        if not np.isfinite(made):
            return ()
        found.update((made, made * ROUGHLY) if result.element in FLOATS else (made,))
    return tuple(sorted(found)) if len(found) <= MOST_NUMBERS else ()

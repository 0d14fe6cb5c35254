"""stablehlo-expand-operators: replaces operators that are others put together.

before:
    %r = stablehlo.einsum %a, %b, config = "bij,bkj->bki" : (..) -> tensor<2x5x3xf32>
after:
    %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [2] ..
    %r = stablehlo.transpose %0, dims = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>

So the cube and the vector unit compute them. These are the batch normalisations, `dot`, `einsum`
and `unary_einsum`, `broadcast`, `map`, `torch_index_select`, systems with a triangular matrix
(`triangular_solve`), factors of positive definite matrices (`cholesky`), transposed convolutions,
those of more than two spatial dimensions (`deep_convolution`), those whose windows are out of reach
or that have groups of the batch (`far_convolution`), `reverse`, gradients of maxima over windows
(`window_selection`), windows with any function (`window_scans`), reductions with any
(`halved_reductions`), rounding to fewer bits (`reduced_precision`), scatters of windows, at known
places, of narrow types and with any function (`scatter_forms`), and `real` and `imag` of real
numbers. Needs static shapes; an einsum with a letter twice in one operand stays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, operations
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.cholesky import expand_cholesky
from davinci.passes.stablehlo_to_ascend.deep_convolution import expand_deep
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, is_elementwise
from davinci.passes.stablehlo_to_ascend.far_convolution import expand_far
from davinci.passes.stablehlo_to_ascend.halved_reductions import expand_reduce
from davinci.passes.stablehlo_to_ascend.reduced_precision import expand_reduce_precision
from davinci.passes.stablehlo_to_ascend.scatter_forms import expand_scatter
from davinci.passes.stablehlo_to_ascend.transposed_convolution import (
    expand_transposed,
    turned_round,
)
from davinci.passes.stablehlo_to_ascend.triangular_solve import expand_triangular_solve
from davinci.passes.stablehlo_to_ascend.window_scans import expand_reduce_window
from davinci.passes.stablehlo_to_ascend.window_selection import expand_select_and_scatter

Expansion = Callable[[Op], "Sequence[ir.Value] | None"]


@register_pass
@dataclass(frozen=True)
class StablehloExpandOperatorsPass(Pass):
    """Replace operators that are others put together."""

    NAME = "stablehlo-expand-operators"

    def run(self, op: Op) -> None:
        names = [f"stablehlo.{name}" for name in EXPANSIONS]
        # What an operator becomes may hold others that are expanded.
        while sum(expanded(found) for found in operations(op, *names)):
            pass


def expanded(op: Op) -> bool:
    """Replaces an operation, if it is one that others put together; says whether it did."""
    if not all(value.type.has_static_shape for value in [*op.operands, *op.results]):
        return False
    with op.location, ir.InsertionPoint(op):
        results = EXPANSIONS[op.name.removeprefix("stablehlo.")](op)
    if results is None:
        return False
    for old, new in zip(op.results, results, strict=True):
        old.replace_all_uses_with(new)
    op.erase()
    return True


class Features:
    """The statistics of a batch normalisation, one number a feature."""

    def __init__(self, op: Op) -> None:
        self._kind = op.operands[0].type
        self._index = attribute(op, "feature_index")
        self._epsilon = attribute(op, "epsilon")
        self._others = [d for d in range(self._kind.rank) if d != self._index]
        self.count = math.prod(self._kind.shape[d] for d in self._others)

    def spread(self, values: ir.Value) -> ir.Value:
        return t.broadcast(values, self._kind, [self._index])

    def sum(self, x: ir.Value) -> ir.Value:
        return t.total(x, self._others)

    def mean(self, x: ir.Value) -> ir.Value:
        return t.divide(self.sum(x), t.full(self.sum(x).type, self.count))

    def inverse_deviation(self, variance: ir.Value) -> ir.Value:
        return t.rsqrt(t.add(variance, t.full(variance.type, self._epsilon)))

    def normalized(
        self, x: ir.Value, scale: ir.Value, offset: ir.Value, mean: ir.Value, variance: ir.Value
    ) -> ir.Value:
        centred = t.subtract(x, self.spread(mean))
        deviation = self.spread(t.sqrt(t.add(variance, t.full(variance.type, self._epsilon))))
        scaled = t.multiply(self.spread(scale), t.divide(centred, deviation))
        return t.add(scaled, self.spread(offset))


def expand_inference(op: Op) -> list[ir.Value]:
    return [Features(op).normalized(*op.operands)]


def expand_training(op: Op) -> list[ir.Value]:
    """Results: normalised by mean and variance of the batch, and these."""
    features = Features(op)
    x, scale, offset = op.operands
    mean = features.mean(x)
    centred = t.subtract(x, features.spread(mean))
    variance = features.mean(t.multiply(centred, centred))
    return [features.normalized(x, scale, offset, mean, variance), mean, variance]


def expand_gradient(op: Op) -> list[ir.Value]:
    """Results: gradients of operand, scale and offset.

    With c the centred operand, d the inverse deviation, g the output's gradient and n the count,
    scale's is sum(g c) d, offset's is sum(g), and the operand's is
    scale d / n (n g - sum(g) - c d² sum(g c)).
    """
    features = Features(op)
    x, scale, mean, variance, grad = op.operands
    centred = t.subtract(x, features.spread(mean))
    inverse = features.inverse_deviation(variance)
    products = t.multiply(features.sum(t.multiply(grad, centred)), inverse)
    sums = features.sum(grad)
    inner = t.multiply(t.full(grad.type, features.count), grad)
    inner = t.subtract(inner, features.spread(sums))
    inner = t.subtract(inner, t.multiply(centred, features.spread(t.multiply(products, inverse))))
    factor = t.divide(t.multiply(scale, inverse), t.full(scale.type, features.count))
    return [t.multiply(inner, features.spread(factor)), products, sums]


def expand_broadcast(op: Op) -> list[ir.Value]:
    """The new dimensions are the first ones."""
    (x,), kind = op.operands, op.result.type
    return [t.broadcast(x, kind, list(range(kind.rank - x.type.rank, kind.rank)))]


def expand_dot(op: Op) -> list[ir.Value]:
    """The last dimension of the left operand and the first of the right one are summed over."""
    left, right = op.operands
    return [t.dot(left, right, op.result.type, [], [], [left.type.rank - 1], [0])]


def expand_map(op: Op) -> list[ir.Value] | None:
    """The function's operations on whole tensors; None if one is not elementwise."""
    function = op.regions[0]
    return applied(function, list(op.operands)) if is_elementwise(function) else None


def expand_einsum(op: Op) -> list[ir.Value] | None:
    """A letter in both operands and the result is a batch, in both only is summed over."""
    sources, _, result = attribute(op, "einsum_config").replace(" ", "").partition("->")
    left, right = sources.split(",")
    if not all(
        letters.isalpha() and unique(letters) for letters in (left, right, result) if letters
    ):
        return None
    a, left = sum_out(op.operands[0], left, right + result)
    b, right = sum_out(op.operands[1], right, left + result)
    batch = [x for x in left if x in right and x in result]
    inner = [x for x in left if x in right and x not in result]
    numbers = [
        [letters.index(x) for x in group] for group in (batch, inner) for letters in (left, right)
    ]
    order = batch + [x for x in left if x not in right] + [x for x in right if x not in left]
    sizes = dict(zip(left + right, [*a.type.shape, *b.type.shape], strict=True))
    kind = ir.RankedTensorType.get([sizes[x] for x in order], op.result.type.element_type)
    return [t.transpose(t.dot(a, b, kind, *numbers), [order.index(x) for x in result])]


def expand_unary_einsum(op: Op) -> list[ir.Value] | None:
    source, _, result = attribute(op, "einsum_config").replace(" ", "").partition("->")
    if not all(letters.isalpha() and unique(letters) for letters in (source, result) if letters):
        return None
    value, left = sum_out(op.operands[0], source, result)
    return [t.transpose(value, [left.index(x) for x in result])]


def unique(letters: str) -> bool:
    return len(set(letters)) == len(letters)


def sum_out(value: ir.Value, letters: str, kept: str) -> tuple[ir.Value, str]:
    """`value` summed over the dimensions whose letters are not kept; and the letters left."""
    gone = [i for i, x in enumerate(letters) if x not in kept]
    return (t.total(value, gone) if gone else value), "".join(x for x in letters if x in kept)


def expand_index_select(op: Op) -> list[ir.Value]:
    """A gather of whole slices along `dim`, for each of the leading batch dimensions."""
    table, indices = op.operands
    dim, count = attribute(op, "dim"), attribute(op, "batch_dims")
    rank, kept = table.type.rank, indices.type.rank - count
    batch = list(range(count))
    offsets = [*range(count, dim), *range(dim + kept, rank - 1 + kept)]
    fields = {
        "offset_dims": offsets,
        "collapsed_slice_dims": [dim],
        "operand_batching_dims": batch,
        "start_indices_batching_dims": batch,
        "start_index_map": [dim],
        "index_vector_dim": indices.type.rank,
    }
    text = ", ".join(f"{name} = {value}" for name, value in fields.items())
    sizes = [1 if d in batch or d == dim else n for d, n in enumerate(table.type.shape)]
    return [
        t.op(
            "gather",
            [table, indices],
            op.result.type,
            dimension_numbers=ir.Attribute.parse(f"#stablehlo.gather<{text}>"),
            slice_sizes=sizes,
        )
    ]


def expand_real(op: Op) -> list[ir.Value] | None:
    x = op.operands[0]
    return [x] if x.type == op.result.type else None


def expand_imag(op: Op) -> list[ir.Value] | None:
    kind = op.operands[0].type
    return [t.full(kind, 0)] if kind == op.result.type else None


REVERSED_AT_ONCE = 16
"""Most parts of a dimension that change places in one step: each is a slice."""


def expand_reverse(op: Op) -> list[ir.Value]:
    """Dimensions are turned round by slices that change places; long ones in two steps."""
    x = op.operands[0]
    for dim in attribute(op, "dimensions"):
        x = reversed_along(x, dim)
    return [x]


def reversed_along(x: ir.Value, dim: int) -> ir.Value:
    """`x` from the last to the first index of a dimension.

    One of a b + r indices, r fewer than b: what is over comes first, then a parts of b."""
    size = x.type.shape[dim]
    if size <= REVERSED_AT_ONCE:
        return turned_round(x, dim) if size else x
    count = size // REVERSED_AT_ONCE
    whole = count * REVERSED_AT_ONCE
    shape = list(x.type.shape)
    parts = t.cut(x, dim, 0, whole)
    parts = t.reshape(parts, [*shape[:dim], REVERSED_AT_ONCE, count, *shape[dim + 1 :]])
    parts = reversed_along(turned_round(parts, dim), dim + 1)
    parts = t.reshape(parts, [*shape[:dim], whole, *shape[dim + 1 :]])
    if whole == size:
        return parts
    over = turned_round(t.cut(x, dim, whole, size), dim)
    return t.concatenate([over, parts], dim)


def expand_convolution(op: Op) -> list[ir.Value] | None:
    return expand_transposed(op) or expand_far(op) or expand_deep(op)


EXPANSIONS: dict[str, Expansion] = {
    "batch_norm_grad": expand_gradient,
    "batch_norm_inference": expand_inference,
    "batch_norm_training": expand_training,
    "broadcast": expand_broadcast,
    "cholesky": expand_cholesky,
    "convolution": expand_convolution,
    "dot": expand_dot,
    "einsum": expand_einsum,
    "imag": expand_imag,
    "map": expand_map,
    "real": expand_real,
    "reduce": expand_reduce,
    "reduce_precision": expand_reduce_precision,
    "reduce_window": expand_reduce_window,
    "reverse": expand_reverse,
    "scatter": expand_scatter,
    "select_and_scatter": expand_select_and_scatter,
    "torch_index_select": expand_index_select,
    "triangular_solve": expand_triangular_solve,
    "unary_einsum": expand_unary_einsum,
}

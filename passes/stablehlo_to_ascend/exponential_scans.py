"""Windows of `logaddexp`, log(exp(a) + exp(b)), as sums of exponentials.

    (m, s) of an element x             (x, 1)
    (m, s) of two windows              m = max(ma, mb)     s = sa exp(ma - m) + sb exp(mb - m)
    of a whole window                  m + log(s)

So one logarithm is taken of each window, not one for each pair of partial windows, and an
application of the function is a chain of five operations. Infinite elements keep m finite, as the
largest and the least number, with infinity and 0 for s; NaN are NaN in s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci import elements
from davinci.mlir import ir
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, evaluated

SAMPLES = (-np.inf, -200.0, -100.5, -3.0, -0.25, 0.0, 1.0, 1.5, 20.0, 150.0, np.inf, np.nan)
"""Numbers, each with each other one, for which a function has to be `logaddexp`."""

MOST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class SumsOfExponentials:
    """A reduction by `logaddexp`, computed in f32.

    Attributes:
        element: the type of the numbers.
    """

    element: ir.Type

    @staticmethod
    def of(region: ir.Region, starts: Sequence[ir.Value]) -> SumsOfExponentials | None:
        """The reduction by a function of scalars, if that is `logaddexp` and begins with -inf."""
        kind = ir.RankedTensorType(starts[0].type).element_type
        names = {view.operation.name for view in region.blocks[0].operations}
        if len(starts) > 1 or not isinstance(kind, ir.F16Type | ir.BF16Type | ir.F32Type):
            return None
        if "stablehlo.exponential" not in names or not begins_with_nothing(starts[0]):
            return None
        return SumsOfExponentials(kind) if adds_exponentials(region, kind) else None

    def begun(self, x: ir.Value) -> list[ir.Value]:
        """m and s of single elements."""
        single = ir.RankedTensorType.get(x.type.shape, ir.F32Type.get())
        if x.type != single:
            x = t.op("convert", [x], single)
        most = t.op("clamp", [t.full(single, -MOST), x, t.full(single, MOST)], single)
        return [most, t.op("exponential", [t.subtract(x, most)], single)]

    def joined(self, pairs: Sequence[ir.Value]) -> list[ir.Value]:
        """m and s of windows of which each is two: those of both."""
        first, first_sum, second, second_sum = pairs
        most = t.op("maximum", [first, second], first.type)
        parts = [
            t.multiply(s, t.op("exponential", [t.subtract(m, most)], m.type))
            for m, s in ((first, first_sum), (second, second_sum))
        ]
        return [most, t.add(*parts)]

    def ended(self, most: ir.Value, total: ir.Value) -> ir.Value:
        """The logarithm of the sum of each window."""
        made = t.add(most, t.op("log", [total], total.type))
        kind = ir.RankedTensorType.get(made.type.shape, self.element)
        return made if made.type == kind else t.op("convert", [made], kind)


def begins_with_nothing(start: ir.Value) -> bool:
    """Whether a reduction starts from the constant -inf, the logarithm of an empty sum."""
    if not isinstance(start, ir.OpResult) or start.owner.name != "stablehlo.constant":
        return False
    return bool(np.all(elements.to_array(start.owner.attributes["value"]) == -np.inf))


def adds_exponentials(region: ir.Region, kind: ir.Type) -> bool:
    """Whether a function of two scalars is `logaddexp` of all pairs of sampled numbers."""
    inside: set[ir.Value] = set(region.blocks[0].arguments)
    for op in (view.operation for view in region.blocks[0].operations):
        if any(value not in inside for value in op.operands):
            return False
        inside.update(op.results)
    numbers = np.array(SAMPLES, np.float32)
    a, b = (x.ravel() for x in np.meshgrid(numbers, numbers))
    (made,) = evaluated(
        lambda: applied(region, [t.constant(numbers, kind) for numbers in (a, b)]),
        [ir.RankedTensorType.get([a.size], kind)],
    )
    with np.errstate(invalid="ignore"):
        wanted = np.logaddexp(a, b, dtype=np.float32)
    return np.allclose(made.astype(np.float32), wanted, rtol=1e-2, atol=1e-2, equal_nan=True)

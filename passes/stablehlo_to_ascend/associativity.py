"""Whether a function of scalars is associative, or commutative, by trying it on random numbers."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from davinci import elements
from davinci.elements import Array
from davinci.mlir import ir
from davinci.narrow import to_stored
from davinci.passes import builder
from davinci.passes.stablehlo_to_ascend.elementwise_regions import applied, evaluated, is_constant

TRIALS = 256
"""Triples of numbers that a function is tried on."""

ROUNDINGS = 64
"""Units in the last place of the largest value that two orders of a function may differ by."""

ABORTING = frozenset(f"stablehlo.{name}" for name in ("divide", "remainder", "power"))
"""Operations that end the process in StableHLO's interpreter for some integers."""


def is_associative(region: ir.Region) -> bool:
    """Whether f(f(a, b), c) is f(a, f(b, c)) but for rounding, for random a, b and c.

    Not of a function that reads values from outside of it which are no constants, that divides
    integers, or whose numbers are neither real nor integers.

    Args:
        region: of elementwise operations on scalars, with twice as many arguments as results.
    """
    return can_be_tried(region) and _agree(region, _both_orders)


def is_commutative(region: ir.Region) -> bool:
    """Whether f(a, b) is f(b, a) but for rounding, of a function as `is_associative` takes it."""
    return can_be_tried(region) and _agree(region, _both_sides)


def can_be_tried(region: ir.Region) -> bool:
    """Whether StableHLO's interpreter computes a function of random numbers."""
    block = region.blocks[0]
    kinds = [argument.type.element_type for argument in block.arguments]
    if not all(isinstance(kind, ir.FloatType | ir.IntegerType) for kind in kinds):
        return False
    if any(isinstance(k, ir.IntegerType) for k in kinds) and any(
        view.operation.name in ABORTING for view in block.operations
    ):
        return False
    inside: set[ir.Value] = set(block.arguments)
    for view in block.operations:
        inside.update(view.results)
        if not all(v in inside or is_constant(v) for v in view.operands):
            return False
    return True


Tried = Callable[[ir.Region, "list[list[ir.Value]]"], "list[ir.Value]"]
"""The results of a function applied in one way to three tuples of numbers, then in another."""


def _agree(region: ir.Region, tried: Tried) -> bool:
    """Whether a function gives the same but for rounding in both ways, for random numbers."""
    arguments = list(region.blocks[0].arguments)
    kinds = [argument.type.element_type for argument in arguments[: len(arguments) // 2]]
    rng = np.random.default_rng(0)
    tensors = [ir.RankedTensorType.get([TRIALS], kind) for kind in kinds]

    def both() -> list[ir.Value]:
        return tried(region, [[_numbers(kind, rng) for kind in kinds] for _ in range(3)])

    found = evaluated(both, tensors * 2)
    pairs = zip(found[: len(kinds)], found[len(kinds) :], strict=True)
    return all(_near(a, b) for a, b in pairs)


def _both_orders(region: ir.Region, tuples: list[list[ir.Value]]) -> list[ir.Value]:
    a, b, c = tuples
    left = applied(region, [*applied(region, [*a, *b]), *c])
    return [*left, *applied(region, [*a, *applied(region, [*b, *c])])]


def _both_sides(region: ir.Region, tuples: list[list[ir.Value]]) -> list[ir.Value]:
    a, b, _ = tuples
    return [*applied(region, [*a, *b]), *applied(region, [*b, *a])]


def _numbers(kind: ir.Type, rng: np.random.Generator) -> ir.Value:
    """A constant of random numbers: of either sign, large and small."""
    dtype = np.dtype(elements.dtype_of(kind))
    numbers: Array
    if isinstance(kind, ir.FloatType):
        numbers = rng.normal(0, 2, TRIALS)
    elif dtype == np.bool_:
        numbers = rng.integers(0, 2, TRIALS)
    else:
        least, most = (0, 100) if dtype.kind == "u" else (-50, 50)
        numbers = rng.integers(least, most, TRIALS)
    # Not as a resource, of which the interpreter reads other bytes.
    stored = to_stored(numbers.astype(dtype))
    value = ir.DenseElementsAttr.get(stored, type=kind, shape=[TRIALS])
    return builder.op("stablehlo.constant", [], [value.type], value=value).result


def _near(a: Array, b: Array) -> bool:
    """Whether values are equal, or those of floats nearly."""
    if a.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isfinite(wide_a), np.isfinite(wide_b)):
        return False
    known = np.isfinite(wide_a)
    most = max(1.0, float(np.abs(wide_a[known]).max(initial=0)))
    unit = float(ml_dtypes.finfo(a.dtype).eps)  # type: ignore[no-untyped-call]
    return bool((np.abs(wide_a[known] - wide_b[known]) <= ROUNDINGS * unit * most).all())

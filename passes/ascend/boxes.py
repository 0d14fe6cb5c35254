"""Boxes: which part of a value is meant, dimension by dimension.

A dimension is a row of factors, the major one first, each with the indices that are taken of it,
so that a reshape only regroups them:

    rows 2..4 of an image of 56 x 56 pixels     [56: 2..4] [56: all]      as height and width
    the same of 3136 pixels                     [56: 2..4, 56: all]       as one dimension

A box stands for all combinations of the indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from davinci.dialects.ascend_types import tensor_of
from davinci.mlir import ir
from davinci.passes.ascend.tensor_ops import TensorOps, full_value


@dataclass(frozen=True)
class TakenIndices:
    """Indices `at` of a factor of `size`, in steps of 1 or more."""

    size: int
    at: range

    @property
    def all(self) -> bool:
        return len(self.at) == self.size


Dimension = tuple[TakenIndices, ...]
Box = tuple[Dimension, ...]


def whole(shape: Iterable[int]) -> Box:
    """The box that holds all elements of a value of this shape."""
    return tuple(all_of(size) for size in shape)


def all_of(size: int) -> Dimension:
    return (TakenIndices(size, range(size)),)


def is_whole(box: Box) -> bool:
    return all(taken.all for dimension in box for taken in dimension)


def size_of(dimension: Dimension) -> int:
    """Indices of a dimension, taken or not."""
    return math.prod(taken.size for taken in dimension)


def count_of(dimension: Dimension) -> int:
    """Indices that are taken."""
    return math.prod(len(taken.at) for taken in dimension)


def shape_of(box: Box) -> tuple[int, ...]:
    """The shape of what is taken."""
    return tuple(map(count_of, box))


def plain(dimension: Dimension) -> range | None:
    """The indices as those of one factor; None if they lie at several distances."""
    found = range(1)
    for taken in dimension:
        if len(found) == 1:
            base = found[0] * taken.size
            found = range(base + taken.at.start, base + taken.at.stop, taken.at.step)
        elif taken.all and found.step == 1:
            found = range(found.start * taken.size, found.stop * taken.size)
        elif len(taken.at) == 1:
            step = found.step * taken.size
            start = found.start * taken.size + taken.at[0]
            found = range(start, start + (len(found) - 1) * step + 1, step)
        else:
            return None
    return found


def simplified(dimension: Dimension) -> Dimension:
    """The same indices as one factor where there is such a one, else the dimension as it is."""
    found = plain(dimension)
    return dimension if found is None else (TakenIndices(size_of(dimension), trimmed(found)),)


def trimmed(indices: range) -> range:
    """The same indices, written in one way."""
    if len(indices) == 1:
        return range(indices[0], indices[0] + 1)
    return range(indices[0], indices[-1] + 1, indices.step)


def union(a: Box, b: Box) -> Box:
    """The smallest box found that holds two boxes of one value."""
    return tuple(map(joined, a, b))


def joined(a: Dimension, b: Dimension) -> Dimension:
    if a == b:
        return a
    if [taken.size for taken in a] == [taken.size for taken in b]:
        return tuple(TakenIndices(x.size, spanned(x.at, y.at)) for x, y in zip(a, b, strict=True))
    x, y = plain(a), plain(b)
    if x is None or y is None:
        return all_of(size_of(a))
    return (TakenIndices(size_of(a), spanned(x, y)),)


def spanned(a: range, b: range) -> range:
    """The shortest range that holds two."""
    apart = abs(a.start - b.start)
    steps = [found.step for found in (a, b) if len(found) > 1]
    step = math.gcd(*steps, apart) or 1
    return trimmed(range(min(a.start, b.start), max(a[-1], b[-1]) + 1, step))


def reshaped(box: Box, shape: Sequence[int]) -> Box | None:
    """The box of a row-major reshape to `shape`; None where what is taken would be cut apart."""
    left = [taken for dimension in box for taken in dimension]
    found: list[Dimension] = []
    for size in reversed(shape):
        dimension: list[TakenIndices] = []
        while size > 1:
            if not left:
                return None
            taken = left.pop()
            if taken.size == 1:
                continue
            if size % taken.size == 0:
                dimension.insert(0, taken)
                size //= taken.size
            elif taken.size % size == 0 and (parts := split(taken, size)) is not None:
                left.append(parts[0])
                dimension.insert(0, parts[1])
                size = 1
            else:
                return None
        found.insert(0, simplified(tuple(dimension) or all_of(1)))
    return tuple(found)


def split(taken: TakenIndices, inner: int) -> tuple[TakenIndices, TakenIndices] | None:
    """A factor as two, of which the second has size `inner`; None where that cuts indices apart."""
    outer, at = taken.size // inner, taken.at
    if taken.all or (at.step == 1 and at.start % inner == 0 == len(at) % inner):
        first = range(at.start // inner, at.start // inner + len(at) // inner)
        return TakenIndices(outer, first), TakenIndices(inner, range(inner))
    if at[0] // inner == at[-1] // inner:
        base = at[0] // inner
        within = range(at.start - base * inner, at[-1] - base * inner + 1, at.step)
        return TakenIndices(outer, range(base, base + 1)), TakenIndices(inner, trimmed(within))
    return None


def within(inner: Box, outer: Box) -> Box | None:
    """Where a box lies in what another one takes; None if that is not to be said."""
    found = []
    for a, b in zip(inner, outer, strict=True):
        if all(taken.all for taken in b):
            found.append(a)
            continue
        if [taken.size for taken in a] != [taken.size for taken in b]:
            a, b = simplified(a), simplified(b)
            if len(a) != 1 or len(b) != 1:
                return None
        found.append(
            tuple(TakenIndices(len(y.at), placed(x.at, y.at)) for x, y in zip(a, b, strict=True))
        )
    return tuple(found)


def placed(inner: range, outer: range) -> range:
    """Places of indices among others, all of which are there."""
    places = [outer.index(inner[0]), outer.index(inner[-1])]
    step = max(1, (places[1] - places[0]) // max(1, len(inner) - 1))
    return trimmed(range(places[0], places[1] + 1, step))


def cut(value: ir.Value, box: Box, ops: TensorOps) -> ir.Value:
    """The part of a value that is in a box."""
    found = tensor_of(value.type)
    if is_whole(box):
        return value
    if (number := full_value(value)) is not None:
        return ops.full(shape_of(box), found.element, number[()])
    factors = [taken for dimension in map(simplified, box) for taken in dimension]
    split_value = ops.reshape(value, [taken.size for taken in factors])
    part = ops.cut(
        split_value,
        [taken.at.start for taken in factors],
        [taken.at[-1] + 1 for taken in factors],
        [taken.at.step for taken in factors],
    )
    return ops.reshape(part, shape_of(box))


def is_leading(box: Box) -> bool:
    """Whether what is taken lies side by side in rows."""
    factors = [taken for dimension in box for taken in dimension if taken.size > 1]
    narrow = [i for i, taken in enumerate(factors) if not taken.all]
    if not narrow:
        return True
    single = [len(taken.at) == 1 for taken in factors[: narrow[-1]]]
    return all(single) and factors[narrow[-1]].at.step == 1

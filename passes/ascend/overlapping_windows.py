"""Parts a group in front of values that it would compute several times.

A slice of a value of a group is computed where it is needed, so that elements which several slices
have are computed for each of them:

    %n = .. of %x                                     15 x 15
    %y = f(%n[0:14, 0:14], %n[0:14, 1:15], ..)        14 x 14; %n is computed four times

A kernel for %n, which writes it to global memory, and one for %y compute it once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from davinci.dialects.base import attribute
from davinci.mlir import Op
from davinci.passes.ascend.tensor_ops import defining_op, users_of

Halves = tuple[list[Op], list[Op]]
"""Operators of a group that come first, with all that they need of it, and the others."""


def parts_at_windows(ops: Sequence[Op]) -> Iterator[Halves]:
    """Yields, for each value of a group of which windows overlap, what computes it and the rest."""
    inside = set(ops)
    for op in ops:
        windows = [u for u in users_of(op) if u in inside and u.name == "ascend.slice"]
        if any(overlap(*pair) for pair in itertools.combinations(windows, 2)):
            needed = needed_for(op, inside)
            rest = [other for other in ops if other not in needed]
            yield [other for other in ops if other in needed], rest


def overlap(a: Op, b: Op) -> bool:
    """Whether two slices of a value have elements in common, if all between their first and last
    ones counted."""
    (first, end), (other, limit) = (
        (attribute(op, "starts"), attribute(op, "limits")) for op in (a, b)
    )
    return all(
        max(starts) < min(limits)
        for starts, limits in zip(
            zip(first, other, strict=True), zip(end, limit, strict=True), strict=True
        )
    )


def needed_for(op: Op, inside: set[Op]) -> set[Op]:
    """An operator with all of a group that it depends on."""
    found: set[Op] = set()
    waiting = [op]
    while waiting:
        needed = waiting.pop()
        if needed not in found:
            found.add(needed)
            producers = map(defining_op, needed.operands)
            waiting += [p.operation for p in producers if p is not None and p.operation in inside]
    return found

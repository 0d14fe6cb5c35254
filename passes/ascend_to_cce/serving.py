"""Locations of what builders make: which operators of the kernel an instruction serves.

    with members_of(locations):             one for each operator of the kernel, with its number
        with serving(2, 3):                 what is built here serves these two
            cce.copy(..)                    loc(fused[fused<2>["Add_1"], fused<3>["Mul_2"]])

Inside of nothing narrower, what is built serves all operators of the kernel. The number of an
operator, by which its launches know it, is the metadata of its location, which
`analysis.origins.members` reads. Operators that were folded leave gaps in these numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from davinci.mlir import ir

_Known = dict[tuple[int, ...], ir.Location]

_locations: ContextVar[tuple[Sequence[ir.Location], _Known] | None] = ContextVar(
    "locations", default=None
)


@contextmanager
def members_of(locations: Sequence[ir.Location]) -> Iterator[None]:
    """A kernel is built, of operators with these locations (`numbered_location`)."""
    token = _locations.set((locations, {}))
    try:
        with ir.Location.fused(locations):
            yield
    finally:
        _locations.reset(token)


@contextmanager
def serving(*members: int) -> Iterator[None]:
    """What is built inside serves operators of the kernel, by their places among `members_of`'s
    locations; none: what is around it."""
    found = _locations.get()
    if found is None or not members:
        yield
        return
    locations, known = found
    if members not in known:
        known[members] = ir.Location.fused([locations[number] for number in members])
    with known[members]:
        yield

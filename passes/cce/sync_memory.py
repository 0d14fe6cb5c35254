"""What the operations of a program touch, and which of it can be the same bytes.

The bytes of an on-chip memory, or of a buffer in GM at offsets that differ by constants, are an
*area*. Where accesses begin and end cuts it into segments.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import IntEnum

from davinci.passes.analysis.accesses import (
    ANY_GM,
    ByteAccess,
    defined_in,
    hull,
    may_meet,
)
from davinci.passes.analysis.affine import AffineForm
from davinci.passes.cce.sync_program import Leaf, Program, common_loops
from davinci.passes.cce.sync_queues import Queue


class MemoryUse(IntEnum):
    """What an access does to its bytes; additions to global memory need no order among each
    other."""

    READ = 0
    WRITE = 1
    ADD = 2


Kind = tuple[MemoryUse, Queue]
"""Accesses of a pipe."""


@dataclass(eq=False)
class Area:
    """Accesses at offsets that differ by constants; `bounds`: where they begin and end, sorted."""

    accesses: list[ByteAccess] = field(default_factory=list)
    bounds: list[int] = field(default_factory=list)


@dataclass(eq=False)
class Spot:
    """An access of an operation, in its area.

    Attributes:
        levels: of the loops around it, those in whose iterations its offset differs.
        low, high: constant parts of its first byte and the one past its last.
        exact: whether it touches every byte from `low` to `high`.
        segments: of the area, that it touches.
        areas: those whose accesses it may meet.
        sources: whose accesses must be complete before it.
    """

    leaf: Leaf
    access: ByteAccess
    use: MemoryUse
    area: Area
    levels: tuple[int, ...]
    low: int
    high: int
    exact: bool
    segments: range = range(0)
    areas: list[Area] = field(default_factory=list)
    sources: list[Kind] = field(default_factory=list)


class ProgramAccesses:
    """The accesses of a program.

    Args:
        sequential: pipes whose own instructions never overlap.

    Attributes:
        spots: accesses of each operation, without those to memory that nothing writes.
    """

    def __init__(self, program: Program, sequential: frozenset[Queue]) -> None:
        self._accesses = program.accesses
        self._answers: dict[tuple[object, ...], bool] = {}
        self._areas: dict[Hashable, Area] = {}
        spots = [
            self._spot(leaf, access, use)
            for leaf in program.leaves
            for use, accesses in (
                (MemoryUse.READ, leaf.reads),
                (MemoryUse.ADD if leaf.adds else MemoryUse.WRITE, leaf.writes),
            )
            for access in accesses
            if access.run
        ]
        users: dict[Area, set[Kind]] = {area: set() for area in self._areas.values()}
        for spot in spots:
            users[spot.area].add((spot.use, spot.leaf.pipe))
        for area in users:
            area.bounds = sorted(set(area.bounds))
        self._hulls = {area: _hull(area) for area in users}
        self.spots: dict[Leaf, list[Spot]] = {leaf: [] for leaf in program.leaves}
        for spot in spots:
            _connect(spot, users, sequential)
            if spot.areas:
                self.spots[spot.leaf].append(spot)

    def _spot(self, leaf: Leaf, access: ByteAccess, use: MemoryUse) -> Spot:
        """An access, noted in its area."""
        terms = access.offset.terms
        low, high = access.offset.constant, access.offset.constant + access.span
        levels: tuple[int, ...] = ()
        if access.high is None:
            inside = (any(defined_in(v, loop.op) for v, _ in terms) for loop in leaf.loops)
            levels = tuple(level for level, varies in enumerate(inside) if varies)
        elif terms:
            low, high = access.low, access.high
        key = access.memory if access.high is not None else (access.memory, terms)
        area = self._areas.setdefault(key, Area())
        area.accesses.append(access)
        area.bounds += (low, high)
        exact = not access.dims and (access.high is None or not terms)
        return Spot(leaf, access, use, area, levels, low, high, exact)

    def meet(self, first: Spot, second: Spot, carrier: int) -> bool:
        """Whether two accesses can touch the same byte.

        Args:
            carrier: number of the outermost loop whose iterations differ, the second access being
                in a later one; FORWARD if all are the same.
        """
        key = (first, second, carrier)
        if key not in self._answers:
            depth = common_loops(first.leaf.loops, second.leaf.loops)
            self._answers[key] = self._overlap(first.access, second, carrier, depth)
        return self._answers[key]

    def meets_any(self, area: Area, spot: Spot, carrier: int, depth: int) -> bool:
        """Whether an access can touch a byte between those of an area; see `meet`.

        Args:
            depth: number of loops around both.
        """
        key = (area, spot, carrier, depth)
        if key not in self._answers:
            self._answers[key] = self._overlap(self._hulls[area], spot, carrier, depth)
        return self._answers[key]

    def _overlap(self, first: ByteAccess, second: Spot, carrier: int, depth: int) -> bool:
        loops = [loop.op for loop in second.leaf.loops[:depth]]
        return self._accesses.may_overlap(first, second.access, carrier, loops)


def _hull(area: Area) -> ByteAccess:
    """From the first byte of an area to the last."""
    first = area.accesses[0]
    if first.high is not None or first.memory == ANY_GM:
        return hull(area.accesses)
    low, high = area.bounds[0], area.bounds[-1]
    return ByteAccess(first.memory, AffineForm(low, first.offset.terms), (), high - low, 0, None)


def _connect(spot: Spot, users: dict[Area, set[Kind]], sequential: frozenset[Queue]) -> None:
    """Finds what may have to be complete before an access."""
    bounds, own = spot.area.bounds, spot.leaf.pipe
    spot.segments = range(bisect_left(bounds, spot.low), bisect_left(bounds, spot.high))
    areas = [area for area in users if may_meet(area.accesses[0], spot.access)]
    used = {kind for area in areas for kind in users[area]}
    if any(use != MemoryUse.READ for use, _ in used):
        spot.areas = areas
    for use, pipe in sorted(used):
        alone = pipe == own and (own in sequential or use == MemoryUse.READ)
        changed = use != spot.use or use == MemoryUse.WRITE
        if not alone and changed and pipe not in spot.leaf.behind:
            spot.sources.append((use, pipe))

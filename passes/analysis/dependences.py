"""Which operations of a straight line depend on which, by the bytes that they touch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from davinci.mlir import Op, ir
from davinci.passes.analysis.accesses import FORWARD, Accesses, ByteAccess


@dataclass(frozen=True)
class _ByteTouch:
    """An access of the operation `number`; bytes `low` to `high` from where its terms lead."""

    access: ByteAccess
    terms: int
    low: int
    high: int
    number: int


@dataclass
class _Memory:
    """What has touched a memory and matters for what follows."""

    reads: list[_ByteTouch] = field(default_factory=list)
    writes: list[_ByteTouch] = field(default_factory=list)


class Dependences:
    """Takes the operations of a straight line one after the other.

    What a later write covers as a whole is forgotten: who conflicts with it conflicts with the
    write, too. So an operation is compared with few others, however long the line.

    Args:
        accesses: of the kernel.
        loops: `scf.for` operations around the line, outermost first.
    """

    def __init__(self, accesses: Accesses, loops: Sequence[Op]) -> None:
        self._accesses, self._loops = accesses, loops
        self._memories: dict[ir.Value | str, _Memory] = {}
        self._terms: dict[tuple[tuple[ir.Value, int], ...], int] = {}

    def add(
        self, number: int, reads: Sequence[ByteAccess], writes: Sequence[ByteAccess]
    ) -> dict[int, bool]:
        """The earlier operations that the operation `number` has to follow.

        Returns:
            Their numbers; true where the earlier one writes what both touch.
        """
        found: dict[int, bool] = {}
        touches_read = [self._touch(access, number) for access in reads]
        touches_written = [self._touch(access, number) for access in writes]
        for touch in (*touches_read, *touches_written):
            for other in self._memory(touch).writes:
                if self._meet(other, touch):
                    found[other.number] = True
        for touch in touches_written:
            for other in self._memory(touch).reads:
                if other.number not in found and self._meet(other, touch):
                    found[other.number] = False
        for touch in touches_read:
            self._memory(touch).reads.append(touch)
        for touch in touches_written:
            memory = self._memory(touch)
            if not touch.access.dims:
                memory.reads = [other for other in memory.reads if not _covers(touch, other)]
                memory.writes = [other for other in memory.writes if not _covers(touch, other)]
            memory.writes.append(touch)
        return found

    def _memory(self, touch: _ByteTouch) -> _Memory:
        return self._memories.setdefault(touch.access.memory, _Memory())

    def _touch(self, access: ByteAccess, number: int) -> _ByteTouch:
        offset = access.offset
        terms = self._terms.setdefault(offset.terms, len(self._terms))
        return _ByteTouch(access, terms, offset.constant, offset.constant + access.span, number)

    def _meet(self, first: _ByteTouch, second: _ByteTouch) -> bool:
        apart = first.high <= second.low or second.high <= first.low
        if first.terms == second.terms and (apart or not (first.access.dims or second.access.dims)):
            return not apart
        return self._accesses.may_overlap(first.access, second.access, FORWARD, self._loops)


def _covers(write: _ByteTouch, other: _ByteTouch) -> bool:
    same = write.terms == other.terms
    return same and write.low <= other.low and other.high <= write.high

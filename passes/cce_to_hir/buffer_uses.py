"""The operations that touch a buffer, if all of them do so at places that are known."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.mlir import ir


@dataclass(frozen=True)
class BufferUse:
    """An operation that touches a buffer, and the number of its operand that is a view of it."""

    op: ir.Operation
    number: int

    @property
    def view(self) -> BufferView:
        """The view of the buffer that the operation touches."""
        return buffer_of(self.op.operands[self.number])


def uses_of(buffer: ir.Value, names: Collection[str]) -> list[BufferUse] | None:
    """The operations of these names that touch a buffer, each by a `memref.reinterpret_cast` of it
    at a constant place; None if anything else does."""
    found = []
    for cast in (use.owner for use in buffer.uses):
        if cast.name != "memref.reinterpret_cast" or buffer_of(cast.results[0]).offset is None:
            return None
        for use in cast.results[0].uses:
            if use.owner.name not in names:
                return None
            found.append(BufferUse(use.owner.operation, use.operand_number))
    return found

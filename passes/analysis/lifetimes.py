"""Lifetimes of on-chip buffers in a kernel with structured control flow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from davinci.dialects.cce.buffers import space_name
from davinci.mlir import ir
from davinci.passes.pipeline.base import fail

VIEWS = frozenset(
    [
        "memref.subview",
        "memref.reinterpret_cast",
        "memref.collapse_shape",
        "memref.expand_shape",
        "memref.cast",
        "memref.view",
    ]
)
"""Operations whose result is another view of their first operand."""


@dataclass(eq=False)
class Buffer:
    """A `memref.alloc` in an on-chip memory; times count operations in textual order.

    Attributes:
        alloc: the operation.
        space: "UB", "L1", ...
        size_bytes: without rounding.
        lifetime: first and last time of the statements of the alloc's block that use it. A buffer
            allocated outside a loop and used inside lives through the whole loop.
        outer_lifetime: the same in statements of the kernel's outermost block.
    """

    alloc: Any
    space: str
    size_bytes: int
    lifetime: tuple[int, int]
    outer_lifetime: tuple[int, int]


def lifetimes(kernel: Any) -> list[Buffer]:
    """The on-chip buffers of a kernel, in order of their allocs."""
    walk = _Walk()
    walk.block(kernel.regions[0].blocks[0])
    return [
        Buffer(u.alloc, u.space, u.size_bytes, walk.span(u.statements), walk.span(u.outer))
        for u in walk.buffers
    ]


@dataclass(eq=False)
class _Uses:
    """Where a buffer is used: start times of statements of its own and of the outermost block."""

    alloc: Any
    space: str
    size_bytes: int
    depth: int
    statements: list[int]
    outer: list[int]


class _Walk:
    """One walk over the operations of a kernel in textual order."""

    def __init__(self) -> None:
        self.buffers: list[_Uses] = []
        self._time = 0
        self._path: list[int] = []
        self._ends: dict[int, int] = {}
        self._roots: dict[Any, _Uses] = {}

    def span(self, starts: list[int]) -> tuple[int, int]:
        """From the first to the end of the last of these statements; empty if there are none."""
        return (starts[0], self._ends[starts[-1]]) if starts else (0, -1)

    def block(self, block: Any) -> None:
        for view in block.operations:
            op = view.operation
            start = self._time
            self._time += 1
            self._path.append(start)
            self._visit(op)
            for region in op.regions:
                for inner in region.blocks:
                    self.block(inner)
            self._path.pop()
            self._ends[start] = self._time
            self._time += 1

    def _visit(self, op: Any) -> None:
        if op.name == "memref.alloc":
            space = space_name(op.result.type)
            if space != "GM":
                uses = _Uses(op, space, _size_bytes(op), len(self._path) - 1, [], [])
                self.buffers.append(uses)
                self._roots[op.result] = uses
            return
        for value in op.operands:
            if value not in self._roots:
                continue
            uses = self._roots[value]
            if op.name in VIEWS:
                self._roots[op.result] = uses
            elif any(isinstance(result.type, ir.MemRefType) for result in op.results):
                fail(
                    op,
                    "makes a view that lifetimes do not follow",
                    expected=", ".join(sorted(VIEWS)),
                )
            else:
                self._use(uses)

    def _use(self, uses: _Uses) -> None:
        uses.statements.append(self._path[uses.depth])
        uses.outer.append(self._path[0])


def _size_bytes(alloc: Any) -> int:
    """Bytes of an alloc, which must have a static shape and identity layout."""
    buffer_type = alloc.result.type
    if not buffer_type.has_static_shape or isinstance(buffer_type.layout, ir.StridedLayoutAttr):
        fail(
            alloc,
            "cannot be given an address",
            found=str(buffer_type),
            expected="a static shape and no layout",
        )
    size_bits: int = math.prod(buffer_type.shape) * buffer_type.element_type.width
    return size_bits // 8

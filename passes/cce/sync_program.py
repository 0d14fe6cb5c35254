"""A kernel as insert-sync sees it: operations with their pipe and bytes, in loops and branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from davinci.dialects.cce.effects import effects_of
from davinci.isa.core import Pipe
from davinci.mlir import ir
from davinci.passes.analysis.accesses import FORWARD, Access, Accesses, hull, may_meet
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.pipeline.base import fail

IGNORED = VIEWS | {"memref.alloc", "memref.dealloc"}
"""Operations on memrefs that touch no bytes."""


@dataclass(eq=False)
class Block:
    """A straight line of nodes; `owner` is the loop or branch it is a body of."""

    owner: Loop | Branch | None
    nodes: list[Leaf | Loop | Branch] = field(default_factory=list)


@dataclass(eq=False)
class Node:
    """Something in a block: its operation, the block and the position there."""

    op: Any
    block: Block
    index: int


@dataclass(eq=False)
class Leaf(Node):
    """An operation that touches memory.

    Attributes:
        loops: loops around it, outermost first.
        number: position among the leaves in textual order.
        conflicts: earlier operations it may have to wait for.
    """

    pipe: Pipe
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    loops: tuple[Loop, ...]
    number: int
    conflicts: list[Conflict] = field(default_factory=list)


@dataclass(eq=False)
class Loop(Node):
    """An `scf.for`; `trips` is None if not static."""

    trips: int | None
    body: Block = field(init=False)

    def __post_init__(self) -> None:
        self.body = Block(self)


@dataclass(eq=False)
class Branch(Node):
    """An `scf.if`; `blocks` are its branches, the second one perhaps empty."""

    blocks: list[Block] = field(default_factory=list)


@dataclass(frozen=True)
class Conflict:
    """An operation `earlier` that touches the same bytes.

    Attributes:
        depth: number of loops around both.
        always: whether every earlier instance conflicts.
        carriers: else, the outermost loops (FORWARD for none) whose iteration may differ.
    """

    earlier: Leaf
    depth: int
    always: bool
    carriers: frozenset[int]


class Program:
    """The tree of a kernel, with the conflicts of every leaf."""

    def __init__(self, kernel: Any, sequential: frozenset[Pipe]) -> None:
        self.leaves: list[Leaf] = []
        self._forms = Forms()
        self._accesses = Accesses(self._forms)
        self.body = Block(None)
        self._fill(self.body, kernel.regions[0].blocks[0], ())
        self._join_scalar_accesses()
        for leaf in self.leaves:
            leaf.conflicts = list(self._conflicts(leaf, sequential))

    def _fill(self, block: Block, source: Any, loops: tuple[Loop, ...]) -> None:
        for view in source.operations:
            op = view.operation
            if op.regions:
                self._add_region(block, op, loops)
                continue
            effects = effects_of(op)
            if effects is None:
                if op.name not in IGNORED and any(
                    isinstance(value.type, ir.MemRefType) for value in op.operands
                ):
                    fail(op, "touches memory in a way that insert-sync does not know")
                continue
            reads: tuple[Access, ...]
            writes: tuple[Access, ...]
            if op.name in ("memref.load", "memref.store"):
                buffer, *indices = list(op.operands)[0 if op.name == "memref.load" else 1 :]
                element = (self._accesses.of_element(buffer, indices, op),)
                reads, writes = (element, ()) if effects.reads else ((), element)
            else:
                reads = tuple(self._accesses.of_view(value, op) for value in effects.reads)
                writes = tuple(self._accesses.of_view(value, op) for value in effects.writes)
            pipe, place = Pipe[effects.pipe], len(block.nodes)
            leaf = Leaf(op, block, place, pipe, reads, writes, loops, len(self.leaves))
            block.nodes.append(leaf)
            self.leaves.append(leaf)

    def _add_region(self, block: Block, op: Any, loops: tuple[Loop, ...]) -> None:
        """Adds a loop or branch, unless nothing in it touches memory."""
        index = len(block.nodes)
        if op.name == "scf.for":
            node: Loop | Branch = Loop(op, block, index, self._forms.enter_loop(op).trips)
            assert isinstance(node, Loop)
            self._fill(node.body, op.regions[0].blocks[0], (*loops, node))
            used = bool(node.body.nodes)
        elif op.name == "scf.if":
            node = Branch(op, block, index)
            for region in op.regions:
                node.blocks.append(Block(node))
                for inner in region.blocks:
                    self._fill(node.blocks[-1], inner, loops)
            used = any(inner.nodes for inner in node.blocks)
        else:
            fail(op, "is not supported in a kernel of several pipes", expected="scf.for, scf.if")
        if used:
            block.nodes.append(node)

    def _join_scalar_accesses(self) -> None:
        """Widens the scalar unit's accesses to the range from the lowest to the highest.

        The instruction stream sums up neighbouring scalar accesses by that range, so this is what
        the machine is told.
        """
        scalar = [leaf for leaf in self.leaves if leaf.pipe == Pipe.S]
        for reads in (True, False):
            groups: dict[str, list[tuple[Leaf, Access]]] = {}
            for leaf in scalar:
                for access in leaf.reads if reads else leaf.writes:
                    memory = "GM" if access.high is None else access.memory
                    groups.setdefault(memory, []).append((leaf, access))
            for group in groups.values():
                if len(group) == 1 and not group[0][1].offset.terms:
                    continue
                joined = (hull([access for _, access in group]),)
                for leaf, _ in group:
                    leaf.reads, leaf.writes = (joined, ()) if reads else ((), joined)

    def _conflicts(self, leaf: Leaf, sequential: frozenset[Pipe]) -> Iterator[Conflict]:
        for earlier in self.leaves:
            if earlier.pipe == leaf.pipe and leaf.pipe in sequential:
                continue
            pairs = [(w, x) for w in earlier.writes for x in (*leaf.reads, *leaf.writes)]
            if earlier.pipe != leaf.pipe:
                pairs += [(r, w) for r in earlier.reads for w in leaf.writes]
            pairs = [(a, b) for a, b in pairs if may_meet(a, b)]
            if not pairs:
                continue
            depth = _common(earlier.loops, leaf.loops)
            loops = [loop.op for loop in leaf.loops[:depth]]
            possible = [*range(depth)]
            possible += [FORWARD] if earlier.number < leaf.number else []
            carriers = frozenset(
                carrier
                for carrier in possible
                if any(self._accesses.may_overlap(a, b, carrier, loops) for a, b in pairs)
            )
            if carriers:
                yield Conflict(earlier, depth, len(carriers) == len(possible), carriers)


def _common(first: tuple[Loop, ...], second: tuple[Loop, ...]) -> int:
    """Length of the common beginning."""
    depth = 0
    for a, b in zip(first, second, strict=False):
        if a is not b:
            break
        depth += 1
    return depth


def ancestor(node: Node, block: Block) -> Node:
    """The node of `block` that is or contains `node`."""
    while node.block is not block:
        assert node.block.owner is not None
        node = node.block.owner
    return node


def common_block(first: Node, second: Node) -> Block:
    """The innermost block that contains both nodes."""
    around = set()
    block: Block | None = first.block
    while block is not None:
        around.add(block)
        block = block.owner.block if block.owner else None
    block = second.block
    while block not in around:
        assert block.owner is not None
        block = block.owner.block
    return block

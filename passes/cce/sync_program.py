"""A kernel as insert-sync sees it: operations with their pipe and bytes, in loops and branches."""

from __future__ import annotations

from dataclasses import dataclass, field

from davinci.dialects.cce.effects import effects_of
from davinci.mlir import Op, arith, ir
from davinci.passes.analysis.accesses import Accesses, ByteAccess, hull
from davinci.passes.analysis.affine import Forms
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.cce.sync_queues import Queue
from davinci.passes.pipeline.base import fail

BLOCK_INDEX = "cce.get_block_idx"

IGNORED = VIEWS | {"memref.alloc", "memref.dealloc"}
"""Operations on memrefs that touch no bytes."""


@dataclass(eq=False)
class SyncBlock:
    """A straight line of nodes; `owner` is the loop or branch it is a body of."""

    owner: SyncLoop | Branch | None
    nodes: list[Leaf | SyncLoop | Branch] = field(default_factory=list)


@dataclass(eq=False)
class SyncNode:
    """Something in a block: its operation, the block and the position there."""

    op: Op
    block: SyncBlock
    index: int


@dataclass(eq=False)
class Leaf(SyncNode):
    """An operation that touches memory.

    Attributes:
        loops: loops around it, outermost first.
        adds: whether it adds to what it writes, see `davinci.dialects.cce.effects`.
        behind: pipes whose earlier work it waits for itself.
    """

    pipe: Queue
    reads: tuple[ByteAccess, ...]
    writes: tuple[ByteAccess, ...]
    loops: tuple[SyncLoop, ...]
    adds: bool = False
    behind: frozenset[Queue] = frozenset()


@dataclass(eq=False)
class SyncLoop(SyncNode):
    """An `scf.for`; `trips` is None if not static."""

    trips: int | None
    body: SyncBlock = field(init=False)

    def __post_init__(self) -> None:
        self.body = SyncBlock(self)

    @property
    def turns(self) -> int:
        """How often it is run on paper, see `sync_trace`."""
        return 2 if self.trips is None else min(self.trips, 2)


@dataclass(eq=False)
class Branch(SyncNode):
    """An `scf.if`; `blocks` are its branches, the second one perhaps empty."""

    blocks: list[SyncBlock] = field(default_factory=list)


def exclusive_branches(kernel: Op) -> list[Op]:
    """The branches that a kernel consists of, if each block enters at most one of them; none if it
    is something else. Each may be synchronised as if it were a kernel.

        %below = arith.cmpi ult, %block - 3, 5      blocks 3 to 7
        scf.if %below { .. }
    """
    forms, found, taken = Forms(), list[Op](), set[int]()
    for view in kernel.regions[0].blocks[0].operations:
        op = view.operation
        if not op.regions:
            if effects_of(op) is not None or _is_unknown(op):
                return []
            continue
        blocks = _blocks_of(op, forms)
        if blocks is None or not taken.isdisjoint(blocks):
            return []
        taken.update(blocks)
        found.append(op)
    return found


def _is_unknown(op: Op) -> bool:
    """Whether an operation without known effects may touch memory."""
    memory = any(isinstance(value.type, ir.MemRefType) for value in op.operands)
    return memory and op.name not in IGNORED


def _blocks_of(branch: Op, forms: Forms) -> range | None:
    """The numbers of the blocks that enter an `scf.if` without an else; None if they are not known
    to be neighbours."""
    if branch.name != "scf.if" or branch.results or len(branch.regions[1].blocks):
        return None
    test = branch.operands[0].owner
    if isinstance(test, ir.Block) or test.name != "arith.cmpi":
        return None
    if ir.IntegerAttr(test.attributes["predicate"]).value != int(arith.CmpIPredicate.ult):
        return None
    index, count = map(forms.of, test.operands)
    if count.terms or len(index.terms) != 1:
        return None
    ((block, factor),) = index.terms
    if isinstance(block.owner, ir.Block) or block.owner.name != BLOCK_INDEX or factor != 1:
        return None
    return range(-index.constant, count.constant - index.constant)


class Program:
    """The tree of a kernel, or of a branch of it.

    Attributes:
        body: its outermost block.
        leaves: in textual order.
        accesses: answers which of their accesses overlap.
    """

    def __init__(self, kernel: Op) -> None:
        self.leaves: list[Leaf] = []
        self._forms = Forms()
        self.accesses = Accesses(self._forms)
        self.body = SyncBlock(None)
        self._fill(self.body, kernel.regions[0].blocks[0], ())
        self._join_scalar_accesses()

    def _fill(self, block: SyncBlock, source: ir.Block, loops: tuple[SyncLoop, ...]) -> None:
        for view in source.operations:
            op = view.operation
            if op.regions:
                self._add_region(block, op, loops)
                continue
            effects = effects_of(op)
            if effects is None:
                if _is_unknown(op):
                    fail(op, "touches memory in a way that insert-sync does not know")
                continue
            reads = tuple(self.accesses.of_operand(value, op) for value in effects.reads)
            writes = tuple(self.accesses.of_operand(value, op) for value in effects.writes)
            pipe, place = Queue[effects.pipe], len(block.nodes)
            behind = frozenset(Queue[name] for name in effects.behind)
            leaf = Leaf(op, block, place, pipe, reads, writes, loops, effects.adds, behind)
            block.nodes.append(leaf)
            self.leaves.append(leaf)

    def _add_region(self, block: SyncBlock, op: Op, loops: tuple[SyncLoop, ...]) -> None:
        """Adds a loop or branch, unless nothing in it touches memory."""
        index = len(block.nodes)
        if op.name == "scf.for":
            node: SyncLoop | Branch = SyncLoop(op, block, index, self._forms.enter_loop(op).trips)
            assert isinstance(node, SyncLoop), "an scf.for is a loop"
            self._fill(node.body, op.regions[0].blocks[0], (*loops, node))
            used = bool(node.body.nodes)
        elif op.name == "scf.if":
            node = Branch(op, block, index)
            for region in op.regions:
                node.blocks.append(SyncBlock(node))
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
        scalar = [leaf for leaf in self.leaves if leaf.pipe == Queue.S]
        for reads in (True, False):
            groups: dict[ir.Value | str, list[tuple[Leaf, ByteAccess]]] = {}
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


def common_loops(first: tuple[SyncLoop, ...], second: tuple[SyncLoop, ...]) -> int:
    """How many loops two operations have in common, given those around each, outermost first."""
    depth = 0
    for a, b in zip(first, second, strict=False):
        if a is not b:
            break
        depth += 1
    return depth


def ancestor(node: SyncNode, block: SyncBlock) -> SyncNode:
    """The node of `block` that is or contains `node`."""
    while node.block is not block:
        assert node.block.owner is not None, "the block holds the node"
        node = node.block.owner
    return node


def common_block(first: SyncNode, second: SyncNode) -> SyncBlock:
    """The innermost block that contains both nodes."""
    around = set()
    block: SyncBlock | None = first.block
    while block is not None:
        around.add(block)
        block = block.owner.block if block.owner else None
    block = second.block
    while block not in around:
        assert block.owner is not None, "both nodes are in one function"
        block = block.owner.block
    return block


def lies_in(block: SyncBlock, node: SyncNode) -> bool:
    """Whether a block is a body of a loop or branch, or lies in one."""
    owner = block.owner
    while owner is not None and owner is not node:
        owner = owner.block.owner
    return owner is node

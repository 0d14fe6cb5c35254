"""What each block of a kernel does to global memory, in order, without running the kernel.

The places of transfers are affine forms of the block's number, of loop variables and of what is
computed of them (`davinci.passes.analysis.accesses`), found once a kernel. For a block they are
evaluated: its number is known then, and loops are dimensions of strided boxes,

    copy y[32 * block + 4 * i] for i = 0 to 8    ->    of block 3: 96 + {0, 4, .., 28}

Where a place or a branch is not affine in the variable of a loop (quotients, minima, comparisons),
or where blocks wait for each other in a loop, its iterations are taken one by one. A place that
depends on data may be anywhere in its array, and then is not exact.

On a coupled machine a block does things one after the other, as far as other blocks can tell, since
it waits for all its pipes where it meets others. On a split one a flag between cores is set by one
pipe; there a kernel is followed as `insert-sync` leaves it, with what its pipes know of each other
(`davinci.passes.analysis.core_pipes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import MEETINGS, SYNC_OPS, effects_of
from davinci.errors import CompileError
from davinci.mlir import Op, ir, location_text
from davinci.passes.analysis.accesses import Accesses
from davinci.passes.analysis.affine import AffineForm, Forms
from davinci.passes.analysis.block_steps import (
    ADD,
    READ,
    WRITE,
    BlockStep,
    BranchNode,
    KernelNode,
    LoopNode,
    PlacedTransfer,
    ProgramSteps,
)
from davinci.passes.analysis.block_values import BlockValues
from davinci.passes.analysis.block_walk import BlockWalk
from davinci.passes.analysis.core_pipes import CorePipes
from davinci.passes.analysis.lifetimes import VIEWS
from davinci.passes.analysis.not_provable import NotProvable

_FOLLOWED = VIEWS | {"memref.alloc", "memref.load", "memref.store", "scf.yield", "func.return"}
"""Operations without regions, besides those of arith, math and cce, whose effects are known."""

_CORE_FLAGS = ("cce.set_core_flag", "cce.wait_core_flag")


class KernelPlaces:
    """The accesses and meetings of a kernel.

    Attributes:
        meets: whether its blocks wait for each other.
        waits_first: whether all pipes have done their work before it does anything else.

    Args:
        split: follow its pipes, and flags between cores.

    Raises:
        NotProvable: it has operations whose effects on other cores are not followed here.
    """

    def __init__(self, kernel: Op, split: bool = False) -> None:
        self._split = split
        self._forms = Forms()
        self._accesses = Accesses(self._forms, planned=False)
        block = kernel.regions[0].blocks[0]
        self._arguments = list(block.arguments)
        first = next((v.operation for v in block.operations if v.name.startswith("cce.")), None)
        self.waits_first = (
            first is not None
            and first.name == "cce.pipe_barrier"
            and attribute(first, "pipe") == "ALL"
        )
        self._body, self.meets = self._read(block)

    def argument(self, number: int) -> ir.Value:
        """An argument of the kernel."""
        return self._arguments[number]

    def _read(self, block: ir.Block) -> tuple[list[KernelNode], bool]:
        found: list[KernelNode] = []
        meets = False
        for view in block.operations:
            op = view.operation
            if op.name == "scf.for":
                self._forms.enter_loop(op)
                body, inside = self._read(op.regions[0].blocks[0])
                found += [LoopNode(op, body, inside)] if body else []
                meets = meets or inside
            elif op.name == "scf.if":
                parts = [self._read(each.blocks[0]) for each in op.regions if len(each.blocks)]
                inside = any(each for _, each in parts)
                bodies = [body for body, _ in parts]
                found += [BranchNode(op, bodies, inside)] if any(bodies) else []
                meets = meets or inside
            elif op.regions:
                raise NotProvable(f"{op.name} at {location_text(op.location)} is not followed")
            elif op.name in _CORE_FLAGS and not self._split:
                raise NotProvable("its cores meet by flags")
            elif op.name in MEETINGS or op.name in _CORE_FLAGS:
                found.append(op)
                meets = True
                if op.name == "cce.sync_and_copy":
                    found += self._transfers(op, "MTE2", READ, [op.operands[3]])
            elif op.name in SYNC_OPS:
                found += [op] if self._split else []
            else:
                found += self._transfers_of(op)
        return found, meets

    def _transfers_of(self, op: Op) -> Iterator[PlacedTransfer]:
        if op.name not in _FOLLOWED and op.name.partition(".")[0] not in ("arith", "cce", "math"):
            raise NotProvable(f"{op.name} at {location_text(op.location)} is not followed")
        effects = effects_of(op)
        if effects is None:
            return
        yield from self._transfers(op, effects.pipe, READ, effects.reads)
        what = ADD if effects.adds else WRITE
        yield from self._transfers(op, effects.pipe, what, effects.writes)

    def _transfers(
        self, op: Op, pipe: str, what: str, values: Sequence[ir.Value]
    ) -> Iterator[PlacedTransfer]:
        for value in values:
            if space_name(value.type) != "GM":
                continue
            try:
                access = self._accesses.of_operand(value, op)
            except CompileError as error:
                raise NotProvable(str(error.message)) from None
            if isinstance(access.memory, str):
                raise NotProvable(f"it accesses {access.memory}, which is no argument")
            if access.run:
                yield PlacedTransfer(
                    op, pipe, what, access.memory, access.offset, access.dims, access.run
                )

    def steps_of(
        self, block: int, blocks: int, arguments: Mapping[ir.Value, AffineForm] | None = None
    ) -> list[BlockStep]:
        """The accesses and meetings of a block, in the order in which it makes them.

        Args:
            block, blocks: its number, and how many there are.
            arguments: known scalar arguments of the kernel.

        Raises:
            NotProvable: how it meets others depends on data, or it takes more than MOST_STEPS.
        """
        values = BlockValues(block, blocks, dict(arguments or {}))
        return BlockWalk(values).walk(self._body, True)

    def program_of(self, block: int, blocks: int, sub_block: int = 0) -> ProgramSteps:
        """The steps of one core of a split machine that runs a block.

        Args:
            sub_block: which of the block's vector cores it is.

        Raises:
            NotProvable: as of `steps_of`; or flags between pipes are not set as they are waited
                for.
        """
        pipes = CorePipes()
        values = BlockValues(block, blocks, {}, sub_block)
        steps = BlockWalk(values, pipes=pipes).walk(self._body, True)
        if pipes.left:
            raise NotProvable("a flag between pipes is left set")
        return ProgramSteps(steps, tuple(pipes.done), pipes.scalar)

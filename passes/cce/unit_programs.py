"""The programs that `split_cores` makes of two copies of a kernel: one of its cube work, one of its
vector work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.effects import effects_of
from davinci.machine import CUBE_CORE, VECTOR_CORE, Machine
from davinci.mlir import Op, attribute_names, ir, location_text, operations
from davinci.passes import builder
from davinci.passes.cce.crossings import TileCrossing, crossing_ops
from davinci.passes.cce.row_halves import Cuts, NotHalved, build_part, find_cuts
from davinci.passes.cce.unroll import ORDER, UNROLL

UNSHARED = "ascend.unshared"
"""Of a vector program whose work is done by one vector core alone: what is in the way."""


def works_of(kernel: Op, machine: Machine, kind: str) -> list[Op]:
    """The operations on memories that one kind of core has; crossings are of both."""
    memories = machine.core_types[kind].memories
    return [op for op in operations(kernel) if memories_of(op) & set(memories)]


def memories_of(op: Op) -> set[str]:
    """The memories on chip that an operation on buffers accesses."""
    effects = effects_of(op)
    values = () if effects is None else (*effects.reads, *effects.writes)
    return {space_name(value.type) for value in values} - {"GM"}


@dataclass(frozen=True)
class ProgramRings:
    """The crossings of a kernel, and the arrays of their tiles as one program has them."""

    crossings: Sequence[TileCrossing]
    arrays: Sequence[ir.Value]

    def begin(self, program: Op, to_cube: bool) -> None:
        """Builds at the beginning of a program that all places are free from which it takes tiles,
        and at its end that all places are empty into which it puts some.

        Args:
            to_cube: whether the program takes tiles of vector cores.
        """
        block = program.regions[0].blocks[0]
        with program.location:
            with ir.InsertionPoint.at_block_begin(block):
                for crossing in self.crossings:
                    if crossing.to_cube == to_cube:
                        crossing.ring.open()
            with ir.InsertionPoint.at_block_terminator(block):
                for crossing in self.crossings:
                    if crossing.to_cube != to_cube:
                        crossing.ring.close()

    def replace(self, program: Op, build: Callable[[Op, TileCrossing, ir.Value], None]) -> None:
        """Replaces operations by which tiles cross.

        Args:
            build: gets such an operation, its crossing, and the place of the tile.
        """
        for op, crossing, array in zip(
            crossing_ops(program), self.crossings, self.arrays, strict=True
        ):
            with ir.InsertionPoint(op), op.location:
                build(op, crossing, crossing.next(array, op))
            op.erase()


def build_cube(program: Op, rings: ProgramRings, others: Sequence[Op]) -> None:
    """Makes the program of the cube cores of a copy of the kernel.

    Args:
        others: the operations of the vector unit, crossings among them.
    """

    def cross(op: Op, crossing: TileCrossing, place: ir.Value) -> None:
        source, target = op.operands
        if crossing.to_cube:
            with crossing.ring.taking():
                cce.copy(place, target)
        else:
            with crossing.ring.giving():
                cce.fixpipe(source, place, relu=bool(attribute(op, "relu", False)))

    crossed = set(crossing_ops(program))
    erase(op for op in (*others, *_scalar_stores(program)) if op not in crossed)
    rings.replace(program, cross)
    rings.begin(program, to_cube=True)


@dataclass
class SharedVectorWork:
    """Makes the program of the vector cores of a copy of the kernel."""

    program: Op
    rings: ProgramRings
    machine: Machine

    def build(self) -> None:
        """Shares the work between two vector cores, or has the first one do all."""
        ops = [*works_of(self.program, self.machine, VECTOR_CORE), *_scalar_stores(self.program)]
        kept = set(ops)
        erase(op for op in works_of(self.program, self.machine, CUBE_CORE) if op not in kept)
        count, why = self.machine.core_types[VECTOR_CORE].count, ""
        cuts: Cuts = dict.fromkeys(ops)
        if count == 2:
            try:
                cuts = find_cuts(ops)
            except NotHalved as error:
                why = f"{error.why}: '{error.op.name}' at {location_text(error.op.location)}"
        elif count > 2:
            why = f"work is shared by two vector cores, not by {count}"
        _cut_all([op for op in ops if op not in set(crossing_ops(self.program))], cuts)
        self.rings.replace(self.program, partial(self._cross, cuts))
        if why:
            self._leave_to_first()
            self.program.attributes[UNSHARED] = ir.StringAttr.get(why)
        self.rings.begin(self.program, to_cube=False)

    @staticmethod
    def _cross(cuts: Cuts, op: Op, crossing: TileCrossing, place: ir.Value) -> None:
        source, target = op.operands
        pair = [source, place] if crossing.to_cube else [place, target]
        ring = crossing.ring
        with ring.giving() if crossing.to_cube else ring.taking():
            build_part(cuts[op], pair, lambda both: cce.copy(*both))

    def _leave_to_first(self) -> None:
        """Has the vector cores behind the first one do nothing but set and wait for flags."""
        block = self.program.regions[0].blocks[0]
        *ops, end = [view.operation for view in block.operations]
        with ir.InsertionPoint(end), self.program.location:
            lane = cce.get_sub_block_idx()
            branch = builder.choose(lane, 0, lambda: None, lambda: None)
        (last,) = list(branch.then_block.operations)
        for op in ops:
            op.move_before(last)
        copy_into(ops, branch.else_block, {})
        other = branch.operation.regions[1]
        inside = [op for view in other.blocks[0].operations for op in operations(view.operation)]
        for loop in (op for op in inside if op.name == "scf.for"):
            for key in {UNROLL, ORDER} & set(attribute_names(loop)):
                del loop.attributes[key]
        erase(op for op in inside if effects_of(op) is not None)


def _cut_all(ops: Sequence[Op], cuts: Cuts) -> None:
    """Replaces operations by the parts that a vector core does."""
    for op in ops:
        if cuts.get(op) is None:
            continue
        with ir.InsertionPoint(op), op.location:
            build_part(cuts[op], list(op.operands), partial(_again, op))
        op.erase()


def _again(op: Op, operands: Sequence[ir.Value]) -> None:
    """Builds an operation once more, on other operands."""
    twin = op.clone().operation
    for number, value in enumerate(operands):
        twin.operands[number] = value


def erase(ops: Iterable[Op]) -> None:
    """Erases operations, but for loads of the scalar unit, whose results others may need."""
    for op in list(dict.fromkeys(ops)):
        if op.name != "memref.load":
            op.erase()


def _scalar_stores(program: Op) -> list[Op]:
    """Stores of the scalar unit to global memory: the first vector core does them."""
    stores = operations(program, "memref.store")
    return [op for op in stores if space_name(op.operands[1].type) == "GM"]


def copy_into(ops: Sequence[Op], block: ir.Block, values: dict[ir.Value, ir.Value]) -> None:
    """Copies operations to the end of a block, in front of a terminator.

    Args:
        values: in place of those of the operations.
    """
    end = next((v for v in block.operations if v.name == "scf.yield"), None)
    with ir.InsertionPoint(end) if end is not None else ir.InsertionPoint(block):
        for op in ops:
            twin = op.clone().operation
            builder.replace_operands(twin, values)
            values |= dict(zip(op.results, twin.results, strict=True))

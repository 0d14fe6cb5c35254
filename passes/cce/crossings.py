"""Tiles that cross between cube and vector unit in a kernel that is one program, and their rings in
global memory once it is two (`split_cores`).

Each operation by which tiles cross has a ring of its own, [blocks][places][shape of the tile]. The
n-th tile goes to place n modulo the number of places, where n counts iterations of the loops around
the operation: their trip counts must be the same each time that they are entered. Where they are
not, or a branch decides whether a tile crosses, the ring has one place, and nothing to count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import type_name
from davinci.dialects.cce.instructions import FIXPIPE_TYPES
from davinci.mlir import Op, arith, ir, operations, parent_of
from davinci.passes import builder
from davinci.passes.builder import IndexLike, add, mul, remainder, subview
from davinci.passes.core_rings import TileRing
from davinci.passes.pipeline.base import fail

TO_VECTOR, TO_CUBE = "cce.copy_l0c", "cce.copy_l1"
UNSPLIT = "cce.dequantize_l0c"
"""Crosses between the units of one core, but has no counterpart between cores."""

FIRST_FLAG = 1
"""Flag 0 is that of meetings of all cores."""

_SAME_EVERYWHERE = ("cce.get_block_idx", "cce.get_block_num")


@dataclass(frozen=True)
class TileCrossing:
    """A way of tiles between the programs of a kernel.

    Attributes:
        to_cube: whether vector cores make the tiles.
        ring: its flags and number of places.
        place: type of a tile in its place.
    """

    to_cube: bool
    ring: TileRing
    place: ir.MemRefType

    def array(self, blocks: int) -> ir.MemRefType:
        """The type of the rings of all blocks."""
        shape = [blocks, self.ring.places, *self.place.shape]
        return ir.MemRefType.get(shape, self.place.element_type)

    def next(self, array: ir.Value, op: Op) -> ir.Value:
        """The place of the tile that crosses by `op` now."""
        loops = loops_around(op) if self.ring.places > 1 else []
        turn = _number(loops, self.ring.places)
        sizes = [1, 1, *self.place.shape]
        at: list[IndexLike] = [cce.get_block_idx(), remainder(turn, self.ring.places)]
        return subview(array, at + [0] * self.place.rank, sizes, drop=[0, 1])


def crossings_of(ops: Sequence[Op], depth: int, flags: int) -> list[TileCrossing]:
    """The crossings that operations ask for, in their order.

    Args:
        depth: places of a ring in which there is more than one tile.
        flags: how many the machine has between cores.

    Raises:
        CompileError: there are more crossings than flags, or one that cores have no way for.
    """
    found, first = list[TileCrossing](), FIRST_FLAG
    for op in ops:
        _check(op)
        to_cube = op.name == TO_CUBE
        tile = ir.MemRefType(op.operands[0 if to_cube else 1].type)
        around = list(_around(op))
        once = all(owner.name == "func.func" for owner in around)
        need = 1 if once else 2
        if first + need > flags:
            fail(
                op,
                "needs a ring between cores of its own",
                found=f"{len(ops)} operations by which tiles cross",
                expected=f"so many that {flags - FIRST_FLAG} flags between cores are enough: two "
                "for each that is in a loop or a branch, one for any other",
                hint="put what crosses by several operations into a loop, or into one larger tile",
            )
        pipes = ("MTE3", "MTE2") if to_cube else ("FIX", "MTE2")
        places = 1 if once or not _is_counted(around) else depth
        ring = TileRing(first, None if once else first + 1, places, *pipes)
        place = ir.MemRefType.get(list(tile.shape), tile.element_type)
        found.append(TileCrossing(to_cube, ring, place))
        first += need
    return found


def _check(op: Op) -> None:
    """Refuses what has no counterpart between cores, and what depends on data."""
    if op.name == UNSPLIT:
        fail(
            op,
            "scales sums on a way that cube and vector cores do not share",
            found="scales in UB",
            expected="cce.copy_l0c of i32",
            hint="move the sums, then convert (cce.vconv) and scale them (cce.vmul) in UB",
        )
    if op.name == TO_VECTOR:
        pair = (
            type_name(op.operands[0].type.element_type),
            type_name(op.operands[1].type.element_type),
        )
        if pair not in FIXPIPE_TYPES:
            legal = ", ".join(f"{a} to {b}" for a, b in sorted(FIXPIPE_TYPES))
            fail(op, "leaves L0C for other cores", found=" to ".join(pair), expected=legal)
    for owner in _around(op):
        operands = list(owner.operands)[: 3 if owner.name == "scf.for" else 1]
        for value in operands if owner.name != "func.func" else []:
            if not _is_known(value):
                fail(
                    op,
                    "is a crossing of tiles that both kinds of cores must come to alike",
                    found=f"'{owner.name}' around it, which depends on data",
                    expected="bounds and conditions of constants, block numbers, and variables of "
                    "loops",
                    hint="let the tile cross always, and decide what becomes of it behind that",
                )


def loops_around(op: Op) -> list[ir.Operation]:
    """The `scf.for` around an operation, outermost first."""
    return [owner for owner in _around(op) if owner.name == "scf.for"][::-1]


def _around(op: Op) -> Iterator[ir.Operation]:
    """The operations around another, from inside to the function."""
    while op.name != "func.func":
        op = parent_of(op)
        yield op.operation


def _is_counted(around: Sequence[Op]) -> bool:
    """Whether how often an operation has run follows from the variables of loops around it."""
    loops = [owner for owner in around if owner.name == "scf.for"]
    if len(loops) < len(around) - 1:
        return False
    return all(
        _is_known(bound, fixed=True) for loop in loops[:-1] for bound in list(loop.operands)[:3]
    )


def _is_known(value: ir.Value, fixed: bool = False) -> bool:
    """Whether a number is made of constants, block numbers and, unless it must be `fixed`,
    variables of loops."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        loop = owner.owner
        return not fixed and loop.name == "scf.for" and value == owner.arguments[0]
    owner = owner.operation
    if owner.name in _SAME_EVERYWHERE:
        return True
    pure = owner.name.startswith("arith.") and not owner.regions
    return pure and all(_is_known(operand, fixed) for operand in owner.operands)


def _number(loops: Sequence[Op], places: int) -> IndexLike:
    """How many iterations of nested loops came before, modulo `places` where that is known."""
    number: IndexLike = 0
    for depth, loop in enumerate(loops):
        start, stop, step = (_folded(bound) for bound in list(loop.operands)[:3])
        turn = _quotient(add(loop.regions[0].blocks[0].arguments[0], _negative(start)), step)
        if depth:
            trips = _quotient(add(add(stop, _negative(start)), add(step, -1)), step)
            trips = trips % places if isinstance(trips, int) else trips
            number = mul(number, trips)
        number = add(number, turn)
    return number


def _folded(value: ir.Value) -> IndexLike:
    """An index as a number of Python, where it is a constant."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return value
    return int(ir.IntegerAttr(owner.operation.attributes["value"]).value)


def _negative(index: IndexLike) -> IndexLike:
    return mul(index, -1)


def _quotient(index: IndexLike, by: IndexLike) -> IndexLike:
    """index / by, rounded down, of what is not negative where anything counts it."""
    if isinstance(by, int):
        return builder.divided(index, by)
    found: ir.Value = arith.DivUIOp(builder.as_value(index), by).result
    return found


def crossing_ops(kernel: Op) -> list[ir.Operation]:
    """The operations by which tiles cross, in the order of the text."""
    return operations(kernel, TO_VECTOR, TO_CUBE, UNSPLIT)

"""Which nodes of the model an operation computes, by its location.

A frontend gives every operation a location that names what it comes from: `loc("/encoder/MatMul")`
for a node of ONNX or a scope of JAX, `loc("net.mlir":12:5)` for a line of text. Passes keep it, or
fuse the locations of what they merge.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

from davinci.mlir import Op, ir


def origins(location: ir.Location) -> tuple[str, ...]:
    """The names in a location, each once; of a call that was inlined those of the callee."""
    if isinstance(location, ir.NameLoc):
        return (location.name_str,)
    if isinstance(location, ir.FileLineColLoc):
        name = PurePath(location.filename).name
        file = f"{name}:" if name != "-" else "line "  # "-" is text that comes from no file
        return (f"{file}{location.start_line}:{location.start_col}",)
    if isinstance(location, ir.CallSiteLoc):
        return origins(location.callee) or origins(location.caller)
    if isinstance(location, ir.FusedLoc):
        return tuple(dict.fromkeys(name for part in location.locations for name in origins(part)))
    return ()


def numbered_location(location: ir.Location, number: int) -> ir.Location:
    """The location of the operator of a kernel that has this number."""
    kind = ir.IntegerType.get_signless(64)
    return ir.Location.fused([location], ir.IntegerAttr.get(kind, number))


def members(location: ir.Location) -> tuple[int, ...]:
    """Numbers of the operators of a kernel that something in it serves; none where nobody knows."""
    if not isinstance(location, ir.FusedLoc):
        return ()
    own = location.metadata  # of no particular class, unlike all other attributes
    if own is not None and isinstance(number := own.maybe_downcast(), ir.IntegerAttr):
        return (number.value,)
    return tuple(sorted({number for part in location.locations for number in members(part)}))


def moved_members(location: ir.Location, first: int) -> ir.Location:
    """The same location with numbers of operators that begin at `first` instead of 0."""
    if first == 0 or not isinstance(location, ir.FusedLoc):
        return location
    own = location.metadata
    if own is not None and isinstance(number := own.maybe_downcast(), ir.IntegerAttr):
        kind = ir.IntegerType.get_signless(64, location.context)
        moved = ir.IntegerAttr.get(kind, first + number.value)
        return ir.Location.fused(list(location.locations), moved, location.context)
    parts = [moved_members(part, first) for part in location.locations]
    return ir.Location.fused(parts, own, location.context)


def by_member(location: ir.Location) -> list[tuple[str, ...]]:
    """The names of each operator of a kernel, from the location of a call of it; nothing where that
    does not tell them apart."""
    if not isinstance(location, ir.FusedLoc):
        return []
    found = {number: part for part in location.locations for number in members(part)}
    return (
        [origins(found[n]) for n in sorted(found)] if sorted(found) == [*range(len(found))] else []
    )


def served(op: Op) -> tuple[str, ...]:
    """The nodes that `op` computes; of one without a name those that its results serve first."""
    level, seen = [op], {op}
    while level:
        names = dict.fromkeys(name for one in level for name in origins(one.location))
        if names:
            return tuple(names)
        users = {use.owner.operation: None for one in level for r in one.results for use in r.uses}
        level = [user for user in users if user not in seen and user.name != "func.return"]
        seen.update(level)
    return ()


def fuse(op: Op, others: Iterable[ir.Location]) -> None:
    """Adds the places of `others`, whose work `op` does too, to its own."""
    with op.context:
        op.location = ir.Location.fused([op.location, *others])

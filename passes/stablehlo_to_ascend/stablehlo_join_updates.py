"""stablehlo-join-updates: makes concatenations of updates at known places.

before:
    %1 = stablehlo.dynamic_update_slice %zeros, %a, %c0, %c0 : (tensor<2x8xf32>, ..
    %2 = stablehlo.dynamic_update_slice %1, %b, %c1, %c0 : (tensor<2x8xf32>, ..
after:
    %2 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1x8xf32>, tensor<1x8xf32>) -> ..

An update copies the array, unless that is its last use, and writes a part of it; a concatenation
moves each part once, and may be part of a larger kernel.
Chains of updates are what an unrolled scan leaves of the array that collects its results: as long
as each has one use and they do not overlap, they become one concatenation, with slices of the
operand between them where they leave gaps. An update of an argument whose next value it is stays:
it is written in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir, operations, owner_of, parent_of
from davinci.passes.ascend.tensor_ops import defining_op
from davinci.passes.pipeline.base import Pass, register_pass
from davinci.passes.stablehlo_to_ascend import tensors as t
from davinci.passes.stablehlo_to_ascend.stablehlo_unroll_loops import constant_of

UPDATE = "stablehlo.dynamic_update_slice"


@register_pass
@dataclass(frozen=True)
class StablehloJoinUpdatesPass(Pass):
    """Make concatenations of updates at known places."""

    NAME = "stablehlo-join-updates"

    def run(self, op: Op) -> None:
        for update in reversed(operations(op, UPDATE)):  # the end of a chain comes first
            joined = join(update) if is_needed(update) else None
            if joined is not None:
                update.result.replace_all_uses_with(joined)
            if not list(update.result.uses):
                update.erase()


def is_needed(update: Op) -> bool:
    """Whether an update is used, outside of loops, which are kernels of the scalar unit, and is not
    one of a state."""
    used = bool(list(update.result.uses)) and parent_of(update).name == "func.func"
    return used and not is_of_state(update)


def is_of_state(update: Op) -> bool:
    """Whether an update is the next value of its operand, an argument of the function."""
    marks = attribute(parent_of(update), "res_attrs", [])
    arguments = parent_of(update).regions[0].blocks[0].arguments
    for use in update.result.uses:
        if use.owner.name == "func.return" and use.operand_number < len(marks):
            number = marks[use.operand_number].get("ascend.state")
            if number is not None and update.operands[0] == arguments[number]:
                return True
    return False


@dataclass(frozen=True)
class UpdatePiece:
    """An update that covers its operand but for one dimension, there from start to stop."""

    value: ir.Value
    dim: int
    start: int
    stop: int

    @staticmethod
    def of(update: Op) -> UpdatePiece | None:
        """The piece that an update writes; None if its place is not known or it is a box."""
        base, value, *indices = update.operands
        starts = [constant_of(index) for index in indices]
        if any(start is None for start in starts) or not base.type.has_static_shape:
            return None
        shape, sizes = base.type.shape, value.type.shape
        partial = [d for d, (n, size) in enumerate(zip(shape, sizes, strict=True)) if size != n]
        if len(partial) != 1 or 0 in sizes:
            return None
        dim = partial[0]
        start = min(max(0, starts[dim] or 0), shape[dim] - sizes[dim])
        return UpdatePiece(value, dim, start, start + sizes[dim])


def join(update: Op) -> ir.Value | None:
    """The value of a chain of updates that ends with `update`, as a concatenation, or None."""
    last = UpdatePiece.of(update)
    if last is None:
        return None
    pieces, base = [last], update.operands[0]
    while (before := previous(base, pieces)) is not None:
        pieces.append(before)
        base = owner_of(base).operands[0]
    with update.location, ir.InsertionPoint(update):
        return concatenate(base, sorted(pieces, key=lambda piece: piece.start))


def previous(base: ir.Value, pieces: list[UpdatePiece]) -> UpdatePiece | None:
    """The piece that the operand of a chain is written with, if it may join the others."""
    op = defining_op(base)
    if op is None or op.name != UPDATE or len(list(base.uses)) != 1:
        return None
    found = UpdatePiece.of(op)
    if found is None or found.dim != pieces[0].dim:
        return None
    apart = all(p.stop <= found.start or found.stop <= p.start for p in pieces)
    return found if apart else None


def concatenate(base: ir.Value, pieces: list[UpdatePiece]) -> ir.Value:
    """The pieces in their order, and what of `base` lies between them."""
    dim = pieces[0].dim
    parts, end = [], 0
    for piece in pieces:
        parts += between(base, dim, end, piece.start)
        parts.append(piece.value)
        end = piece.stop
    parts += between(base, dim, end, base.type.shape[dim])
    return t.concatenate(parts, dim)


def between(base: ir.Value, dim: int, start: int, stop: int) -> list[ir.Value]:
    """The slice of `base` along a dimension, as a list, which is empty if nothing lies there."""
    if start == stop:
        return []
    shape = list(base.type.shape)
    starts, limits = [0] * len(shape), list(shape)
    starts[dim], limits[dim], shape[dim] = start, stop, stop - start
    kind = ir.RankedTensorType.get(shape, base.type.element_type)
    strides = [1] * len(shape)
    return [
        t.op("slice", [base], kind, start_indices=starts, limit_indices=limits, strides=strides)
    ]

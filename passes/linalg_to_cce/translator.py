"""What is known of a kernel while its operations become cce operations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from davinci.dialects.cce import build as cce
from davinci.machine import Machine
from davinci.mlir import Op, arith, ir, memref, scf
from davinci.operators.vector_program import DTYPE_OF
from davinci.passes.ascend_to_cce.vector.program import scalar
from davinci.passes.builder import constant_index, restride
from davinci.passes.linalg_to_cce import LINALG_LOWERINGS, refusal
from davinci.passes.linalg_to_cce.tiles import (
    Number,
    Tensor,
    TileForm,
    UbTile,
    buffer,
    copied,
    copy_views,
    dense,
    lanes_of,
    splat,
    spread_out,
    whole_tile,
)
from davinci.passes.linalg_to_cce.views import TensorView
from davinci.units import REPEAT_BLOCKS

FLAG = "f32"
"""Type in which booleans are held that are made of numbers."""


class KernelTranslator:
    """Builds the cce operations of a kernel, block by block, in front of what they replace.

    Attributes:
        machine: as the kernel's cores see it.
        values: tensors, and scalars that lie in a tile.
        views: of memrefs.
        dead: operations that are replaced, in order.
    """

    def __init__(self, kernel: Op, machine: Machine) -> None:
        self.machine = machine
        self.values: dict[ir.Value, Tensor] = {}
        self.views: dict[ir.Value, TensorView] = {}
        self.dead: list[Op] = []
        self._constants: dict[tuple[str, str], UbTile] = {}
        self._steps: dict[int, ir.Value] = {}
        self._entry = kernel.regions[0].blocks[0]
        first = next(iter(self._entry.operations))
        self._head = first.operation

    def block(self, block: ir.Block) -> None:
        """Lowers the operations of a block in order."""
        for view in list(block.operations):
            self._operation(view.operation)

    def _operation(self, op: Op) -> None:
        """Lowers an operation and those inside it.

        Raises:
            CompileError: a form of it that is not lowered.
        """
        with ir.InsertionPoint(op), op.location:
            try:
                self._lower(op)
            except TileForm as error:
                raise refusal(op, f"{op.name} of {error}") from None

    def _lower(self, op: Op) -> None:
        if op.name == "scf.for":
            self._loop(op)
        elif op.name == "scf.if":
            self._branch(op)
        elif self._is_scalar(op):
            for number, operand in enumerate(op.operands):
                if operand in self.values:
                    op.operands[number] = self.scalar(operand)
        else:
            LINALG_LOWERINGS[op.name](self, op)
            self.dead.append(op)

    def _is_scalar(self, op: Op) -> bool:
        """Whether an operation stays: it works on scalars of the running program."""
        dialect = op.name.partition(".")[0]
        if op.name in ("scf.yield", "func.return") or dialect == "cce":
            return True
        if dialect not in ("arith", "math") or not op.results:
            return False
        shaped = isinstance(op.results[0].type, ir.ShapedType)
        # What floats that lie in tiles make stays there, too.
        floats = isinstance(op.results[0].type, ir.FloatType)
        tiled = floats and any(value in self.values for value in op.operands)
        return not shaped and not (tiled and op.name in LINALG_LOWERINGS)

    def tensor(self, value: ir.Value) -> Tensor:
        """A tensor, or a scalar of the program as a tensor of rank 0."""
        if value in self.values:
            return self.values[value]
        if isinstance(value.type, ir.ShapedType):
            raise TileForm(f"a tensor that holds nothing: {value.type}")
        return self.filled(value, ())

    def filled(self, value: ir.Value, shape: Sequence[int]) -> Tensor:
        """A scalar of the program as a tensor of a shape."""
        if value in self.values:
            held = self.values[value]
            if isinstance(held, Number):
                return replace(held, shape=tuple(shape))
            return replace(held, shape=tuple(shape), strides=(0,) * len(shape))
        element = str(value.type)
        known = constant_of(value)
        dtype = FLAG if element == "i1" else DTYPE_OF.get(element)
        if dtype is None:
            raise TileForm(f"elements of type {element}")
        if known is not None:
            return Number(known, dtype, tuple(shape))
        if element == "i1":
            value = arith.UIToFPOp(ir.F32Type.get(), value).result
        return splat(value, dtype, shape, flag=element == "i1")

    def constant(self, number: Number) -> UbTile:
        """A number as a tile: a block, filled at the beginning of the kernel."""
        key = (number.dtype, repr(number.number))
        if key not in self._constants:
            with ir.InsertionPoint(self._head):
                made = splat(scalar(number.dtype, number.number), number.dtype, ())
            self._constants[key] = made
        strides = (0,) * len(number.shape)
        return replace(self._constants[key], shape=number.shape, strides=strides)

    def tile(self, tensor: Tensor) -> UbTile:
        return self.constant(tensor) if isinstance(tensor, Number) else tensor

    def scalar(self, value: ir.Value) -> ir.Value:
        """A scalar that lies in a tile, loaded by the scalar unit."""
        held = self.tile(self.tensor(value))
        found: ir.Value = memref.LoadOp(held.buffer, [constant_index(0)]).result
        return found

    def steps(self, count: int) -> ir.Value:
        """The numbers 0 to count - 1 as s32 in UB, made once at the beginning of the kernel: eight
        by the scalar unit, and each time as many behind those that are there."""
        if count not in self._steps:
            with ir.InsertionPoint(self._head):
                self._steps[count] = numbers(count)
        return self._steps[count]

    def _branch(self, op: Op) -> None:
        if any(isinstance(result.type, ir.ShapedType) for result in op.results):
            raise refusal(op, "scf.if of tensors")
        for region in op.regions:
            for block in region:
                self.block(block)

    def _loop(self, op: Op) -> None:
        """A loop whose tensors lie in buffers in front of it; bounds become indices."""
        low, high, step, *carried = list(op.operands)
        low, high, step = (as_index(self._plain(value)) for value in (low, high, step))
        (old,) = op.regions[0].blocks
        *inside, end = [view.operation for view in old.operations]
        self.dead.append(op)
        tiled = [isinstance(value.type, ir.RankedTensorType) for value in carried]
        homes = [self._home(v) for v, is_tile in zip(carried, tiled, strict=True) if is_tile]
        kept = [self._plain(v) for v, is_tile in zip(carried, tiled, strict=True) if not is_tile]
        made = scf.ForOp(low, high, step, kept)
        with ir.InsertionPoint(made.body):
            index, *arguments = list(old.arguments)
            index.replace_all_uses_with(as_type(made.induction_variable, index.type))
        scalars = iter(zip(made.inner_iter_args, made.results, strict=True))
        tiles = iter(homes)
        for argument, result, is_tile in zip(arguments, op.results, tiled, strict=True):
            if is_tile:
                self.values[argument] = self.values[result] = next(tiles)
                continue
            inner, outer = next(scalars)
            argument.replace_all_uses_with(inner)
            result.replace_all_uses_with(outer)
        for each in inside:
            made.body.append(each)
            self._operation(each)
        with ir.InsertionPoint(made.body), end.location:
            pairs = list(zip(end.operands, tiled, strict=True))
            self._carry([value for value, is_tile in pairs if is_tile], homes)
            scf.YieldOp([self._plain(value) for value, is_tile in pairs if not is_tile])
        self.dead.append(end)

    def _plain(self, value: ir.Value) -> ir.Value:
        """A scalar that the program carries."""
        return self.scalar(value) if value in self.values else value

    def _home(self, value: ir.Value) -> UbTile:
        """A buffer for a tensor that a loop carries, filled with its first value."""
        tensor = self.tensor(value)
        flag = isinstance(tensor, UbTile) and tensor.flag
        if math.prod(tensor.shape) > 1:
            home = dense(tensor.shape, tensor.dtype, flag)
        else:
            held = buffer(lanes_of(tensor.dtype), tensor.dtype)
            none = (0,) * len(tensor.shape)
            home = UbTile(held, tensor.dtype, tensor.shape, none, spread=True, flag=flag)
        if isinstance(tensor, Number):
            cce.vector_dup(scalar(tensor.dtype, tensor.number), home.buffer)
        else:
            self._copy(tensor, home)
        return home

    def _carry(self, values: Sequence[ir.Value], homes: Sequence[UbTile]) -> None:
        """Copies what a turn of a loop yields to where the next turn finds it."""
        tiles = [self.tile(self.tensor(value)) for value in values]
        places = [home.buffer for home in homes]
        for number, tile in enumerate(tiles):
            if tile.buffer in places and tile.buffer != places[number]:
                tiles[number] = copied(tile, whole=not tile.spread)
        for tile, home in zip(tiles, homes, strict=True):
            if tile.buffer != home.buffer:
                self._copy(tile, home)

    def _copy(self, tile: UbTile, home: UbTile) -> None:
        """Copies a tile to the buffer of one that is whole, or a block."""
        if tile.dtype != home.dtype:
            raise TileForm(f"a tensor of booleans in {tile.dtype} and {home.dtype}")
        if not home.spread:
            tile = whole_tile(tile)
        elif not tile.spread:
            tile = spread_out(tile)
        copy_views([restride(b, [home.count], [1]) for b in (tile.buffer, home.buffer)], tile.dtype)


def numbers(count: int) -> ir.Value:
    """0 to count - 1 as s32 in a buffer in UB."""
    first = min(count, REPEAT_BLOCKS)
    held = buffer(count, "s32")
    for number in range(first):
        memref.StoreOp(scalar("s32", number), held, [constant_index(number)])
    while first < count:
        more = min(first, count - first)
        known, new = restride(held, [more], [1]), restride(held, [more], [1], first)
        cce.vadds(known, scalar("s32", first), new)
        first += more
    return held


def constant_of(value: ir.Value) -> float | None:
    """The number that a scalar is, None if the program computes it."""
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    return number_of(owner.attributes["value"], str(value.type))


def number_of(attribute: ir.Attribute, element: str) -> float:
    """The number in an attribute; true is 1."""
    if isinstance(attribute, ir.BoolAttr):
        return float(attribute.value)
    if isinstance(attribute, ir.IntegerAttr):
        return abs(int(attribute.value)) if element == "i1" else int(attribute.value)
    return float(ir.FloatAttr(attribute).value)


def as_type(index: ir.Value, kind: ir.Type) -> ir.Value:
    """An index as an integer of that type."""
    return index if index.type == kind else arith.IndexCastOp(kind, index).result


def as_index(value: ir.Value) -> ir.Value:
    """An integer as an index."""
    kind = ir.IndexType.get()
    if value.type == kind:
        return value
    known = constant_of(value)
    if known is not None:
        return constant_index(int(known))
    return arith.IndexCastOp(kind, value).result

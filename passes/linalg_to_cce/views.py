"""Memrefs of a kernel: arrays in global memory, and buffers that tensors are loaded to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.passes.builder import IndexLike, add, mul
from davinci.passes.linalg_to_cce.tiles import UbTile


@dataclass(frozen=True)
class TensorView:
    """A part of an array in global memory, or of a tile.

    Attributes:
        root: the argument of the kernel, or the tile.
        offset: of its first element, in elements of the array; of a tile the sum over its
            dimensions.
        sizes, strides: of its dimensions, in elements.
    """

    root: ir.Value | UbTile
    offset: IndexLike
    sizes: tuple[IndexLike, ...]
    strides: tuple[IndexLike, ...]

    @property
    def tile(self) -> UbTile:
        """The tile that it is a part of."""
        assert isinstance(self.root, UbTile), "a part of a tile"
        return self.root

    @property
    def array(self) -> ir.Value:
        """The array in global memory that it is a part of."""
        assert not isinstance(self.root, UbTile), "a part of an array"
        return self.root

    def part(self, places: Sequence[Sequence[IndexLike]]) -> TensorView:
        """The part at offsets, of sizes, and by steps, one of each for each dimension."""
        offset = self.offset
        for place, stride in zip(places[0], self.strides, strict=True):
            offset = add(offset, mul(place, stride))
        strides = tuple(mul(s, t) for s, t in zip(self.strides, places[2], strict=True))
        return replace(self, offset=offset, sizes=tuple(places[1]), strides=strides)


def places_of(op: Op) -> list[list[IndexLike]]:
    """Offsets, sizes and strides of a view operation: static ones as numbers."""
    dynamic = ir.ShapedType.get_dynamic_size()
    operands = iter(list(op.operands)[1:])
    return [
        [next(operands) if n == dynamic else n for n in attribute(op, f"static_{name}")]
        for name in ("offsets", "sizes", "strides")
    ]

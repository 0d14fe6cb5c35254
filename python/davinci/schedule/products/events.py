"""What a core does for a share of a product, one thing after the other.

    Fill   a part of a piece of an operand comes from GM to L1
    Load   a block goes from L1 to L0A or L0B
    Mad    C += A B
    Ask    what a tile of C, or a part of it, is combined with comes from GM
    Turn   rows that came are made what they are needed as, or go from L1 to the bias table
    Add    the cube adds what it can to columns of a complete tile
    Leave  a part of C goes from L0C to GM

Positions count fractals from where the share begins. All are tuples: an order holds thousands, and
looks for them in tables.
"""

from __future__ import annotations

from typing import NamedTuple


class FractalSpan(NamedTuple):
    """Fractals `start` to `stop` of a dimension."""

    start: int
    stop: int

    @property
    def size(self) -> int:
        return self.stop - self.start


class Block(NamedTuple):
    """A block of an operand, along k and along the other dimension, in one matrix of the share."""

    batch: int
    k: FractalSpan
    other: FractalSpan


class TileOfC(NamedTuple):
    """A tile of the share: its matrix, rows and columns, and its buffer in L0C."""

    batch: int
    m: FractalSpan
    n: FractalSpan
    slot: int


class Held(NamedTuple):
    """A piece of an operand and its place in L1."""

    piece: Block
    slot: int


class Fill(NamedTuple):
    """The part `block` of a piece of the operand "a" or "b" comes to its place in L1."""

    operand: str
    held: Held
    block: Block

    @property
    def shape(self) -> tuple[str, int, int]:
        """Operand, and fractals along k and along the other dimension."""
        return self.operand, self.block.k.size, self.block.other.size


class Load(NamedTuple):
    """What a piece in L1 has of `block` goes to a buffer of L0A or L0B."""

    operand: str
    held: Held
    block: Block
    slot: int

    @property
    def shape(self) -> tuple[str, int, int, int]:
        """Operand, and fractals along m, k and n, 1 of what it has not."""
        piece, block = self.held.piece.k, self.block
        k = min(piece.stop, block.k.stop) - max(piece.start, block.k.start)
        other = block.other.size
        return ("a", other, k, 1) if self.operand == "a" else ("b", 1, k, other)


class Mad(NamedTuple):
    """C += A B, or C = A B if `first`; `a` and `b` are buffers of L0A and L0B, `bias` is one of the
    bias table, with whose row C begins; None if it begins with none."""

    tile: TileOfC
    k: FractalSpan
    first: bool
    a: int
    b: int
    bias: int | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """Fractals along m, k and n."""
        return self.tile.m.size, self.k.size, self.tile.n.size


class Leave(NamedTuple):
    """A part of a complete tile goes from L0C to GM.

    Attributes:
        n, m: its columns and rows in the tile.
        slot: buffer of what it is combined with.
        turn: buffer of the rows that its tile is combined with.
    """

    tile: TileOfC
    n: FractalSpan
    m: FractalSpan
    slot: int
    turn: int

    @property
    def shape(self) -> tuple[int, int]:
        """Fractals along n and m."""
        return self.n.size, self.m.size


PART, ROWS, MATRIX = "part", "rows", "matrix"
"""What is asked for: what has C's shape, rows of C, a matrix that the cube adds."""


class Ask(NamedTuple):
    """What comes from GM to be combined with a part of C, for all but PART a whole tile; `slot` of
    that is the buffer of a matrix."""

    part: Leave
    kind: str


class TurnRows(NamedTuple):
    """Rows that came for a whole tile become repeats, or columns, or go to the bias table."""

    part: Leave


class Add(NamedTuple):
    """The cube adds a matrix to columns of a complete tile, and a row to all of it with the first.

    Attributes:
        n: its columns in the tile.
        slot: buffer of L0A.
        held, turn: buffers in L1 of the tile's part of the matrix, and of its rows.
    """

    tile: TileOfC
    n: FractalSpan
    slot: int
    held: int
    turn: int


Event = Fill | Load | Mad | Ask | TurnRows | Add | Leave


def spans(total: int, size: int) -> list[FractalSpan]:
    """`total` in spans of `size`, the last one perhaps shorter."""
    return [FractalSpan(start, min(total, start + size)) for start in range(0, total, size)]

"""Products C[m, n] = A[m, k] B[k, n] of a batch, and how one core computes its share of C.

Names are those of BLAS; k is the contracted dimension. Sizes of a `Product` are elements, those of
a `ProductSchedule` fractals of 16. An operand in GM is a matrix of rows (ND) or fractals (Nz) of
16- or 32-bit floats; the cube takes f16, so 32-bit ones are rounded on their way. Bytes lie in
fractals whose rows have 32 bytes, like those of 16 f16: two of them, one after the other along k,
are a word of 16 bits, and everything but a mad meets words. So does an f32, which is two of them.

What a schedule says:

    share    of C that one core computes: so many matrices, rows and columns
    tile     of C that is summed up in L0C, and how much of k one mad takes
    outer    which loop over tiles is the outer one
    a, b     the pieces in which the operands come to L1, and how many of them L1 holds

Which value stays at which loop follows from `slots`. Pieces of A for all of k and one row of tiles,
with the rows outside: A comes once (input stationary); the same of B with the columns outside:
weight stationary; a few slots of each: both come for every tile (output stationary).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.schedule.plain_data import CONFIG
from davinci.schedule.products.epilogue import Epilogue, plain
from davinci.schedule.products.image import Image
from davinci.schedule.products.row_work import RowWork
from davinci.units import BLOCK_BYTES, ceil_div
from davinci.units import FRACTAL_SIDE as SIDE

DENSE = "dense"


@dataclass(frozen=True)
class ProductOperand:
    """An operand in GM.

    Attributes:
        nz: whether it lies in fractals.
        itemsize: bytes of an element.
        k_rows: whether k runs along the rows of what is stored: of a plain B, or a transposed A.
        direct: whether rows become fractals between GM and L1, as on cores that have no UB.
        pitch: elements from a stored row to the next, if that is more than a row has: of parts of
            a matrix. Of fractals 0.
    """

    nz: bool
    itemsize: int
    k_rows: bool
    direct: bool = False
    pitch: int = 0


@dataclass(frozen=True)
class ProductResult:
    """C in GM: whether it lies in fractals, and bytes of an element."""

    nz: bool
    itemsize: int


@dataclass(frozen=True)
class Product:
    """Products of `batch` pairs of matrices; sizes in elements.

    Attributes:
        c: where C ends, which is what the epilogue makes of it.
        epilogue: None if nothing is done to C.
        image: of which the rows of A are windows; None if A is a matrix.
        matrices: of B, which the batch takes in turn; 0 for one each.
        factor: what a mad multiplies, "f16", "s8" or "f32"; of the others `k` counts words of 16
            bits.
        at_work: cores at work at the same time, those that compute other parts of k among them,
            all of which meet behind it; 0 where the product has its kernel to itself.
        whole_rows: whether what leaves L0C at once has whole rows of C, as what reduces them needs.
        work: what the vector unit of the same core does to these rows; None if nothing, or if it
            only does what the epilogue says.
    """

    batch: int
    m: int
    k: int
    n: int
    a: ProductOperand
    b: ProductOperand
    c: ProductResult
    epilogue: Epilogue | None = None
    image: Image | None = None
    matrices: int = 0
    factor: str = "f16"
    at_work: int = 0
    whole_rows: bool = False
    work: RowWork | None = None

    @property
    def columns_together(self) -> int:
        """Fractals of columns of which shares, tiles and parts of C have whole numbers."""
        return self.fractals.n if self.whole_rows else self.end.columns_together

    @property
    def meets(self) -> bool:
        """Whether the cores of its kernel meet, for which they have a flag of their own from MTE2
        to the vector unit."""
        return self.at_work > 0

    @property
    def factor_bytes(self) -> int:
        """Bytes of an element that a mad multiplies."""
        return DTYPES[self.factor].itemsize

    @property
    def sum_type(self) -> str:
        """The type in which a mad sums up: "s32" of bytes, "f32" of all others."""
        return "s32" if self.factor == "s8" else "f32"

    @property
    def direct(self) -> bool:
        """Whether the cores have no vector unit: C leaves L0C for GM, a tile at a time."""
        return self.b.direct

    @cached_property
    def cleared(self) -> bool:
        """Whether the cube makes the zeros that pad the last rows of C, a row of fractals of a tile
        in L0C, with a fractal of zeros in L1, L0A and L0B: those rows of A are windows of an image
        that are none, or mads begin with a row there too, or words have offsets, and no vector unit
        clears C."""
        others = self.image is not None or self.end.bias is not None or self.end.words is not None
        return self.direct and others and self.c.nz and self.m % SIDE != 0

    @cached_property
    def end(self) -> Epilogue:
        """What is done to C before it leaves."""
        if self.epilogue is not None:
            return self.epilogue
        return plain("f16" if self.c.itemsize == 2 else "f32", self.c.nz)

    def operand(self, name: str) -> ProductOperand:
        """A or B, by "a" or "b"."""
        return self.a if name == "a" else self.b

    def other(self, name: str) -> int:
        """Elements of the dimension of A or B that is not k."""
        return self.m if name == "a" else self.n

    def rows_of_tiles(self, share: Share, tile: Tile) -> tuple[int, int]:
        """How many times a core goes over tiles, and rows of them each time: those of all matrices
        of a share that are multiplied by one B, else of each."""
        rows = ceil_div(share.m, tile.m)
        return (1, share.batch * rows) if self.matrices == 1 else (share.batch, rows)

    def matrix(self, batch: int) -> int:
        """Which B a matrix of the batch takes, within a share."""
        return 0 if self.matrices == 1 else batch

    def panel_bytes(self, name: str, other: int) -> int:
        """Bytes in GM of `other` fractals of A or B, all of k."""
        if name == "a" and self.image is not None:
            return self.image.piece_bytes(self.image.blocks, other)
        return other * self.fractals.k * SIDE * SIDE * self.operand(name).itemsize

    def operand_bytes(self, name: str) -> int:
        """Bytes in GM of all matrices of A or B."""
        if name == "a":
            return self.batch * self.panel_bytes("a", self.fractals.m)
        return (self.matrices or self.batch) * self.panel_bytes("b", self.fractals.n)

    def stored_columns(self, name: str) -> int:
        """Elements from a stored row of A or B to the next."""
        operand = self.operand(name)
        return operand.pitch or (self.other(name) if operand.k_rows else self.k)

    def stored_rows(self, name: str) -> int:
        """Stored rows of A or B."""
        return self.k if self.operand(name).k_rows else self.other(name)

    def ends(self, name: str) -> bool:
        """Whether stored rows of A or B end inside a block."""
        operand = self.operand(name)
        if operand.nz or operand.direct or (name == "a" and self.image is not None):
            return False
        return self.stored_columns(name) * operand.itemsize % BLOCK_BYTES != 0

    @property
    def ragged(self) -> bool:
        """Whether rows of C end inside a block of GM, which the way out has to know of."""
        return not self.direct and not self.c.nz and self.n * self.c.itemsize % BLOCK_BYTES != 0

    def narrow(self, *cuts: int) -> bool:
        """Whether the last columns of C are less than a block of a ragged row, which leaves element
        by element.

        Args:
            cuts: columns in fractals, of C, and of the last of the cuts before.
        """
        last = self.n
        for cut in cuts:
            last = last % (cut * SIDE) or cut * SIDE
        row, last = self.n * self.c.itemsize, last * self.c.itemsize
        return self.ragged and last < BLOCK_BYTES < row

    def end_of(self, schedule: ProductSchedule) -> Epilogue:
        """What is done to C before it leaves, in the way of a schedule."""
        if schedule.ragged == DENSE:
            return self._dense_end
        return self.end.of_parts(schedule.part[0])

    @cached_property
    def _dense_end(self) -> Epilogue:
        return self.end.dense(self.n)

    @cached_property
    def alone(self) -> Product:
        """The same with nothing done to C."""
        return replace(self, epilogue=None)

    @cached_property
    def fractals(self) -> Tile:
        """m, k and n of one matrix, in fractals."""
        return Tile(ceil_div(self.m, SIDE), ceil_div(self.k, SIDE), ceil_div(self.n, SIDE))


@dataclass(frozen=True)
class Tile:
    """m, k and n of a tile, in fractals."""

    __pydantic_config__ = CONFIG

    m: int
    k: int
    n: int

    def text(self) -> str:
        """(m, n, k) in elements, as a user gives them."""
        return f"({self.m * SIDE}, {self.n * SIDE}, {self.k * SIDE})"


@dataclass(frozen=True)
class Share:
    """What one core computes: matrices, and rows and columns of C in fractals."""

    __pydantic_config__ = CONFIG

    batch: int
    m: int
    n: int


@dataclass(frozen=True)
class Pieces:
    """The pieces in which L1 holds an operand.

    Attributes:
        k, other: fractals of a piece along k, and along m (of A) or n (of B).
        together: fractals along k that lie side by side in L1: [k / together][other][together].
            L0A takes [other][k], so with those of one mad a tile of A is loaded by one instruction;
            L0B takes [k][other], which asks for 1.
        rows: fractals along the stored rows that come at once.
        slots: how many pieces L1 holds.
        held: fractals that a piece takes in L1, if that is not k x other: of an image.
        dense: whether whole stored rows come as one run of GM and are parted in UB.
    """

    __pydantic_config__ = CONFIG

    k: int
    other: int
    together: int
    rows: int
    slots: int
    held: int = 0
    dense: bool = False

    @property
    def fractals(self) -> int:
        return self.held or self.k * self.other

    def with_slots(self, slots: int) -> Pieces:
        """The same with another number of slots."""
        return Pieces(self.k, self.other, self.together, self.rows, slots, self.held, self.dense)


@dataclass(frozen=True)
class ProductSchedule:
    """How a core computes its share; sizes in fractals.

    Attributes:
        share: of C.
        tile: summed up in L0C; its k is that of one mad.
        outer: the outermost loop of a share: "m" or "n", over rows or columns of tiles.
        beside: rows and columns of tiles that are in L0C together and take turns.
        turn: steps of a tile's turn.
        a, b: how L1 holds the operands.
        part: columns and rows of a tile that leave L0C at once.
        l0a, l0b, l0c: buffers of each.
        ahead: steps (mads) that fills come ahead of the step that needs them.
        inbox, outbox: buffers in UB for rows that came, and for the fractals made of them.
        loads: buffers in UB for what comes from GM to be combined with parts of C.
        leaving: those that parts of C are in while they leave.
        ragged: how rows of C that are no whole blocks leave: DENSE, whole rows as one run; "",
            row by row, the last block of each over some of what the one before it wrote.
        backwards: whether shares and their tiles are taken from the last one on.
        turning: whether every second tile goes through k from its end: what L1 and L0 hold when a
            tile is complete is the first that the next one needs.
        starts: places along k at which shares begin, those that are computed side by side at
            different ones: cores wait for each other where they read the same at the same time.
    """

    __pydantic_config__ = CONFIG

    share: Share
    tile: Tile
    outer: str
    beside: tuple[int, int]
    turn: int
    a: Pieces
    b: Pieces
    part: tuple[int, int]
    l0a: int = 2
    l0b: int = 2
    l0c: int = 2
    ahead: int = 4
    inbox: int = 3
    outbox: int = 2
    loads: int = 2
    leaving: int = 3
    ragged: str = ""
    backwards: bool = False
    turning: bool = False
    starts: int = 1

    def __str__(self) -> str:
        share, tile = self.share, self.tile
        held = ", ".join(
            f"{name} {p.k}x{p.other} by {p.rows}, {p.together} together, {p.slots} slots"
            f"{', dense' if p.dense else ''}"
            for name, p in (("a", self.a), ("b", self.b))
        )
        down, across = self.beside
        turns = f", {down}x{across} by turns of {self.turn}" if down * across > 1 else ""
        return (
            f"share {share.batch}x{share.m}x{share.n}, tile {tile.m}x{tile.n}x{tile.k}{turns}, "
            f"outer {self.outer}, {held}, parts {self.part[1]}x{self.part[0]}"
            f"{f', rows leave {self.ragged}' if self.ragged else ''}"
            f"{', backwards' if self.backwards else ''}"
            f"{', k back and forth' if self.turning else ''}"
            f"{f', from {self.starts} places on' if self.starts > 1 else ''}"
        )

    def pieces(self, name: str) -> Pieces:
        """Of A or B, by "a" or "b"."""
        return self.a if name == "a" else self.b

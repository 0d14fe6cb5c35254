"""Attention: O = softmax(f(Q K^T)) V of a batch of matrices, and how one core computes rows of it.

Scores are computed the other way round, S^T = K Q^T: the 16 lanes of a block are 16 rows of Q, so
that a maximum over keys is a maximum of blocks, and what is taken off a score is a block that is
read again. `f` is elementwise: a scale, masks. The sums of rows come from the cube, from a column
of ones beside V, and what is divided is O.

    S^T   [rows / 16][keys][16]       in L0C, then in UB
    P^T   the same, in f16; its fractals are turned on their way to L0A
    O     [columns / 16 + 1][rows][16] in L0C: the last 16 columns hold the sums, in every lane

In UB they lie tile of keys by tile, each [rows / 16][keys of it][16] as it comes from L0C and as
its weights go to L1.

Scores of f32 that are only scaled, or masked by a number for each key, come from L0C **twice**,
rounded to f16 each time: once for the maximum, which softmax does not depend on, and once less the
maximum, which the cube adds, as a column of ones beside K, to sums of f32. A difference of f16 that
is -d misses at most 2^-12 d, which its weight e^-d makes smaller than what is lost when that is
rounded to f16. Masks are columns beside K, too.

Scores of all keys of a unit lie in UB at once, or of a block of keys after the other. Then a
maximum and O are kept that take in each block, as `blocks` says.

Sizes of an `Attention` are elements, those of an `AttentionSchedule` fractals of 16.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from davinci.isa.core import DTYPES
from davinci.isa.img2col import FIELDS
from davinci.operators.vector_program import TileStep, Value
from davinci.schedule.attention.band import KeyBand
from davinci.schedule.attention.lines import LinesOfUnits, lines_of
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.plain_data import CONFIG
from davinci.schedule.products.product import ProductOperand, ProductResult
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import ceil_div

HIDDEN = -30000.0
"""A mask below it hides as much: no weight of f16 is left, nor does f16 overflow."""

LOST = 5e8
"""A mask of this size makes sums of f32 the same for all scores."""

STAGES = 2
"""Buffers of each kind for rows that cross UB, for Q and for P in L1."""

MOST_PIXELS = min(f.limit for f in FIELDS if f.name in ("filter_w", "stride_w"))
"""Fractals of a row of K that loads of windows reach, at most: the pixels of a window, and from one
window to the next."""

NONE_FITS = "attention that no schedule fits"


@dataclass(frozen=True)
class ScoreOperand:
    """An array that scores are combined with.

    Attributes:
        value: of the chain.
        whole: whether it has a number for each score, turned as they are, in fractals; else one
            for each key, in rows.
        turn: its matrices, or rows.
    """

    value: Value
    whole: bool
    turn: MatrixTurn


@dataclass(frozen=True)
class ScoreChain:
    """What is done to scores before their maximum is taken, in place.

    Attributes:
        scores: the value that comes from the cube.
        steps: each takes the result of the one before.
        extras: what they combine it with, besides numbers.
        numbers: arrays of one number that steps read.
    """

    scores: Value
    steps: tuple[TileStep, ...]
    extras: tuple[ScoreOperand, ...]
    numbers: tuple[tuple[Value, float], ...]

    @property
    def itemsize(self) -> int:
        return DTYPES[self.scores.dtype].itemsize

    @cached_property
    def factor(self) -> float:
        """What scores are multiplied with."""
        return math.prod(x.scalar for x in self.steps if x.name == "vmuls" and x.scalar is not None)

    @cached_property
    def differences(self) -> bool:
        """Whether the chain may be done to differences of scores instead, which need fewer bits: it
        is nothing but positive factors, and then masks with a number for each key."""
        names = [step.name for step in self.steps]
        masks = {extra.value for extra in self.extras}
        added = names.count("vadd")
        return (
            self.scores.dtype == "f32"
            and names == ["vmuls"] * (len(names) - added) + ["vadd"] * added
            and self.factor > 0
            and not any(extra.whole for extra in self.extras)
            and all(masks & set(step.sources) for step in self.steps if step.name == "vadd")
            and added == len(self.extras)
        )


@dataclass(frozen=True)
class Attention:
    """Attention of `batch` matrices.

    Attributes:
        rows, keys: of S = Q K^T.
        depth: columns of Q and K.
        columns: of V and O.
        q, k, v, o: in GM.
        of_q, of_k, of_v: their matrices.
        scale: a power of two that Q is multiplied with.
        chain: see `ScoreChain`.
        guarded: whether a row of scores that are all minus infinity gives a row of zeros.
        band: which scores are a number instead, behind the chain, if that is known.
    """

    batch: int
    rows: int
    keys: int
    depth: int
    columns: int
    q: ProductOperand
    k: ProductOperand
    v: ProductOperand
    o: ProductResult
    of_q: MatrixTurn
    of_k: MatrixTurn
    of_v: MatrixTurn
    scale: float
    chain: ScoreChain
    guarded: bool = False
    band: KeyBand | None = None

    @property
    def whole_masks(self) -> int:
        """How many extras have a number for each score."""
        return sum(extra.whole for extra in self.chain.extras)

    @cached_property
    def fractals(self) -> AttentionSizes:
        return AttentionSizes(
            *(ceil_div(n, SIDE) for n in (self.rows, self.keys, self.depth, self.columns))
        )


@dataclass(frozen=True)
class AttentionSizes:
    """Rows, keys, depth and columns in fractals."""

    rows: int
    keys: int
    depth: int
    columns: int


@dataclass(frozen=True)
class AttentionSchedule:
    """How a core computes its units, each some rows of one matrix of O.

    Attributes:
        rows: of a unit, at most.
        units: that a core does in a straight line, at most; the next one's scores are computed
            while this one's become weights.
        line: rows of all of these.
        mixed: whether a line may have rows of several matrices.
        block: keys whose scores of a unit lie in UB at once.
        tile: keys that one mad of either product takes.
        twice: whether scores come from L0C twice, see above.
        feed: fractals along the stored rows of Q, K and V that come at once.
        pieces: tiles of K, and blocks of V, that L1 holds.
        scores: buffers of a unit's scores in UB.
        weights: buffers in UB for the weights of a tile of f32, on their way to L1.
        l0c: tiles of scores in L0C.
        sums: tiles of O in L0C.
        l0a, l0b: buffers for tiles of K and of P, of Q and of V.
        windows: whether K comes to L1 in rows, of which loads of windows make fractals.
        together: whether the maxima of all units of a line are looked for together, in scores of a
            line that all lie in UB. What units share of K and V is loaded once.
    """

    __pydantic_config__ = CONFIG

    rows: int
    units: int
    line: int
    block: int
    tile: int
    feed: int
    pieces: tuple[int, int]
    scores: int
    weights: int
    l0c: int
    sums: int = 2
    l0a: tuple[int, int] = (2, 2)
    l0b: tuple[int, int] = (2, 2)
    twice: bool = False
    mixed: bool = True
    windows: bool = False
    together: bool = False

    @property
    def scored(self) -> int:
        """Rows whose maxima are looked for at once."""
        return self.line if self.together else self.rows

    @property
    def p_slots(self) -> int:
        """Buffers of L1 for weights of a unit."""
        return self.units if self.together else STAGES

    @property
    def queries(self) -> int:
        """Buffers of UB for rows of Q: those of a line come before there are scores."""
        return self.units if self.together else 1

    @property
    def leaving(self) -> int:
        """Buffers of UB for units of O on their way out."""
        return self.units if self.together else 1

    def dtype(self, attention: Attention) -> str:
        """The type of the scores in UB."""
        return "f16" if self.twice else attention.chain.scores.dtype

    def itemsize(self, attention: Attention) -> int:
        return DTYPES[self.dtype(attention)].itemsize

    def blocks(self, attention: Attention) -> int:
        """How many blocks the keys are cut in."""
        return ceil_div(attention.fractals.keys, self.block)

    def lines(self, attention: Attention) -> list[LinesOfUnits]:
        """What cores do, see `lines`."""
        ragged = attention.rows % SIDE > 0
        rows = attention.fractals.rows
        return lines_of(rows, attention.batch, self.line, self.rows, ragged, self.mixed)

    def __str__(self) -> str:
        return (
            f"units of {self.rows * SIDE} rows, {self.line * SIDE} in a line, "
            f"{self.block * SIDE} keys at once in tiles of {self.tile * SIDE}"
            f"{', scores twice' if self.twice else ''}"
            f"{', a line at once' if self.together else ''}"
        )

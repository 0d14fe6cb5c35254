"""What values between the products of attention are, while a group is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.operators import Tensor
from davinci.operators.tensors import NZ
from davinci.operators.vector_program import Operand
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.products.product import ProductOperand
from davinci.schedule.vector.space import NoSpace

LEAST = {"f16": -65504.0, "f32": -1e13}
"""What a selection may put in place of scores to be a bound of them: no score of f16 factors is
less."""

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Seen:
    """An input, seen with another shape.

    Attributes:
        number: of the input.
        shape: as it is seen.
        matrices: for each of the leading indices of `shape` the matrix of the input.
        turned: whether rows and columns are exchanged.
    """

    number: int
    shape: tuple[int, ...]
    matrices: Indices
    turned: bool = False


@dataclass(frozen=True)
class Statistic:
    """A number for each row of scores: "max", "sum" of exponentials, or "inverse" of that."""

    kind: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Row:
    """A statistic, repeated for all scores of its row."""

    kind: str


@dataclass(frozen=True)
class Difference:
    """x - max(x)."""


@dataclass(frozen=True)
class Weight:
    """exp(x - max(x)), or that divided by its sum."""

    divided: bool


@dataclass(frozen=True)
class Empty:
    """Whether divided weights are no number, as in rows of which masks leave nothing."""


@dataclass(frozen=True)
class AttentionResult:
    """O."""


@dataclass(frozen=True)
class ScoreBooleans:
    """Booleans for scores: an input, whether there is one for each score, and its matrices."""

    number: int
    whole: bool
    turn: MatrixTurn


@dataclass(frozen=True)
class Selection:
    """Scores, or a number below all of them, as flags say: the lesser of the score and a bound.

    Attributes:
        flags: number of the input that says which.
        result: number of what is selected.
        fill: in place of scores.
        kept: whether true flags keep scores.
    """

    flags: int
    result: int
    fill: float
    kept: bool


Known = (
    Operand | Seen | ScoreBooleans | Statistic | Row | Difference | Weight | Empty | AttentionResult
)


def factor_of(seen: Seen, arrays: Sequence[Tensor], k_rows: bool) -> ProductOperand:
    """An input as a factor of a product.

    Args:
        arrays: of the group.
        k_rows: whether k runs along the rows of what is stored.

    Raises:
        NoSpace: no product takes its element type, or it as it is turned.
    """
    array = arrays[seen.number]
    if seen.turned:
        raise NoSpace("a factor that is turned")
    if array.element not in ("f16", "f32"):
        raise NoSpace(f"attention of {array.element}")
    return ProductOperand(array.layout == NZ, array.bytes_each, k_rows)


def turn_of(matrices: Indices) -> MatrixTurn:
    """i // each % count as the rule of a list of matrices.

    Raises:
        NoSpace: they follow another rule.

    >>> turn_of(np.array([0, 0, 1, 1, 0, 0, 1, 1]))
    MatrixTurn(each=2, count=2)
    """
    count = int(matrices.max()) + 1
    change = np.flatnonzero(matrices != matrices[0])
    each = int(change[0]) if change.size else matrices.size
    found = np.arange(matrices.size) // each % count
    if not np.array_equal(found, matrices):
        raise NoSpace("matrices in another order")
    return MatrixTurn(each, count)


def turn_of_rows(rows: Indices, height: int) -> MatrixTurn:
    """Which row of a mask each matrix of `height` rows takes, of the one that each of its rows
    takes.

    Raises:
        NoSpace: rows of a matrix take different ones, or matrices in no order.
    """
    apart = rows.reshape(-1, height)
    if (apart != apart[:, :1]).any():
        raise NoSpace("a mask that rows of a matrix share in part")
    return turn_of(apart[:, 0])

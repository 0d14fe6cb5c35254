"""What is decided of how a kernel is computed, as plain data that a file can hold.

A schedule follows from a group, the machine, a number of cores and a choice. The cost model weighs
choices; a user or the tuner may give one. A kernel whose group has several parts has one for each:

    [{"cores": 32, "choice": {"form": "tiles", "cut": 0, "size": 24, "slots": 2}}]
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pydantic

from davinci.machine import Machine
from davinci.schedule.attention.attention import AttentionSchedule
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.schedule.graph import Graph
from davinci.schedule.plain_data import CONFIG, Place, Size
from davinci.schedule.products.product import ProductSchedule
from davinci.schedule.vector.space import NoSpace


@dataclass(frozen=True, kw_only=True)
class TileChoice:
    """Tiles of a group on the vector unit, see `vector.schedule`.

    Attributes:
        form: "chunks" where reduced axes are gone through in a loop, "turned" where short rows are
            lanes (`vector.turned_space`), whose axes are in another order.
        cut: the axis that is cut; those outside it are walked, those inside it whole.
        whole: whether those outside it are whole too.
        size: of a tile along it.
        slots: buffers of what is loaded or stored, at most.
    """

    __pydantic_config__ = CONFIG

    form: Literal["tiles", "chunks", "turned"] = "tiles"
    cut: Place
    whole: bool = False
    size: Size
    slots: Size


@dataclass(frozen=True, kw_only=True)
class PieceChoice:
    """Pieces of a reduced axis, see `phased_schedule`.

    Attributes:
        size: of a piece.
        keep: whether what later phases read is kept, or made again.
        meet: whether each of the cores that share a tile sees its own pieces only, and they meet.
    """

    __pydantic_config__ = CONFIG

    form: Literal["pieces"] = "pieces"
    size: Size
    keep: bool
    meet: bool = False


@dataclass(frozen=True, kw_only=True)
class ProductChoice:
    """The schedule of a product, see `product`; all of it is a choice."""

    __pydantic_config__ = CONFIG

    form: Literal["product"] = "product"
    schedule: ProductSchedule


@dataclass(frozen=True, kw_only=True)
class SplitChoice:
    """A product split along k between all cores of the part, see `products.split_k`.

    Attributes:
        parts: partial products.
    """

    __pydantic_config__ = CONFIG

    form: Literal["split"] = "split"
    parts: Size


@dataclass(frozen=True, kw_only=True)
class StreamChoice:
    """A product whose first rows are computed in whole rounds of tiles and the others with k split
    between all cores of the part, see `products.stream_k`.

    Attributes:
        rows: of C that come first.
        parts: partial products of the others.
    """

    __pydantic_config__ = CONFIG

    form: Literal["stream-k"] = "stream-k"
    rows: Size
    parts: Size


Factors = Literal["a", "b", "ab"]
"""Factors of a product, one or both."""


@dataclass(frozen=True, kw_only=True)
class LaidOutChoice:
    """A product some of whose factors all cores of the part lay out in fractals first, see
    `products.laid_out`.

    Attributes:
        factors: that are laid out.
    """

    __pydantic_config__ = CONFIG

    form: Literal["laid-out"] = "laid-out"
    factors: Factors


@dataclass(frozen=True, kw_only=True)
class WindowsChoice:
    """Tiles of a reduction over windows, see `pools.pool`.

    Attributes:
        planes: blocks of 16 channels of a tile.
        rows: rows of windows of a tile.
        slots: buffers of what is loaded or stored.
    """

    __pydantic_config__ = CONFIG

    form: Literal["windows"] = "windows"
    planes: Size
    rows: Size
    slots: Size


@dataclass(frozen=True, kw_only=True)
class AttentionChoice:
    """The schedule of attention, see `attention.attention`; all of it is a choice."""

    __pydantic_config__ = CONFIG

    form: Literal["attention"] = "attention"
    schedule: AttentionSchedule


@dataclass(frozen=True, kw_only=True)
class SplitAttentionChoice:
    """The schedule of attention on cube and vector cores, see `attention.split`; all of it is a
    choice."""

    __pydantic_config__ = CONFIG

    form: Literal["split-attention"] = "split-attention"
    schedule: SplitAttentionSchedule


@dataclass(frozen=True, kw_only=True)
class MovesChoice:
    """Ways of moving elements, see `moves.choice`: those of fewest cycles on the part's cores."""

    __pydantic_config__ = CONFIG

    form: Literal["moves"] = "moves"


@dataclass(frozen=True, kw_only=True)
class SortChoice:
    """A sort, see `sorts.schedule`: its rows are shared by the part's cores, and all else
    follows."""

    __pydantic_config__ = CONFIG

    form: Literal["sort"] = "sort"


@dataclass(frozen=True, kw_only=True)
class LoopChoice:
    """A loop that stays on a core, see `loops.schedule`: its rows are shared by the part's cores,
    and all else follows."""

    __pydantic_config__ = CONFIG

    form: Literal["loop"] = "loop"


Choice = Annotated[
    TileChoice
    | PieceChoice
    | ProductChoice
    | SplitChoice
    | StreamChoice
    | LaidOutChoice
    | WindowsChoice
    | AttentionChoice
    | SplitAttentionChoice
    | MovesChoice
    | SortChoice
    | LoopChoice,
    pydantic.Field(discriminator="form"),
]


@dataclass(frozen=True, kw_only=True)
class PartChoice:
    """The choice for a part of a group, and the cores that it has."""

    __pydantic_config__ = CONFIG

    cores: Size
    choice: Choice


Choices = tuple[PartChoice, ...]
"""The choices of a kernel, one for each of its parts."""

FORMS: pydantic.TypeAdapter[Choices] = pydantic.TypeAdapter(Choices)

KEY_DIGITS = 16
"""Hexadecimal digits of a key."""


def to_data(choices: Choices) -> list[Any]:
    """Choices as lists, dictionaries, numbers and texts."""
    found: list[Any] = FORMS.dump_python(choices, mode="json")
    return found


def of_data(data: object) -> Choices:
    """The choices that `to_data` made, or a user.

    Raises:
        NoSpace: they are none; says where and what was expected.
    """
    try:
        return FORMS.validate_json(json.dumps(data))
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise NoSpace(f"choices that cannot be read: {where}: {first['msg']}") from None


def key_of(graph: Graph, machine: Machine, cores: int) -> str:
    """A name of what is chosen for: equal groups on equal machines have equal ones."""
    return _digest(repr(graph.key()), machine, cores)


def key_of_loops(graphs: Sequence[Graph], machine: Machine, cores: int) -> str:
    """The same for loops side by side, of the graphs of their steps."""
    return _digest(",".join(key_of(graph, machine, cores) for graph in graphs), machine, cores)


def _digest(text: str, machine: Machine, cores: int) -> str:
    parts = (text, machine.model_dump(mode="json"), cores)
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    return digest.hexdigest()[:KEY_DIGITS]

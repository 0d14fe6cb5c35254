"""Ways to compute the kernel of a group, of whatever kind, as choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.schedule.attention import choice as attention_choice
from davinci.schedule.attention.attention import AttentionSchedule
from davinci.schedule.attention.group import AttentionGroup, read_attention
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.schedule.choices import (
    AttentionChoice,
    Choices,
    PartChoice,
    ProductChoice,
    SplitAttentionChoice,
    WindowsChoice,
)
from davinci.schedule.graph import Graph
from davinci.schedule.pools import choice as pool_choice
from davinci.schedule.pools.group import PoolGroup, is_pool, read_pool
from davinci.schedule.pools.pool import PoolSchedule
from davinci.schedule.products.choice import ranked
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.products.product import ProductSchedule
from davinci.schedule.side_by_side import ranked_choices
from davinci.schedule.vector.space import NoSpace

WholeSchedule = ProductSchedule | PoolSchedule | AttentionSchedule | SplitAttentionSchedule
"""The schedule of a group that has one for all of it."""

_Wanted = TypeVar("_Wanted", ProductChoice, WindowsChoice, AttentionChoice, SplitAttentionChoice)


def ways_of(graph: Graph, machine: Machine, cores: int) -> list[Choices]:
    """The way that is taken where nobody chooses, then others by estimated cycles.

    Raises:
        NoSpace: a group that has no choices.
    """
    found: Sequence[WholeSchedule]
    products = sum(map(is_product, graph.nodes))
    if any(map(is_pool, graph.nodes)):
        found = pool_choice.ranked(read_pool(graph).pool, machine, cores)
    elif products == 1:
        found = _products(graph, machine, cores)
    elif products:
        found = attention_choice.ranked(read_attention(graph).attention, machine, cores)
    else:
        return ranked_choices(graph, machine, cores)
    return list(dict.fromkeys(choices_of(schedule, cores) for schedule in found))


def _products(graph: Graph, machine: Machine, cores: int) -> list[ProductSchedule]:
    """Schedules of a product, that of fewest estimated cycles first.

    Raises:
        NoSpace: none fits, or the product is empty.
    """
    product = read_group(graph, machine).product
    if not (product.batch and product.m and product.k and product.n):
        raise NoSpace("a product of nothing")
    try:
        return list(ranked(product, machine, cores))
    except CompileError as error:
        raise NoSpace(error.message) from None


def choices_of(schedule: WholeSchedule, cores: int) -> Choices:
    """The choice that a schedule is made of."""
    choice: ProductChoice | WindowsChoice | AttentionChoice | SplitAttentionChoice
    if isinstance(schedule, ProductSchedule):
        choice = ProductChoice(schedule=schedule)
    elif isinstance(schedule, PoolSchedule):
        choice = WindowsChoice(planes=schedule.planes, rows=schedule.rows, slots=schedule.slots)
    elif isinstance(schedule, SplitAttentionSchedule):
        choice = SplitAttentionChoice(schedule=schedule)
    else:
        choice = AttentionChoice(schedule=schedule)
    return (PartChoice(cores=cores, choice=choice),)


def product_of(given: Choices, cores: int) -> tuple[int, ProductSchedule]:
    """Cores and schedule of a product by a choice.

    Raises:
        NoSpace: it is none of a product, or of more cores.
    """
    cores, choice = _only(given, cores, ProductChoice, "a product")
    return cores, choice.schedule


def whole_of(
    given: Choices, group: PoolGroup | AttentionGroup, machine: Machine, cores: int
) -> tuple[int, PoolSchedule | AttentionSchedule | SplitAttentionSchedule]:
    """Cores and schedule of windows or attention by a choice.

    Raises:
        NoSpace: it is none of such a group, of more cores, or does not fit.
    """
    if isinstance(group, PoolGroup):
        cores, tiles = _only(given, cores, WindowsChoice, "windows")
        return cores, pool_choice.chosen(group.pool, machine, cores, tiles)
    choice: AttentionChoice | SplitAttentionChoice
    if machine.split:
        cores, choice = _only(given, cores, SplitAttentionChoice, "attention on two kinds of cores")
    else:
        cores, choice = _only(given, cores, AttentionChoice, "attention")
    attention_choice.require_candidate(group.attention, choice.schedule, machine, cores)
    return cores, choice.schedule


def _only(given: Choices, cores: int, kind: type[_Wanted], what: str) -> tuple[int, _Wanted]:
    """Cores and choice of a group that is one part."""
    (part, *others) = given or (None,)
    if part is None or others or not isinstance(part.choice, kind):
        raise NoSpace(f"choices that are no schedule of {what}")
    if part.cores > cores:
        raise NoSpace(f"a schedule for {part.cores} cores, of {cores}")
    return part.cores, part.choice

"""Ways to compute the kernel of a group, of whatever kind, as choices."""

from __future__ import annotations

from davinci.errors import CompileError
from davinci.machine import Machine
from davinci.schedule.choices import Choices, PartChoice, ProductChoice
from davinci.schedule.graph import Graph
from davinci.schedule.products.choice import ranked
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.products.product import ProductSchedule
from davinci.schedule.side_by_side import ranked_choices
from davinci.schedule.vector.space import NoSpace


def ways_of(graph: Graph, machine: Machine, cores: int) -> list[Choices]:
    """The way that is taken where nobody chooses, then others by estimated cycles.

    Raises:
        NoSpace: a group that has no choices.
    """
    if sum(map(is_product, graph.nodes)) != 1:
        return ranked_choices(graph, machine, cores)
    product = read_group(graph, machine).product
    if not (product.batch and product.m and product.k and product.n):
        raise NoSpace("a product of nothing")
    try:
        return [choices_of(schedule, cores) for schedule in ranked(product, machine, cores)]
    except CompileError as error:
        raise NoSpace(error.message) from None


def choices_of(schedule: ProductSchedule, cores: int) -> Choices:
    """The choice of a product's schedule."""
    return (PartChoice(cores=cores, choice=ProductChoice(schedule=schedule)),)


def product_of(given: Choices | None, cores: int) -> tuple[int, ProductSchedule | None]:
    """Cores and schedule of a product by a choice, `cores` and None without one.

    Raises:
        NoSpace: it is none of a product, or of more cores.
    """
    if given is None:
        return cores, None
    (part, *others) = given or (None,)
    if part is None or others or not isinstance(part.choice, ProductChoice):
        raise NoSpace("choices that are no schedule of a product")
    if part.cores > cores:
        raise NoSpace(f"a schedule for {part.cores} cores, of {cores}")
    return part.cores, part.choice.schedule

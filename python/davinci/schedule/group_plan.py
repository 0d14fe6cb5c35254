"""The plan of a group: on the vector unit, as a move of elements, or of blocks at indices."""

from __future__ import annotations

from davinci.machine import Machine
from davinci.schedule.graph import Graph
from davinci.schedule.moves.blocks import BlockPlan, block_plan, moves_blocks
from davinci.schedule.moves.choice import MovePlan, is_move, move_plan
from davinci.schedule.moves.combines import CombinePlan, combine_plan, combines_blocks
from davinci.schedule.moves.element_gathers import ElementPlan, element_plan, gathers_elements
from davinci.schedule.moves.fractal_moves import IMPROVED
from davinci.schedule.sorts.schedule import SortPlan, sort_plan, sorts
from davinci.schedule.vector.schedule import VectorPlan, plan
from davinci.schedule.vector.space import MOVES, NoSpace

GroupPlan = VectorPlan | MovePlan | BlockPlan | ElementPlan | CombinePlan | SortPlan


def moves_at_places(graph: Graph) -> bool:
    """Whether a group moves or combines blocks, or moves elements, at places that indices name."""
    return moves_blocks(graph) or gathers_elements(graph)


def moves_only(graph: Graph) -> bool:
    """Whether a group computes nothing."""
    return moves_at_places(graph) or is_move(graph)


def moves_of(
    graph: Graph, machine: Machine, cores: int, algorithm: str = IMPROVED
) -> MovePlan | BlockPlan | ElementPlan | CombinePlan:
    """The plan of a group that only moves elements or combines blocks at places, as a move.

    Raises:
        NoSpace: it computes, or cannot be moved.
    """
    if combines_blocks(graph):
        return combine_plan(graph, machine, cores)
    if moves_blocks(graph):
        return block_plan(graph, machine, cores)
    if gathers_elements(graph):
        return element_plan(graph, machine, cores)
    if is_move(graph):
        return move_plan(graph, machine, cores, algorithm)
    raise NoSpace("moves for a group that computes")


def sort_of(graph: Graph, machine: Machine, cores: int) -> SortPlan:
    """The plan of a group that sorts.

    Raises:
        NoSpace: it does not sort, or its rows do not fit.
    """
    if not sorts(graph):
        raise NoSpace("a sort for a group that does not sort")
    return sort_plan(graph, machine, cores)


def plan_of(
    graph: Graph,
    machine: Machine,
    cores: int,
    algorithm: str = IMPROVED,
    meets: bool = False,
) -> GroupPlan:
    """The plan of fewest estimated cycles; groups that only move elements may have two.

    Args:
        algorithm: of fractalisation.
        meets: whether cores may meet in the kernel.

    Raises:
        NoSpace: no kernel can compute the group.
    """
    if moves_at_places(graph):
        return moves_of(graph, machine, cores, algorithm)
    if sorts(graph):
        return sort_plan(graph, machine, cores)
    if not is_move(graph):
        return plan(graph, machine, cores, meets=meets)
    found: list[GroupPlan] = []
    reason: NoSpace | None = None
    try:
        found.append(move_plan(graph, machine, cores, algorithm))
    except NoSpace as error:
        reason = error
    if all(node.name in MOVES for node in graph.nodes):
        try:
            found.append(plan(graph, machine, cores))
        except NoSpace as error:
            reason = reason or error
    if not found:
        assert reason is not None, "each plan that was not found left its reason"
        raise reason
    return min(found, key=lambda chosen: chosen.schedule.cycles)

"""Parts of a group that have nothing to do with each other, side by side on different cores.

Each part has a plan of its own, for as many cores as its share of the work is; the launch has the
blocks of all of them. Parts that read the same arrays may be one: all cores then read these once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from davinci.machine import Machine
from davinci.schedule.choices import (
    Choices,
    MovesChoice,
    PartChoice,
    PieceChoice,
    SortChoice,
    TileChoice,
)
from davinci.schedule.core_count import counts
from davinci.schedule.graph import Graph, Node, Operand, Scalar
from davinci.schedule.group_plan import (
    GroupPlan,
    moves_at_places,
    moves_of,
    moves_only,
    plan_of,
    sort_of,
)
from davinci.schedule.moves.choice import MovePlan, is_move
from davinci.schedule.moves.fractal_moves import IMPROVED
from davinci.schedule.sorts.schedule import SortPlan, sorts
from davinci.schedule.vector.regions import Regions, regions_of
from davinci.schedule.vector.schedule import VectorPlan, estimate, plan, plans
from davinci.schedule.vector.space import NoSpace, space_of


@dataclass(frozen=True)
class Part:
    """A part of a group.

    Attributes:
        graph: its operators and values, numbered anew.
        inputs, outputs: places of its inputs and outputs among those of the group.
    """

    graph: Graph
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


@dataclass(frozen=True)
class PlannedPart:
    """A part of a group, how it is computed, and on how many cores."""

    part: Part
    plan: GroupPlan
    cores: int


def parts_of(graph: Graph, together: bool = False) -> list[Part]:
    """The parts of a group.

    All that only moves elements is one part, a gather or a sort is one of its own. The others are
    in regions; parts of the rows of one array are moved together if that can be done.

    Args:
        together: whether operators on the vector unit that read the same inputs are one part, if
            their tiles have the same axes; otherwise they have nothing to do with each other.

    Raises:
        NoSpace: regions cannot be told apart.
    """
    places = (tuple(range(len(values))) for values in (graph.inputs, graph.outputs))
    if is_move(graph):
        return [Part(graph, *places)]
    plain = Regions(graph, *places)
    moved, found, rest = [], [], []
    for nodes in _connected(graph):
        part = _part(plain, nodes)
        if is_move(part.graph):
            moved += nodes
        elif moves_at_places(part.graph) or sorts(part.graph):
            found.append(part)
        else:
            rest += nodes
    if moved:
        found.append(_part(plain, _in_order(graph, moved)))
    if rest:
        found += _in_regions(_part(plain, _in_order(graph, rest)), together)
    return found


def partings_of(graph: Graph) -> list[list[Part]]:
    """The ways to part a group: as much as can be, and with those together that read the same.

    Raises:
        NoSpace: regions cannot be told apart.
    """
    apart = parts_of(graph)
    together = parts_of(graph, together=True) if len(apart) > 1 else apart
    return [apart, together] if len(together) < len(apart) else [apart]


def _in_order(graph: Graph, nodes: Sequence[Node]) -> list[Node]:
    results = {node.result for node in nodes}
    return [node for node in graph.nodes if node.result in results]


def _in_regions(whole: Part, together: bool) -> Iterator[Part]:
    """The parts of a group on the vector unit."""
    if any(node.name == "relayout" for node in whole.graph.nodes):
        raise NoSpace("a change of layout among operators that compute")
    regions = regions_of(whole.graph)
    graph = regions.graph
    found = [(nodes, _touched(nodes)) for nodes in _connected(graph)]
    shared = [{value} for value in graph.inputs] if together else []
    for values in (*graph.rows(), *shared):
        joining = [nodes for nodes, touched in found if not touched.isdisjoint(values)]
        if len(joining) < 2:
            continue
        joined = _in_order(graph, [node for nodes in joining for node in nodes])
        if _has_space(_part(regions, joined).graph):
            others = (each for each in found if each[0] not in joining)
            found = [(joined, _touched(joined)), *others]
    for nodes, _ in found:
        part = _part(regions, nodes)
        yield Part(
            part.graph,
            tuple(whole.inputs[place] for place in part.inputs),
            tuple(whole.outputs[place] for place in part.outputs),
        )


def _connected(graph: Graph) -> Iterator[list[Node]]:
    """Operators that need each other's results."""
    part_of: dict[int, int] = {}
    members: list[list[Node]] = []
    for node in graph.nodes:
        joined = sorted({part_of[value] for value in node.values if value in part_of})
        number = joined[0] if joined else len(members)
        if not joined:
            members.append([])
        for other in joined[1:]:
            members[number] += members[other]
            part_of |= {made.result: number for made in members[other]}
            members[other] = []
        members[number].append(node)
        part_of[node.result] = number
    order = {node.result: place for place, node in enumerate(graph.nodes)}
    for nodes in filter(None, members):
        yield sorted(nodes, key=lambda node: order[node.result])


def _touched(nodes: Sequence[Node]) -> set[int]:
    """Values that operators read or compute."""
    return {value for node in nodes for value in (*node.values, node.result)}


def _has_space(graph: Graph) -> bool:
    """Whether a group has one iteration space."""
    try:
        space_of(graph)
    except NoSpace:
        return False
    return True


def _part(regions: Regions, nodes: Sequence[Node]) -> Part:
    """Some nodes of regions as a graph of its own, with values renumbered, and its places among the
    inputs and outputs of the group."""
    graph, made = regions.graph, Graph()
    number: dict[int, int] = {}

    def renumbered(value: int) -> int:
        if value not in number:
            number[value] = made.add(graph.arrays[value])
        return number[value]

    def operand(value: Operand) -> Operand:
        return value if isinstance(value, Scalar) else renumbered(value)

    for node in nodes:
        operands = tuple(map(operand, node.operands))
        result = renumbered(node.result)
        made.nodes.append(replace(node, operands=operands, result=result))
    inputs = [place for place, value in enumerate(graph.inputs) if value in number]
    results = {node.result for node in nodes}
    outputs = [place for place, value in enumerate(graph.outputs) if value in results]
    made.inputs = [number[graph.inputs[place]] for place in inputs]
    made.outputs = [number[graph.outputs[place]] for place in outputs]
    made.windows = {number[v]: window for v, window in graph.windows.items() if v in number}
    return Part(
        made,
        tuple(regions.inputs[place] for place in inputs),
        tuple(regions.outputs[place] for place in outputs),
    )


def plans_of(
    partings: Sequence[list[Part]],
    machine: Machine,
    cores: int,
    choices: Choices | None = None,
    algorithm: str = IMPROVED,
    meets: bool = False,
) -> list[PlannedPart]:
    """How the parts of a group are computed: parted in the way that takes least time, or in the one
    that choices are for.

    Args:
        algorithm: of fractalisation.
        meets: whether cores may meet in the kernel; all of them, so a part does not share it then.

    Raises:
        NoSpace: a part is no kernel, or not by the choices; or there are more parts than cores.
    """

    def planned(graph: Graph, n: int) -> GroupPlan:
        return plan_of(graph, machine, n, algorithm, meets and n == cores)

    def weighed(graph: Graph, n: int) -> int:
        return planned(graph, n).schedule.cycles

    if choices is not None:
        return _chosen(partings, machine, cores, choices, algorithm, meets)
    parts, shares, _ = _cheapest(partings, weighed, cores)
    return [PlannedPart(p, planned(p.graph, n), n) for p, n in zip(parts, shares, strict=True)]


def _cheapest(
    partings: Sequence[list[Part]], weighed: Callable[[Graph, int], int], cores: int
) -> tuple[list[Part], Sequence[int], int]:
    """The parts of a group in the way that takes least time, the cores of each, and that time.

    Raises:
        NoSpace: there is no way.
    """
    found: list[tuple[list[Part], Sequence[int], int]] = []
    refusal: NoSpace | None = None
    for parts in partings:
        try:
            shares = _shares(parts, weighed, cores)
            each = (weighed(part.graph, n) for part, n in zip(parts, shares, strict=True))
            found.append((parts, shares, max(each)))
        except NoSpace as error:
            refusal = refusal or error
    if not found:
        assert refusal is not None, "a group without a way to part it"
        raise refusal
    return min(found, key=lambda way: way[2])


def _chosen(
    partings: Sequence[list[Part]],
    machine: Machine,
    cores: int,
    choices: Choices,
    algorithm: str,
    meets: bool,
) -> list[PlannedPart]:
    """The plans of the parts for which choices are given, on as many cores as these say.

    Raises:
        NoSpace: no parting has so many parts, they want more cores than there are, or a choice is
            one of another kind of group.
    """
    parts = next((parts for parts in partings if len(parts) == len(choices)), None)
    if parts is None:
        raise NoSpace(f"choices for {len(choices)} parts of a group that has {len(partings[0])}")
    if sum(each.cores for each in choices) > cores:
        raise NoSpace(f"choices for {sum(each.cores for each in choices)} of {cores} cores")

    def planned(part: Part, each: PartChoice) -> GroupPlan:
        if isinstance(each.choice, MovesChoice):
            return moves_of(part.graph, machine, each.cores, algorithm)
        if isinstance(each.choice, SortChoice):
            return sort_of(part.graph, machine, each.cores)
        if isinstance(each.choice, TileChoice | PieceChoice):
            alone = meets and len(parts) == 1
            return plan(part.graph, machine, each.cores, each.choice, alone)
        raise NoSpace(f"the schedule of a {each.choice.form} for a group that has none")

    return [
        PlannedPart(part, planned(part, each), each.cores)
        for part, each in zip(parts, choices, strict=True)
    ]


def part_choice(planned: PlannedPart) -> PartChoice:
    """The choice that the plan of a part follows from."""
    return _choice(planned.plan, planned.cores)


def _choice(plan: GroupPlan, cores: int) -> PartChoice:
    """What was decided in a plan on so many cores, as data that can be saved."""
    if isinstance(plan, VectorPlan):
        return PartChoice(cores=cores, choice=plan.schedule.choice)
    choice = SortChoice() if isinstance(plan, SortPlan) else MovesChoice()
    return PartChoice(cores=cores, choice=choice)


def ranked_choices(graph: Graph, machine: Machine, cores: int) -> list[Choices]:
    """Ways to compute a group: the one that `plans_of` has, then others by estimated cycles.

    Its parts are ranked apart: the second way has the second best of each.

    Raises:
        NoSpace: it is no kernel on the vector unit.
    """
    ranked: list[list[PartChoice]] = []
    for each in plans_of(partings_of(graph), machine, cores):
        best, n = each.plan, each.cores
        if not isinstance(best, VectorPlan):
            fewer = sorted((count for count in counts(n) if count < n), reverse=True)
            ranked.append([_choice(best, count) for count in (n, *fewer)])
            continue
        others = sorted(plans(each.part.graph, machine, n), key=lambda schedule: schedule.cycles)
        choices = dict.fromkeys(schedule.choice for schedule in (best.schedule, *others))
        ranked.append([PartChoice(cores=n, choice=choice) for choice in choices])
    most = max(map(len, ranked))
    return [tuple(ways[min(rank, len(ways) - 1)] for ways in ranked) for rank in range(most)]


def cycles_of(graph: Graph, machine: Machine, cores: int, *, growing: bool) -> int:
    """Estimated cycles of a group, whose cores may meet.

    Args:
        growing: whether operators may still join it; statistics may be its inputs and outputs.

    Raises:
        NoSpace: it is no kernel, and none if it grows.
    """

    def weighed(graph: Graph, n: int) -> int:
        if growing and not moves_only(graph) and not sorts(graph):
            return estimate(graph, machine, n)
        chosen = plan_of(graph, machine, n, meets=n == cores)
        if isinstance(chosen, MovePlan) and chosen.schedule.scalar and len(graph.nodes) > 1:
            raise NoSpace("a chain of moves by the scalar unit")
        return chosen.schedule.cycles

    return _cheapest(partings_of(graph), weighed, cores)[2]


def _shares(
    parts: Sequence[Part], weighed: Callable[[Graph, int], int], cores: int
) -> Sequence[int]:
    """How many cores each part has: one, and of the others by its work."""
    if len(parts) == 1:
        return [cores]
    if len(parts) > cores:
        raise NoSpace("more parts than cores")
    work = [weighed(part.graph, cores) for part in parts]
    spare = cores - len(parts)
    return [1 + spare * cycles // sum(work) for cycles in work]

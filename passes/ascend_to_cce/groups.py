"""Lowers kernels that hold a group of operators on tensors.

func.func @k(%a: memref<..>, %r: memref<..>) {
  %x = bufferization.to_tensor %a
  ...                                              operators of ascend on tensors
  bufferization.materialize_in_destination %y in %r
}

An operator alone is a group of one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from davinci.dialects.ascend import call_of, record_of
from davinci.dialects.base import attribute
from davinci.errors import CompileError
from davinci.machine import Machine, within_l2
from davinci.mlir import Op, ir, parent_of, symbol_name
from davinci.passes import builder
from davinci.passes.analysis.group_graph import (
    CONVERSION,
    behind_conversions,
    graph_of,
    operators_of,
)
from davinci.passes.analysis.kernels import CORES, PRODUCTS
from davinci.passes.analysis.loop_graph import loop_graph_of, loops_of
from davinci.passes.analysis.origins import numbered_location, served
from davinci.passes.ascend.tensor_ops import fold_numbers
from davinci.passes.ascend_to_cce import LaunchBlocks, Target
from davinci.passes.ascend_to_cce.attention.group import build_attention_group
from davinci.passes.ascend_to_cce.given_choices import (
    choices_given,
    given_choices,
    note_choices,
    refuse,
)
from davinci.passes.ascend_to_cce.loops.beside import build_loops_beside
from davinci.passes.ascend_to_cce.loops.kernel import build_loops
from davinci.passes.ascend_to_cce.loops.left_factors import exchange_of
from davinci.passes.ascend_to_cce.moves.blocks import BlockBuilder
from davinci.passes.ascend_to_cce.moves.combines import CombineBuilder
from davinci.passes.ascend_to_cce.moves.element_gathers import ElementBuilder
from davinci.passes.ascend_to_cce.moves.group import MoveBuilder
from davinci.passes.ascend_to_cce.pools.kernel import build_pool
from davinci.passes.ascend_to_cce.products.behind import build_followed
from davinci.passes.ascend_to_cce.products.group import build_product_group, diagonal_of
from davinci.passes.ascend_to_cce.products.met import build_met, met_of, weighs
from davinci.passes.ascend_to_cce.products.product import check_types, wanted
from davinci.passes.ascend_to_cce.serving import members_of, serving
from davinci.passes.ascend_to_cce.sorts.kernel import SortBuilder
from davinci.passes.ascend_to_cce.tiles import only_blocks
from davinci.passes.ascend_to_cce.vector.chunked_group import ChunkBuilder
from davinci.passes.ascend_to_cce.vector.group import VectorBuilder
from davinci.passes.ascend_to_cce.vector.phased_group import PhasedBuilder
from davinci.passes.cce.unroll import ORDER
from davinci.passes.pipeline.base import fail
from davinci.schedule.attention.group import AttentionGroup, read_attention
from davinci.schedule.choices import LoopChoice, PartChoice, key_of_loops
from davinci.schedule.core_count import CoreCount
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import GroupPlan
from davinci.schedule.kernel_cores import cores_of, cores_of_given_loops, cores_of_loops
from davinci.schedule.loops.choice import cores_each, schedules_of
from davinci.schedule.loops.group import LoopGroup
from davinci.schedule.meetings import LaunchPrice
from davinci.schedule.moves.blocks import BlockPlan
from davinci.schedule.moves.choice import MovePlan
from davinci.schedule.moves.combines import CombinePlan
from davinci.schedule.moves.element_gathers import ElementPlan
from davinci.schedule.pools.group import PoolGroup, is_pool, read_pool
from davinci.schedule.products.candidates import Wanted
from davinci.schedule.products.choice import choose
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.ranking import WholeSchedule, choices_of, product_of, whole_of
from davinci.schedule.side_by_side import part_choice, partings_of, plans_of
from davinci.schedule.sorts.schedule import SortPlan
from davinci.schedule.vector.phased_schedule import PhasedSchedule
from davinci.schedule.vector.schedule import VectorPlan
from davinci.schedule.vector.space import NoSpace
from davinci.schedule.window_checks import check_windows

LOAD, STORE = "bufferization.to_tensor", "bufferization.materialize_in_destination"
BOUNDARY = frozenset({LOAD, STORE, CONVERSION})

USEFUL_CORES = "ascend.useful_cores"
"""Attribute of a kernel that takes fewer cores than have work, because more would cost more."""

_Read = TypeVar("_Read", PoolGroup, AttentionGroup)
"""What is known of a group once it is read."""


def is_group(kernel: Op) -> bool:
    """Whether a kernel holds operators on tensors."""
    block = kernel.regions[0].blocks[0]
    return any(op.operation.name == STORE for op in block.operations)


def lower_group(kernel: Op, target: Target) -> int:
    """Builds the kernel of a group in place of its operators; returns how many blocks share its
    work, at most the cores that it may use.

    Raises:
        CompileError: no schedule can compute it.
    """
    block = kernel.regions[0].blocks[0]
    number_members(kernel, members_in(kernel))
    if (cores := attribute(kernel, CORES, 0)) and cores <= target.cores:
        target = replace(target, cores=cores, all_cores=True)
    fold_numbers(block)
    ops = list(block.operations)
    loops = loops_of(kernel)
    with ir.InsertionPoint(ops[-1]), members_of([op.location for op in members_in(kernel)]):
        if loops:
            blocks = _build_loops(kernel, loops, target)
        else:
            group = group_of(kernel, target.machine)
            build = _builder_of(group.graph)
            blocks = build(group.graph, group.buffers, group.last, target)
    erase(ops[:-1])
    return max(1, blocks)


def members_in(kernel: Op) -> list[Op]:
    """The operators that a kernel is made of: those of its loops, or its own where it has none."""
    inside = [op for loop in loops_of(kernel) for op in operators_of(loop)]
    return inside or operators_of(kernel)


def number_members(kernel: Op, members: Sequence[Op]) -> None:
    """Writes on a kernel what its operators are, and which nodes of the model they compute, and
    gives their locations the numbers by which its launches know them."""
    noted = [[op.name.removeprefix("ascend."), *served(op)] for op in members]
    kernel.attributes["ascend.members"] = builder.as_attribute(noted)
    for number, op in enumerate(members):
        op.location = numbered_location(op.location, number)


def _builder_of(graph: Graph) -> Callable[[Graph, list[ir.Value], Op, Target], int]:
    """Groups are built by what they hold: windows, two products with a softmax between, one, none.

    A builder's arguments are the graph, the buffers in GM of its inputs and then of its outputs,
    the group's last operator, and the target. It returns the kernel's blocks.
    """
    if any(map(is_pool, graph.nodes)):
        return partial(_build_whole, read_pool, build_pool)
    around_two = partial(_build_whole, read_attention, build_attention_group)
    return (_build_vector, _build_product, around_two)[sum(map(is_product, graph.nodes))]


def on_fewer(graph: Graph, target: Target, kernel: Op) -> tuple[Target, Any]:
    """The target with as many cores as the kernel of a group takes, and its schedule on them, if
    that was found on the way. Where more cores would have work, the kernel says how many."""
    if target.all_cores:
        return target, None
    meets = may_meet(kernel)
    found = target.counts.get(symbol_name(kernel)) or count_of(graph, target, meets)
    if found.cores < found.useful:
        kernel.attributes[USEFUL_CORES] = builder.as_attribute(found.useful)
    return replace(target, cores=found.cores), found.schedule


def may_meet(kernel: Op) -> bool:
    """Whether the cores of a kernel of the vector unit may meet: not those of one that shares a
    launch, or a phase of one."""
    return CORES not in kernel.attributes


def count_of(graph: Graph, target: Target, meets: bool = False) -> CoreCount:
    """Weighs a group on several numbers of cores, and returns the number that takes least time;
    `meets` as `may_meet` says. What a phase without products reads was mostly written by the phases
    in front of it, so it is priced as in the L2 where that holds the group's arrays.

    Raises:
        NoSpace: no kernel can compute the group.
        CompileError: no schedule of a product fits.
    """
    machine, price = target.machine, LaunchPrice(target.machine, target.phases)
    asked = Wanted()
    if any(map(is_product, graph.nodes)):
        asked = wanted(target)
    elif target.phases > 1:
        size = sum(graph.arrays[number].size_bytes for number in (*graph.inputs, *graph.outputs))
        machine = within_l2(machine) if size <= machine.l2.bytes else machine
    return cores_of(
        graph, machine, target.cores, asked, target.fractalize, price, target.adders, meets
    )


def loop_groups(kernel: Op, loops: Sequence[Op]) -> list[LoopGroup]:
    """The loops of a kernel as they are computed on cores.

    Raises:
        NoSpace: one cannot stay on a core.
    """
    groups, members = list[LoopGroup](), 0
    for loop in loops:
        groups.append(loop_graph_of(kernel, loop, members).group())
        members += len(operators_of(loop))
    return groups


def count_of_loops(groups: Sequence[LoopGroup], target: Target) -> CoreCount:
    """Weighs loops side by side on several numbers of cores, as `count_of` does a group.

    Raises:
        NoSpace: they do not fit the cores.
    """
    price = LaunchPrice(target.machine, target.phases)
    return cores_of_loops(groups, target.machine, target.cores, price)


def erase(ops: Sequence[Op]) -> None:
    for op in reversed(ops):
        op.operation.erase()


@dataclass(frozen=True)
class LoweredGroup:
    """What a kernel computes.

    Attributes:
        buffers: in GM, of the inputs and then of the outputs.
        last: its last operator; what stores it where there is none but numbers.
    """

    graph: Graph
    buffers: list[ir.Value]
    last: Op


def group_of(kernel: Op, machine: Machine) -> LoweredGroup:
    """Reads a kernel that `is_group`, for such cores."""
    ops = [op.operation for op in kernel.regions[0].blocks[0].operations]
    operators = operators_of(kernel)
    for op in operators:
        _require_types(op)
        if op.name in PRODUCTS:
            check_types(op, machine)
    stores = [op for op in ops if op.name == STORE]
    outputs = [behind_conversions(op.operands[0], operators) for op in stores]
    graph, inputs = graph_of(operators, outputs)
    check_windows(graph)
    buffers = [_buffer(value) for value in inputs] + [op.operands[1] for op in stores]
    return LoweredGroup(graph, buffers, (operators or stores)[-1])


def _require_types(operation: Op) -> None:
    """Fails unless a unit of the machine has instructions for an operator's element types."""
    record = record_of(operation.opview)
    if found := record.refused(call_of(operation.opview)):
        fail(
            operation,
            "has no vector instructions for its element type",
            found=found,
            expected=", ".join(sorted(record.types)),
            hint="make it a scalar kernel",
        )


def _build_vector(graph: Graph, buffers: list[ir.Value], operation: Op, target: Target) -> int:
    """Builds the kernel of a group on the vector unit, or of one that only moves elements."""
    kernel, blocks = parent_of(operation), 0
    given = given_choices(kernel, graph, target)
    try:
        target, plans = on_fewer(graph, target, kernel) if given is None else (target, None)
        plans = plans or plans_of(
            partings_of(graph),
            target.machine,
            target.cores,
            given,
            target.fractalize,
            may_meet(kernel),
        )
    except NoSpace as error:
        refuse(operation, str(error), given, target)
    note_choices(kernel, tuple(map(part_choice, plans)))
    inputs, outputs = buffers[: len(graph.inputs)], buffers[len(graph.inputs) :]
    for planned in plans:
        part, chosen, cores = planned.part, planned.plan, planned.cores
        own = [*(inputs[i] for i in part.inputs), *(outputs[i] for i in part.outputs)]
        members = sorted({number for node in part.graph.nodes for number in node.members})
        if len(plans) == 1:
            units, straight = _build_part(chosen, own, replace(target, cores=cores))
            blocks = min(units, cores)
            if straight and kernel.name == "func.func":
                kernel.attributes[ORDER] = ir.UnitAttr.get()
            break
        count = chosen.schedule.cores
        with only_blocks(blocks, count) as (branch, index):
            own_target = replace(target, cores=cores, blocks=LaunchBlocks(index, count))
            with serving(*members):
                built, straight = _build_part(chosen, own, own_target)
            assert built >= count, "blocks without work"
        if straight:
            branch.attributes[ORDER] = ir.UnitAttr.get()
        blocks += count
    text = " | ".join(str(each.plan.schedule) for each in plans)
    kernel.attributes["ascend.schedule"] = builder.as_attribute(text)
    return blocks


def _build_product(graph: Graph, buffers: list[ir.Value], operation: Op, target: Target) -> int:
    """Builds the kernel of a group around one product, by given choices or the cost model's, and
    notes the schedule on it; how many blocks have work.

    Raises:
        CompileError: no schedule fits, or the given one cannot be built.
    """
    gm = dict(zip((*graph.inputs, *graph.outputs), buffers, strict=True))
    kernel = parent_of(operation)
    given = given_choices(kernel, graph, target)
    try:
        schedule, own = None, target
        group = read_group(graph, target.machine)
        if given is None and weighs(target):
            name = symbol_name(kernel)
            found = target.counts.get(name) or count_of(graph, target)
            target = replace(target, counts={name: found})
        met = met_of(group, graph, target, kernel, given)
        if met is not None:
            kernel.attributes["ascend.schedule"] = builder.as_attribute(str(met))
            note_choices(kernel, met.choices)
            return build_met(met, group, graph, gm, kernel, target, _build_part)
        if given is None:
            own, _ = on_fewer(graph, target, kernel)
        else:
            cores, schedule = product_of(given, target.cores)
            own = replace(target, cores=cores)
        if group.behind is not None:
            schedule = schedule or choose(group.product, own.machine, own.cores, wanted(own))
            units = build_followed(group, graph, gm, kernel, own, schedule)
        else:
            diagonal = diagonal_of(group.product, kernel)
            schedule, units = build_product_group(group, graph, gm, own, schedule, diagonal)
    except NoSpace as error:
        refuse(operation, str(error), given, target)
    except CompileError as error:
        if given is not None:
            refuse(operation, error.message, given, target)
        fail(operation, error.message, found=error.found, expected=error.expected, hint=error.hint)
    if schedule is not None:
        kernel.attributes["ascend.schedule"] = builder.as_attribute(str(schedule))
        note_choices(kernel, choices_of(schedule, own.cores))
    return min(units, own.cores)


def _build_whole(
    read: Callable[[Graph], _Read],
    build: Callable[[_Read, Graph, dict[int, ir.Value], Target, Any], tuple[WholeSchedule, int]],
    graph: Graph,
    buffers: list[ir.Value],
    operation: Op,
    target: Target,
) -> int:
    """Builds the kernel of a group that is read as a whole."""
    gm = dict(zip((*graph.inputs, *graph.outputs), buffers, strict=True))
    kernel = parent_of(operation)
    given, found = given_choices(kernel, graph, target), None
    try:
        group, own = read(graph), target
        if given is None:
            own, found = on_fewer(graph, target, kernel)
        else:
            cores, found = whole_of(given, group, target.machine, target.cores)
            own = replace(target, cores=cores)
        schedule, units = build(group, graph, gm, own, found)
    except NoSpace as error:
        refuse(operation, str(error), given, target)
    kernel.attributes["ascend.schedule"] = builder.as_attribute(str(schedule))
    note_choices(kernel, choices_of(schedule, own.cores))
    return min(units, own.cores)


def _build_loops(kernel: Op, loops: Sequence[Op], target: Target) -> int:
    """Builds the kernel of loops that stay on a core, side by side."""
    given = None
    try:
        groups = loop_groups(kernel, loops)
        cores = target.cores
        graphs = [group.graph for group in groups]
        for graph in graphs:
            check_windows(graph)
        given = choices_given(kernel, key_of_loops(graphs, target.machine, cores), target)
        if given is not None:
            cores = cores_of_given_loops(given, len(groups), cores)
        elif not target.all_cores:
            found = target.counts.get(symbol_name(kernel)) or count_of_loops(groups, target)
            cores = found.cores
        else:
            cores = cores_each(groups, target.machine, cores)
        made = list(zip(groups, schedules_of(groups, target.machine, cores), strict=True))
    except NoSpace as error:
        if given is not None:
            refuse(list(kernel.regions[0].blocks[0].operations)[-1], str(error), given, target)
        fail(kernel, "has a loop that cannot stay on a core", found=str(error))
    note_choices(kernel, (PartChoice(cores=cores, choice=LoopChoice()),) * len(groups))
    text = " | ".join(str(schedule) for _, schedule in made)
    kernel.attributes["ascend.schedule"] = builder.as_attribute(text)
    buffers = dict(enumerate(kernel.regions[0].blocks[0].arguments))
    if target.machine.split:
        units = build_loops_beside(made, buffers, kernel, target)
    else:
        units = build_loops(made, buffers, target, exchange_of(kernel, made))
    if units > target.cores:
        fail(
            kernel,
            "has loops side by side that take more cores than there are",
            found=str(units),
            expected=f"{target.cores} at most",
            hint="run ascend-outline-loops with the same number of cores",
        )
    return units


def _build_part(chosen: GroupPlan, buffers: list[ir.Value], target: Target) -> tuple[int, bool]:
    """Builds what a plan says; its units of work, and whether it lies in a straight line."""
    if isinstance(chosen, MovePlan):
        return MoveBuilder(chosen, buffers, target).build(), False
    if isinstance(chosen, CombinePlan):
        return CombineBuilder(chosen, buffers, target).build(), False
    if isinstance(chosen, BlockPlan):
        return BlockBuilder(chosen, buffers, target).build(), False
    if isinstance(chosen, ElementPlan):
        return ElementBuilder(chosen, buffers, target).build(), False
    if isinstance(chosen, SortPlan):
        return SortBuilder(chosen, buffers, target).build(), False
    builder = _vector_builder_of(chosen)(chosen, buffers, target)
    return builder.build(), builder.ordered


def _vector_builder_of(chosen: VectorPlan) -> type[PhasedBuilder | VectorBuilder]:
    if isinstance(chosen.schedule, PhasedSchedule):
        return PhasedBuilder
    return VectorBuilder if chosen.schedule.chunks is None else ChunkBuilder


def _buffer(value: ir.Value) -> ir.Value:
    """The GM buffer, an argument of the kernel or a view of one, that a tensor was made from."""
    while value.owner.name in BOUNDARY:
        value = value.owner.operands[0]
        if isinstance(value.owner, ir.Block):
            break
    return value

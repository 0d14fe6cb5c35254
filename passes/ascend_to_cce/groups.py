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
from davinci.errors import CompileError
from davinci.mlir import ir
from davinci.operators import products
from davinci.passes import builder
from davinci.passes.analysis.group_graph import CONVERSION, graph_of
from davinci.passes.analysis.loop_graph import loop_graph_of, loops_of
from davinci.passes.ascend_to_cce import Blocks, Target
from davinci.passes.ascend_to_cce.attention.group import build_attention_group
from davinci.passes.ascend_to_cce.given_choices import given_choices, note_choices
from davinci.passes.ascend_to_cce.loops.kernel import build_loops
from davinci.passes.ascend_to_cce.moves.gather import GatherBuilder
from davinci.passes.ascend_to_cce.moves.group import MoveBuilder
from davinci.passes.ascend_to_cce.pools.kernel import build_pool
from davinci.passes.ascend_to_cce.products.group import build_product_group
from davinci.passes.ascend_to_cce.products.product import check_types
from davinci.passes.ascend_to_cce.tiles import only_blocks
from davinci.passes.ascend_to_cce.vector.chunked_group import ChunkBuilder
from davinci.passes.ascend_to_cce.vector.group import VectorBuilder
from davinci.passes.ascend_to_cce.vector.phased_group import PhasedBuilder
from davinci.passes.cce.unroll import ORDER
from davinci.passes.pipeline.base import fail
from davinci.schedule.attention.group import read_attention
from davinci.schedule.choices import PartChoice
from davinci.schedule.graph import Graph
from davinci.schedule.group_plan import GroupPlan
from davinci.schedule.loops.schedule import schedule_of
from davinci.schedule.moves.choice import MovePlan
from davinci.schedule.moves.gathers import GatherPlan
from davinci.schedule.pools.group import is_pool, read_pool
from davinci.schedule.products.group import is_product, read_group
from davinci.schedule.ranking import choices_of, product_of
from davinci.schedule.side_by_side import parts_of, plans_of
from davinci.schedule.vector.phased_schedule import PhasedSchedule
from davinci.schedule.vector.schedule import Plan
from davinci.schedule.vector.space import NoSpace

PRODUCTS = tuple(f"ascend.{name}" for name in products.PRODUCTS)
LOAD, STORE = "bufferization.to_tensor", "bufferization.materialize_in_destination"
BOUNDARY = frozenset({LOAD, STORE, CONVERSION})

_Read = TypeVar("_Read")
"""What is known of a group once it is read."""


def is_group(kernel: Any) -> bool:
    """Whether a kernel holds operators on tensors."""
    block = kernel.regions[0].blocks[0]
    return any(op.operation.name == STORE for op in block.operations)


def lower_group(kernel: Any, target: Target) -> int:
    """Builds the kernel of a group in place of its operators; returns its units of work.

    Raises:
        CompileError: no schedule can compute it.
    """
    ops = list(kernel.regions[0].blocks[0].operations)
    if loops := loops_of(kernel):
        with ir.InsertionPoint(ops[-1]), kernel.location:
            units = _build_loops(kernel, loops, target)
        erase(ops[:-1])
        return units
    group = group_of(kernel)
    with ir.InsertionPoint(ops[-1]), kernel.location:
        build = _builder_of(group.graph)
        units = build(group.graph, group.buffers, group.last, target)
    erase(ops[:-1])
    return units


def _builder_of(graph: Graph) -> Callable[[Graph, list[Any], Any, Target], int]:
    """Groups are built by what they hold: windows, two products with a softmax between, one, none.

    A builder's arguments are the graph, the buffers in GM of its inputs and then of its outputs,
    the group's last operator, and the target. It returns the kernel's units of work.
    """
    if any(map(is_pool, graph.nodes)):
        return partial(_build_whole, read_pool, build_pool)
    around_two = partial(_build_whole, read_attention, build_attention_group)
    return (_build_vector, _build_product, around_two)[sum(map(is_product, graph.nodes))]


def erase(ops: Sequence[Any]) -> None:
    for op in reversed(ops):
        op.operation.erase()


@dataclass(frozen=True)
class Group:
    """What a kernel computes.

    Attributes:
        buffers: in GM, of the inputs and then of the outputs.
        last: its last operator.
    """

    graph: Graph
    buffers: list[Any]
    last: Any


def group_of(kernel: Any) -> Group:
    """Reads a kernel that `is_group`."""
    ops = [op.operation for op in kernel.regions[0].blocks[0].operations]
    operators = [op for op in ops if op.name.startswith("ascend.") and op.name != "ascend.full"]
    for op in operators:
        _require_types(op)
        if op.name in PRODUCTS:
            check_types(op)
    stores = [op for op in ops if op.name == STORE]
    outputs = [_inside(op.operands[0], operators) for op in stores]
    graph, inputs = graph_of(operators, outputs)
    buffers = [_buffer(value) for value in inputs] + [op.operands[1] for op in stores]
    return Group(graph, buffers, operators[-1])


def _require_types(operation: Any) -> None:
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


def _build_vector(graph: Graph, buffers: list[Any], operation: Any, target: Target) -> int:
    """Builds the kernel of a group on the vector unit, or of one that only moves elements."""
    parts, kernel, units = parts_of(graph), operation.parent, 0
    try:
        given = given_choices(kernel, graph, target)
        plans = plans_of(parts, target.machine, target.cores, given, target.fractalize)
    except NoSpace as error:
        fail(operation, "cannot be computed together with its group", found=str(error))
    choices = [
        PartChoice(cores=n, choice=chosen.schedule.choice)
        for chosen, n in plans
        if isinstance(chosen, Plan)
    ]
    if len(choices) == len(plans):  # ways of moving elements are no choices
        note_choices(kernel, tuple(choices))
    inputs, outputs = buffers[: len(graph.inputs)], buffers[len(graph.inputs) :]
    for part, (chosen, cores) in zip(parts, plans, strict=True):
        own = [*(inputs[i] for i in part.inputs), *(outputs[i] for i in part.outputs)]
        if len(parts) == 1:
            units, straight = _build_part(chosen, own, target)
            if straight and kernel.name == "func.func":
                kernel.attributes[ORDER] = ir.UnitAttr.get()
            break
        count = chosen.schedule.cores
        with only_blocks(units, count) as (branch, index):
            own_target = replace(target, cores=cores, blocks=Blocks(index, count))
            built, straight = _build_part(chosen, own, own_target)
            assert built >= count, "blocks without work"
        if straight:
            branch.attributes[ORDER] = ir.UnitAttr.get()
        units += count
    text = " | ".join(str(chosen.schedule) for chosen, _ in plans)
    kernel.attributes["ascend.schedule"] = builder.as_attribute(text)
    return units


def _build_product(graph: Graph, buffers: list[Any], operation: Any, target: Target) -> int:
    """Builds the kernel of a group around a product."""
    gm = dict(zip((*graph.inputs, *graph.outputs), buffers, strict=True))
    kernel = operation.parent
    try:
        given = given_choices(kernel, graph, target)
        cores, schedule = product_of(given, target.cores)
        target = replace(target, cores=cores)
        schedule, units = build_product_group(read_group(graph), graph, gm, target, schedule)
    except NoSpace as error:
        fail(operation, "cannot be computed together with its group", found=str(error))
    except CompileError as error:
        fail(operation, error.message, found=error.found, expected=error.expected, hint=error.hint)
    if schedule is not None:
        kernel.attributes["ascend.schedule"] = builder.as_attribute(str(schedule))
        note_choices(kernel, choices_of(schedule, cores))
    return units


def _build_whole(
    read: Callable[[Graph], _Read],
    build: Callable[[_Read, Graph, dict[int, Any], Target], tuple[object, int]],
    graph: Graph,
    buffers: list[Any],
    operation: Any,
    target: Target,
) -> int:
    """Builds the kernel of a group that is read as a whole."""
    gm = dict(zip((*graph.inputs, *graph.outputs), buffers, strict=True))
    try:
        schedule, units = build(read(graph), graph, gm, target)
    except NoSpace as error:
        fail(operation, "cannot be computed together with its group", found=str(error))
    operation.parent.attributes["ascend.schedule"] = builder.as_attribute(str(schedule))
    return units


def _build_loops(kernel: Any, loops: Sequence[Any], target: Target) -> int:
    """Builds the kernel of loops that stay on a core, side by side."""
    made = []
    try:
        for loop in loops:
            group = loop_graph_of(kernel, loop).group()
            made.append((group, schedule_of(group, target.machine, target.cores)))
    except NoSpace as error:
        fail(kernel, "has a loop that cannot stay on a core", found=str(error))
    text = " | ".join(str(schedule) for _, schedule in made)
    kernel.attributes["ascend.schedule"] = builder.as_attribute(text)
    buffers = dict(enumerate(kernel.regions[0].blocks[0].arguments))
    units = build_loops(made, buffers, target)
    if units > target.cores:
        fail(
            kernel,
            "has loops side by side that take more cores than there are",
            found=str(units),
            expected=f"{target.cores} at most",
            hint="run ascend-outline-loops with the same number of cores",
        )
    return units


def _build_part(chosen: GroupPlan, buffers: list[Any], target: Target) -> tuple[int, bool]:
    """Builds what a plan says; its units of work, and whether it lies in a straight line."""
    if isinstance(chosen, MovePlan):
        return MoveBuilder(chosen, buffers, target).build(), False
    if isinstance(chosen, GatherPlan):
        return GatherBuilder(chosen, buffers, target).build(), False
    builder = _vector_builder_of(chosen)(chosen, buffers, target)
    return builder.build(), builder.ordered


def _vector_builder_of(chosen: Plan) -> type[PhasedBuilder | VectorBuilder]:
    if isinstance(chosen.schedule, PhasedSchedule):
        return PhasedBuilder
    return VectorBuilder if chosen.schedule.chunks is None else ChunkBuilder


def _inside(value: Any, operators: list[Any]) -> Any:
    """The result of an operator that a stored value is."""
    while value.owner not in operators and value.owner.name == CONVERSION:
        value = value.owner.operands[0]
    return value


def _buffer(value: Any) -> Any:
    """The GM buffer that a tensor was made from."""
    while value.owner.name in BOUNDARY:
        value = value.owner.operands[0]
        if isinstance(value.owner, ir.Block):
            break
    return value

"""Builds the kernel of a group that is attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.attention.kernel import AttentionKernel
from davinci.passes.ascend_to_cce.attention.split.kernel import build_programs
from davinci.passes.ascend_to_cce.attention.together import TogetherKernel
from davinci.passes.ascend_to_cce.attention.units import AttentionArrays
from davinci.passes.ascend_to_cce.tiles import AlikeWork, share_blocks
from davinci.passes.builder import IndexLike, reshaped
from davinci.schedule.attention.attention import AttentionSchedule
from davinci.schedule.attention.choice import choose
from davinci.schedule.attention.group import AttentionGroup
from davinci.schedule.attention.lines import LinesOfUnits
from davinci.schedule.attention.split import SplitAttentionSchedule
from davinci.schedule.graph import Graph
from davinci.schedule.vector.space import NoSpace


def buffers_of(group: AttentionGroup, graph: Graph, gm: Mapping[int, ir.Value]) -> AttentionArrays:
    """The arrays of a group as matrices.

    Args:
        gm: buffers of the group's inputs and output, by number.
    """
    attention = group.attention

    def array(number: int, *shape: int) -> ir.Value:
        """The buffer of a value in another shape; of the dimension -1 as many as there are."""
        count = math.prod(graph.arrays[number].stored_shape) // -math.prod(shape)
        made: ir.Value = reshaped(gm[number], [count if size == -1 else size for size in shape])
        return made

    def whole(number: int) -> ir.Value:
        """The matrices of a value, each as it lies in GM."""
        kind = graph.arrays[number]
        return array(number, -1, *replace(kind, shape=kind.shape[-2:]).stored_shape)

    q, k, v = (
        array(number, -1, *matrix.stored_shape)
        for number, matrix in zip(group.factors, group.matrices, strict=True)
    )
    extras = [
        whole(number) if extra.whole else array(number, 1, -1, attention.keys)
        for number, extra in zip(group.extras, attention.chain.extras, strict=True)
    ]
    nz = attention.o.nz
    o = whole(group.output) if nz else array(group.output, -1, attention.rows, attention.columns)
    return AttentionArrays(q, k, v, extras, o)


def build_attention_group(
    group: AttentionGroup,
    graph: Graph,
    gm: dict[int, ir.Value],
    target: Target,
    given: AttentionSchedule | SplitAttentionSchedule | None = None,
) -> tuple[AttentionSchedule | SplitAttentionSchedule, int]:
    """The schedule of a group, and how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and output, by number.
        given: the schedule, if it was chosen already.

    Raises:
        NoSpace: no schedule fits.
    """
    attention = group.attention
    if not group.ready:
        raise NoSpace("masks that are not as scores are computed")
    schedule = given or choose(attention, target.machine, target.cores)

    if isinstance(schedule, SplitAttentionSchedule):
        blocks = min(target.cores, schedule.units(attention))

        def seen(argument: Callable[[ir.Value], ir.Value]) -> AttentionArrays:
            return buffers_of(group, graph, {key: argument(value) for key, value in gm.items()})

        kernel_op = gm[group.output].owner.owner
        build_programs(attention, schedule, kernel_op, seen, group.members, target.machine, blocks)
        return schedule, blocks
    buffers = buffers_of(group, graph, gm)

    def kernel() -> AttentionKernel:
        kind = TogetherKernel if schedule.together else AttentionKernel
        return kind(attention, schedule, buffers, target.machine, group.members)

    def alone(line: LinesOfUnits, index: IndexLike) -> None:
        kernel().line(line, index)

    lines = schedule.lines(attention)
    total = sum(line.count for line in lines)
    # Where a core does one line, what prepares that is done beside it, with event ids of its own.
    build = alone if total <= target.cores else kernel().line
    parts = [AlikeWork(line.count, partial(build, line)) for line in lines]
    return schedule, share_blocks(parts, target)

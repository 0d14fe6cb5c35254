"""Builds the kernel of a group that is attention."""

from __future__ import annotations

import math

from davinci.mlir import ir
from davinci.passes.ascend_to_cce import Target
from davinci.passes.ascend_to_cce.attention.kernel import AttentionKernel, Buffers
from davinci.passes.ascend_to_cce.tiles import share_blocks
from davinci.passes.builder import reshaped
from davinci.schedule.attention.attention import AttentionSchedule
from davinci.schedule.attention.choice import choose
from davinci.schedule.attention.group import AttentionGroup
from davinci.schedule.graph import Graph
from davinci.schedule.vector.space import NoSpace


def build_attention_group(
    group: AttentionGroup, graph: Graph, gm: dict[int, ir.Value], target: Target
) -> tuple[AttentionSchedule, int]:
    """The schedule of a group, and how many blocks can share its work.

    Args:
        gm: buffers of the group's inputs and output, by number.

    Raises:
        NoSpace: no schedule fits.
    """
    attention = group.attention
    if not group.ready:
        raise NoSpace("masks that are not as scores are computed")
    schedule = choose(attention, target.machine, target.cores)

    def matrices(number: int, *, rows: bool = False) -> ir.Value:
        shape = list(graph.arrays[number].stored_shape)
        kept = 4 if graph.arrays[number].layout else 1 if rows else 2
        lead = [1] if rows else []
        made: ir.Value = reshaped(gm[number], [*lead, math.prod(shape[:-kept]), *shape[-kept:]])
        return made

    extras = [
        matrices(number, rows=not extra.whole)
        for number, extra in zip(group.extras, attention.chain.extras, strict=True)
    ]
    q, k, v = (matrices(number) for number in group.factors)
    output = matrices(group.output)
    kernel = AttentionKernel(attention, schedule, Buffers(q, k, v, extras, output), target.machine)
    return schedule, share_blocks(kernel.parts(), target)

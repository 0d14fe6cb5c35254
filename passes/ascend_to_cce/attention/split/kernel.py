"""Builds the two programs of attention for a machine whose cube and vector cores are apart.

The kernel's function becomes the program of the cube cores; the one of the vector cores is made
beside it, with the same arguments. Behind those of the operators come the rings through which the
cores hand tiles to each other (`rings_of`), for which each launch has memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from davinci.dialects.cce import build as cce
from davinci.elements import Array
from davinci.machine import for_cube, for_vector
from davinci.machine.schema import Machine
from davinci.mlir import Op, func, ir
from davinci.passes.analysis.kernels import BLOCKS, MEETS
from davinci.passes.ascend_to_cce.attention.split.cube import AttentionCubeCore
from davinci.passes.ascend_to_cce.attention.split.few_rows import FewRowsVectorCore
from davinci.passes.ascend_to_cce.attention.split.steps import BlockSteps, ListedSteps, Rings
from davinci.passes.ascend_to_cce.attention.split.sums import sums_layout
from davinci.passes.ascend_to_cce.attention.split.vector import AttentionVectorCore
from davinci.passes.ascend_to_cce.attention.units import AttentionArrays
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import as_attribute
from davinci.passes.programs import vector_program
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.dealing import dealt, masks_of, ring_places, table_of, tiling
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.split import (
    SplitAttentionSchedule,
    long_rows,
    weights_in_place,
)
from davinci.units import FRACTAL_SIDE as SIDE


def ring_types(
    attention: Attention, schedule: SplitAttentionSchedule, blocks: int
) -> list[ir.Type]:
    """Types of the rings, in the order of `Rings`."""
    places = [blocks, ring_places(attention, schedule, blocks)]
    keys = schedule.tile * SIDE
    scores = [*places, schedule.quarters, schedule.rows, keys, SIDE]
    lies = sums_layout(attention, schedule.rows)
    results = [*places, schedule.quarters, *lies.shape(lies.height)]
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    kind = element_type(schedule.dtype(attention))
    weights = [] if weights_in_place(attention, schedule) else [ir.MemRefType.get(scores, f16)]
    shared: list[list[int]] = []
    if schedule.shares > 1:
        each = [attention.batch, schedule.shares]
        shared = [[*each, *lies.shape(attention.rows)], [*each, SIDE]]
    return [
        ir.MemRefType.get(scores, kind),
        *weights,
        ir.MemRefType.get(results, f32),
        *(ir.MemRefType.get(shape, f32) for shape in shared),
    ]


def rings_of(arguments: Sequence[ir.Value], constants: int, in_place: bool) -> Rings:
    """The last arguments of a program, of which so many are constants, as rings; `in_place`: see
    `weights_in_place`."""
    count = len(arguments) - constants
    rings, names = list(arguments[:count]), ("table", "masks")
    if in_place:
        rings.insert(1, rings[0])
    return Rings(*rings, **dict(zip(names, arguments[count:], strict=False)))


def build_programs(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    kernel: Op,
    buffers: Callable[[Callable[[ir.Value], ir.Value]], AttentionArrays],
    members: Members,
    machine: Machine,
    blocks: int,
) -> None:
    """Builds both programs; the insertion point is in the kernel, behind its operators.

    Args:
        buffers: the arrays in GM, given what stands for each argument of the kernel.
        blocks: of the launch.
    """
    kinds = ring_types(attention, schedule, blocks)
    constants = constants_of(attention, schedule, blocks)
    other = vector_program(kernel, kinds, constants)
    other_block, count = other.regions[0].blocks[0], len(kinds) + len(constants)
    in_place = weights_in_place(attention, schedule)
    own = list(kernel.regions[0].blocks[0].arguments)[-count:]
    rings = rings_of(own, len(constants), in_place)
    block = cce.get_block_idx()
    steps = steps_of(attention, schedule, blocks, block, rings)
    of_cube = buffers(lambda value: value), rings, steps, block
    cube = AttentionCubeCore(attention, schedule, *of_cube, members, for_cube(machine))
    with steps.only_blocks_with_work():
        cube.build()
    with ir.InsertionPoint(other_block):
        rings = rings_of(list(other_block.arguments)[-count:], len(constants), in_place)
        block, lane = cce.get_block_idx(), cce.get_sub_block_idx()
        steps = steps_of(attention, schedule, blocks, block, rings)
        theirs = buffers(lambda value: other_block.arguments[ir.BlockArgument(value).arg_number])
        of_vector = theirs, rings, steps, block, lane
        kind = FewRowsVectorCore if schedule.lanes == 1 else AttentionVectorCore
        kind(attention, schedule, *of_vector, members, for_vector(machine)).build()
        func.ReturnOp([])
    other.attributes[BLOCKS] = as_attribute(blocks)
    if schedule.shares > 1:
        other.attributes[MEETS] = ir.UnitAttr.get()


def constants_of(
    attention: Attention, schedule: SplitAttentionSchedule, blocks: int
) -> list[Array]:
    """What the programs of a kernel whose mask is a band read besides: the steps of blocks, and
    bounds of scores if some are hidden."""
    if attention.band is None:
        return []
    found: list[Array] = [table_of(dealt(attention, schedule, blocks))]
    tiles = tiling(attention, schedule)
    if tiles.patterns:
        dtype = schedule.dtype(attention)
        keys, joined = schedule.tile * SIDE, 1
        if long_rows(attention, schedule.part):
            joined = schedule.part
        found.append(masks_of(tiles, attention.band.fill, keys, dtype, joined))
    return found


def steps_of(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    blocks: int,
    block: ir.Value,
    rings: Rings,
) -> BlockSteps:
    """The steps of a block."""
    if rings.table is None:
        return BlockSteps(attention, schedule, blocks, block)
    return ListedSteps(attention, schedule, blocks, block, rings.table)

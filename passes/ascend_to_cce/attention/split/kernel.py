"""Builds the two programs of attention for a machine whose cube and vector cores are apart.

The kernel's function becomes the program of the cube cores; the one of the vector cores is made
beside it, with the same arguments. Behind those of the operators come the rings through which the
cores hand tiles to each other (`rings_of`), for which each launch has memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from davinci.dialects.cce import build as cce
from davinci.elements import Array, to_attribute
from davinci.machine import for_cube, for_vector
from davinci.machine.schema import Machine
from davinci.mlir import (
    Op,
    attribute_names,
    func,
    ir,
    memref,
    operations,
    root_of,
    symbol_name,
    symbols,
    unique,
)
from davinci.passes import builder
from davinci.passes.analysis.kernels import CORE
from davinci.passes.ascend_to_cce.attention.split.cube import AttentionCubeCore
from davinci.passes.ascend_to_cce.attention.split.steps import BlockSteps, ListedSteps, Rings
from davinci.passes.ascend_to_cce.attention.split.vector import AttentionVectorCore
from davinci.passes.ascend_to_cce.attention.units import Buffers
from davinci.passes.ascend_to_cce.vector.program import element_type
from davinci.passes.builder import as_attribute
from davinci.schedule.attention.attention import Attention
from davinci.schedule.attention.dealing import dealt, masks_of, table_of, tiling
from davinci.schedule.attention.members import Members
from davinci.schedule.attention.split import (
    LANES,
    QUARTERS,
    SUBS,
    SplitAttentionSchedule,
)
from davinci.units import FRACTAL_SIDE as SIDE

VECTOR_PART = "_vector"
"""End of the name of the program for vector cores."""


def ring_types(
    attention: Attention, schedule: SplitAttentionSchedule, blocks: int
) -> list[ir.Type]:
    """Types of the rings, in the order of `Rings`."""
    places, keys = [blocks, schedule.ring], schedule.tile * SIDE
    scores = [*places, QUARTERS, schedule.rows, keys, SIDE]
    columns = attention.fractals.columns + 1
    results = [*places, SUBS, LANES * schedule.rows * SIDE, columns * SIDE]
    f16, f32 = ir.F16Type.get(), ir.F32Type.get()
    kind = element_type(schedule.dtype(attention))
    return [
        ir.MemRefType.get(scores, kind),
        ir.MemRefType.get(scores, f16),
        ir.MemRefType.get(results, f32),
    ]


def build_programs(
    attention: Attention,
    schedule: SplitAttentionSchedule,
    kernel: Op,
    buffers: Callable[[Callable[[ir.Value], ir.Value]], Buffers],
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
    kinds += [array_type(array) for array in constants]
    entry = kernel.regions[0].blocks[0]
    other = beside(kernel, kinds)
    other_block = other.regions[0].blocks[0]
    for kind in kinds:
        entry.add_argument(kind, kernel.location)
    types = [argument.type for argument in entry.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    count = len(kinds)
    rings = Rings(*list(entry.arguments)[-count:])
    block = cce.get_block_idx()
    steps = steps_of(attention, schedule, blocks, block, rings)
    AttentionCubeCore(
        attention,
        schedule,
        buffers(lambda value: value),
        rings,
        steps,
        block,
        members,
        for_cube(machine),
    ).build()
    with ir.InsertionPoint(other_block):
        rings = Rings(*list(other_block.arguments)[-count:])
        block, lane = cce.get_block_idx(), cce.get_sub_block_idx()
        steps = steps_of(attention, schedule, blocks, block, rings)
        theirs = buffers(lambda value: other_block.arguments[ir.BlockArgument(value).arg_number])
        AttentionVectorCore(
            attention,
            schedule,
            theirs,
            rings,
            steps,
            block,
            lane,
            members,
            for_vector(machine),
        ).build()
        func.ReturnOp([])
    other.attributes["ascend.blocks"] = as_attribute(blocks)
    hand_rings(kernel, other, kinds, constants)


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
        found.append(masks_of(tiles, attention.band.fill, schedule.tile * SIDE, dtype))
    return found


def array_type(array: Array) -> ir.MemRefType:
    """The type of an array in GM."""
    kinds: dict[str, ir.Type] = {"int64": ir.IntegerType.get_signless(64)}
    kinds |= {"float16": ir.F16Type.get(), "float32": ir.F32Type.get()}
    return ir.MemRefType.get(array.shape, kinds[array.dtype.name])


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


def beside(kernel: Op, kinds: list[ir.Type]) -> ir.Operation:
    """An empty function for vector cores beside a kernel, with more arguments."""
    types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    with ir.InsertionPoint.after(kernel), kernel.location:
        made = func.FuncOp(symbol_name(kernel) + VECTOR_PART, ([*types, *kinds], []))
    made.add_entry_block()
    for key in ("ascend.kernel", "ascend.op", "ascend.label", "ascend.members"):
        if key in kernel.attributes:
            made.attributes[key] = kernel.attributes[key]
    made.attributes["ascend.unit"] = ir.StringAttr.get("vector")
    made.attributes[CORE] = ir.StringAttr.get("aiv")
    return made.operation


def hand_rings(kernel: Op, other: Op, kinds: list[ir.Type], constants: list[Array]) -> None:
    """Launches of a kernel become those of both programs, with memory for the rings; the last
    `kinds` are those of constants."""
    root = root_of(kernel)
    names = [global_of(root, array) for array in constants]
    name = symbol_name(kernel)
    for declared in operations(root, "func.func"):
        launch = declared.attributes.get("ascend.launch", None)
        if not isinstance(launch, ir.SymbolRefAttr | ir.FlatSymbolRefAttr):
            continue
        if ir.SymbolRefAttr(launch).value[-1] != name:
            continue
        *path, _ = ir.SymbolRefAttr(launch).value
        both = [ir.SymbolRefAttr.get([*path, symbol_name(each)]) for each in (kernel, other)]
        declared.attributes["ascend.launch"] = ir.ArrayAttr.get(both)
        old = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
        made = ir.FunctionType.get([*old.inputs, *kinds], [])
        declared.attributes["function_type"] = ir.TypeAttr.get(made)
        hand_to_calls(root, symbol_name(declared), kinds, names)


def global_of(root: Op, array: Array) -> str:
    """The name of a constant with these elements, made now."""
    name = unique("constant_of_attention", dict(symbols(root)))
    kind = array_type(array)
    with ir.InsertionPoint.at_block_begin(root.regions[0].blocks[0]), root.location:
        builder.op(
            "memref.global",
            [],
            sym_name=name,
            sym_visibility="private",
            type=ir.TypeAttr.get(kind),
            initial_value=to_attribute(array, kind.element_type, name),
            constant=ir.UnitAttr.get(),
        )
    return name


def hand_to_calls(root: Op, callee: str, kinds: list[ir.Type], constants: list[str]) -> None:
    """Calls of a declared kernel get memory for the rings as well, and the constants."""
    count = len(kinds) - len(constants)
    for call in operations(root, "func.call"):
        if ir.FlatSymbolRefAttr(call.attributes["callee"]).value != callee:
            continue
        with ir.InsertionPoint(call), call.location:
            rings = [memref.AllocOp(kind, [], []).result for kind in kinds[:count]]
            rings += [
                memref.GetGlobalOp(kind, name).result
                for kind, name in zip(kinds[count:], constants, strict=True)
            ]
            given = {name: call.attributes[name] for name in attribute_names(call)}
            ir.Operation.create(
                "func.call", operands=[*call.operands, *rings], attributes=given, results=[]
            )
        call.erase()

"""Kernels of two programs, for machines whose cube and vector cores are apart: the function of a
kernel is that of the cube cores, and another one beside it that of their vector cores."""

from __future__ import annotations

from collections.abc import Sequence

from davinci.elements import Array, to_attribute
from davinci.mlir import (
    Op,
    attribute_names,
    callee_of,
    func,
    ir,
    memref,
    operations,
    parent_of,
    root_of,
    symbol_name,
    symbols,
    unique,
)
from davinci.passes import builder
from davinci.passes.analysis.kernels import CORE

VECTOR_PART = "_vector"
"""End of the name of the program for vector cores, but for a number where another kernel has it."""


def vector_program(
    kernel: Op, kinds: Sequence[ir.Type], constants: Sequence[Array] = ()
) -> ir.Operation:
    """An empty function for the vector cores beside a kernel, which becomes the program of the cube
    cores. Both have further arguments: what cores hand to each other, for which each launch has
    memory of its own, and constants.

    Args:
        kinds: types of the former.
    """
    types: list[ir.Type] = [*kinds, *(array_type(array) for array in constants)]
    other = _beside(kernel, types)
    block = kernel.regions[0].blocks[0]
    for kind in types:
        block.add_argument(kind, kernel.location)
    taken = [argument.type for argument in block.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, []))
    _hand(kernel, [kernel, other], types, constants)
    return other


def with_constants(kernel: Op, constants: Sequence[Array]) -> list[ir.Value]:
    """Constants as further arguments of a kernel of one program."""
    types = [array_type(array) for array in constants]
    block = kernel.regions[0].blocks[0]
    found: list[ir.Value] = [block.add_argument(kind, kernel.location) for kind in types]
    taken = [argument.type for argument in block.arguments]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, []))
    _hand(kernel, [kernel], types, constants)
    return found


def _beside(kernel: Op, kinds: list[ir.Type]) -> ir.Operation:
    """An empty function for vector cores beside a kernel, with more arguments."""
    types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]
    name = unique(symbol_name(kernel) + VECTOR_PART, dict(symbols(parent_of(kernel))))
    with ir.InsertionPoint.after(kernel), kernel.location:
        made = func.FuncOp(name, ([*types, *kinds], []))
    made.add_entry_block()
    for key in ("ascend.kernel", "ascend.op", "ascend.label", "ascend.members"):
        if key in kernel.attributes:
            made.attributes[key] = kernel.attributes[key]
    made.attributes["ascend.unit"] = ir.StringAttr.get("vector")
    made.attributes[CORE] = ir.StringAttr.get("aiv")
    return made.operation


def _hand(
    kernel: Op, programs: Sequence[Op], kinds: Sequence[ir.Type], constants: Sequence[Array]
) -> None:
    """Launches of a kernel become those of its programs, with memory for what these hand to each
    other; the last `kinds` are those of constants."""
    root = root_of(kernel)
    names = [_global_of(root, array) for array in constants]
    name = symbol_name(kernel)
    for declared in operations(root, "func.func"):
        launch = declared.attributes.get("ascend.launch", None)
        if not isinstance(launch, ir.SymbolRefAttr | ir.FlatSymbolRefAttr):
            continue
        if ir.SymbolRefAttr(launch).value[-1] != name:
            continue
        *path, _ = ir.SymbolRefAttr(launch).value
        if len(programs) > 1:
            each = [ir.SymbolRefAttr.get([*path, symbol_name(program)]) for program in programs]
            declared.attributes["ascend.launch"] = ir.ArrayAttr.get(each)
        old = ir.FunctionType(ir.TypeAttr(declared.attributes["function_type"]).value)
        made = ir.FunctionType.get([*old.inputs, *kinds], [])
        declared.attributes["function_type"] = ir.TypeAttr.get(made)
        _hand_to_calls(root, symbol_name(declared), kinds, names)


def array_type(array: Array) -> ir.MemRefType:
    """The type of an array in GM."""
    kinds: dict[str, ir.Type] = {"int64": ir.IntegerType.get_signless(64)}
    kinds |= {"float16": ir.F16Type.get(), "float32": ir.F32Type.get()}
    return ir.MemRefType.get(array.shape, kinds[array.dtype.name])


def _global_of(root: Op, array: Array) -> str:
    """The name of a constant with these elements, made now."""
    name = unique("constant_of_kernel", dict(symbols(root)))
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


def _hand_to_calls(
    root: Op, callee: str, kinds: Sequence[ir.Type], constants: Sequence[str]
) -> None:
    """Calls of a declared kernel get memory for what cores hand to each other, and constants."""
    count = len(kinds) - len(constants)
    for call in operations(root, "func.call"):
        if callee_of(call) != callee:
            continue
        with ir.InsertionPoint(call), call.location:
            places = [memref.AllocOp(kind, [], []).result for kind in kinds[:count]]
            places += [
                memref.GetGlobalOp(kind, name).result
                for kind, name in zip(kinds[count:], constants, strict=True)
            ]
            given = {name: call.attributes[name] for name in attribute_names(call)}
            ir.Operation.create(
                "func.call", operands=[*call.operands, *places], attributes=given, results=[]
            )
        call.erase()

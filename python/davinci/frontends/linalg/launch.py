"""A module with a host function around a kernel of upstream dialects, for our passes.

kernel: (lock, workspace, %x: memref<?xf32>, %n: i32, %grid_x.. i32, %program_x.. i32)
module: @main(%x: memref<1000xf32>, %n: i32, %x_out: memref<1000xf32> {ascend.output,
              ascend.state = 0}) calls @kernels::@k(%x: memref<1000xf32>, %n: i32), in which
        scf.for %p = %block to %programs step %blocks { the kernel, as program %p }
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from davinci.diagnostics import first_diagnostic
from davinci.errors import InputError
from davinci.frontends.hivm import Argument, Given, HivmKernel
from davinci.frontends.hivm.kernel import READ_ONLY, WRITE_ONLY
from davinci.frontends.hivm.launch import check_grid, host_text, mark, own_arguments
from davinci.mlir import (
    MLIRError,
    Op,
    arith,
    callee_of,
    ir,
    make_context,
    operations,
    scf,
    symbol_name,
)

GRID = 3
"""Numbers of programs at the end of a kernel, and as many numbers of the running one."""

ADDED = 2
"""Arguments in front of those of the caller: locks and a workspace, which our passes do not use."""

UPSTREAM = "ascend.upstream"
"""Attribute of a kernel that `convert-linalg-to-cce` lowers."""

HINT = "compile it as the vendor's compiler makes it"

TO_TENSOR = re.compile(
    r"(bufferization\.to_tensor %\S+(?: restrict)?(?: writable)?) : "
    r"(memref<((?:\?x|\d+x)*\w+)[^\n]*?>)(?= loc|\n)"
)
"""An operation whose printed form has the type of its result in newer versions of MLIR."""


def parsed(text: str, context: ir.Context, where: str) -> ir.Module:
    """The module of a text of the adapter.

    Raises:
        InputError: it does not parse.
    """
    context.allow_unregistered_dialects = True
    made = TO_TENSOR.sub(r"\1 : \2 to tensor<\3>", text)
    try:
        return ir.Module.parse(made, context)
    except MLIRError as error:
        raise InputError(first_diagnostic(error, where)) from None


def function_of(module: ir.Module, where: str) -> ir.Operation:
    """The kernel of a module.

    Raises:
        InputError: there is none, or there are several.
    """
    found = [op for op in operations(module.operation, "func.func") if op.regions[0].blocks]
    if len(found) != 1:
        names = ", ".join(symbol_name(op) for op in found)
        raise InputError("no single kernel", where=where, found=names or "none", expected="one")
    calls = sorted({callee_of(op) for op in operations(found[0], "func.call")})
    if calls:
        raise InputError(
            "our passes do not take a kernel that calls functions",
            where=where,
            found=", ".join(calls),
            hint=HINT,
        )
    if len(found[0].regions[0].blocks) > 1:
        raise InputError(
            "our passes do not take a kernel that returns early",
            where=where,
            hint=f"put what follows into a branch, or {HINT}",
        )
    return found[0]


def parameters_of(text: str, where: str = "<text>") -> list[Argument]:
    """The arguments that callers give to a kernel."""
    module = parsed(text, make_context(), where)
    return arguments_of(function_of(module, where))


def arguments_of(function: Op) -> list[Argument]:
    """The arguments of a function that callers give, without locks, workspace and numbers of
    programs."""
    marks = function.attributes.get("arg_attrs", None)
    found: list[Argument] = []
    values = list(function.regions[0].blocks[0].arguments)
    for number, value in list(enumerate(values))[ADDED : -2 * GRID]:
        named = {} if marks is None else {mark.name: mark.attr for mark in marks[number]}
        tensor_kind = named.get("tt.tensor_kind")
        kind = None if tensor_kind is None else ir.IntegerAttr(tensor_kind).value
        buffer = isinstance(value.type, ir.MemRefType)
        element = str(ir.MemRefType(value.type).element_type if buffer else value.type)
        written, read = buffer and kind != READ_ONLY, buffer and kind != WRITE_ONLY
        found.append(Argument(f"arg{len(found)}", "", element, buffer, written, read))
    return found


def launch(
    text: str, grid: Sequence[int], arguments: Sequence[Given], blocks: int, where: str = "<text>"
) -> ir.Module:
    """The module that launches a kernel once.

    Args:
        text: of upstream dialects, as `triton-adapter-opt` prints it.
        grid: numbers of programs, one to three.
        arguments: in the order of the kernel, those that callers give.
        blocks: most cores that share the programs.

    Raises:
        InputError: the text is no kernel, or takes other arguments.
    """
    context = make_context()
    foreign = parsed(text, context, where)
    function = function_of(foreign, where)
    check_grid(grid, where)
    sizes = tuple(grid) + (1,) * (GRID - len(grid))
    programs = math.prod(sizes)
    kernel = HivmKernel(symbol_name(function), tuple(arguments_of(function)))
    own = own_arguments(kernel, arguments, where)
    kernel.functions["aiv"] = function
    host = host_text(kernel, sizes, min(blocks, programs), arguments, own)
    module: ir.Module = ir.Module.parse(host, context)
    with context, function.location:
        as_programs(function, sizes)
        take(function, arguments)
        mark(function, kernel.name, "aiv")
        del function.attributes["ascend.foreign"]
        function.attributes[UPSTREAM] = ir.UnitAttr.get()
        inner = next(view for view in module.body.operations if view.name == "builtin.module")
        inner.operation.regions[0].blocks[0].append(function)
    return module


def as_programs(function: Op, sizes: Sequence[int]) -> None:
    """Has a kernel run all of its programs, those that fall to its block one after the other.

    Args:
        sizes: numbers of programs.
    """
    (block,) = function.regions[0].blocks
    *body, _ = [view.operation for view in block.operations]
    index, word = ir.IndexType.get(), ir.IntegerType.get_signless(32)
    with ir.InsertionPoint.at_block_begin(block):
        first, step = (
            ir.Operation.create(f"cce.get_block_{name}", [index]).result for name in ("idx", "num")
        )
        loop = scf.ForOp(first, arith.ConstantOp(index, math.prod(sizes)).result, step)
    arguments = list(block.arguments)[-2 * GRID :]
    with ir.InsertionPoint(loop.body):
        rest: ir.Value = loop.induction_variable
        for place, size in enumerate(sizes):
            known = arith.ConstantOp(index, size).result
            own = rest if place == GRID - 1 else arith.RemUIOp(rest, known).result
            rest = rest if place == GRID - 1 else arith.DivUIOp(rest, known).result
            count = arith.ConstantOp(word, size).result
            arguments[place].replace_all_uses_with(count)
            number = arith.IndexCastOp(word, own).result
            arguments[GRID + place].replace_all_uses_with(number)
        for op in body:
            loop.body.append(op)
        scf.YieldOp([])


def take(function: Op, arguments: Sequence[Given]) -> None:
    """Gives a kernel the arguments of its callers alone, arrays of known sizes.

    Raises:
        InputError: it uses locks or a workspace.
    """
    (block,) = function.regions[0].blocks
    values = list(block.arguments)
    for value in (*values[:ADDED], *values[-2 * GRID :]):
        if next(iter(value.uses), None) is not None:
            raise InputError(
                "our passes do not take a kernel with locks or a workspace",
                where=symbol_name(function),
                hint=HINT,
            )
    for number in reversed([*range(ADDED), *range(len(values) - 2 * GRID, len(values))]):
        block.erase_argument(number)
    for value, given in zip(block.arguments, arguments, strict=True):
        if given.same is not None:  # one array is one argument to whoever orders its accesses
            value.replace_all_uses_with(block.arguments[given.same])
        if given.shape is not None:
            value.set_type(ir.MemRefType.get([math.prod(given.shape)], value.type.element_type))
        else:
            as_word(value, block)
    kinds = [value.type for value in block.arguments]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kinds, []))


def as_word(value: ir.Value, block: ir.Block) -> None:
    """Has a kernel take a scalar from the lowest of 64 bits, as which the host hands it over."""
    kind, word = value.type, ir.IntegerType.get_signless(64)
    if kind == word:
        return
    value.set_type(word)
    with ir.InsertionPoint.at_block_begin(block):
        narrow = ir.Operation.create(
            "arith.trunci", [ir.IntegerType.get_signless(kind.width)], [value]
        )
        made = narrow
        if isinstance(kind, ir.FloatType):
            made = ir.Operation.create("arith.bitcast", [kind], [narrow.result])
    value.replace_all_uses_except(made.result, narrow)

"""A module with a host function around a kernel: buffers of given shapes, scalars, and the launch.

kernel: (ffts, lock, workspace, %x: memref<?xf32>, %n: i32, %grid_x, %grid_y, %grid_z)
module: @main(%x: memref<1000xf32>, %n: i32, %x_out: memref<1000xf32> {ascend.output,
              ascend.state = 0}) calls it with a workspace and the numbers of programs
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from davinci.errors import InputError
from davinci.frontends.hivm import text as hivm_text
from davinci.frontends.hivm.kernel import UNITS, Argument, HivmKernel, kernels_of
from davinci.mlir import attribute_names, ir, make_context

GRID = 3
"""Scalars at the end of kernels that Triton made: how many programs there are, x, y and z."""

LOCK_BYTES = 8


@dataclass(frozen=True)
class Given:
    """An argument of a launch.

    Attributes:
        name: by which it is an input, and an output if the kernel may write to it.
        shape: of an array; None for a scalar.
        element: element type as MLIR has it, or the type of the scalar.
        same: the number of an earlier argument whose memory this one is; None if it is its own.
    """

    name: str
    shape: tuple[int, ...] | None
    element: str
    same: int | None = None


def launch(
    text: str,
    grid: Sequence[int],
    arguments: Sequence[Given],
    name: str = "",
    where: str = "<text>",
) -> ir.Module:
    """The module that launches a kernel once.

    Args:
        text: of AscendNPU-IR, in generic form, before `convert-hivm-to-std`.
        grid: numbers of programs, one to three.
        arguments: in the order of the kernel, those that callers give.
        name: of the kernel, where the text has several.

    Raises:
        InputError: there is no such kernel, or it takes other arguments.
    """
    context = make_context()
    foreign = hivm_text.parse(text, context, where)
    kernel = chosen(kernels_of(foreign), name, where)
    sizes = tuple(grid) + (1,) * (GRID - len(grid))
    blocks = math.prod(sizes)
    check_grid(grid, where)
    own = own_arguments(kernel, arguments, where)
    module = ir.Module.parse(host_text(kernel, sizes, blocks, arguments, own), context)
    with context, ir.Location.unknown():
        inner = next(
            view.operation
            for view in module.body.operations
            if view.operation.name == "builtin.module"
        )
        for core, function in kernel.functions.items():
            move(function, inner, kernel, core)
    return module


def check_grid(grid: Sequence[int], where: str) -> None:
    if not 1 <= len(grid) <= GRID or any(n < 1 for n in grid):
        raise InputError(
            "bad grid",
            where=where,
            found=str(tuple(grid)),
            expected="one to three numbers of programs, each at least 1",
        )


def chosen(kernels: Sequence[HivmKernel], name: str, where: str) -> HivmKernel:
    """The kernel of that name, or the only one."""
    named = [kernel for kernel in kernels if kernel.name == name] if name else list(kernels)
    if len(named) != 1:
        raise InputError(
            "no such kernel" if name else "several kernels",
            where=where,
            found=name,
            expected=", ".join(kernel.name for kernel in kernels),
        )
    return named[0]


def own_arguments(kernel: HivmKernel, given: Sequence[Given], where: str) -> list[Argument]:
    """The kernel's arguments that are given, without the numbers of programs behind them.

    Raises:
        InputError: there are more or fewer, or one has another type.
    """
    taken = kernel.given
    tail = taken[-GRID:]
    counted = len(tail) == GRID and all(not a.buffer and a.element == "i32" for a in tail)
    fits = [len(taken)] + ([len(taken) - GRID] if counted else [])
    if len(given) not in fits:
        raise InputError(
            f"wrong number of arguments for {kernel.name}",
            where=where,
            found=str(len(given)),
            expected=" or ".join(map(str, sorted(fits))),
        )
    for number, (argument, found) in enumerate(zip(taken, given, strict=False)):
        if argument.buffer != (found.shape is not None) or argument.element != found.element:
            raise InputError(
                f"argument {number} ({found.name}) of {kernel.name} has another type",
                where=where,
                found=described(found.shape is not None, found.element),
                expected=described(argument.buffer, argument.element),
            )
    return taken[: len(given)]


def described(buffer: bool, element: str) -> str:
    return f"an array of {element}" if buffer else f"a scalar of type {element}"


def host_text(
    kernel: HivmKernel,
    sizes: Sequence[int],
    blocks: int,
    given: Sequence[Given],
    own: Sequence[Argument],
) -> str:
    """MLIR text of the host function and of an empty module for the kernel."""
    inputs: list[str] = []
    outputs: list[str] = []
    places: list[str] = []
    numbers: dict[int, int] = {}
    written = {
        number if g.same is None else g.same
        for number, (g, a) in enumerate(zip(given, own, strict=True))
        if a.written
    }
    for number, argument in enumerate(given):
        if argument.same is not None:
            places.append(places[argument.same])
            continue
        kind = type_of(argument)
        places.append(f"%in{number}")
        numbers[number] = len(inputs)
        inputs.append(f'%in{number}: {kind} {{ascend.name = "{argument.name}"}}')
        if number in written:
            state = f"ascend.output, ascend.state = {numbers[number]} : i64"
            outputs.append(f'%out{number}: {kind} {{ascend.name = "{argument.name}", {state}}}')
    names = {id(a): place for a, place in zip(own, places, strict=True)}
    kinds = {id(a): type_of(g) for a, g in zip(own, given, strict=True)}
    body: list[str] = []
    values: list[str] = []
    types: list[str] = []
    grid = iter(sizes)
    for taken in kernel.arguments:
        place = f"%v{len(values)}"
        if id(taken) in names:
            place, kind = names[id(taken)], kinds[id(taken)]
        elif taken.role in ("workspace", "sync_block_lock"):
            size = blocks * kernel.workspace_bytes or 1
            if taken.role == "sync_block_lock":
                size = max(1, kernel.locks) * LOCK_BYTES
            kind = f"memref<{size}xi8>"
            body.append(f"{place} = memref.alloc() : {kind}")
        else:
            kind = taken.element
            value = 0 if taken.role else next(grid)
            body.append(f"{place} = arith.constant {value} : {kind}")
        values.append(place)
        types.append(kind)
    lines = "\n    ".join(body)
    parts = [f"@kernels::@{symbol(kernel, core)}" for core in kernel.functions]
    launched = parts[0] if len(parts) == 1 else f"[{', '.join(parts)}]"
    return f"""module {{
  func.func @main({", ".join(inputs + outputs)}) attributes {{ascend.entry}} {{
    {lines}
    func.call @{kernel.name}({", ".join(values)}) {{ascend.blocks = {blocks} : i64}}
        : ({", ".join(types)}) -> ()
    return
  }}
  func.func private @{kernel.name}({", ".join(types)}) attributes {{ascend.launch = {launched}}}
  module @kernels {{}}
}}"""


def symbol(kernel: HivmKernel, core: str) -> str:
    """The name of one of a kernel's programs."""
    return kernel.name if len(kernel.functions) == 1 else f"{kernel.name}_{core}"


def type_of(argument: Given) -> str:
    if argument.shape is None:
        return argument.element
    return f"memref<{''.join(f'{n}x' for n in argument.shape)}{argument.element}>"


def move(function: ir.OpView, module: ir.Operation, kernel: HivmKernel, core: str) -> None:
    """Puts a function into the module of kernels."""
    op = function.operation
    mark(op, kernel.name, core)
    op.attributes["sym_name"] = ir.StringAttr.get(symbol(kernel, core))
    module.regions[0].blocks[0].append(op)


def mark(op: ir.Operation, name: str, core: str) -> None:
    """Gives a function the attributes of a kernel, in place of those of the other compiler."""
    for found in attribute_names(op):
        if found not in ("sym_name", "function_type"):
            del op.attributes[found]
    marks: Mapping[str, ir.Attribute] = {
        "ascend.kernel": ir.UnitAttr.get(),
        "ascend.foreign": ir.UnitAttr.get(),
        "ascend.core": ir.StringAttr.get(core),
        "ascend.op": ir.StringAttr.get(name),
        "ascend.unit": ir.StringAttr.get(UNITS[core]),
    }
    for found, value in marks.items():
        op.attributes[found] = value


def marked(module: ir.Module) -> ir.Module:
    """Marks the kernels of a module of AscendNPU-IR where they are, for passes."""
    with module.context, ir.Location.unknown():
        for kernel in kernels_of(module):
            for core, function in kernel.functions.items():
                mark(function.operation, kernel.name, core)
    return module

"""Kernels that users write and that operators of their models call by name.

before, with a kernel `@swiglu(%x: memref<8xf32>, %gate: memref<8xf32>, %out: memref<8xf32>)`:
    %1 = stablehlo.custom_call @swiglu(%x, %gate) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
after:
    %1 = call @swiglu(%x, %gate) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    func.func private @swiglu(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    module @kernels { func.func @swiglu(..) attributes {ascend.kernel} { .. } }

A call on tensors of a kernel that is there already is what `ascend-outline-scalar` leaves as well,
so all later passes know it. The passes for kernels complete the text: buffers get addresses, pipes
flags.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from davinci.errors import InputError, did_you_mean
from davinci.frontends import mlir_text
from davinci.frontends.marks import check_marks
from davinci.mlir import (
    Op,
    func,
    ir,
    kernels_module,
    location_text,
    make_context,
    operations,
    symbol_name,
    unique,
)

KERNEL, OUTPUT, NAME = "ascend.kernel", "ascend.output", "ascend.name"
CUSTOM_CALL = "stablehlo.custom_call"
ANY_KERNEL = "a function with ascend.kernel, or one function on arrays in GM"
VIEWS = tuple(
    f"memref.{name}"
    for name in ("subview", "cast", "reinterpret_cast", "collapse_shape", "expand_shape", "view")
)
"""Operations whose result is bytes of their first operand."""


class HasKernel(Protocol):
    """What `davinci.kernel_from` returns."""

    own: OwnKernel


@dataclass(frozen=True)
class KernelArgument:
    """An argument of a kernel, an array in GM.

    Attributes:
        name: as `ascend.name` gives it, or `arg0`, `out0` by its place.
        type: of the array, as MLIR spells it: `memref<16x64xf32>`.
        element: MLIR's name of the element type.
        output: whether the kernel stores into it.
    """

    name: str
    type: str
    shape: tuple[int, ...]
    element: str
    output: bool


@dataclass(frozen=True)
class OwnKernel:
    """A kernel as its user gives it.

    Attributes:
        name: of the function.
        source: MLIR text, or the path of a file that holds it.
        arguments: in order.
        blocks: on how many cores it runs, `ascend.blocks` of the function, 1 without.
    """

    name: str
    source: str | Path
    arguments: tuple[KernelArgument, ...]
    blocks: int

    @property
    def inputs(self) -> list[KernelArgument]:
        return [argument for argument in self.arguments if not argument.output]

    @property
    def outputs(self) -> list[KernelArgument]:
        return [argument for argument in self.arguments if argument.output]

    @property
    def text(self) -> str:
        """The MLIR text."""
        if isinstance(self.source, Path):
            return self.source.read_text(encoding="utf-8")
        return self.source

    @property
    def where(self) -> str:
        """The place that messages name."""
        return f"{self.source}" if isinstance(self.source, Path) else f"kernel {self.name}"

    def function(self, context: ir.Context) -> tuple[ir.Module, Op]:
        """The function in a module of its own, which has to outlive it."""
        module = mlir_text.read_module(self.source, context)
        return module, dict(_functions(module))[self.name]


def read(source: str | Path, name: str = "") -> OwnKernel:
    """Reads a kernel.

    Args:
        source: MLIR text, or the path of a file.
        name: of the function; "" where there is only one.

    Raises:
        InputError: no such kernel, or one whose arguments are no arrays of known sizes in GM.
    """
    module = mlir_text.read_module(source, make_context())
    check_marks(module)
    where = str(source) if isinstance(source, Path) else "<text>"
    functions = dict(_functions(module))
    marked = {key: op for key, op in functions.items() if KERNEL in op.attributes}
    found = marked or functions
    if name:
        found = {key: op for key, op in found.items() if key == name}
    if len(found) != 1:
        raise InputError(
            "no such kernel" if not found else "there are several kernels",
            where=where,
            found=", ".join(f"@{key}" for key in (marked or functions)) or "no functions",
            expected=f"@{name}" if name else ANY_KERNEL,
            hint="" if name or not found else "say which one is meant by its name",
        )
    ((name, function),) = found.items()
    blocks = function.attributes.get("ascend.blocks")
    count = 1 if blocks is None else ir.IntegerAttr(blocks).value
    return OwnKernel(name, source, tuple(_arguments(function, where)), count)


Kind = HasKernel | OwnKernel | str | os.PathLike[str]
Given = Kind | Sequence[Kind]
"""Kernels as users give them: paths, texts, or what `davinci.kernel_from` returns."""


def read_all(given: Given) -> list[OwnKernel]:
    """Kernels that are given as paths, as texts, or as objects that have one; one or a list.

    Raises:
        InputError: one cannot be read, see `read`, or is none of these.
    """
    return [read_one(item) for item in (given if isinstance(given, (list, tuple)) else [given])]


def read_one(given: object) -> OwnKernel:
    if isinstance(given, (str, os.PathLike)):
        return read(source_of(given))
    own = getattr(given, "own", given)
    if not isinstance(own, OwnKernel):
        expected = "MLIR text, a path, or what davinci.kernel_from returns"
        raise InputError("not a kernel", found=type(given).__name__, expected=expected)
    return own


def source_of(given: str | os.PathLike[str]) -> str | Path:
    """MLIR text as it is, anything else as a path.

    Raises:
        InputError: there is no such file.
    """
    if isinstance(given, str) and ("\n" in given or "func.func" in given):
        return given
    if not Path(given).is_file():
        raise InputError("no such file", where=os.fspath(given))
    return Path(given)


def _functions(module: ir.Module) -> Iterator[tuple[str, Op]]:
    """The functions with a body that are no host's, whatever they are nested in."""
    for op in operations(module.operation, "func.func"):
        if op.regions[0].blocks and "ascend.entry" not in op.attributes:
            yield symbol_name(op), op


def _arguments(function: Op, where: str) -> Iterator[KernelArgument]:
    marks = function.attributes.get("arg_attrs")
    values = list(function.regions[0].blocks[0].arguments)
    given = [dict(_items(mark)) for mark in marks] if marks is not None else [{} for _ in values]
    stored = {n for n, mark in enumerate(given) if OUTPUT in mark} or set(_stored(function))
    if not stored:
        raise InputError(
            "the kernel stores into none of its arguments",
            where=location_text(function.location) or where,
            found=f"@{symbol_name(function)}",
            hint=f"mark those that it makes: %out: memref<..> {{{OUTPUT}}}",
        )
    counts = {True: 0, False: 0}
    for number, (value, mark) in enumerate(zip(values, given, strict=True)):
        kind, output = value.type, number in stored
        known = isinstance(kind, ir.MemRefType) and kind.has_static_shape
        if not known or kind.memory_space is not None:
            raise InputError(
                "a kernel's argument is no array of known sizes in GM",
                where=location_text(function.location) or where,
                found=f"argument {number} of @{symbol_name(function)}: {kind}",
                expected="memref<16x64xf32>, for example",
            )
        own = f"{'out' if output else 'arg'}{counts[output]}"
        counts[output] += 1
        name = ir.StringAttr(mark[NAME]).value if NAME in mark else own
        yield KernelArgument(name, str(kind), tuple(kind.shape), str(kind.element_type), output)


def _items(mark: ir.Attribute) -> Iterator[tuple[str, ir.Attribute]]:
    for named in ir.DictAttr(mark):
        yield named.name, named.attr


def _stored(function: Op) -> Iterator[int]:
    """Numbers of the arguments that operations of `cce` write, or the scalar unit stores into."""

    def visit(op: ir.Operation) -> ir.WalkResult:
        if op.name.startswith("cce.") and op.operands:
            written.append(op.operands[len(op.operands) - 1])
        elif op.name == "memref.store":
            written.append(op.operands[1])
        return ir.WalkResult.ADVANCE

    written: list[ir.Value] = []
    function.walk(visit)
    arguments = list(function.regions[0].blocks[0].arguments)
    for value in written:
        while not isinstance(value.owner, ir.Block) and value.owner.name in VIEWS:
            value = value.owner.operands[0]
        if value in arguments:
            yield arguments.index(value)


def link(module: ir.Module, kernels: Sequence[OwnKernel]) -> None:
    """Has the operators of a model that are called like kernels call them.

    Raises:
        InputError: operands or results of such an operator are others than the kernel's, a kernel
            is called by none, or two have one name.
    """
    named = by_name(kernels)
    calls = [op for op in operations(module.operation, CUSTOM_CALL) if target_of(op) in named]
    unused = named.keys() - {target_of(op) for op in calls}
    if unused:
        others = {target_of(op) for op in operations(module.operation, CUSTOM_CALL)}
        name = min(unused)
        raise InputError(
            f"no operator of the model is called like kernel {name}",
            where=named[name].where,
            found=", ".join(sorted(others)) or "no operators of the user's own",
            expected=f"stablehlo.custom_call @{name}, or a node {name} of a domain of its own",
            hint=did_you_mean(name, others) if others else "",
        )
    with module.context:
        for op in calls:
            _check(op, named[target_of(op)])
        for kernel in kernels:
            _declare(module, kernel, [op for op in calls if target_of(op) == kernel.name])


def by_name(kernels: Sequence[OwnKernel]) -> Mapping[str, OwnKernel]:
    """Kernels by their names.

    Raises:
        InputError: two have the same, or an output in front of an input, as no operator has.
    """
    found: dict[str, OwnKernel] = {}
    for kernel in kernels:
        if kernel.name in found:
            raise InputError("two kernels have one name", where=kernel.where, found=kernel.name)
        if [*kernel.inputs, *kernel.outputs] != list(kernel.arguments):
            raise InputError(
                "a kernel that a model calls has its outputs last",
                where=kernel.where,
                found=", ".join(argument.name for argument in kernel.arguments),
                expected=", ".join(a.name for a in (*kernel.inputs, *kernel.outputs)),
            )
        found[kernel.name] = kernel
    return found


def target_of(call: Op) -> str:
    return str(ir.StringAttr(call.attributes["call_target_name"]).value)


def _check(call: Op, kernel: OwnKernel) -> None:
    """Fails unless a call has the kernel's types."""
    sides = (
        ("operands", call.operands, kernel.inputs),
        ("results", call.results, kernel.outputs),
    )
    for side, values, wanted in sides:
        found = [str(value.type) for value in values]
        expected = [tensor_text(argument) for argument in wanted]
        if found != expected:
            raise InputError(
                f"the {side} of an operator are not those of its kernel {kernel.name}",
                where=location_text(call.location),
                found=", ".join(found) or "none",
                expected=", ".join(expected) or "none",
                hint=f"write the kernel for these sizes, or convert what it takes ({kernel.where})",
            )


def tensor_text(argument: KernelArgument) -> str:
    """The tensor type that a kernel's argument holds the values of."""
    return f"tensor<{'x'.join([*map(str, argument.shape), argument.element])}>"


def _declare(module: ir.Module, kernel: OwnKernel, calls: Sequence[Op]) -> None:
    """Puts a kernel into the module, and calls of it in place of custom calls."""
    taken = {symbol_name(op) for op in operations(module.operation, "func.func")}
    name = unique(kernel.name, taken)
    add(module, kernel, name)
    inputs = [value.type for value in calls[0].operands]
    results = [value.type for value in calls[0].results]
    with ir.InsertionPoint(module.body), calls[0].location:
        func.FuncOp(name, (inputs, results), visibility="private")
    for call in calls:
        with ir.InsertionPoint(call), call.location:
            callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
            made = ir.Operation.create("func.call", results, list(call.operands), callee)
        for old, new in zip(call.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        call.operation.erase()


def add(module: ir.Module, kernel: OwnKernel, name: str) -> None:
    """Puts a kernel into `@kernels` of a module, which is made if there is none."""
    given, function = kernel.function(module.context)
    device = kernels_module(module.operation)
    with module.context, ir.Location.unknown():
        copy = function.operation.clone(ir.InsertionPoint(device.regions[0].blocks[0]))
        copy.attributes["sym_name"] = ir.StringAttr.get(name)
        copy.attributes[KERNEL] = ir.UnitAttr.get()
        if "arg_attrs" in copy.attributes:
            del copy.attributes["arg_attrs"]
    del given


HOST = """
func.func @main({arguments}) attributes {{ascend.entry}} {{
  call @{name}({values}) {{ascend.blocks = {blocks} : i64}} : ({types}) -> ()
  return
}}
func.func private @{name}({types}) attributes {{ascend.launch = @kernels::@{name}}}
"""


def alone(kernel: OwnKernel, context: ir.Context) -> ir.Module:
    """A program that launches a kernel once."""
    arguments = [
        f"%{number}: {argument.type} {{{NAME} = {json.dumps(argument.name)}"
        f"{', ' + OUTPUT if argument.output else ''}}}"
        for number, argument in enumerate(kernel.arguments)
    ]
    text = HOST.format(
        name=kernel.name,
        blocks=kernel.blocks,
        arguments=", ".join(arguments),
        values=", ".join(f"%{number}" for number in range(len(arguments))),
        types=", ".join(argument.type for argument in kernel.arguments),
    )
    module: ir.Module = ir.Module.parse(text, context)
    add(module, kernel, kernel.name)
    return module

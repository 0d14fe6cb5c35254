"""Kernels of a model as text of AscendNPU-IR, the vendor's open compiler, to go on from there.

from davinci.hivm_out import as_hivm
for kernel in as_hivm("model.onnx").kernels:
    open(kernel.name + ".mlir", "w").write(kernel.text)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import frontends
from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.errors import CompileError
from davinci.frontends.hivm import written
from davinci.machine import Machine
from davinci.mlir import Op, callee_of, ir, make_context, symbol_name
from davinci.passes.analysis.kernels import kernels
from davinci.passes.ascend.ascend_unfold_windows import AscendUnfoldWindowsPass
from davinci.passes.cce.load_before_meetings import LoadBeforeMeetingsPass
from davinci.passes.cce.plan_memory import PlanMemoryPass
from davinci.passes.cce_to_hir.convert_cce_to_hir import convert
from davinci.passes.cce_to_hir.join_loads_and_products import JoinLoadsAndProductsPass
from davinci.passes.cce_to_hir.views import is_dense
from davinci.passes.pipeline import pipelines, runner
from davinci.passes.pipeline.pipeline_text import ROOT

MACHINE = "ascend910b"
STAGES = pipelines.STAGES[: pipelines.STAGES.index("cce-to-hivm")]


@dataclass(frozen=True)
class WrittenKernel:
    """A kernel as text of AscendNPU-IR.

    Attributes:
        name: of its function.
        text: generic MLIR, with addresses, flags and barriers.
        blocks: with how many it is launched.
        arguments: for each of its arguments the name of the model's input or output, "" for what
            kernels, or the cores of one, hand to each other.
        types: of the arguments, as MLIR has them.
    """

    name: str
    text: str
    blocks: int
    arguments: tuple[str, ...]
    types: tuple[str, ...]


@dataclass(frozen=True)
class WrittenModel:
    """The kernels of a model.

    Attributes:
        kernels: those that have a text, in the order of the program.
        refused: for the others, by name, what AscendNPU-IR has no operation for.
    """

    kernels: tuple[WrittenKernel, ...]
    refused: dict[str, str]


def as_hivm(model: Any, *, machine: str = MACHINE, cores: int = 0) -> WrittenModel:
    """The kernels of a model for machines with vector cores apart.

    Args:
        model: what `davinci.compile` takes.
        machine: name or path of a machine file.
        cores: most cores that a kernel may use; 0 for all.

    Raises:
        InputError: the model cannot be read.
        CompileError: it cannot be compiled.
    """
    module = lowered(model, machine, cores)
    module.context.allow_unregistered_dialects = True
    given = arguments_of_calls(module)
    texts: list[WrittenKernel] = []
    refused: dict[str, str] = {}
    for name, programs in programs_of(module).items():
        blocks = int(attribute(programs[0], "ascend.blocks", 1))
        arguments = programs[0].regions[0].blocks[0].arguments
        types = tuple(str(argument.type) for argument in arguments)
        try:
            for program in programs:
                convert(program, machine)
        except CompileError as error:
            refused[name] = error.found
            continue
        text = written(programs, name)
        texts.append(WrittenKernel(name, text, blocks, given.get(name, ()), types))
    return WrittenModel(tuple(texts), refused)


def lowered(
    model: Any, machine: str, cores: int, joined: bool = True, chained: bool = True
) -> ir.Module:
    """The model's kernels at the level of cce, with addresses and flags.

    Args:
        joined: whether products have their factors in L1, as only AscendNPU-IR has it.
        chained: whether phases may be one kernel, as `load-before-meetings` makes of them.
    """
    module: ir.Module = frontends.load(model, make_context())
    options = pipelines.Options(machine=machine, cores=cores)
    with machines.read_once({machine: with_their_instructions(machine)}):
        for stage in STAGES:
            text = stage_text(stage, options, joined, chained)
            runner.run(module.operation, text, runner.AT_THE_END)
    return module


NO_COUNTERPART = ("mad_bias",)
"""Instructions for which the text has no operation; machines without them have kernels, too: sums
to which a bias is added behind the product."""


def with_their_instructions(machine: str) -> Machine:
    """The machine of that name, without the instructions for which the text has no operation.

    Raises:
        InputError: there is none.
    """
    found = machines.load(machine)
    kept = {name: types for name, types in found.intrinsics.items() if name not in NO_COUNTERPART}
    return found.model_copy(update={"intrinsics": kept})


def programs_of(module: ir.Module) -> dict[str, list[Op]]:
    """The programs of each kernel, by its name: one, or one of cube and one of vector cores."""
    found = {symbol_name(kernel): [kernel] for kernel in kernels(module.operation)}
    for view in module.body.operations:
        launch = view.attributes.get("ascend.launch", None)
        if isinstance(launch, ir.ArrayAttr):
            names = [ir.SymbolRefAttr(part).value[-1] for part in launch]
            found[symbol_name(view.operation)] = [found.pop(name)[0] for name in names]
    return found


ADDED = {
    "ascend-to-memref": ("ascend-scale-weights", AscendUnfoldWindowsPass.NAME),
    "ascend-to-cce": ("multi-buffer", JoinLoadsAndProductsPass.NAME),
}
"""By stage a pass that is added to it in front of another one: there are no loads of windows, and
products take their factors from L1 before buffers are planned."""


PLAN = f"{PlanMemoryPass.NAME}{{"
SPARE_BYTES = 1 << 13
"""Bytes of UB that the plan of buffers leaves where it can, for what lies between the steps of an
operation that is one instruction of ours: transposes of 8 squares at a time."""


def stage_text(
    stage: str, options: pipelines.Options, joined: bool = True, chained: bool = True
) -> str:
    """A stage as text, with the pass that is added to it; see `lowered`."""
    passes = pipelines.PIPELINES[stage](options)
    if not chained:
        passes = [p for p in passes if not p.startswith(LoadBeforeMeetingsPass.NAME)]
    behind, added = ADDED.get(stage, ("", ""))
    joins = added == JoinLoadsAndProductsPass.NAME
    if added and (joined or not joins):
        at = next(i for i, name in enumerate(passes) if name.startswith(behind))
        passes.insert(at, f"{added}{{machine={options.machine}}}" if joins else added)
    if joined:
        spare = f" spare-bytes={SPARE_BYTES}}}"
        passes = [p.removesuffix("}") + spare if p.startswith(PLAN) else p for p in passes]
    return f"{ROOT}({','.join(passes)})"


def arguments_of_calls(module: ir.Module) -> dict[str, tuple[str, ...]]:
    """What kernels are called with the first time, by their names."""
    (main,) = [
        view.operation for view in module.body.operations if "ascend.entry" in view.attributes
    ]
    (block,) = main.regions[0].blocks
    marks = main.attributes["arg_attrs"]
    names: dict[ir.Value, str] = {}
    for value, mark in zip(block.arguments, marks, strict=True):
        names[value] = ir.StringAttr(mark["ascend.name"]).value if "ascend.name" in mark else ""
    found: dict[str, tuple[str, ...]] = {}
    for view in block.operations:
        op = view.operation
        if op.name in RESHAPES and names.get(op.operands[0]) and is_whole(op):
            names[op.results[0]] = names[op.operands[0]]
        if op.name == "func.call":
            called = callee_of(op)
            found.setdefault(called, tuple(names.get(value, "") for value in op.operands))
    return found


RESHAPES = ("memref.reinterpret_cast", "memref.collapse_shape", "memref.expand_shape")
"""Operations whose result may be the same array in another shape."""


def is_whole(view: Op) -> bool:
    """Whether the result of a reshaping operation is dense and as large as its operand."""
    whole, part = view.operands[0], view.results[0]
    return is_dense(part) and buffer_of(part).size == buffer_of(whole).size

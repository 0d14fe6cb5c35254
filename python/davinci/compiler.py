"""`davinci.compile`: from a model to an executable for the simulated machine."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from davinci import frontends
from davinci import machine as machines
from davinci.diagnostics import first_diagnostic
from davinci.errors import CompileError, InputError, shipped
from davinci.garbage import no_search
from davinci.mlir import MLIRError, ir, is_public, make_context, operations, symbol_name
from davinci.passes.ascend.ascend_fold_constants import lost_constants
from davinci.passes.pipeline import pipelines, runner
from davinci.passes.pipeline.base import accepted
from davinci.schedule import schedule_file

if TYPE_CHECKING:
    from davinci.runtime.executable import Executable

OPERATORS = ("stablehlo", "chlo", "ascend", "cce")
"""Dialects above the machine's instructions."""

Progress = Callable[[str], None]
"""Called with what is about to be done."""


@no_search()
def compile(  # the API's name; inside this module nothing needs the builtin
    model: Any,
    *,
    example_inputs: Any = None,
    machine: str = "ascend910",
    cores: int = 0,
    precision: str = "mixed",
    matmul_strategy: str = "os",
    tile: tuple[int, int, int] = (0, 0, 0),
    fractalize: str = "improved",
    fusion: str = "all",
    winograd: str = "cost",
    schedules: str | os.PathLike[str] | None = None,
    checks: bool = True,
    timing_only: bool = False,
    cache: str | os.PathLike[str] | None = None,
    progress: Progress = lambda text: None,
) -> Executable:
    """Compiles a model.

    Args:
        model: path of an `.onnx` or `.mlir` file, MLIR text at any level, an `onnx.ModelProto`, a
            `torch.nn.Module`, a `torch.export.ExportedProgram`, or a function of JAX.
        example_inputs: of a module or function, whose shapes and types are compiled: a tuple of
            arguments, a dictionary of keyword arguments, or the only argument.
        machine: name of a machine file of the package, or the path of another one.
        cores: most cores a kernel may use; 0 for all of the machine.
        precision: "mixed" (cube fp16 into fp32, everything else fp32), "fp16" (everything fp16,
            sums fp32) or "fp32" (nothing rounded to fp16; products of several fp16 ones).
        matmul_strategy: "os", "is" or "ws".
        tile: (m, n, k) of a matmul tile, zeros to choose.
        fractalize: "improved" or "naive".
        fusion: "all", or "none" for a kernel an operator.
        winograd: 3x3 convolutions by tiles: by "cost", "none", or all by "2x2" or "4x4".
        schedules: a file of schedules for kernels, see `Executable.schedules`; the others are
            chosen.
        checks: whether the simulator looks for races and unwritten bytes.
        timing_only: leave out data, and with it checks and outputs.
        cache: a folder that keeps what was compiled for the next time, see `compile_cache`.
        progress: called with the name of each stage.

    Raises:
        InputError: the model or a file cannot be read, or an option is wrong.
        CompileError: the model cannot be compiled.
    """
    start = time.perf_counter()
    if not isinstance(tile, (tuple, list)) or len(tile) != 3:
        raise InputError("bad value", where="tile", found=repr(tile), expected="(m, n, k)")
    given = os.fspath(schedules) if schedules is not None else ""
    options = pipelines.Options(
        machine, cores, precision, matmul_strategy, *tile, fractalize, fusion, given, winograd
    )
    description = check_options(options)
    progress("reading the model")
    module = frontends.load(model, make_context(), example_inputs)
    require_main(module, model_name(model))
    require_kernels(module, description, model_name(model))

    def build() -> Executable:
        return _build(module, options, description, checks, timing_only, progress)

    if cache is None:
        executable = build()
    else:
        from davinci.compile_cache import kept

        others = {**dataclasses.asdict(options), "checks": checks, "timing_only": timing_only}
        del others["machine"]  # what its file says counts, not what it is called
        others["schedules"] = schedule_file.text(given) if given else ""
        executable = kept(cache, module, description, others, build)
    executable.details |= {
        "model": model_name(model),
        "compile_seconds": time.perf_counter() - start,
    }
    return executable


def _build(
    module: ir.Module,
    options: pipelines.Options,
    description: machines.Machine,
    checks: bool,
    timing_only: bool,
    progress: Progress,
) -> Executable:
    """The executable of an imported model, which is lowered in place."""
    from davinci.runtime.executable import Executable

    lower(module, options, progress)
    progress("compiling kernels to native code")
    data = not timing_only
    executable = Executable(module, description, options.cores, checks, data=data)
    if options.schedules:
        require_given(executable, options.schedules)
    executable.details = {
        "precision": options.precision,
        "range_of_constants": lost_constants(module.operation),
        "timing_only": timing_only,
    }
    return executable


def require_given(executable: Executable, path: str) -> None:
    """Raises an `InputError` unless a kernel has a schedule in the file."""
    known = schedule_file.read(path).by_key()
    if not known.keys() & {kernel.key for kernel in executable.kernels.values()}:
        raise InputError(
            "no kernel of this model has a schedule in the file",
            where=path,
            found=f"schedules of {len(known)} kernels",
            expected="what --save-schedules wrote for this model, machine and number of cores",
        )


def require_main(module: ir.Module, where: str) -> None:
    """Raises an `InputError` unless `module` has a function that a run can start with."""
    functions = [op for op in module.body.operations if op.operation.name == "func.func"]
    names = [symbol_name(op) for op in functions]
    for name, op in zip(names, functions, strict=True):
        if op.regions[0].blocks and (name == "main" or "ascend.entry" in op.attributes):
            return
    public = [name for name, op in zip(names, functions, strict=True) if is_public(op)]
    if len(public) > 1 and not operations(module.operation, "memref", "cce", "hivm"):
        raise InputError(
            "the module has several functions to start with",
            where=where,
            found=", ".join(f"@{name}" for name in public),
            expected="@main, or one public function",
            hint="name the one that is meant @main, or make the others private",
        )
    raise InputError(
        "the module has no function to start with",
        where=where,
        found=", ".join(f"@{name}" for name in names) or "no functions",
        expected="@main with a body, or one public function",
        hint=f"a kernel needs a host function that calls it, see {shipped('hand_written.mlir')}",
    )


def require_kernels(module: ir.Module, description: machines.Machine, where: str) -> None:
    """Raises a `CompileError` for operators on a split machine, which no pass makes kernels for."""
    if not description.split:
        return
    found = operations(module.operation, *OPERATORS)
    if found:
        raise CompileError(
            f"the compiler makes no kernels for {description.name}, whose cube and vector cores "
            "run programs of their own",
            where=where,
            found=f"the operator {found[0].name}",
            expected="kernels written by hand in hivm instructions",
            hint=f"see {shipped('split_matmul_add.mlir')}, or compile for a coupled machine "
            "(ascend910, ascend310)",
        )


def lower(
    module: ir.Module,
    options: pipelines.Options,
    progress: Progress = lambda text: None,
    stages: Sequence[str] = pipelines.STAGES,
) -> None:
    """Runs stages on `module` in place.

    Raises:
        CompileError: a pass or a verifier rejects the program; located where MLIR knows the place.
    """
    for stage in stages:
        progress(stage)
        try:
            runner.run(module.operation, pipelines.text(stage, options), runner.AT_THE_END)
        except MLIRError as error:
            raise CompileError(first_diagnostic(error), where=f"pipeline {stage}") from None


def check_options(options: pipelines.Options) -> machines.Machine:
    """Returns the machine of `options`.

    Raises:
        InputError: a value that no pipeline accepts, no such machine, or not so many cores.
    """
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if expected := accepted(field, value):
            raise InputError(
                "bad value", where=f"option {field.name}", found=repr(value), expected=expected
            )
    machine = machines.load(options.machine)
    machines.check_cores(machine, options.cores)
    if options.schedules:
        schedule_file.read(options.schedules)
    return machine


def model_name(model: Any) -> str:
    """What a report calls the model: its path, or the name of its graph or kind."""
    if isinstance(model, (str, os.PathLike)):
        text = os.fspath(model)
        return "MLIR text" if "\n" in text else text
    if type(model).__name__ == "ModelProto":
        return str(model.graph.name)
    return str(getattr(model, "__name__", type(model).__name__))

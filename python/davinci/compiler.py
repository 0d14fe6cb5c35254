"""`davinci.compile`: from a model to an executable for the simulated machine."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from davinci import frontends, input_ranges
from davinci import machine as machines
from davinci.diagnostics import first_diagnostic
from davinci.errors import CompileError, InputError, shipped
from davinci.frontends import own_kernels
from davinci.frontends.identity import identity_of
from davinci.frontends.states import mark_states
from davinci.garbage import no_search
from davinci.mlir import MLIRError, ir, is_public, make_context, operations, symbol_name
from davinci.passes.analysis.rewrite_counts import applied
from davinci.passes.ascend.ascend_fold_constants import lost_constants
from davinci.passes.ascend.ascend_scale_values import scaling_of
from davinci.passes.cce.check_meetings import checked_lines
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
@machines.read_once()
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
    rewrites: str = "all",
    core_choice: str = "cost",
    plan: str = "time",
    memory_limit: str | int = "",
    weights: str = pipelines.RESIDENT,
    launches: str = "auto",
    state: Mapping[str, str] | None = None,
    schedules: str | os.PathLike[str] | None = None,
    ranges: input_ranges.Given = None,
    kernels: own_kernels.Given = (),
    checks: bool = True,
    check_launches: bool = False,
    timing_only: bool = False,
    cache: str | os.PathLike[str] | bool | None = None,
    progress: Progress = lambda text: None,
) -> Executable:
    """Compiles a model.

    Args:
        model: path of an `.onnx` or `.mlir` file, MLIR text at any level, an `onnx.ModelProto`, a
            network of `davinci.zoo`, a `torch.nn.Module`, a `torch.export.ExportedProgram`, or a
            function of JAX.
        example_inputs: arguments of a module or function, for whose shapes and types it is
            compiled: a tuple, a dictionary of keyword arguments, or the only argument.
        machine: name of a machine file of the package, or the path of another one.
        cores: most cores a kernel may use; 0 for all of the machine.
        precision: "mixed" (cube fp16 into fp32, everything else fp32), "fp16" (everything fp16,
            sums fp32), "scaled-fp16" (as fp16, times powers of two that keep values in its range,
            see `ranges`) or "fp32" (nothing rounded to fp16; products of several fp16 ones).
        matmul_strategy: what of a product stays on the core while the rest passes: its result
            ("os"), its left factor ("is") or its right one ("ws").
        tile: elements (m, n, k) of a tile of a product; zeros to have them chosen.
        fractalize: how rows become fractals where the vector unit does it: "improved" or "naive".
        fusion: "all" to compute several operators in a kernel where that takes no longer, "none"
            for a kernel for each operator.
        core_choice: cores of each kernel: as many, up to `cores`, as take least time with the
            launch on them counted ("cost"), or "all" of them.
        plan: which kernels share a launch, on cores of their own: as takes least "time" or "memory"
            (of the arena), "balanced" between these, none ("sequential"), or those of a layer cut
            in N groups ("groups=N").
        launches: "many" for a launch of each kernel, or of those that share one; "joined" to make
            launches that follow each other phases of one, between which all its cores meet, where
            that takes less time; "auto" for whichever of the two takes less, and "many" where
            `plan` is "sequential" or `weights` are "streamed".
        memory_limit: most bytes of the arena, in which kernels hand values to each other: a
            number, "4MB", "4MiB", or a part of what it has without a limit, "60%". Launches are
            then reordered, fewer kernels share one, and values are computed again, as far as
            needed; the record says what that costs.
        weights: "resident" in global memory, or "streamed": those that one launch reads are brought
            to the arena by the host while launches before it run, on a machine whose file has a
            `host_link`; `memory_limit` then holds for them too.
        state: names of inputs and of the outputs that are their next values, {"past": "present"}:
            such a pair is one buffer, updated in place where nothing needs the old value when the
            new one is written, and `Executable.step` keeps it from one call to the next. None:
            caches by the names that exports give them (`past_key_values.0.key` and
            `present.0.key`), buffers that a PyTorch module changes, and arguments that a function
            of JAX donates.
        winograd: 3x3 convolutions by tiles: by "cost", "none", or all by "2x2" or "4x4".
        rewrites: which rewrites of the network are made: "all", "none", or names from
            docs/rewrites.md; "all,-gelu" leaves one out.
        schedules: a file of schedules for kernels, see `Executable.schedules`; the others are
            chosen.
        ranges: of inputs, for "scaled-fp16": pairs (lowest, highest) by name, or samples that they
            are measured of, as a list of arrays by name or an `.npz` file. Integers of up to 16
            bits have that of their type. What depends on inputs without is computed as in "mixed".
        kernels: of the user's own: files, MLIR texts, or what `davinci.kernel_from` returns. An
            operator of the model that is called like a kernel is computed by it: an ONNX node of a
            domain of its own, `stablehlo.custom_call`, `jax.ffi.ffi_call`, an operator made by
            `torch.library.custom_op`.
        checks: whether the simulator looks for races and unwritten bytes.
        check_launches: prove, before anything runs, that the cores of each launch come through its
            meetings and do not race, see `check-meetings`; the record has a line for each.
        timing_only: leave out data, and with it checks and outputs.
        cache: a folder that keeps what was compiled for the next time, see `compile_cache`; True
            for the one that npu-run uses. Nothing is kept unless this is given.
        progress: called with the name of each stage.

    Raises:
        InputError: the model or a file cannot be read, or an option is wrong.
        CompileError: the model cannot be compiled, or cores of a launch wait forever or race.
    """
    start = time.perf_counter()
    if not isinstance(tile, (tuple, list)) or len(tile) != 3:
        raise InputError("bad value", where="tile", found=repr(tile), expected="(m, n, k)")
    given = os.fspath(schedules) if schedules is not None else ""
    options = pipelines.Options(
        machine,
        cores,
        precision,
        matmul_strategy,
        *tile,
        fractalize=fractalize,
        fusion=fusion,
        schedules=given,
        winograd=winograd,
        rewrites=rewrites,
        core_choice=core_choice,
        plan=plan,
        memory_limit=str(memory_limit),
        weights=weights,
        launches=launches,
        check_meetings=int(check_launches),
    )
    description = check_options(options)
    if ranges is not None:
        input_ranges.require_scaling(precision)
    declared = input_ranges.ranges_of(ranges)
    own = own_kernels.read_all(kernels)

    def imported() -> ir.Module:
        progress("reading the model")
        values = not timing_only or precision == pipelines.SCALED
        module: ir.Module = frontends.load(model, make_context(), example_inputs, values, own)
        require_main(module, model_name(model))
        mark_states(module, state, model_name(model))
        require_kernels(module, description, model_name(model))
        if declared:
            input_ranges.declare(module, declared)
        return module

    def build(module: ir.Module) -> Executable:
        return _build(module, options, description, checks, timing_only, progress)

    if state is not None and not isinstance(state, Mapping):
        expected = "a dictionary of names: {input: output}"
        raise InputError("bad value", where="state", found=repr(state), expected=expected)
    if not cache:
        executable = build(imported())
    else:
        from davinci import compile_cache

        folder = None if cache is True else cache
        others = {**dataclasses.asdict(options), "checks": checks, "timing_only": timing_only}
        others["ranges"] = declared
        others["kernels"] = [kernel.text for kernel in own]
        others["state"] = None if state is None else sorted(state.items())
        del others["machine"]  # what its file says counts, not what it is called
        others["schedules"] = schedule_file.text(given) if given else ""
        known = identity_of(model) if example_inputs is None else None
        if known is not None:
            progress("looking into the cache")
            key = compile_cache.key(known, description, others)
            executable = compile_cache.kept(folder, key, lambda: build(imported()))
        else:
            module = imported()
            known = compile_cache.identity_of_module(module)
            key = compile_cache.key(known, description, others)
            executable = compile_cache.kept(folder, key, lambda: build(module))
    if declared:
        rows = [{"name": name, **found._asdict()} for name, found in declared.items()]
        executable.details["input_ranges"] = rows
    if given:
        keys = schedule_file.read(given).by_key().keys()
        made = executable.kernels.values()
        used = keys & {key for kernel in made for key, _ in kernel.decided}
        counts = {"kernels": len(keys), "used": len(used)}
        executable.details["given_schedules"] = {"file": given, **counts}
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
    executable.details = {
        "precision": options.precision,
        "range_of_constants": lost_constants(module.operation),
        "rewrites": applied(module.operation),
        "timing_only": timing_only,
    }
    if options.check_meetings:
        executable.details["checked_launches"] = checked_lines(module.operation)
    if options.precision == pipelines.SCALED:
        executable.details["scaling"] = scaling_of(module.operation)
    return executable


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
    """Raises a `CompileError` for operators on a machine that no pass makes kernels for, see
    `davinci.machine.compiled`."""
    reason = machines.not_compilable(description)
    if reason is None:
        return
    found = operations(module.operation, *OPERATORS)
    if found:
        first = next((op for op in found if not op.name.endswith(".constant")), found[0])
        raise CompileError(
            reason.message,
            where=where,
            found=", ".join(filter(None, [reason.found, f"the operator {first.name}"])),
            expected=reason.expected,
            hint=reason.hint,
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
    if options.weights == pipelines.STREAMED:
        _check_streaming(machine, options.launches)
    if options.schedules:
        schedule_file.read(options.schedules, machine.name)
    return machine


def _check_streaming(machine: machines.Machine, launches: str) -> None:
    """Fails unless the host can bring weights in front of launches."""
    machines.check_host_link(machine)
    if launches == pipelines.JOINED:
        raise InputError(
            "weights come between launches, not between the phases of one",
            where="option weights",
            found=f"streamed, with launches={launches}",
            expected=f"launches={pipelines.MANY} or {pipelines.AUTO}",
        )


def files_named(
    machine: str = "ascend910", schedules: str | os.PathLike[str] | None = None, **others: object
) -> tuple[machines.Machine, str]:
    """What the files say now that options of `compile` name: the machine, the text of schedules.

    Raises:
        InputError: a file cannot be read.
    """
    text = schedule_file.text(os.fspath(schedules)) if schedules is not None else ""
    return machines.load(machine), text


def model_name(model: Any) -> str:
    """What a report calls the model: its path, or the name of its graph or kind."""
    if isinstance(model, (str, os.PathLike)):
        text = os.fspath(model)
        return "MLIR text" if "\n" in text else text
    if type(model).__name__ == "ModelProto":
        return str(model.graph.name)
    return str(getattr(model, "__name__", type(model).__name__))

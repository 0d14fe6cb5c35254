"""One job of npu-run: a model by name or path, compiled, run, and compared with a reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from davinci import arrays, frontends, report, zoo
from davinci.arrays import Arrays
from davinci.compiler import Progress, compile
from davinci.errors import CheckFailed, InputError
from davinci.files import temporary_folder
from davinci.frontends.onnx import read
from davinci.mlir import operations
from davinci.quantization import quantize
from davinci.reference import check, interpreter
from davinci.report.launching import LAUNCHING
from davinci.report.value_range import range_summary
from davinci.runtime import saved
from davinci.runtime.executable import Executable, TimelineChoice
from davinci.tuning import tune

ZOO = "zoo:"

TUNED = ("machine", "cores", "precision", "fusion", "winograd", "cache")
"""Options of `davinci.compile` that `davinci.tune` has too."""


@dataclass(frozen=True)
class Source:
    """A model as the user named it.

    Attributes:
        name: `zoo:mlp`, `net.onnx`, `kernel.mlir`, `net.davinci`.
        model: what `davinci.compile` or `davinci.load` takes, a path or an `onnx.ModelProto`.
        example: makes inputs that suit the model from a seed; None if any inputs do.
        details: what the record of a run says of how the model was made.
    """

    name: str
    model: Any
    example: Callable[[int], Arrays] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def saved(self) -> bool:
        """Whether it is compiled already."""
        return isinstance(self.model, str) and self.model.endswith(saved.SUFFIX)

    def proto(self) -> onnx.ModelProto | None:
        """The model as ONNX, if that is what it is."""
        if isinstance(self.model, str):
            return read(Path(self.model)) if self.model.endswith(".onnx") else None
        return self.model if isinstance(self.model, onnx.ModelProto) else None


@dataclass(frozen=True)
class Reference:
    """What outputs are compared with, and how they come from the inputs and the executable."""

    name: str
    compute: Callable[[Arrays, Any], Arrays]


@dataclass
class Result:
    """What a job leaves: the executable, outputs by name and the record of the run."""

    executable: Executable
    outputs: Arrays
    record: report.Record
    launches: list[Any]


def open_source(name: str) -> Source:
    """Finds the model: `zoo:NAME[,key=value...]`, an `.onnx`, `.mlir` or `.davinci` file.

    Raises:
        InputError: no such network or file, or a file that cannot be read.
    """
    if name.startswith(ZOO):
        network = zoo.build(name.removeprefix(ZOO))
        return Source(name, network.proto, network.inputs)
    if not Path(name).is_file():
        folder = name and Path(name).is_dir()
        raise InputError(
            "not a file" if folder else "no such file",
            where=name or "MODEL",
            found="a folder" if folder else "",
            hint="" if folder else f"networks of the zoo are called {ZOO}NAME",
        )
    return Source(name, name)


def quantized(source: Source, data: str, progress: Progress, **options: Any) -> Source:
    """The model with products of bytes.

    Args:
        data: the path of an `.npz` file, see `davinci.quantize`; `options` are its.

    Raises:
        InputError: the model is not ONNX, the data do not fit, or an option is wrong.
    """
    proto = source.proto()
    if proto is None:
        raise InputError(
            "only ONNX models are quantized",
            where="--quantize",
            found=source.name,
            expected="an .onnx file, or a network of the zoo",
        )
    made = quantize(proto, data, progress=progress, **options)
    return Source(source.name, made.model, source.example, {"quantization": made.report.record()})


def run(
    source: Source,
    *,
    inputs: Arrays | None,
    seed: int,
    reference: Reference | None,
    timeline: TimelineChoice,
    progress: Progress,
    tuning: Mapping[str, Any] | None = None,
    instruction_limit: int | None = None,
    what_if: str | None = None,
    launching: str = LAUNCHING[0],
    processes: int = 1,
    **options: Any,
) -> Result:
    """Compiles and runs; `options` are those of `davinci.compile`.

    Args:
        inputs: arrays by name; None to make them from `seed`.
        seed: of the inputs that are made, 0 or more.
        reference: what the outputs are compared with; the errors are put into the record.
        timeline: keep what traces and reports draw, see `Executable.run`.
        tuning: options of `davinci.tune`; None if nothing is tuned.
        instruction_limit: see `Executable`; None for its default.
        launching: how kernels are launched, see `Executable`.
        processes: that compute data, see `Executable`; 1 or more.
        what_if: changes whose gains are put into the record, see `davinci.report.what_if`.
    """
    if seed < 0:
        raise InputError("no such seed", where="--seed", found=str(seed), expected="0 or more")
    if processes < 1:
        where = "--processes"
        raise InputError("bad value", where=where, found=str(processes), expected="1 or more")
    if tuning is None:
        executable = make(source, progress, **options)
    else:
        executable = make_tuned(source, progress, tuning, **options)
    executable.launching, executable.processes = launching, processes
    if instruction_limit is not None:
        executable.instruction_limit = instruction_limit
    if inputs is None:
        inputs = (
            source.example(seed)
            if source.example
            else arrays.random_inputs(executable.inputs, seed)
        )
    progress("simulating")
    outputs = executable.run(inputs, timeline=timeline)
    record = executable.profile
    if what_if is not None:
        progress("timing it again")
        record["what_if"] = executable.what_if(what_if)
    if reference is not None:
        progress("computing the reference")
        try:
            errors = check.compare(outputs, reference.compute(inputs, executable))
        except CheckFailed as error:
            raise error.with_hint(range_summary(record)) from None
        record["check"] = {**errors, "reference": reference.name}
    return Result(executable, outputs, record, executable.launches)


def make(source: Source, progress: Progress, **options: Any) -> Executable:
    """Compiles the model, or loads it where it is a saved executable.

    Raises:
        InputError: options for what is compiled already.
    """
    if not source.saved:
        executable = compile(source.model, progress=progress, **options)
        executable.details |= {"model": source.name, **source.details}
        return executable
    if options:
        raise InputError(
            "a saved executable has its options from when it was compiled",
            where=source.name,
            found=", ".join(f"--{name.replace('_', '-')}" for name in options),
            hint="compile the model again with others",
        )
    progress("loading")
    return saved.load(source.model)


def make_tuned(
    source: Source, progress: Progress, tuning: Mapping[str, Any], **options: Any
) -> Executable:
    """Tunes the kernels of the model, and compiles it so.

    Raises:
        InputError: it is compiled already, or an option is wrong.
    """
    if source.saved:
        raise InputError(
            "a saved executable is compiled already",
            where=source.name,
            found="--tune",
            hint="tune the model",
        )
    known = {name: value for name, value in options.items() if name in TUNED}
    tuned = tune(source.model, progress=progress, **known, **tuning)
    with temporary_folder() as folder:
        if tuned.kernels:
            path = folder / "schedules.json"
            path.write_text(tuned.text(), encoding="utf-8")
            options["schedules"] = str(path)
        executable = make(source, progress, **options)
    executable.details["tuned"] = tuned.summary()
    return executable


def given_outputs(path: str) -> Reference:
    """The reference that is an `.npz` file of outputs by name.

    Raises:
        InputError: the file cannot be read; when it is compared, its names are not the outputs'.
    """
    expected = arrays.load_npz(path)

    def compute(inputs: Arrays, executable: Any) -> Arrays:
        if set(expected) != set(executable.output_names):
            raise InputError(
                "wrong output names",
                where=path,
                found=", ".join(sorted(expected)) or "none",
                expected=", ".join(executable.output_names),
            )
        return expected

    return Reference(path, compute)


def reference_of(source: Source) -> Reference:
    """The reference that fits the model.

    Raises:
        InputError: there is none.
    """
    if source.saved:
        raise InputError(
            "there is no reference for a saved executable",
            where="--check",
            found=source.name,
            hint="its model was not saved with it",
        )
    proto = source.proto()
    if proto is not None:
        return Reference("onnxruntime", lambda inputs, _: check.reference_onnx(proto, inputs))
    module = frontends.load(source.model)
    if not operations(module.operation, "stablehlo", "chlo"):
        raise InputError(
            "there is no reference for this model",
            where="--check",
            found=source.name,
            expected="an .onnx file, a network of the zoo, or StableHLO text",
        )

    def compute(inputs: Arrays, executable: Any) -> Arrays:
        ordered = {spec.name: inputs[spec.name] for spec in executable.inputs}
        return interpreter.reference(module, ordered, executable.output_names)

    return Reference("StableHLO's interpreter", compute)

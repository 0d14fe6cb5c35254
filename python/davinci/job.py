"""One job of npu-run: a model by name or path, compiled, run, and compared with a reference."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from davinci import arrays, frontends, input_ranges, report, zoo
from davinci.arrays import Arrays
from davinci.compiler import Progress, compile
from davinci.errors import CheckFailed, InputError
from davinci.files import temporary_folder
from davinci.frontends.onnx import read
from davinci.frontends.onnx.batch import batched as batch_of
from davinci.frontends.onnx.model import inputs_of
from davinci.mlir import operations
from davinci.reference import check, interpreter
from davinci.report.launching import LAUNCHING
from davinci.report.value_range import range_summary
from davinci.report.what_if import check as check_question
from davinci.runtime import saved
from davinci.runtime.arguments import Spec
from davinci.runtime.executable import Executable, TimelineChoice

ZOO = "zoo:"

RANDOM = "random"
"""Calibration data that are random inputs, as of a run without any: times are those of any data,
errors are not."""

RANDOM_SAMPLES = 4
"""How many random inputs calibrate."""

TUNED = (
    "machine", "cores", "precision", "fusion", "winograd", "rewrites", "plan", "ranges",
    "kernels", "cache",
)  # fmt: skip
"""Options of `davinci.compile` that `davinci.tune` has too."""


@dataclass(frozen=True)
class Source:
    """A model as the user named it.

    Attributes:
        name: `zoo:mlp`, `net.onnx`, `kernel.mlir`, `net.davinci`.
        model: what `davinci.compile` or `davinci.load` takes: a path, an `onnx.ModelProto`, or a
            network of the zoo, which is built when it is needed.
        example: makes inputs that suit the model from a seed; None if any inputs do.
        details: what the record of a run says of how the model was made.
        floats: the model before it was quantized, to be timed; None if it was, or has been.
    """

    name: str
    model: Any
    example: Callable[[int], Arrays] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    floats: onnx.ModelProto | None = None

    @property
    def saved(self) -> bool:
        """Whether it is compiled already."""
        return isinstance(self.model, str) and self.model.endswith(saved.SUFFIX)

    def proto(self) -> onnx.ModelProto | None:
        """The model as ONNX, if that is what it is."""
        if isinstance(self.model, str):
            return read(Path(self.model)) if self.model.endswith(".onnx") else None
        if isinstance(self.model, zoo.ZooModel):
            return self.model.proto
        return self.model if isinstance(self.model, onnx.ModelProto) else None


@dataclass(frozen=True)
class Reference:
    """What outputs are compared with, and how they come from the inputs and the executable.

    Attributes:
        require: raises an `InputError` where it does not fit an executable, before that runs.
    """

    name: str
    compute: Callable[[Arrays, Any], Arrays]
    require: Callable[[Executable], None] = lambda executable: None


@dataclass
class JobResult:
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
        network = zoo.find(name.removeprefix(ZOO))
        return Source(name, network, network.inputs)
    if not Path(name).is_file():
        folder = name and Path(name).is_dir()
        raise InputError(
            "not a file" if folder else "no such file",
            where=name or "MODEL",
            found="a folder" if folder else "",
            hint="" if folder else f"networks of the zoo are called {ZOO}NAME",
        )
    return Source(name, name)


def batched(source: Source, count: int) -> Source:
    """The model for `count` samples at once.

    Raises:
        InputError: a number below 1, a model that is neither ONNX nor of the zoo, or one whose
            outputs for several samples are not those of each sample.
    """
    if count < 1:
        raise InputError("bad value", where="--batch", found=str(count), expected="1 or more")
    if isinstance(source.model, zoo.ZooModel):
        spec = source.name.removeprefix(ZOO)
        network = zoo.find(re.sub(r",batch=\d+", "", spec) + f",batch={count}")
        return Source(f"{ZOO}{network.spec}", network, network.inputs)
    proto = source.proto()
    if proto is None or source.floats is not None:
        raise InputError(
            "only ONNX models are given another batch",
            where="--batch",
            found=source.name,
            expected="an .onnx file, or a network of the zoo",
        )
    made = batch_of(proto, count, source.name)
    specs = input_specs(proto)
    samples = [arrays.random_inputs(specs, seed) for seed in range(count)]
    together = {spec.name: np.concatenate([s[spec.name] for s in samples]) for spec in specs}
    hint = f"export the model with a batch of {count}"
    try:
        found = check.reference_onnx(made, together)
    except InputError as error:
        raise InputError(
            f"the model is for one sample only: {error.message}", where="--batch", hint=hint
        ) from None
    wanted = [check.reference_onnx(proto, sample) for sample in samples]
    for name, values in found.items():
        each = [output[name] for output in wanted]
        if len(each[0].shape) == 0 or each[0].shape[0] != 1:
            raise InputError("an output that has no batch", where=f"--batch: {name}", hint=hint)
        apart = np.concatenate(each)
        if values.shape != apart.shape or not np.allclose(values, apart, rtol=1e-3, atol=1e-3):
            raise InputError("samples of a batch meet", where=f"--batch: {name}", hint=hint)
    return Source(source.name, made, details=source.details)


@dataclass(frozen=True)
class InputSpec:
    """Name, shape and element type of an input of an ONNX model; open dimensions are 1."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> InputSpec:
        kind = value.type.tensor_type
        shape = tuple(dim.dim_value or 1 for dim in kind.shape.dim)
        return cls(
            value.name, shape, np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))
        )


def input_specs(proto: onnx.ModelProto) -> tuple[InputSpec, ...]:
    """The inputs of a model that are not initializers."""
    return tuple(map(InputSpec.of, inputs_of(proto)))


def random_samples(source: Source, count: int) -> list[Arrays]:
    """Inputs of a model from the seeds 0, 1, ..: those that suit a network of the zoo, for other
    models random ones."""
    if source.example is not None:
        return [source.example(seed) for seed in range(count)]
    proto = source.proto()
    specs = input_specs(proto) if proto is not None else ()
    return [arrays.random_inputs(specs, seed) for seed in range(count)]


def quantized(source: Source, data: str, progress: Progress, **options: Any) -> Source:
    """The model with products of bytes.

    Args:
        data: the path of an `.npz` file, see `davinci.quantize`, or `RANDOM` for random samples;
            `options` are its.

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
    from davinci.quantization import quantize

    samples = random_samples(source, RANDOM_SAMPLES) if data == RANDOM else data
    made = quantize(proto, samples, progress=progress, **options)
    timed = made.report.floats_time_us is not None
    details = {"quantization": {**made.report.record(), "data": data}}
    return Source(source.name, made.model, source.example, details, None if timed else proto)


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
    poison: bool = False,
    steps: int | None = None,
    **options: Any,
) -> JobResult:
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
        poison: whether bytes of the arena that no value needs are made to spoil results.
        steps: how many steps with state are run; None for one run without.
        what_if: changes whose gains are put into the record, see `davinci.report.what_if`.
    """
    require_numbers(seed, processes, instruction_limit)
    if options.get("precision") == input_ranges.SCALED and not source.saved:
        options["ranges"] = {**measured(source, inputs, seed), **options.get("ranges", {})}
    if tuning is None:
        executable = make(source, progress, **options)
    else:
        executable = make_tuned(source, progress, tuning, **options)
    executable.launching, executable.processes = launching, processes
    executable.poison = poison
    if instruction_limit is not None:
        executable.instruction_limit = instruction_limit
    if inputs is None:
        inputs = (
            source.example(seed)
            if source.example
            else arrays.random_inputs(drawn_inputs(executable, steps), seed)
        )
    if what_if is not None:
        check_question(executable.machine, what_if, executable.kernels)
    if reference is not None:
        reference.require(executable)
    progress("simulating")
    if steps is None:
        outputs = executable.run(inputs, timeline=timeline)
        record = executable.profile
    else:
        outputs, taken = run_steps(executable, inputs, steps, timeline)
        record = {**executable.profile, "steps": taken}
    if source.floats is not None:
        progress("timing the model of floats")
        plain = {key: value for key, value in options.items() if key != "schedules"}
        floats = compile(source.floats, progress=progress, **{**plain, "timing_only": True})
        floats.launching = launching
        floats.run(inputs)
        times = {"time_us": record["time_us"], "floats_time_us": floats.profile["time_us"]}
        record["quantization"] = {**record["quantization"], **times}
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
    return JobResult(executable, outputs, record, executable.launches)


def measured(source: Source, inputs: Arrays | None, seed: int) -> dict[str, Any]:
    """The ranges of the inputs of a run, as far as these are known before it is compiled."""
    if inputs is None and source.example is not None:
        inputs = source.example(seed)
    elif inputs is None and (proto := source.proto()) is not None:
        inputs = arrays.random_inputs(input_specs(proto), seed)
    return {} if inputs is None else dict(input_ranges.measured([inputs], "inputs of the run"))


def drawn_inputs(executable: Executable, steps: int | None) -> list[Spec]:
    """The inputs that are drawn: all of a run, of steps those that are no states."""
    kept = {state.input.name for state in executable.states} if steps is not None else set()
    return [spec for spec in executable.inputs if spec.name not in kept]


def state_pairs(texts: Sequence[str]) -> dict[str, str]:
    """Pairs IN=OUT as `state` of `davinci.compile`.

    Raises:
        InputError: one has another form.
    """
    for text in texts:
        if not all(text.partition("=")):
            raise InputError("bad value", where="--state", found=repr(text), expected="IN=OUT")
    return {text.partition("=")[0]: text.partition("=")[2] for text in texts}


def run_steps(
    executable: Executable, inputs: Arrays, steps: int, timeline: TimelineChoice
) -> tuple[Arrays, list[report.Record]]:
    """Runs steps with state; the outputs of the last one, and the times of all.

    Args:
        inputs: by name; those of states are what they begin with. One with one more dimension in
            front, of the number of steps, has a value for each.

    Raises:
        InputError: fewer than one step, no states, or inputs that do not fit.
    """
    if steps < 1:
        raise InputError("bad value", where="--steps", found=str(steps), expected="1 or more")
    kept = {state.input.name for state in executable.states}
    executable.reset({name: array for name, array in inputs.items() if name in kept})
    ranks = {spec.name: len(spec.shape) for spec in executable.inputs}

    def value(name: str, step: int) -> Any:
        array = inputs[name]
        each = name in ranks and array.ndim == ranks[name] + 1 and len(array) == steps
        return array[step] if each else array

    outputs: Arrays = {}
    taken: list[report.Record] = []
    for step in range(steps):
        given = {name: value(name, step) for name in inputs if name not in kept}
        outputs = executable.step(given, timeline=timeline)
        record = executable.profile
        taken.append({key: record[key] for key in ("total_cycles", "time_us")})
    return outputs, taken


def require_numbers(seed: int, processes: int, instruction_limit: int | None) -> None:
    """Raises an `InputError` for a number that no run can have."""
    if seed < 0:
        raise InputError("no such seed", where="--seed", found=str(seed), expected="0 or more")
    for name, value in (("processes", processes), ("instruction-limit", instruction_limit)):
        if value is not None and value < 1:
            raise InputError("bad value", where=f"--{name}", found=str(value), expected="1 or more")


def make(source: Source, progress: Progress, **options: Any) -> Executable:
    """Compiles the model, or loads it where it is a saved executable.

    Raises:
        InputError: options for what is compiled already.
    """
    if not source.saved:
        executable = compile(source.model, progress=progress, **options)
        executable.details |= {"model": source.name, **source.details}
        return executable
    timing_only = options.pop("timing_only", False)
    if options:
        raise InputError(
            "a saved executable has its options from when it was compiled",
            where=source.name,
            found=", ".join(f"--{name.replace('_', '-')}" for name in options),
            hint="compile the model again with others",
        )
    progress("loading")
    return saved.load(source.model, timing_only)


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
    if known.get("cache") is True:  # measurements are kept only where a folder is given
        del known["cache"]
    from davinci.tuning import tune

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

    def require(executable: Executable) -> None:
        if set(expected) != set(executable.output_names):
            raise InputError(
                "wrong output names",
                where=path,
                found=", ".join(sorted(expected)) or "none",
                expected=", ".join(executable.output_names),
            )

    return Reference(path, lambda inputs, executable: expected, require)


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

"""What the coverage scripts of ONNX share: running a model where it may die, and what became of it.

A case runs in a forked process, one at a time. Its numbers are compared by the tolerance of the
precision policy; integers and booleans must be equal.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import davinci
from davinci.errors import CheckFailed, CompileError, DavinciError, DeviceFault, InputError
from davinci.reference import check

CORES = 2
MACHINE = "ascend910"
"""Default of scripts; those that take --machine hand theirs to `compile_model`."""

PRECISION = "mixed"
TIMEOUT_SECONDS = 60
ROUNDING = 2.0**-10
"""A step of fp16, as a share of the number."""

KINDS = {
    "correct": "right numbers, no fault",
    "wrong": "wrong numbers",
    "fault": "fault of the simulated machine",
    "refused": "refused with one message",
    "input": "input error",
    "traceback": "an exception that is no message",
    "abort": "the process died",
    "timeout": f"more than {TIMEOUT_SECONDS} s",
    "range": "the run says that values left the range of f16; right with --precision fp32",
    "unstable": "the reference changes as much where numbers are rounded to fp16",
    "skipped": "no reference: strings, sequences, optional values, random, or not ONNX",
}
NEAR = ("range", "unstable")
"""Wrong numbers that are explained, told of models that generators make."""

BAD = ("wrong", "fault", "traceback", "abort", "timeout")

Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass
class Outcome:
    """What became of a case; `unit` is where most of the work ran if there are right numbers."""

    kind: str
    detail: str = ""
    unit: str = ""
    name: str = ""
    operator: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Case:
    """A model of a generator, with inputs by name."""

    name: str
    model: onnx.ModelProto
    inputs: Arrays


def load_compiler(machine: str = MACHINE) -> None:
    """Compiles and runs once, before the forks, so that they find all modules imported."""
    value = onnx.helper.make_tensor_value_info
    x, y = (value(name, onnx.TensorProto.FLOAT, [16, 16]) for name in "xy")
    nodes = [onnx.helper.make_node("MatMul", ["x", "x"], ["y"])]
    model = onnx.helper.make_model(onnx.helper.make_graph(nodes, "g", [x], [y]))
    compile_model(model, machine=machine).run({"x": np.ones((16, 16), np.float32)})


def compile_model(
    model: onnx.ModelProto, precision: str = PRECISION, machine: str = MACHINE
) -> Any:
    return davinci.compile(model, machine=machine, cores=CORES, precision=precision)


def compare_run(executable: Any, inputs: Arrays, wanted: Arrays) -> None:
    """Runs; raises `CheckFailed` for other numbers. The compiler may have left out inputs."""
    kept = set(executable.input_names)
    found = executable.run({name: array for name, array in inputs.items() if name in kept})
    check.require(check.compare(found, wanted), PRECISION)


def main_unit(executable: Any) -> str:
    """The cube if it was used, else the unit of the kernel that took longest."""
    kernels = executable.profile["kernels"]
    if any(kernel["unit"] == "cube" for kernel in kernels):
        return "cube"
    return str(kernels[0]["unit"]) if kernels else "none"


def outcome_of(work: Callable[[], str]) -> Outcome:
    """What becomes of `work`, which returns the main unit or raises."""
    try:
        return Outcome("correct", "", work())
    except CheckFailed as error:
        return Outcome("wrong", str(error))
    except DeviceFault as error:
        return Outcome("fault", str(error))
    except CompileError as error:
        return Outcome("refused", str(error))
    except DavinciError as error:
        return Outcome("input", str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        return Outcome("traceback", f"{type(error).__name__}: {error} ({place})")


def judge(case: Case) -> Outcome:
    """Compares a model with onnxruntime, in this process."""
    try:
        wanted = check.reference_onnx(case.model, case.inputs)
    except InputError as error:
        return Outcome("skipped", str(error))

    overflows = 0

    def work(precision: str = PRECISION) -> str:
        nonlocal overflows
        executable = compile_model(case.model, precision)
        try:
            compare_run(executable, case.inputs, wanted)
        finally:
            overflows = executable.profile["range"]["overflows"]
        return main_unit(executable)

    outcome = outcome_of(work)
    if outcome.kind == "wrong" and overflows and outcome_of(lambda: work("fp32")).kind == "correct":
        outcome.kind = "range"
    elif outcome.kind == "wrong" and is_unstable(case, wanted):
        outcome.kind = "unstable"
    return outcome


def is_unstable(case: Case, wanted: Arrays) -> bool:
    """Whether onnxruntime itself fails the check where numbers are a little off.

    That is, where inputs and weights are off by a step of fp16; where it does node by node,
    rounding between them, what it otherwise fuses; where the results of nodes are off by some
    roundings of their types, as those of other libraries are; or where factors of products are
    rounded to fp16, as the cube takes them.
    """
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        tensor.CopyFrom(onnx.numpy_helper.from_array(rounded(array), tensor.name))
    inputs = {name: rounded(array) for name, array in case.inputs.items()}
    others = (
        check.reference_onnx(model, inputs),
        node_by_node(case),
        check.reference_onnx(noisy(case.model, 1), case.inputs),
        check.reference_onnx(noisy(case.model, -1), case.inputs),
        check.reference_onnx(with_half_factors(case.model), case.inputs),
    )
    return any(differs(other, wanted) for other in others)


NOISE = {onnx.TensorProto.FLOAT16: 2.0**-10, onnx.TensorProto.FLOAT: 2.0**-20}
"""Of the result of a node, as a share of it: one rounding of fp16, some of fp32."""

WHOLE = frozenset({"Ceil", "Floor", "Round", "Sign"})
"""Nodes whose results are whole numbers, which every library has exactly."""


def noisy(model: onnx.ModelProto, sign: int) -> onnx.ModelProto:
    """The model with every float result of a node multiplied by almost 1."""
    made = onnx.shape_inference.infer_shapes(model)
    types = {
        value.name: value.type.tensor_type.elem_type
        for value in (*made.graph.value_info, *made.graph.output)
    }
    nodes = []
    for number, node in enumerate(made.graph.node):
        nodes.append(node)
        if node.op_type in WHOLE:
            continue
        for place, name in enumerate(node.output):
            noise = NOISE.get(types.get(name))
            if noise is None:
                continue
            factor, exact = f"{name}/factor", f"{name}/exact"
            dtype = onnx.helper.tensor_dtype_to_np_dtype(types[name])
            value = np.array(1 + (-sign if number % 2 else sign) * noise, dtype)
            made.graph.initializer.append(onnx.numpy_helper.from_array(value, factor))
            node.output[place] = exact
            nodes.append(onnx.helper.make_node("Mul", [exact, factor], [name]))
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del made.graph.node[:], made.graph.value_info[:]
    made.graph.node.extend(copies)
    return made


PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
"""Nodes whose first two inputs the cube multiplies."""


def with_half_factors(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with factors of products rounded to fp16, those that are f32."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    typed = onnx.shape_inference.infer_shapes(model).graph
    types = {x.name: x.type.tensor_type.elem_type for x in (*typed.value_info, *typed.input)}
    types |= {tensor.name: tensor.data_type for tensor in typed.initializer}
    nodes = []
    for number, node in enumerate(model.graph.node):
        found = onnx.NodeProto.FromString(node.SerializeToString())
        for place, name in enumerate(node.input[:2]):
            if node.op_type in PRODUCTS and types.get(name) == onnx.TensorProto.FLOAT:
                half, whole = f"{name}/half{number}.{place}", f"{name}/rounded{number}.{place}"
                cast = onnx.helper.make_node
                nodes.append(cast("Cast", [name], [half], to=onnx.TensorProto.FLOAT16))
                nodes.append(cast("Cast", [half], [whole], to=onnx.TensorProto.FLOAT))
                found.input[place] = whole
        nodes.append(found)
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def differs(found: Arrays, wanted: Arrays) -> bool:
    try:
        check.require(check.compare(found, wanted), PRECISION)
    except CheckFailed:
        return True
    return False


def node_by_node(case: Case) -> Arrays:
    """The outputs by onnxruntime without its optimizations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    data = case.model.SerializeToString()
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, dict(case.inputs)), strict=True))


def rounded(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats, off by a step of fp16 in alternating directions."""
    if array.dtype.kind != "f":
        return array
    signs = np.where(np.arange(array.size) % 2, ROUNDING, -ROUNDING).reshape(array.shape)
    return np.asarray(array * (1 + signs), array.dtype)


def isolated(work: Callable[[], Outcome]) -> Outcome:
    """`work` in a forked process, which may die or take too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as messages:

        def run() -> None:
            os.dup2(messages.fileno(), sys.stderr.fileno())
            sender.send(work())

        start = time.perf_counter()
        process = context.Process(target=run)
        process.start()
        sender.close()
        try:
            in_time = receiver.poll(TIMEOUT_SECONDS)
            outcome = receiver.recv() if in_time else Outcome("timeout")
        except EOFError:
            process.join()
            messages.seek(0)
            said = messages.read().decode(errors="replace").strip().splitlines()
            outcome = Outcome("abort", first_words(said) or f"exit code {process.exitcode}")
        process.kill()
        process.join()
    outcome.seconds = time.perf_counter() - start
    return outcome


def first_words(lines: list[str]) -> str:
    """The line that says why a process died."""
    said = [line for line in lines if re.search(r"assert|error|fatal|terminate", line, re.I)]
    return (said or lines or [""])[0][:300]


def totals(outcomes: Iterable[Outcome]) -> str:
    count = Counter(outcome.kind for outcome in outcomes)
    return ", ".join(f"{count[kind]} {kind}" for kind in KINDS if count[kind])


def measure(cases: Iterator[Case | Outcome], folder: Path | None) -> list[Outcome]:
    """Judges the cases, tells of those that are not right, and keeps them in `folder`.

    A generator hands on an `Outcome` where it made no model.
    """
    load_compiler()
    outcomes = []
    for case in cases:
        if isinstance(case, Outcome):
            outcomes.append(case)
            continue
        outcome = isolated(lambda case=case: judge(case))  # type: ignore[misc]
        outcome.name = case.name
        outcomes.append(outcome)
        if outcome.kind in ("correct", "skipped"):
            continue
        print(f"{outcome.kind:10}{outcome.name}: {outcome.detail[:300]}", flush=True)
        if folder is not None:
            keep(case, outcome, folder / outcome.kind)
    return outcomes


def keep(case: Case, outcome: Outcome, folder: Path) -> None:
    """Writes NAME.txt, and what `npu-run NAME.onnx --inputs NAME.npz --check` takes."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = re.sub(r"[^\w.-]", "_", case.name)
    onnx.save(case.model, folder / f"{stem}.onnx")
    np.savez(folder / f"{stem}.npz", **case.inputs)
    (folder / f"{stem}.txt").write_text(outcome.detail + "\n")


def summary(outcomes: list[Outcome]) -> str:
    """Totals, the share of models that are right, and refusals by reason, the commonest first."""
    judged = [outcome for outcome in outcomes if outcome.kind != "skipped"]
    right = sum(outcome.kind == "correct" for outcome in judged)
    lines = [f"{len(judged)} models: {totals(judged)}; {right / max(1, len(judged)):.1%} right"]
    skipped = Counter(reason(o.detail) for o in outcomes if o.kind == "skipped")
    refused = Counter(reason(o.detail) for o in outcomes if o.kind in ("refused", "input"))
    for title, counts in (("no reference", skipped), ("refused", refused)):
        lines += [f"{title}:"] if counts else []
        lines += [f"{count:6} {text}" for text, count in counts.most_common()]
    return "\n".join(lines)


def reason(detail: str) -> str:
    """A message without what differs from model to model: names, numbers, inputs, attributes."""
    line = re.sub(r"(, (inputs|attributes) |; [^;]*onnx-coverage).*", "", detail.splitlines()[0])
    return re.sub(r"'[^']*'|\"[^\"]*\"|\b\d+", "_", line)[:160]


def write_json(path: str, outcomes: list[Outcome]) -> None:
    Path(path).write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1))

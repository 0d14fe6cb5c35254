"""How much of ONNX compiles, runs and gives the right numbers: the node tests of the onnx package.

    python benchmarks/onnx_coverage.py                     # all, and writes docs/onnx-coverage.md
    python benchmarks/onnx_coverage.py --only 'softmax|conv' --json build/some.json

Each case is compiled for two cores, run on the simulated machine with its checks on, and compared
with its expected outputs, by the tolerance of the precision policy; integers and booleans must be
equal. Inputs that say shapes, axes or counts are constants, as in a network that is compiled. A
case runs in a forked process, one at a time: some models abort the importer.
"""

from __future__ import annotations

import argparse
import importlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import davinci
from davinci import check
from davinci.errors import CheckFailed, CompileError, DavinciError, DeviceFault

PAGE = Path(__file__).parent.parent / "docs" / "onnx-coverage.md"
CORES = 2
PRECISION = "mixed"
TIMEOUT_SECONDS = 20

RANDOM = re.compile(r"bernoulli|training_dropout")
"""Cases whose expected outputs are one draw of a random generator."""

KINDS = {
    "correct": "right numbers, no fault",
    "wrong": "wrong numbers",
    "fault": "fault of the simulated machine",
    "refused": "refused with one message",
    "input": "input error",
    "traceback": "an exception that is no message",
    "abort": "the process died",
    "timeout": f"more than {TIMEOUT_SECONDS} s",
    "skipped": "strings, sequences, optional values, or random",
}
BAD = ("wrong", "fault", "traceback", "abort", "timeout")
UNITS = ("cube", "vector", "scalar", "none")
"""Where most of a case's work ran; none: it is a view or was computed by the compiler."""


FIRST_PARAMETER = {
    **dict.fromkeys(("ConstantOfShape", "Range", "MelWeightMatrix", "BlackmanWindow"), 0),
    **dict.fromkeys(("HammingWindow", "HannWindow"), 0),
    **dict.fromkeys(("CenterCropPad", "CumProd", "CumSum", "DFT", "Expand", "OneHot", "Pad"), 1),
    **dict.fromkeys(("Col2Im", "Reshape", "Resize", "Slice", "Split", "Squeeze", "STFT"), 1),
    **dict.fromkeys(("Tile", "TopK", "Trilu", "Unsqueeze", "Upsample"), 1),
    **dict.fromkeys(("AffineGrid", "Compress"), 1),
    "MaxUnpool": 2,
    **{
        f"Reduce{kind}": 1
        for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum")
    },
    "ReduceSumSquare": 1,
}
"""Operators and the first of their inputs that are parameters, known when a network is compiled."""


@dataclass
class Outcome:
    """What became of a case; `unit` is one of `UNITS` where there are numbers."""

    kind: str
    detail: str = ""
    unit: str = ""
    name: str = ""
    operator: str = ""
    seconds: float = 0.0


def run_case(case: Any) -> Outcome:
    """Compiles and runs all data sets of `case` in this process."""
    graph = case.model.graph
    try:
        model = with_constants(case)
        executable = davinci.compile(model, cores=CORES, precision=PRECISION)
        kept = set(executable.input_names)
        for inputs, outputs in case.data_sets:
            pairs = zip(graph.input, inputs, strict=False)
            arrays = {v.name: as_array(value) for v, value in pairs if v.name in kept}
            found = executable.run(arrays)
            names = [value.name for value in graph.output]
            wanted = {n: as_array(value) for n, value in zip(names, outputs, strict=True)}
            check.require(check.compare(found, wanted), PRECISION)
    except CheckFailed as error:
        return Outcome("wrong", str(error), main_unit(executable))
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
    return Outcome("correct", "", main_unit(executable))


def as_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def with_constants(case: Any) -> onnx.ModelProto:
    """The model of a case with its parameters as initializers; it has one data set then."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if len(case.data_sets) != 1:
        return model
    values = dict(zip([v.name for v in model.graph.input], case.data_sets[0][0], strict=False))
    parameters = {
        name
        for node in model.graph.node
        if node.op_type in FIRST_PARAMETER
        for name in node.input[FIRST_PARAMETER[node.op_type] :]
        if name in values
    }
    for name in parameters:
        tensor = onnx.numpy_helper.from_array(as_array(values[name]), name)
        model.graph.initializer.append(tensor)
    return model


def main_unit(executable: Any) -> str:
    """The cube if it was used, else the unit of the kernel that took longest."""
    kernels = executable.profile["kernels"]
    if any(kernel["unit"] == "cube" for kernel in kernels):
        return "cube"
    return str(kernels[0]["unit"]) if kernels else "none"


def isolated(case: Any) -> Outcome:
    """`run_case` in a forked process, which may die or take too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    with tempfile.TemporaryFile() as messages:

        def work() -> None:
            os.dup2(messages.fileno(), sys.stderr.fileno())
            sender.send(run_case(case))

        start = time.perf_counter()
        process = context.Process(target=work)
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


def is_skipped(case: Any) -> bool:
    """Whether a case has values that are no arrays of numbers, or is random."""
    values = [*case.model.graph.input, *case.model.graph.output]
    numbers = all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.elem_type != onnx.TensorProto.STRING
        for value in values
    )
    return not numbers or RANDOM.search(case.name) is not None


def load_cases() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))


def operator_of(case: Any, cases: dict[str, Any]) -> str:
    """The operator a case is about; of an expanded one, that which was expanded."""
    plain = cases.get(case.name.split("_expanded")[0], case)
    operators = [node.op_type for node in plain.model.graph.node]
    others = [name for name in operators if name not in ("Constant", "Identity")]
    return (others or operators)[-1]


def measure(cases: list[Any], chosen: re.Pattern[str]) -> list[Outcome]:
    by_name = {case.name: case for case in cases}
    outcomes = []
    for case in cases:
        if not chosen.search(case.name):
            continue
        outcome = Outcome("skipped") if is_skipped(case) else isolated(case)
        outcome.name, outcome.operator = case.name, operator_of(case, by_name)
        outcomes.append(outcome)
        if outcome.kind in BAD:
            print(f"{outcome.kind:10}{outcome.name}: {outcome.detail}", flush=True)
    return outcomes


def totals(outcomes: Iterable[Outcome]) -> str:
    count = Counter(outcome.kind for outcome in outcomes)
    return ", ".join(f"{count[kind]} {kind}" for kind in KINDS if count[kind])


def by_operator(outcomes: list[Outcome]) -> dict[str, list[Outcome]]:
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.operator].append(outcome)
    return dict(sorted(groups.items()))


def page(outcomes: list[Outcome]) -> str:
    """The documentation page."""
    count = Counter(outcome.kind for outcome in outcomes)
    units = Counter(outcome.unit for outcome in outcomes if outcome.kind == "correct")
    lines = [
        "# ONNX coverage",
        "",
        "Made by `python benchmarks/onnx_coverage.py`: the node tests of onnx "
        f"{onnx.__version__}, compiled for {CORES} cores in {PRECISION} precision, simulated with "
        "all checks.",
        "",
        "| outcome | cases | meaning |",
        "|---|---|---|",
        *(f"| {kind} | {count[kind]} | {KINDS[kind]} |" for kind in KINDS),
        "",
        "Of the correct cases, most of the work was done by: "
        + ", ".join(f"{unit} {units[unit]}" for unit in UNITS)
        + " (none: a view, or computed by the compiler).",
        "",
        "## By operator",
        "",
        "| operator | correct of | units | others |",
        "|---|---|---|---|",
    ]
    for operator, group in by_operator(outcomes).items():
        good = [outcome for outcome in group if outcome.kind == "correct"]
        used = {outcome.unit for outcome in good}
        ran_on = ", ".join(unit for unit in UNITS if unit in used)
        others = totals(outcome for outcome in group if outcome.kind != "correct")
        lines.append(f"| {operator} | {len(good)} of {len(group)} | {ran_on} | {others} |")
    bad = [outcome for outcome in outcomes if outcome.kind in BAD]
    lines += ["", "## Not right and not refused", ""]
    lines += ["| case | outcome | detail |", "|---|---|---|"] if bad else ["None."]
    lines += [f"| {o.name} | {o.kind} | {escaped(o.detail)} |" for o in bad]
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:160]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", metavar="REGEX", help="cases to run; the page is not written")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    options = parser.parse_args()
    for name in ("compiler", "passes.registry", "frontends.onnx", "runtime.executable"):
        importlib.import_module(f"davinci.{name}")  # once, before the forks
    outcomes = measure(load_cases(), re.compile(options.only or ""))
    for operator, group in by_operator(outcomes).items():
        print(f"{operator:28}{totals(group)}")
    print(f"\n{len(outcomes)} cases: {totals(outcomes)}")
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(o) for o in outcomes], indent=1))
    if not options.only:
        PAGE.write_text(page(outcomes))


if __name__ == "__main__":
    main()

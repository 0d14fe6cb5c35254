"""How much of ONNX compiles, runs and gives the right numbers: the node tests of the onnx package.

    python benchmarks/coverage/onnx_coverage.py            # all, and writes docs/onnx-coverage.md
    python benchmarks/coverage/onnx_coverage.py --only 'softmax|conv' --json build/some.json
    python benchmarks/coverage/onnx_coverage.py --microsoft  # writes one section of it

Each case is compiled for two cores, run on the simulated machine with its checks on, and compared
with its expected outputs, by the tolerance of the precision policy; integers and booleans must be
equal. Inputs that say shapes, axes or counts are constants, as in a network that is compiled. A
case runs in a forked process, one at a time: some models abort the importer.
"""

from __future__ import annotations

import argparse
import re
import warnings
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state
from outcomes import (
    BAD,
    CORES,
    KINDS,
    MACHINE,
    NEAR,
    PRECISION,
    Outcome,
    compare_run,
    compile_model,
    isolated,
    load_compiler,
    main_unit,
    outcome_of,
    totals,
    write_json,
)

from davinci.frontends.onnx.operators import INPUTS, LOWERINGS, MICROSOFT, resizing

PAGE = Path(__file__).parents[2] / "docs" / "onnx-coverage.md"
RANDOM = re.compile(r"bernoulli|training_dropout")
"""Cases whose expected outputs are one draw of a random generator."""

OTHERWISE = re.compile(r"resize_downsample_scales_(linear|cubic)_align_corners")
"""Cases whose expected outputs are ONNX's reference's where onnxruntime and PyTorch give others;
the page says which."""

MICROSOFT_TITLE = "## Operators of onnxruntime"

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


def run_case(case: Any, plain: Any, machine: str) -> Outcome:
    """Compiles and runs all data sets of `case` in this process; `plain` is it unexpanded."""
    graph = case.model.graph

    def work() -> str:
        executable = compile_model(with_constants(case, parameters_of(plain)), machine=machine)
        for inputs, outputs in case.data_sets:
            pairs = zip(graph.input, inputs, strict=False)
            names = [value.name for value in graph.output]
            wanted = {n: as_array(value) for n, value in zip(names, outputs, strict=True)}
            compare_run(executable, {v.name: as_array(value) for v, value in pairs}, wanted)
        return main_unit(executable)

    return outcome_of(work)


def as_array(value: Any) -> np.ndarray[Any, Any]:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def parameters_of(plain: Any) -> set[str]:
    """Names of the inputs of a case that are parameters, and so of its expanded form."""
    return {
        name
        for node in plain.model.graph.node
        if node.op_type in FIRST_PARAMETER
        for name in node.input[FIRST_PARAMETER[node.op_type] :]
    }


def with_constants(case: Any, parameters: set[str]) -> onnx.ModelProto:
    """The model of a case with its parameters as initializers; it has one data set then."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if len(case.data_sets) != 1:
        return model
    values = dict(zip([v.name for v in model.graph.input], case.data_sets[0][0], strict=False))
    for name in parameters & values.keys():
        tensor = onnx.numpy_helper.from_array(as_array(values[name]), name)
        model.graph.initializer.append(tensor)
    return model


def is_skipped(case: Any) -> bool:
    """Whether a case has values that are no arrays of numbers, or is random."""
    values = [*case.model.graph.input, *case.model.graph.output]
    numbers = all(
        value.type.WhichOneof("value") == "tensor_type"
        and value.type.tensor_type.elem_type != onnx.TensorProto.STRING
        for value in values
    )
    return not numbers or any(words.search(case.name) for words in (RANDOM, OTHERWISE))


def load_cases() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(load_model_tests(kind="node"), key=lambda case: str(case.name))


def plain_form(case: Any, cases: dict[str, Any]) -> Any:
    """The case that an expanded one expands, or the case itself."""
    return cases.get(case.name.split("_expanded")[0], case)


def operator_of(case: Any, cases: dict[str, Any]) -> str:
    """The operator a case is about; of an expanded one, that which was expanded."""
    operators = [node.op_type for node in plain_form(case, cases).model.graph.node]
    others = [name for name in operators if name not in ("Constant", "Identity")]
    return (others or operators)[-1]


def measure(cases: list[Any], chosen: re.Pattern[str], machine: str) -> list[Outcome]:
    by_name = {case.name: case for case in cases}
    outcomes = []
    for case in cases:
        if not chosen.search(case.name):
            continue
        plain = plain_form(case, by_name)
        outcome = (
            Outcome("skipped")
            if is_skipped(case)
            else isolated(partial(run_case, case, plain, machine))
        )
        outcome.name, outcome.operator = case.name, operator_of(case, by_name)
        outcomes.append(outcome)
        if outcome.kind in BAD:
            print(f"{outcome.kind:10}{outcome.name}: {outcome.detail}", flush=True)
    return outcomes


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
        "Made by `python benchmarks/coverage/onnx_coverage.py`: the node tests of onnx "
        f"{onnx.__version__}, compiled for {CORES} cores in {PRECISION} precision, simulated with "
        "all checks.",
        "",
        "| outcome | cases | meaning |",
        "|---|---|---|",
        *(f"| {kind} | {count[kind]} | {KINDS[kind]} |" for kind in KINDS if kind not in NEAR),
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
    refused = Counter(
        (o.operator, why(o.detail)) for o in outcomes if o.kind in ("refused", "input")
    )
    lines += ["", "## Refused", "", "| operator | cases | reason |", "|---|---|---|"]
    lines += [f"| {name} | {n} | {escaped(text)} |" for (name, text), n in sorted(refused.items())]
    bad = [outcome for outcome in outcomes if outcome.kind in BAD]
    lines += ["", "## Not right and not refused", ""]
    lines += ["| case | outcome | detail |", "|---|---|---|"] if bad else ["None."]
    lines += [f"| {o.name} | {o.kind} | {escaped(o.detail)} |" for o in bad]
    lines += ["", *microsoft()]
    lines += ["", "## What Resize computes", "", *str(resizing.__doc__).rstrip().splitlines()[2:]]
    return "\n".join(lines) + "\n"


def microsoft() -> list[str]:
    """The section on the operators that onnxruntime adds to ONNX's, of which there are no node
    tests."""
    compiled = sorted(name for domain, name in LOWERINGS if domain == MICROSOFT)
    schemas = onnxruntime_pybind11_state.get_all_operator_schema()
    known = {schema.name for schema in schemas if schema.domain == MICROSOFT}
    others = sorted(known.difference(compiled))
    version = onnxruntime.__version__
    return [
        MICROSOFT_TITLE,
        "",
        f"Operators of the domain `{MICROSOFT}`, which onnxruntime's optimizer writes. "
        f"{len(known) - len(others)} of the {len(known)} that onnxruntime {version} "
        "lists compile, and those of older versions below. ONNX has no node tests of them: "
        "`test/frontends/onnx` holds them against onnxruntime, and against NumPy where onnxruntime "
        "computes them on other processors only.",
        "",
        "| operator | inputs |",
        "|---|---|",
        *(f"| {name} | {', '.join(INPUTS[MICROSOFT, name])} |" for name in compiled),
        "",
        f"The others are refused by name: {', '.join(others)}.",
    ]


def with_microsoft(text: str) -> str:
    """The page with that section made anew, the others as they are."""
    before, _, rest = text.partition(f"{MICROSOFT_TITLE}\n")
    if not rest:
        before, _, rest = text.partition("## What Resize computes\n")
        rest = f"\n## What Resize computes\n{rest}"
    following = rest[rest.index("\n## ") :]
    return before + "\n".join(microsoft()) + "\n" + following


def why(detail: str) -> str:
    """What a message refuses, and what it would have taken instead."""
    message, *parts = detail.removeprefix("<ModelProto>: ").split("; ")
    return "; ".join([message, *(part for part in parts if part.startswith("expected "))])


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")[:160]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--only", metavar="REGEX", help="cases to run; the page is not written")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    parser.add_argument(
        "--machine", default=MACHINE, help="machine file; the page is written for the default only"
    )
    parser.add_argument("--microsoft", action="store_true", help="write only the section on them")
    options = parser.parse_args()
    if options.microsoft:
        PAGE.write_text(with_microsoft(PAGE.read_text()))
        return
    load_compiler(options.machine)
    outcomes = measure(load_cases(), re.compile(options.only or ""), options.machine)
    for operator, group in by_operator(outcomes).items():
        print(f"{operator:28}{totals(group)}")
    print(f"\n{len(outcomes)} cases: {totals(outcomes)}")
    if options.json:
        write_json(options.json, outcomes)
    if not options.only and options.machine == MACHINE:
        PAGE.write_text(page(outcomes))


if __name__ == "__main__":
    main()

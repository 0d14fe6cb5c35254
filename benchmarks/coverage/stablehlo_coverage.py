"""How much of StableHLO compiles, runs and gives the right numbers: programs for each operator.

    python benchmarks/coverage/stablehlo_coverage.py      # all; writes docs/stablehlo-coverage.md
    python benchmarks/coverage/stablehlo_coverage.py --only 'sort|scatter' --json build/some.json

The operators are those that the dialect registers. Each program of `stablehlo_forms` is compiled
for two cores, run on the simulated machine with its checks on, and compared with StableHLO's
reference interpreter, or with NumPy where the interpreter lacks the operator; integers and booleans
must be equal. A program runs in a forked process, one at a time.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from pathlib import Path

from outcomes import (
    BAD,
    CORES,
    MACHINE,
    PRECISION,
    Outcome,
    compile_model,
    isolated,
    load_compiler,
    main_unit,
    outcome_of,
    totals,
    write_json,
)
from stablehlo_forms import FORMS, Form, load_forms

from davinci import frontends, mlir
from davinci.mlir import make_context
from davinci.reference import check, interpreter

PAGE = Path(__file__).parents[2] / "docs" / "stablehlo-coverage.md"
UNITS = ("cube", "vector", "scalar", "none")

OUTSIDE = {
    **dict.fromkeys(("complex", "fft"), "complex numbers"),
    **dict.fromkeys(("get_tuple_element", "tuple"), "tuples"),
    **dict.fromkeys(("async_done", "async_start"), "futures"),
    **dict.fromkeys(
        ("after_all", "create_token", "infeed", "outfeed", "recv", "send"),
        "tokens, which hold no data",
    ),
    **dict.fromkeys(
        (
            *("all_gather", "all_reduce", "all_to_all", "collective_broadcast"),
            *("collective_permute", "collective_reduce", "partition_id", "reduce_scatter"),
            "replica_id",
        ),
        "several devices",
    ),
    "set_dimension_size": "a dynamic shape",
}
"""Operators that have no form on static tensors of our types, with what they need."""


def registered() -> list[str]:
    """The operators of the dialect, without its name: those named in MLIR's own libraries."""
    context = make_context()
    folder = Path(mlir.stablehlo.__file__).parent
    names = {
        found.decode()
        for library in folder.glob("*.so*")
        for found in re.findall(rb"stablehlo\.[a-z_0-9]+", library.read_bytes())
    }
    known = (name for name in names if context.is_registered_operation(name))
    return sorted(name.removeprefix("stablehlo.") for name in known)


def judge(form: Form, element: str, machine: str = MACHINE) -> Outcome:
    """What becomes of a form on one element type, in this process."""

    def work() -> str:
        text = form.text(element)
        executable = compile_model(text, machine=machine)
        inputs = form.inputs(executable.inputs, element)
        found = executable.run(inputs)
        if form.expected is None:
            module = frontends.load(text, make_context())
            wanted = interpreter.evaluate(module, inputs, list(found))
        else:
            wanted = dict(zip(found, form.expected(*inputs.values()), strict=True))
        check.require(check.compare(found, wanted), PRECISION)
        return main_unit(executable)

    outcome = outcome_of(work)
    outcome.operator = form.operator
    outcome.name = f"{form.operator} {form.name} {element}".replace("  ", " ")
    return outcome


def programs(chosen: str = "") -> list[tuple[Form, str]]:
    """Forms and element types whose operator and name hold a match of `chosen`."""
    load_forms()
    kept = [form for form in FORMS if re.search(chosen, f"{form.operator} {form.name}")]
    return [(form, element) for form in kept for element in form.types]


def measure(chosen: str, machine: str) -> list[Outcome]:
    """Outcomes of the programs; tells of those that are not right."""
    load_compiler(machine)
    judge(*programs("abs")[0], machine)  # what one program reads and imports the forks need not
    outcomes = []
    for form, element in programs(chosen):
        outcome = isolated(lambda form=form, element=element: judge(form, element, machine))  # type: ignore[misc]
        outcome.operator = form.operator
        outcome.name = outcome.name or f"{form.operator} {form.name} {element}"
        outcomes.append(outcome)
        if outcome.kind != "correct":
            print(f"{outcome.kind:10}{outcome.name}: {outcome.detail[:300]}", flush=True)
    return outcomes


def page(outcomes: list[Outcome]) -> str:
    """The documentation page."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.operator].append(outcome)
    operators = registered()
    inside = [name for name in operators if name not in OUTSIDE]
    whole = [name for name in inside if groups[name] and all_right(groups[name])]
    lines = [
        "# StableHLO coverage",
        "",
        "Made by `python benchmarks/coverage/stablehlo_coverage.py`: small programs for the forms "
        f"of each operator on each element type, compiled for {CORES} cores in {PRECISION} "
        "precision, simulated with all checks, compared with StableHLO's reference interpreter "
        "(with NumPy where it lacks the operator).",
        "",
        f"Of {len(operators)} operators {len(inside)} have forms on static tensors of numbers or "
        f"booleans. Of those, {len(whole)} are right in all forms: "
        f"{len(whole) / len(inside):.1%}. Programs: {totals(outcomes)}.",
        "",
        "Units: the cube where it was used, else that of the kernel that took longest; none is a "
        "view, or computed by the compiler.",
        "",
        "| operator | right of | units | others |",
        "|---|---|---|---|",
    ]
    for name in operators:
        if name in OUTSIDE:
            lines.append(f"| {name} |  |  | refused: needs {OUTSIDE[name]} |")
            continue
        group = groups[name]
        right = [outcome for outcome in group if outcome.kind == "correct"]
        used = {outcome.unit for outcome in right}
        ran_on = ", ".join(unit for unit in UNITS if unit in used)
        others = "; ".join(dict.fromkeys(said(o) for o in group if o.kind != "correct"))
        lines.append(f"| {name} | {len(right)} of {len(group)} | {ran_on} | {others} |")
    return "\n".join(lines) + "\n"


def all_right(group: list[Outcome]) -> bool:
    return all(outcome.kind == "correct" for outcome in group)


def said(outcome: Outcome) -> str:
    """Kind and message of an outcome, without its place."""
    text = re.sub(r"^-:\d+:\d+: ", "", outcome.detail.splitlines()[0] if outcome.detail else "")
    shown = text.partition(";")[0] if outcome.kind == "refused" else text
    form = "" if outcome.kind == "refused" else f" {outcome.name}"
    return f"{outcome.kind}{form}: {shown}".replace("|", "\\|")[:200]


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--only", metavar="REGEX", help="programs to run; the page is not written")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    parser.add_argument(
        "--machine", default=MACHINE, help="machine file; the page is written for the default only"
    )
    options = parser.parse_args()
    outcomes = measure(options.only or "", options.machine)
    bad = sum(outcome.kind in BAD for outcome in outcomes)
    print(f"{len(outcomes)} programs: {totals(outcomes)}; {bad} of them bad")
    if options.json:
        write_json(options.json, outcomes)
    if not options.only and options.machine == MACHINE:
        PAGE.write_text(page(outcomes))


if __name__ == "__main__":
    main()

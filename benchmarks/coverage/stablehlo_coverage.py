"""How much of StableHLO compiles, runs and gives the right numbers: programs for each operator.

    python benchmarks/coverage/stablehlo_coverage.py      # all; writes docs/stablehlo-coverage.md
    python benchmarks/coverage/stablehlo_coverage.py --only 'sort|scatter' --json build/some.json

Each program is compiled for two cores, run on the simulated machine with its checks on, and
compared with StableHLO's reference interpreter, or with NumPy where the interpreter lacks the
operator; integers and booleans must be equal. The programs run in a process of their own, which is
started again when one of them ends it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from stablehlo_forms import FORMS, Form, load_forms

import davinci
from davinci import check, frontends, interpreter
from davinci.errors import CheckFailed, CompileError, DavinciError, DeviceFault
from davinci.mlir import make_context

CORES = 2
TIMEOUT_SECONDS = 60


@dataclass
class Outcome:
    """What became of a form on one element type."""

    operator: str
    form: str
    element: str
    kind: str
    detail: str = ""
    unit: str = ""
    seconds: float = 0.0


def run_form(form: Form, element: str, stage: Any) -> Outcome:
    """Compiles and runs a form in this process; tells `stage` what it does."""

    def outcome(kind: str, detail: str = "", unit: str = "") -> Outcome:
        return Outcome(form.operator, form.name, element, kind, detail, unit)

    text = form.text(element)
    try:
        stage("compile")
        executable = davinci.compile(text, cores=CORES)
        inputs = form.inputs(executable.inputs, element)
        found = executable.run(inputs)
        unit = main_unit(executable)
        stage("reference")
        if form.expected is None:
            module = frontends.load(text, make_context())
            wanted = interpreter.evaluate(module, inputs, list(found))
        else:
            wanted = dict(zip(found, form.expected(*inputs.values()), strict=True))
        check.require(check.compare(found, wanted), "mixed")
    except CheckFailed as error:
        return outcome("wrong", str(error), unit)
    except DeviceFault as error:
        return outcome("fault", str(error))
    except CompileError as error:
        return outcome("refused", str(error))
    except DavinciError as error:
        return outcome("input", str(error))
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(frame.filename).name}:{frame.lineno}"
        return outcome("traceback", f"{type(error).__name__}: {error} ({place})")
    return outcome("right", "", unit)


def main_unit(executable: Any) -> str:
    """The cube if it was used, else the unit of the kernel that took longest."""
    kernels = executable.profile["kernels"]
    if any(kernel["unit"] == "cube" for kernel in kernels):
        return "cube"
    return str(kernels[0]["unit"]) if kernels else "none"


def work(jobs: list[tuple[Form, str]], sender: Any, messages: int) -> None:
    os.dup2(messages, sys.stderr.fileno())
    for form, element in jobs:
        started = time.perf_counter()
        outcome = run_form(form, element, lambda name: sender.send(name))
        outcome.seconds = time.perf_counter() - started
        sender.send(outcome)


def measure(jobs: list[tuple[Form, str]]) -> list[Outcome]:
    """Outcomes of all jobs, in processes that may die."""
    outcomes: list[Outcome] = []
    while len(outcomes) < len(jobs):
        outcomes += survive(jobs[len(outcomes) :])
    return outcomes


def survive(jobs: list[tuple[Form, str]]) -> list[Outcome]:
    """Outcomes of the first jobs, up to the first that ends the process or takes too long."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    outcomes: list[Outcome] = []
    with tempfile.TemporaryFile() as messages:
        process = context.Process(target=work, args=(jobs, sender, messages.fileno()))
        process.start()
        sender.close()
        stage = ""
        while len(outcomes) < len(jobs):
            form, element = jobs[len(outcomes)]
            name = form.operator, form.name, element
            try:
                said = receiver.recv() if receiver.poll(TIMEOUT_SECONDS) else "timeout"
            except EOFError:
                process.join()
                messages.seek(0)
                lines = messages.read().decode(errors="replace").strip().splitlines()
                kind = "abort" if stage == "compile" else "unknown"
                detail = lines[-1] if lines else f"exit code {process.exitcode}"
                return [*outcomes, report(Outcome(*name, kind, detail[:300]))]
            if isinstance(said, Outcome):
                outcomes.append(report(said))
            elif said == "timeout":
                process.kill()
                return [*outcomes, report(Outcome(*name, "timeout", stage))]
            else:
                stage = said
        process.join()
    return outcomes


def report(outcome: Outcome) -> Outcome:
    """Prints what is not right; returns the outcome."""
    if outcome.kind != "right":
        name = f"{outcome.operator} {outcome.form} {outcome.element}"
        print(f"{outcome.kind:10}{name}: {outcome.detail[:400]}", flush=True)
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="REGEX", help="operators to run; the page is not written")
    parser.add_argument("--first", action="store_true", help="one element type a form")
    parser.add_argument("--json", metavar="F", help="write all outcomes")
    options = parser.parse_args()
    chosen = re.compile(options.only or "")
    load_forms()
    jobs = [
        (form, element)
        for form in FORMS
        if chosen.search(f"{form.operator} {form.name}")
        for element in (form.types[:1] if options.first else form.types)
    ]
    outcomes = measure(jobs)
    print(Counter(outcome.kind for outcome in outcomes))
    if options.json:
        Path(options.json).write_text(json.dumps([asdict(o) for o in outcomes], indent=1))


if __name__ == "__main__":
    main()

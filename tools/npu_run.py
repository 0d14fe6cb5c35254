"""npu-run: compiles a model, runs it on the simulated NPU, and reports what it did."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from davinci import errors
from davinci.tools.command import guarded
from davinci.tools.npu_run_options import make_parser

PASSED = (
    "machine", "cores", "precision", "fusion", "winograd", "core_choice", "plan", "launches",
    "memory_limit", "weights", "schedules",
)  # fmt: skip
"""Options that `davinci.compile` has too."""

LONGEST_KERNELS = 20
"""Kernels shown on the terminal."""


@guarded
def main(argv: list[str] | None = None) -> int:
    """The command; returns the exit code of the contract in `davinci.errors`."""
    parser = make_parser()
    options = parser.options(argv)
    if options is None:
        return errors.EXIT_OK
    if options.compare:
        if options.model is not None:
            parser.error("--compare takes two records and no MODEL")
        return compare(*options.compare)
    parser.require(options, model="MODEL")
    defaults = parser.parse_args([])
    if options.devices is not None:
        from davinci.tools import npu_place

        npu_place.require_options(options, defaults)
        return npu_place.execute(options)
    if options.place != defaults.place:
        parser.error("--place needs --devices")
    from davinci.tools import npu_triton

    if npu_triton.is_kernel(options.model):
        npu_triton.require_options(options, defaults)
        earlier = earlier_record(options)
        check_files(options)
        return npu_triton.execute(
            options,
            lambda result: write(options, result, earlier),
            lambda record: show(record, options.nodes),
        )
    for name in ("grid", "args"):
        if getattr(options, name) is not None:
            parser.error(f"--{name} is for a kernel of Triton, FILE.py:NAME")
    return execute(options)


def execute(options: Any) -> int:
    from davinci import arrays, input_ranges, job
    from davinci.compiler import check_options
    from davinci.files import write_atomically
    from davinci.passes.pipeline import pipelines
    from davinci.reference import check
    from davinci.report.what_if import check as check_question
    from davinci.simulator import processors
    from davinci.tools.progress import Progress

    earlier = earlier_record(options)
    check_files(options)
    for name in ("check", "expect", "outputs"):
        if options.timing_only and getattr(options, name):
            raise errors.InputError(
                "there are no outputs without data",
                where="--timing-only",
                found=f"--{name}",
                hint="leave one of them out",
            )
    chosen = {name: getattr(options, name) for name in PASSED}
    if options.rewrites is not None or options.no_rewrite:
        left_out = [f"-{name}" for name in options.no_rewrite or ()]
        chosen["rewrites"] = ",".join([options.rewrites or "all", *left_out])
    chosen = {name: value for name, value in chosen.items() if value is not None}
    machine = check_options(pipelines.Options(**chosen))
    if options.range is not None:
        chosen["ranges"] = input_ranges.parsed(options.range)
        input_ranges.require_scaling(chosen.get("precision", "mixed"), "--range")
    if options.kernel is not None:
        chosen["kernels"] = options.kernel
    if options.state is not None:
        chosen["state"] = job.state_pairs(options.state)
    if options.steps is not None and (options.check or options.what_if is not None):
        raise errors.InputError("only single runs are checked and asked", where="--steps")
    processes = processors() if options.processes is None else options.processes
    job.require_numbers(options.seed, processes, options.instruction_limit)
    if options.what_if is not None and not options.model.endswith(".davinci"):
        check_question(machine, options.what_if)
    inputs = arrays.load_npz(options.inputs) if options.inputs else None
    reference = job.given_outputs(options.expect) if options.expect is not None else None
    if options.cache is not None:
        chosen["cache"] = options.cache
    tuning = {name: getattr(options, name) for name in ("trials", "workers", "scheduler")}
    tuning = {name: value for name, value in tuning.items() if value is not None}
    if options.tune_worth is not None:
        if not 0 <= options.tune_worth < 100:
            raise errors.InputError(
                "bad value",
                where="--tune-worth",
                found=str(options.tune_worth),
                expected="a percentage, 0 to 100",
            )
        tuning["worth"] = options.tune_worth / 100
    if options.batch is not None and options.batch < 1:
        raise errors.InputError(
            "bad value", where="--batch", found=str(options.batch), expected="1 or more"
        )
    if options.advise_seconds is not None and not (options.advise and options.advise_seconds > 0):
        raise errors.InputError(
            "bad value" if options.advise else "without --advise nothing is tried",
            where="--advise-seconds",
            found=str(options.advise_seconds),
            expected="seconds, more than 0" if options.advise else "",
            hint="" if options.advise else "add --advise",
        )
    if tuning and not options.tune:
        name = next(iter(tuning)).replace("worth", "tune-worth")
        raise errors.InputError(
            "without --tune nothing is tried", where=f"--{name}", hint="add --tune"
        )
    quantizing = quantizing_options(options)
    if options.csv is not None:
        from davinci.report.csv_files import make_folder

        make_folder(options.csv)
    drawn = options.trace or options.report or options.csv or options.json or options.nodes
    with Progress() as progress, warnings.catch_warnings():
        # What happened to the cache stands in the table.
        warnings.filterwarnings("ignore", category=UserWarning, module="davinci")
        progress("reading the model")
        source = job.open_source(options.model)
        if options.batch is not None:
            source = job.batched(source, options.batch)
        if options.quantize is not None:
            timing = {"options": chosen, **quantizing}
            source = job.quantized(source, options.quantize, progress, **timing)
            if options.save_quantized:
                write_atomically(options.save_quantized, source.model.SerializeToString())
        if not (options.cache or options.no_cache or source.saved):
            chosen["cache"] = True  # the default folder
        reference = job.reference_of(source) if options.check else reference
        result = job.run(
            source,
            inputs=inputs,
            seed=options.seed,
            reference=reference,
            timeline=options.timeline if drawn else "none",
            progress=progress,
            tuning={**tuning, "say": say} if options.tune else None,
            instruction_limit=options.instruction_limit,
            what_if=options.what_if,
            launching=options.launch,
            processes=processes,
            steps=options.steps,
            **chosen,
            **({"timing_only": True} if options.timing_only else {}),
            **({"check_launches": True} if options.check_launches else {}),
        )
        advice = advice_on(options, source, inputs, result, chosen, progress)
        progress("writing results")
        write(options, result, earlier)
    show(result.record, options.nodes)
    if advice is not None:
        print(advice.text(console().width if sys.stdout.isatty() else None))
    if reference is not None:
        check.require(result.record["check"], result.record["precision"])
    return errors.EXIT_OK


def check_files(options: Any) -> None:
    """Fails before anything runs if a result cannot be written, or would be over an input."""
    from davinci.files import check_distinct, check_writable

    written = ("outputs", "save", "save_quantized", "save_schedules", "json", "trace", "report")
    results = [path for name in written if (path := getattr(options, name)) is not None]
    for path in results:
        check_writable(path)
    if options.csv == "":
        raise errors.InputError("no folder", where="--csv", expected="the name of one")
    check_distinct(
        results,
        filter(
            None,
            (options.model, options.inputs, options.expect, options.schedules, options.quantize),
        ),
    )


def say(text: str) -> None:
    """What is not lost when the next step begins."""
    print(f"tuning: {text}", file=sys.stderr, flush=True)


def advice_on(
    options: Any, source: Any, inputs: Any, result: Any, chosen: dict[str, Any], progress: Any
) -> Any:
    """What --advise found, put into the record too; None if it was not asked for."""
    if not options.advise:
        return None
    from davinci.advice import Bench, Measured, advise, candidates

    kept = {name: chosen[name] for name in ("cache",) if name in chosen}
    settings = {name: value for name, value in chosen.items() if name not in kept}
    settings |= {"tune": True} if options.tune else {}
    bench = Bench(
        source,
        inputs=inputs,
        seed=options.seed,
        launching=options.launch,
        options=kept,
        data=not options.timing_only,
        progress=progress,
    )
    found = advise(
        bench.time,
        candidates(bench.facts(result.record, settings)),
        Measured(result.record["time_us"]),
        command=command_of(options),
        settings=settings,
        errors=None if options.timing_only else bench.errors_of(result.outputs),
        find_errors=bench.errors,
        progress=progress,
        **({} if options.advise_seconds is None else {"seconds": options.advise_seconds}),
    )
    result.record["advice"] = found.record()
    return found


def command_of(options: Any) -> list[str]:
    """The words of a command with the model and inputs of this one; options of `davinci.compile`
    are not among them."""
    words = ["npu-run", options.model]
    for name in ("quantize", "quantize_method", "accuracy", "batch", "inputs", "cache"):
        if (value := getattr(options, name)) is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    words += ["--seed", str(options.seed)] if options.seed else []
    words += ["--launch", options.launch] if options.launch != "queued" else []
    return words + ["--timing-only"] * options.timing_only


def earlier_record(options: Any) -> dict[str, Any] | None:
    """The record of --baseline, read before anything runs."""
    if options.baseline is None:
        return None
    if options.report is None:
        raise errors.InputError(
            "without --report nothing is compared", where="--baseline", hint="add --report F.html"
        )
    from davinci.report.compare import load_record

    return load_record(options.baseline)


def quantizing_options(options: Any) -> dict[str, Any]:
    """Options of `davinci.quantize` that were given; without --quantize there may be none."""
    given = {
        "method": options.quantize_method,
        "accuracy": options.accuracy,
        "layers": options.quantize_layers,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if options.quantize is None and (given or options.save_quantized):
        found = {"method": "--quantize-method", "layers": "--quantize-layers"}
        raise errors.InputError(
            "without --quantize nothing is quantized",
            where=next((found.get(name, f"--{name}") for name in given), "--save-quantized"),
            hint="add --quantize F.npz",
        )
    return given


def write(options: Any, result: Any, earlier: dict[str, Any] | None) -> None:
    """Writes the files that were asked for."""
    from davinci import arrays
    from davinci.files import write_atomically, write_json

    chip = result.executable.machine
    if options.save:
        result.executable.save(options.save)
    if options.save_schedules:
        write_atomically(options.save_schedules, result.executable.schedules().encode())
    if options.outputs:
        arrays.save_npz(options.outputs, result.outputs)
    if options.json:
        write_json(options.json, result.record)
    if options.report:
        from davinci.report.page import as_html

        page = as_html(chip, result.record, result.launches, earlier)
        write_atomically(options.report, page.encode())
    if options.csv:
        from davinci.report.csv_files import write_csv

        write_csv(options.csv, chip, result.record, result.launches)
    if options.trace:
        from davinci.report.trace import trace_json

        text = trace_json(chip, result.launches, options.launch, result.executable.facts)
        write_atomically(options.trace, text.encode())


def compare(before: str, after: str) -> int:
    from davinci.report.compare import load_record, print_comparison

    print_comparison(load_record(before), load_record(after), console())
    return errors.EXIT_OK


def show(record: dict[str, Any], nodes: bool) -> None:
    from davinci.report.tables import print_tables

    print_tables(record, console(), LONGEST_KERNELS, nodes)


def console() -> Any:
    """The terminal, or lines wide enough for the tables."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)


if __name__ == "__main__":
    sys.exit(main())

"""npu-run: compiles a model, runs it on the simulated NPU, and reports what it did."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

from davinci import errors
from davinci.tools.command import Parser, guarded

PASSED = (
    "machine", "cores", "precision", "fusion", "winograd", "core_choice", "plan",
    "memory_limit", "schedules",
)  # fmt: skip
"""Options that `davinci.compile` has too."""

LONGEST_KERNELS = 20
"""Kernels shown on the terminal."""

EPILOG = """\
MODEL is an .onnx file, an .mlir file at any level, a .davinci file that --save wrote, or
zoo:NAME[,key=value...] with NAME one of mlp, bert, bert-tiny, bert-base, resnet18, resnet50,
resnext50, resnext101, vgg16, mobilenet-v1, mobilenet-v2, mobilenet-v3, shufflenet-v2, squeezenet,
googlenet, inception-v3, inception-v4, nasnet-mobile, nasnet-large, pnasnet-mobile, pnasnet-large,
randwire, densenet, efficientnet, xception, convnext, vit, swin, unet, deeplab-v3, yolo, gpt2,
gpt2-decode, llama, mixtral, mmoe, lstm, gru; e.g.
npu-run zoo:bert,layers=2,hidden=768,heads=12 --check

exit codes: 0 good, 1 check failed, 2 bad usage or input, 3 cannot compile, 4 device fault
"""


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-run",
        usage="npu-run MODEL [options] | npu-run --compare A.json B.json",
        description="Compiles a model and runs it on the simulated NPU.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", nargs="?", help="what to run, see below")
    add("--machine", metavar="NAME|FILE.toml", help="default: ascend910")
    add("--cores", type=int, metavar="N", help="default: all of the machine")
    add("--precision", metavar="P", help="mixed (default), fp16, scaled-fp16 or fp32")
    add(
        "--range",
        metavar="NAME=LOW:HIGH|F.npz",
        action="append",
        help="of an input, for scaled-fp16, or samples to measure; default: of this run's inputs",
    )
    add("--batch", type=int, metavar="N", help="samples at once, of a model of one sample")
    add(
        "--quantize",
        metavar="F.npz|random",
        help="to int8, calibrated with stacked inputs by name, or random ones",
    )
    add("--quantize-method", metavar="M", help="of ranges: max_min (default), outliers or kl")
    add("--quantize-layers", metavar="L", help="paying (default): those that save time; or all")
    add("--accuracy", type=float, metavar="C", help="least cosine --quantize may leave of outputs")
    add("--save-quantized", metavar="F.onnx", help="write the model that --quantize made")
    add("--fusion", metavar="F", help="all (default), or none: a kernel an operator")
    add("--core-choice", metavar="C", help="of each kernel: cost (default), or all cores")
    add(
        "--plan",
        metavar="P",
        help="which kernels share a launch: time (default), memory, balanced, sequential, groups=N",
    )
    add(
        "--memory-limit",
        metavar="BYTES",
        help="most bytes of the values that kernels hand to each other, as 4000000, 4MB, 4MiB or "
        "60%% of what they take: launches are reordered, split and repeated until they fit",
    )
    add(
        "--kernel",
        metavar="F.mlir",
        action="append",
        help="a kernel that computes the operators of the model that are called like it",
    )
    add(
        "--state",
        metavar="IN=OUT",
        action="append",
        help="an input and the output that is its next value, kept from step to step; caches are "
        "found by their names",
    )
    add(
        "--steps",
        type=int,
        metavar="N",
        help="run N steps with state; of inputs with one more dimension in front, of N, a step "
        "takes one value",
    )
    add("--winograd", metavar="W", help="3x3 convolutions by tiles: cost (default), none, 2x2, 4x4")
    add(
        "--rewrites",
        metavar="R",
        help="all (default), none, or names of rewrites, as the table of a run has them",
    )
    add("--no-rewrite", metavar="NAME", action="append", help="leave this rewrite out")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--inputs", metavar="F.npz", help="inputs by name")
    source.add_argument("--seed", type=int, default=0, metavar="N", help="random inputs (default)")
    add("--outputs", metavar="F.npz", help="write the outputs")
    add("--save", metavar="F.davinci", help="write what was compiled, to run it again as MODEL")
    schedules = parser.add_mutually_exclusive_group()
    schedules.add_argument(
        "--schedules", metavar="F.json", help="compute kernels as this file says"
    )
    schedules.add_argument(
        "--tune", action="store_true", help="simulate kernels in several ways, take the best"
    )
    add("--trials", type=int, metavar="N", help="ways of a kernel that --tune tries")
    add(
        "--tune-worth",
        type=float,
        metavar="PERCENT",
        help="of the cycles, below which --tune leaves off; default 0.5, 0: try everything",
    )
    add("--workers", type=int, metavar="N", help="processes of --tune; default: one")
    add("--scheduler", metavar="ADDRESS", help="of a Dask scheduler whose workers --tune uses")
    add("--save-schedules", metavar="F.json", help="write how kernels are computed, for the former")
    add(
        "--devices",
        metavar="DEVICES",
        help="run layers on several devices, by names or a .toml file",
    )
    add("--place", metavar="A", default="hope:lp", help="how --devices share layers: hope:lp, ...")
    cache = parser.add_mutually_exclusive_group()
    cache.add_argument(
        "--cache",
        metavar="DIR",
        help="keep what was compiled and tuned there, and take it from there; default for what was "
        "compiled: $DAVINCI_CACHE, or where the platform keeps caches",
    )
    cache.add_argument("--no-cache", action="store_true", help="compile anew, and keep nothing")
    add("--processes", type=int, metavar="N", help="that compute data; default: one a processor")
    add("--timing-only", action="store_true", help="leave out data, checks and outputs")
    add(
        "--launch",
        metavar="HOW",
        choices=["queued", "host"],
        default="queued",
        help="for times: all kernels queued on the device (default), or each by the host",
    )
    add(
        "--what-if",
        metavar="CHANGES",
        help="what a faster machine would gain: mte2.port=2x,flag_cycles=0,v=2x,kernel=NAME:v=2x; "
        "all: a ranking",
    )
    add("--nodes", action="store_true", help="print what each node takes inside a fused kernel")
    add(
        "--advise",
        action="store_true",
        help="measure what other arguments would gain, one by one and together",
    )
    add("--advise-seconds", type=float, metavar="S", help="begin nothing more after; default: 120")
    add("--instruction-limit", metavar="N", type=int, help="most instructions of a block")
    compared = parser.add_mutually_exclusive_group()
    compared.add_argument(
        "--check", action="store_true", help="compare with onnxruntime or StableHLO's interpreter"
    )
    compared.add_argument("--expect", metavar="F.npz", help="compare with these outputs, by name")
    add("--json", metavar="F", help="write the record of the run")
    add("--trace", metavar="F", help="write a timeline for Perfetto or chrome://tracing")
    add("--report", metavar="F.html", help="write tables, plots and timelines as a page")
    add("--baseline", metavar="A.json", help="an earlier record that --report compares with")
    add(
        "--timeline",
        default="first",
        metavar="WHICH",
        choices=["first", "all"],
        help="draw block 0 of each kernel's first launch (default), or all launches and blocks",
    )
    add("--csv", metavar="DIR", help="write CSV files named as the vendor's profiler names them")
    add("--compare", nargs=2, metavar=("A.json", "B.json"), help="compare two runs, without MODEL")
    parser.add_help_and_version()
    return parser


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
    return execute(options)


def execute(options: Any) -> int:
    from davinci import arrays, input_ranges, job
    from davinci.compiler import check_options
    from davinci.files import check_distinct, check_writable, write_atomically
    from davinci.passes.pipeline import pipelines
    from davinci.reference import check
    from davinci.report.what_if import check as check_question
    from davinci.simulator import processors
    from davinci.tools.progress import Progress

    earlier = earlier_record(options)
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

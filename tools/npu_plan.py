"""npu-plan: places buffers with known lifetimes in one memory, and compares the algorithms."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from davinci import errors
from davinci.tools.command import Parser, guarded

if TYPE_CHECKING:
    from davinci.arena_problem import PlannedArena
    from davinci.planning import Plan, Problem

EPILOG = """\
FILE.csv has the columns id, lower, upper, size: a buffer of `size` bytes is needed from time
`lower` up to, but not including, time `upper` (the form of MiniMalloc's benchmarks).

MODEL is what npu-run takes, but for .davinci files. It is compiled until its arena is planned, and
nothing is run; the buffers are the values that kernels hand to each other, times are launches.

exit codes: 0 good, 1 no plan within --capacity was found, 2 bad usage or input
"""

SECONDS = 20.0


def make_parser() -> Parser:
    parser = Parser(
        prog="npu-plan",
        usage="npu-plan FILE.csv|MODEL [options]",
        description="Gives buffers with known lifetimes offsets in one memory.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("file", metavar="FILE.csv|MODEL", nargs="?", help="the problem, see below")
    add("--capacity", type=int, metavar="N", help="bytes of the memory; a plan that fits is enough")
    add(
        "--align",
        type=int,
        metavar="N",
        help="offsets are multiples of N; default: 1, of a MODEL the lines of its machine's memory",
    )
    add("--machine", metavar="NAME|FILE.toml", help="for a MODEL; default: ascend910")
    add("--cores", type=int, metavar="N", help="for a MODEL; default: all of the machine")
    add("--precision", metavar="P", help="for a MODEL: mixed (default), fp16, scaled-fp16 or fp32")
    add("--quick", action="store_true", help="leave out the search, as where compiling is urgent")
    add("--seconds", type=float, metavar="S", help=f"for the search; default: {SECONDS:.0f}")
    add("--json", metavar="F", help="write the plan: height, lower_bound, seconds, offsets, ...")
    parser.add_help_and_version()
    return parser


@guarded
def main(argv: list[str] | None = None) -> int:
    """The command; returns the exit code of the contract in `davinci.errors`."""
    parser = make_parser()
    options = parser.options(argv)
    if options is None:
        return errors.EXIT_OK
    parser.require(options, file="FILE.csv or MODEL")
    return execute(options)


def execute(options: Any) -> int:
    from davinci.files import check_distinct, check_writable, write_json
    from davinci.planning import QUICK, Budget, algorithms_for, run, solve

    require_positive(options)
    if options.json is not None:
        check_writable(options.json)
        check_distinct([options.json], [options.file])
    problem, arena = problem_of(options)
    every = 1 << 60  # states: only time bounds the search
    seconds = SECONDS if options.seconds is None else options.seconds
    budget = QUICK if options.quick else Budget(every, seconds)
    best = solve(problem, budget, options.capacity)
    others = [run(name, problem) for name in algorithms_for(problem)]
    if options.json is not None:
        record = record_of(best, options.capacity)
        write_json(options.json, record)
    show(best, others, options.capacity, arena)
    if options.capacity is not None and best.height > options.capacity:
        return errors.EXIT_CHECK_FAILED
    return errors.EXIT_OK


def problem_of(options: Any) -> tuple[Problem, PlannedArena | None]:
    """The problem that was named; of a model also its arena as it is compiled."""
    from davinci.planning import Problem, files

    given = {name: getattr(options, name) for name in ("machine", "cores", "precision")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.file.endswith(".csv"):
        if given:
            name = next(iter(given))
            raise errors.InputError(
                "a file of buffers is for no machine", where=f"--{name}", hint=f"leave out --{name}"
            )
        return Problem(files.load(options.file).buffers, options.align or 1), None
    from davinci import job
    from davinci.arena_problem import arena_problem
    from davinci.passes.pipeline import pipelines
    from davinci.tools.progress import Progress

    source = job.open_source(options.file)
    if source.saved:
        raise errors.InputError(
            "its arena is planned already",
            where=options.file,
            expected="the model that it was compiled from",
        )
    with Progress() as progress:
        arena = arena_problem(source.model, pipelines.Options(**given), progress)
    problem = arena.problem
    return Problem(problem.buffers, options.align or problem.align), arena


def require_positive(options: Any) -> None:
    """Raises an `InputError` for numbers that make no sense."""
    if options.quick and options.seconds is not None:
        message = "without a search there is no time for it"
        raise errors.InputError(message, where="--seconds", hint="leave out --quick or --seconds")
    for name in ("capacity", "align", "seconds"):
        value = getattr(options, name)
        if value is not None and value <= 0:
            raise errors.InputError(
                "bad value", where=f"--{name}", found=f"{value:g}", expected="more than 0"
            )


def record_of(plan: Plan, capacity: int | None) -> dict[str, Any]:
    """The plan as data; `bound` is what no plan can be below, as far as the search has proven."""
    problem = plan.problem
    return {
        "schema_version": 1,
        "algorithm": plan.algorithm,
        "height": plan.height,
        "lower_bound": problem.lower_bound,
        "bound": max(plan.bound, problem.lower_bound),
        "capacity": capacity,
        "fits": None if capacity is None else plan.height <= capacity,
        "seconds": plan.seconds,
        "buffers": [
            {"id": buffer.name, "offset": offset}
            for buffer, offset in zip(problem.buffers, plan.offsets, strict=True)
        ],
    }


def show(best: Plan, others: list[Plan], capacity: int | None, arena: PlannedArena | None) -> None:
    """Prints each algorithm's height, and the plan that was taken; of a model also the plans of
    which kernels share a launch, with what they take of time and memory.

    Args:
        best: the plan that was taken.
        others: those of other algorithms.
        capacity: bytes of the memory, if they were given.
        arena: of a model as the compiler plans it; None for a file of buffers.
    """
    from rich.console import Console

    from davinci.report.terminal import Heading, table_of

    numbers = (Heading(title, worth=1) for title in ("bytes", "x bound", "seconds"))
    headings, rows = (Heading("algorithm", True, 2), *numbers), []
    shown = [plan for plan in others if plan.algorithm != best.algorithm]
    for plan in (*shown, best):
        ratio, seconds = f"{plan.ratio:.3f}", f"{plan.seconds:.3f}"
        rows.append([plan.algorithm, f"{plan.height:,}", ratio, seconds])
    console = Console(width=None if sys.stdout.isatty() else 80, highlight=False)
    console.print(table_of(headings, rows, console.width))
    problem = best.problem
    console.print(f"buffers    {len(problem.buffers)}")
    console.print(f"bound      {problem.lower_bound:,} bytes are live at once")
    state = "the least there can be" if best.optimal else "a lower one may exist"
    console.print(f"plan       {best.height:,} bytes by {best.algorithm}: {state}")
    if arena is not None:
        apart = int(problem.sizes.sum())
        console.print(f"compiled   {arena.height:,} bytes; {apart:,} if no two values shared any")
    if capacity is not None:
        room = capacity - best.height
        words = f"fits, {room:,} bytes are left" if room >= 0 else f"{-room:,} bytes too many"
        console.print(f"capacity   {capacity:,} bytes: {words}")
    if arena is not None and arena.plans:
        console.print()
        titles = ("launches", "arena bytes", "cycles more")
        headings = (Heading("--plan", True, 2), *(Heading(title, worth=1) for title in titles))
        rows = [
            [plan.name, f"{plan.launches:,}", f"{plan.arena_bytes:,}", f"{plan.more_cycles:+,}"]
            for plan in arena.plans
        ]
        console.print(table_of(headings, rows, console.width))
        console.print("cycles are estimated, launches included; npu-run takes the last plan")


if __name__ == "__main__":
    sys.exit(main())

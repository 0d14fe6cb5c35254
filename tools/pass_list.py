"""Text about passes for npu-opt: the list of `--help` and the table of `--mlir-timing`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable

from davinci.passes.pipeline import pipelines
from davinci.passes.pipeline.declarations import Option, all_declarations


def names() -> str:
    """Names of all passes and pipelines of the project, one a line."""
    return "\n".join([*(declared.name for declared in all_declarations()), *pipelines.PIPELINES])


def full() -> str:
    """The text that lists all passes with their options, then the named pipelines."""
    lines = ["passes of this project (any upstream pass may be named too):"]
    for declared in all_declarations():
        lines += [f"  --{declared.name}", f"      {declared.summary}"]
        lines += _options(declared.options)
    lines += ["", "named pipelines:"]
    for name, builder in pipelines.PIPELINES.items():
        lines += [f"  --{name}", f"      {(builder.__doc__ or '').strip()}"]
    lines += ["", "options of every named pipeline:"]
    lines += _options(map(Option.of, dataclasses.fields(pipelines.Options)))
    return "\n".join(lines)


def print_timing(seconds: dict[str, float]) -> None:
    """Prints seconds by pass to stderr, the slowest first."""
    from rich.console import Console
    from rich.table import Table

    total = sum(seconds.values())
    table = Table(title="Execution time", title_justify="left")
    table.add_column("pass")
    table.add_column("seconds", justify="right")
    table.add_column("share", justify="right")
    for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
        table.add_row(name, f"{value:.4f}", f"{value / total:.1%}")
    table.add_row("total", f"{total:.4f}", "100.0%")
    Console(file=sys.stderr).print(table)


def choices(option: Option) -> str:
    """The values an option may have, as they follow its help."""
    return f": {', '.join(option.choices)}" if option.choices else ""


def _options(options: Iterable[Option]) -> list[str]:
    return [
        f"        {x.name.replace('_', '-')}={x.default if x.default != '' else '(empty)'}"
        f"  {x.help}{choices(x)}"
        for x in options
    ]

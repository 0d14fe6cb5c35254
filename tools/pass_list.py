"""Text about passes for npu-opt: the list of `--help` and the table of `--mlir-timing`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable
from typing import Any

from davinci.passes.pipeline import pipelines, registry


def names() -> str:
    """Names of all passes and pipelines of the project, one a line."""
    return "\n".join([*(cls.NAME for cls in registry.all_passes()), *pipelines.PIPELINES])


def full() -> str:
    """All passes with their options, then the named pipelines."""
    lines = ["passes of this project (any upstream pass may be named too):"]
    for cls in registry.all_passes():
        lines += [f"  --{cls.NAME}", f"      {registry.summary(cls)}"]
        lines += _options(dataclasses.fields(cls))  # type: ignore[arg-type]
    lines += ["", "named pipelines:"]
    for name, builder in pipelines.PIPELINES.items():
        lines += [f"  --{name}", f"      {(builder.__doc__ or '').strip()}"]
    lines += ["", "options of every named pipeline:"]
    lines += _options(dataclasses.fields(pipelines.Options))
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


def choices(field: dataclasses.Field[Any]) -> str:
    """The values an option may have, as they follow its help."""
    values = field.metadata["choices"]
    return f": {', '.join(values)}" if values else ""


def _options(fields: Iterable[Any]) -> list[str]:
    return [
        f"        {f.name.replace('_', '-')}={f.default if f.default != '' else '(empty)'}"
        f"  {f.metadata['help']}{choices(f)}"
        for f in fields
    ]

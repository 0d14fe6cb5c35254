"""Writes the pages that are made from the code: `python -m davinci.tools.reference docs`."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from davinci.files import write_atomically
from davinci.isa.reference import reference as instructions
from davinci.operators.reference import reference as operators
from davinci.passes.pipeline import pipelines, registry
from davinci.passes.pipeline.declarations import Option
from davinci.passes.pipeline.rewrites import REWRITES, Rewrite
from davinci.tools.command import Parser, guarded
from davinci.tools.pass_list import choices

INTRODUCTION = """# Passes

Made from the passes by `python -m davinci.tools.reference docs`; do not edit. In pipeline order of
their folders. Any pass runs by `npu-opt --pass-pipeline='builtin.module(NAME{option=value})'` or
`npu-opt --NAME=option=value`.
"""

REWRITES_INTRODUCTION = """# Rewrites

Made from the catalogue by `python -m davinci.tools.reference docs`; do not edit.

To see what one of them gains on your network, run it with and without:

```
npu-run model.onnx --timing-only
npu-run model.onnx --timing-only --no-rewrite sums-by-cube
```

`--rewrites none`, `--rewrites gelu,merge-products` and `--rewrites all,-gelu` choose several;
`davinci.compile(rewrites=...)` takes the same lists. How often each was applied stands in the table
of a run and under `rewrites` of `--json`. Those that round otherwise are not done with
`--precision fp32`, nor in front of a rounding, a comparison or a conversion to integers.

| name | kind | pass | before | after | changes in the result |
|---|---|---|---|---|---|"""


def as_markdown(text: str) -> str:
    """The docstring of a pass as Markdown: what is indented by four spaces is IR."""
    parts = []
    for is_ir, group in itertools.groupby(text.splitlines(), key=lambda line: line[:4] == " " * 4):
        part = "\n".join(group)
        parts.append(f"```mlir\n{textwrap.dedent(part)}\n```" if is_ir else part.strip("\n"))
    made = "\n\n".join(parts)
    return made[:1].upper() + made[1:]


def passes() -> str:
    """The page of all passes and named pipelines."""
    parts = [INTRODUCTION]
    for cls in registry.all_passes():
        text = inspect.cleandoc(sys.modules[cls.__module__].__doc__ or "")
        parts.append(f"## {cls.NAME}\n\n{as_markdown(text.removeprefix(f'{cls.NAME}: '))}\n")
        parts.append(_options(dataclasses.fields(cls)))  # type: ignore[arg-type]
    parts.append("## Named pipelines\n")
    for name, builder in pipelines.PIPELINES.items():
        steps = ", ".join(f"`{step}`" for step in builder(pipelines.Options()))
        parts.append(f"**{name}**: {(builder.__doc__ or '').strip()} {steps}.\n")
    parts.append("Options of every pipeline:\n")
    parts.append(_options(dataclasses.fields(pipelines.Options)))
    return "\n".join(part for part in parts if part)


def _options(fields: Iterable[Any]) -> str:
    options = [Option.of(field) for field in fields]
    rows = [
        f"| `{x.name.replace('_', '-')}` | `{x.default}` | {x.help}{choices(x)} |" for x in options
    ]
    return "\n".join(["| option | default | |", "|---|---|---|", *rows, ""]) if rows else ""


def rewrites() -> str:
    """The page of all rewrites and their switches."""
    rows = [
        f"| `{name}` | {x.kind} | `{x.place}` | {x.before} | {x.after} | {changes(x)} |"
        for name, x in REWRITES.items()
    ]
    return "\n".join(
        [REWRITES_INTRODUCTION, *rows, "", "<!-- gains -->", "<!-- end of gains -->", ""]
    )


def changes(rewrite: Rewrite) -> str:
    """What a rewrite may change in the result, in a cell of the table."""
    return f"{rewrite.bound or 'nothing'}{' (rounds otherwise)' if rewrite.rounds else ''}"


PAGES = {
    "instructions.md": instructions,
    "operators.md": operators,
    "passes.md": passes,
    "rewrites.md": rewrites,
}


KEPT = re.compile(r"(<!-- (\w+) -->\n)(.*?)(<!-- end of \2 -->)", re.DOTALL)
"""A part of a page that a benchmark writes, between two marks."""


def renewed(page: str, before: str) -> str:
    """A page with those parts between marks that it had before."""
    known = {found[2]: found[3] for found in KEPT.finditer(before)}
    return KEPT.sub(lambda found: f"{found[1]}{known.get(found[2], '')}{found[4]}", page)


@guarded
def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="reference", usage="python -m davinci.tools.reference FOLDER")
    parser.add_argument("folder", metavar="FOLDER")
    folder = Path(parser.parse_args(argv).folder)
    for name, page in PAGES.items():
        path = folder / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        write_atomically(path, renewed(page(), before).encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

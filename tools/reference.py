"""Writes the pages that are made from the code: `python -m davinci.tools.reference docs`."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from davinci.files import write_atomically
from davinci.isa.reference import reference as instructions
from davinci.operators.reference import reference as operators
from davinci.passes.pipeline import pipelines, registry
from davinci.tools.command import Parser, guarded
from davinci.tools.pass_list import choices

INTRODUCTION = """# Passes

Made from the passes by `python -m davinci.tools.reference docs`; do not edit. In pipeline order of
their folders. Any pass runs by `npu-opt --pass-pipeline='builtin.module(NAME{option=value})'` or
`npu-opt --NAME=option=value`.
"""


def passes() -> str:
    """The page of all passes and named pipelines."""
    parts = [INTRODUCTION]
    for cls in registry.all_passes():
        module = sys.modules[cls.__module__].__doc__ or ""
        parts.append(f"## {cls.NAME}\n\n```\n{inspect.cleandoc(module)}\n```\n")
        parts.append(_options(dataclasses.fields(cls)))  # type: ignore[arg-type]
    parts.append("## Named pipelines\n")
    for name, builder in pipelines.PIPELINES.items():
        steps = ", ".join(f"`{step}`" for step in builder(pipelines.Options()))
        parts.append(f"**{name}**: {(builder.__doc__ or '').strip()} {steps}.\n")
    parts.append("Options of every pipeline:\n")
    parts.append(_options(dataclasses.fields(pipelines.Options)))
    return "\n".join(part for part in parts if part)


def _options(fields: Iterable[Any]) -> str:
    rows = [
        f"| `{f.name.replace('_', '-')}` | `{f.default}` | {f.metadata['help']}{choices(f)} |"
        for f in fields
    ]
    return "\n".join(["| option | default | |", "|---|---|---|", *rows, ""]) if rows else ""


PAGES = {"instructions.md": instructions, "operators.md": operators, "passes.md": passes}


@guarded
def main(argv: list[str] | None = None) -> int:
    parser = Parser(prog="reference", usage="python -m davinci.tools.reference FOLDER")
    parser.add_argument("folder", metavar="FOLDER")
    folder = Path(parser.parse_args(argv).folder)
    for name, page in PAGES.items():
        write_atomically(folder / name, page().encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

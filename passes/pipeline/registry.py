"""Looks up passes by name and builds them from options; the list behind `npu-opt --help`.

A pass `plan-memory` lives in a file `plan_memory.py` in one of the folders of `davinci.passes`, so
a lookup imports that one file and npu-opt starts fast.
"""

from __future__ import annotations

import dataclasses
import importlib
from pathlib import Path
from typing import Any

from davinci.errors import did_you_mean
from davinci.passes.pipeline import base
from davinci.passes.pipeline.pipeline_text import PassNode, fail_at, parse_options

FOLDERS = (
    "stablehlo_to_ascend",
    "ascend",
    "ascend_to_cce",
    "linalg_to_cce",
    "cce",
    "cce_to_hivm",
    "cce_to_hir",
    "hir_to_hivm",
    "hivm_to_llvm",
)
"""Folders of passes below `davinci/passes`, in pipeline order."""

PASSES = Path(__file__).parent.parent

UPSTREAM = ("canonicalize", "cse", "inline", "symbol-dce", "loop-invariant-code-motion", "sccp")
"""Upstream passes worth suggesting; any upstream pass may be named in a pipeline."""


def find(name: str) -> type[base.Pass] | None:
    """The pass of that name, or None if it is not one of this project's.

    A pass is registered while the rest of its module is still to come: only an import waits until
    another thread is through.
    """
    stem = name.replace("-", "_")
    for folder in FOLDERS:
        if (PASSES / folder / f"{stem}.py").is_file():
            importlib.import_module(f"davinci.passes.{folder}.{stem}")
    return base.PASSES.get(name)


def all_passes() -> list[type[base.Pass]]:
    """Every pass of the project, in pipeline order of the folders."""
    for folder in FOLDERS:
        for path in sorted((PASSES / folder).glob("*.py")):
            module = f"davinci.passes.{folder}.{path.stem}".removesuffix(".__init__")
            importlib.import_module(module)
    return sorted(base.PASSES.values(), key=lambda cls: (_folder(cls), cls.NAME))


def instantiate(cls: type[base.Pass], node: PassNode) -> base.Pass:
    """Builds the pass from the options of its node.

    Raises:
        InputError: an unknown option, or a value of the wrong type.
    """
    return cls(**option_values(cls, "pass", node))


def option_values(cls: type[Any], kind: str, node: PassNode) -> dict[str, Any]:
    """The options of a node as values of the fields of `cls`.

    Args:
        cls: dataclass whose fields are options.
        kind: what has these options, "pass" or "pipeline".

    Raises:
        InputError: an unknown option, or a value of the wrong type.
    """
    known = {field.name: field for field in dataclasses.fields(cls)}
    values: dict[str, Any] = {}
    for key, text in parse_options(node).items():
        field = known.get(key.replace("-", "_"))
        if field is None:
            names = [name.replace("_", "-") for name in known]
            fail_at(
                node.column,
                f"{kind} '{node.name}' has no option '{key}'",
                expected=f"one of {', '.join(names)}" if names else "no options",
                hint=did_you_mean(key, names),
            )
        values[field.name] = convert(node, key, text, field)
    return values


def convert(node: PassNode, key: str, text: str, field: dataclasses.Field[Any]) -> object:
    """The text of an option as a value of the type of its field: bool, int, float or str."""
    kind: type = type(field.default)
    value: object = text
    if kind is bool:
        expected = "" if text in ("true", "false") else "true or false"
        value = text == "true"
    else:
        try:
            value = kind(text)
            expected = base.accepted(field, value)
        except ValueError:
            expected = {int: "an integer", float: "a number"}[kind]
    if expected:
        fail_at(node.column, f"bad value of option '{key}' of '{node.name}'", repr(text), expected)
    return value


def summary(cls: type[base.Pass]) -> str:
    """First line of the docstring of a pass."""
    return (cls.__doc__ or "").strip().splitlines()[0]


def _folder(cls: type[base.Pass]) -> int:
    return FOLDERS.index(cls.__module__.split(".")[-2])

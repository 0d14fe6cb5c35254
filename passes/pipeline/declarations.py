"""What the passes' source files declare, read without importing them: names, summaries, options.

To import all passes loads MLIR, every dialect and the schedules, and takes seconds; a help text
needs none of it. A pass is a dataclass whose fields are `option(default, help, choices)`, so its
declaration can be read from the syntax tree of its file.
"""

from __future__ import annotations

import ast
import dataclasses
from functools import cache
from typing import Any

from davinci.passes.pipeline import pipelines
from davinci.passes.pipeline.base import option
from davinci.passes.pipeline.registry import FOLDERS, PASSES

REGISTERED = "@register_pass\n"
"""The decorator above the class of a pass."""


@dataclasses.dataclass(frozen=True)
class Option:
    """An option of a pass or pipeline: name of the field, default, help and permitted values."""

    name: str
    default: Any
    help: str
    choices: tuple[str, ...]

    @classmethod
    def of(cls, field: dataclasses.Field[Any]) -> Option:
        """The option that a field of a dataclass is."""
        return cls(field.name, field.default, field.metadata["help"], field.metadata["choices"])


@dataclasses.dataclass(frozen=True)
class Declaration:
    """A pass: its name, the first line of its docstring, and its options in order."""

    name: str
    summary: str
    options: tuple[Option, ...]


@cache
def all_declarations() -> tuple[Declaration, ...]:
    """Every pass of the project, in pipeline order of the folders, then by name."""
    found = []
    for folder in FOLDERS:
        texts = (path.read_text(encoding="utf-8") for path in (PASSES / folder).glob("*.py"))
        declared = (declarations_in(text) for text in texts)
        found += sorted((d for each in declared for d in each), key=lambda d: d.name)
    return tuple(found)


def declarations_in(text: str) -> list[Declaration]:
    """The passes that the source text of a module declares.

    Raises:
        ValueError: an option that is no literal and nothing that `pipelines` names.
    """
    found = []
    start = text.find(REGISTERED)
    while start >= 0:
        after = text.find(REGISTERED, start + 1)
        # The syntax tree of the class alone: that of the whole module takes ten times as long.
        (declared,) = ast.parse(class_text(text[start : after if after >= 0 else None])).body
        assert isinstance(declared, ast.ClassDef), f"{REGISTERED.strip()} is above a class"
        found.append(declaration_of(declared))
        start = after
    return found


def class_text(text: str) -> str:
    """The decorated class that `text` begins with, without what follows it."""
    lines = text.splitlines(keepends=True)
    body = next(i for i, line in enumerate(lines) if line.startswith("class "))
    starts = (i for i, line in enumerate(lines) if i > body and line[0] not in " \n)#")
    return "".join(lines[: next(starts, len(lines))])


def declaration_of(declared: ast.ClassDef) -> Declaration:
    """The declaration that the class of a pass is."""
    name, options = "", []
    for statement in declared.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "NAME":
            name = ast.literal_eval(statement.value)
        value = statement.value if isinstance(statement, ast.AnnAssign) else None
        if isinstance(value, ast.Call) and ast.unparse(value.func) == option.__name__:
            assert isinstance(statement, ast.AnnAssign), "only such a statement has a value here"
            options.append(option_of(ast.unparse(statement.target), value))
    summary = (ast.get_docstring(declared) or "").partition("\n")[0]
    return Declaration(name, summary, tuple(options))


def option_of(name: str, call: ast.Call) -> Option:
    """The option that `call`, of `base.option`, makes of the field `name`."""
    field = option(*(value_of(argument) for argument in call.args))
    field.name = name
    return Option.of(field)


def value_of(node: ast.expr) -> Any:
    """The value of an argument: a literal, or `NAME` or `pipelines.NAME` of that module."""
    if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "pipelines":
        return getattr(pipelines, node.attr)
    return getattr(pipelines, node.id) if isinstance(node, ast.Name) else ast.literal_eval(node)

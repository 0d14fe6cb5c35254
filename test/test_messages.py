"""What messages point to is there for who installed the package, not only in the repository."""

from __future__ import annotations

import ast
import fnmatch
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from davinci import errors

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "python" / "davinci"
REPOSITORY = re.compile(r"\b(docs|examples|benchmarks|test|tests)/\w")
"""A path that only the repository has."""

SOURCES = ("source", "SOURCE", "SOURCES")
"""Where numbers come from: fields and constants that name pages for readers of the code."""


def files() -> list[Path]:
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir()]
    return sorted({*PACKAGE.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))})


def texts(node: ast.AST) -> Iterator[ast.Constant]:
    """Strings that a program may say: no docstrings, and no sources of numbers."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return
    if isinstance(node, ast.keyword) and node.arg in SOURCES:
        return
    if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") in SOURCES:
        return
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node
    for child in ast.iter_child_nodes(node):
        yield from texts(child)


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_message_names_a_file_of_the_repository(path: Path) -> None:
    tree = ast.parse(path.read_text())
    found = [f"line {n.lineno}: {n.value}" for n in texts(tree) if REPOSITORY.search(n.value)]
    assert found == [], "ship it in davinci/pages and name it by errors.shipped()"


def pages() -> set[str]:
    """The arguments of `errors.shipped` anywhere."""
    calls = [
        n for p in files() for n in ast.walk(ast.parse(p.read_text())) if isinstance(n, ast.Call)
    ]
    return {ast.literal_eval(n.args[0]) for n in calls if getattr(n.func, "id", "") == "shipped"}


def test_pages_are_in_the_package_and_all_are_named() -> None:
    names = pages()
    assert names == {path.name for path in errors.PAGES.iterdir()}
    patterns = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    shipped = patterns["package-data"]["davinci"]
    for name in names:
        assert Path(errors.shipped(name)).is_file()
        assert any(fnmatch.fnmatch(f"pages/{name}", pattern) for pattern in shipped)

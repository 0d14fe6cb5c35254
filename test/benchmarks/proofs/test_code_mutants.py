"""Mutants of code: one operator is another, and a test of the room sees it or does not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

MODULE = "python/davinci/sums/least.py"
CODE = '''
"""A module of two functions."""
def total(a: int, b: int) -> int:
    return a + b
def untested(a: int, b: int) -> bool:
    return a < b and a != 0
'''
TEST = """
from davinci.sums.least import total

def test_total():
    assert total(2, 3) == 5
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of one module with one test."""
    for name, text in {
        "python/davinci/__init__.py": "",
        "python/davinci/sums/__init__.py": "",
        MODULE: CODE,
        "test/sums/test_least.py": TEST,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_one_operator_is_changed(repository: Path, benchmark_script: Callable[[str], Any]) -> None:
    script = benchmark_script("code_mutants")
    mutants = script.drawn(repository, 60, seed=1)
    changes = {mutant.sources(repository)[1] for mutant in mutants}
    assert changes == {
        "a + b -> a - b",
        "a < b -> a <= b",
        "a != 0 -> a == 0",
        "a < b and a != 0 -> a < b or a != 0",
    }
    for mutant in mutants:
        assert ast.dump(ast.parse(mutant.sources(repository)[0])) != ast.dump(ast.parse(CODE))
    assert script.drawn(repository, 2, seed=5) == script.drawn(repository, 2, seed=5)


def test_a_mutant_is_killed_only_by_a_test_of_its_own(
    repository: Path, benchmark_script: Callable[[str], Any]
) -> None:
    script = benchmark_script("code_mutants")
    outcomes = {}
    for mutant in script.drawn(repository, 60, seed=1):
        change = mutant.sources(repository)[1]
        if change in ("a + b -> a - b", "a < b -> a <= b"):
            outcomes[change] = script.judged(repository, mutant, 60.0)
    assert outcomes == {
        "a + b -> a - b": ("killed", "test/sums/test_least.py::test_total"),
        "a < b -> a <= b": ("survived", ""),
    }
    assert (repository / MODULE).read_text() == CODE
    (repository / "test/sums/test_least.py").write_text(TEST.replace("5", "6"))
    [plus] = [
        mutant
        for mutant in script.drawn(repository, 60, seed=1)
        if mutant.sources(repository)[1] == "a + b -> a - b"
    ]
    outcome, why = script.judged(repository, plus, 60.0)
    assert outcome == "unfinished" and "as it is" in why

"""Random mutants of the compiler's own code, each held against the tests of its room.

    python benchmarks/proofs/code_mutants.py [--count N] [--seed S] [--only I,J] [--minutes M]

A mutant has one comparison, one + or -, or one `and` or `or` of product code changed. It is made in
a copy of the repository and runs the tests of its own room, those that name its module first, then
the room's lit tests, the golden cycles and the rest of the room, until one fails. The failing test
must pass on the code as it is: else it says nothing of the mutant. Prints a line for each mutant,
and the survivors in the end. A mutant whose tests take more than the given minutes is unfinished:
neither killed nor a survivor.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

PRODUCT_CODE = ("python/davinci", "dialects", "passes", "simulator", "tools")
"""Folders whose modules are mutated. Symbolic links inside them are not followed."""

COPIED = (*PRODUCT_CODE, "test", "benchmarks", "examples", "docs", "stubs")
"""Folders that tests read; the files beside them are copied as well."""

SWAPS: dict[type[ast.AST], Callable[[], Any]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
"""The class of the operator that takes the place of each one that is changed."""

Holder = ast.Compare | ast.BinOp | ast.AugAssign | ast.BoolOp
"""A node of the syntax tree with operators that can be changed."""

ROOMS = {"triton": "triton_launches"}
"""Folders of tests that are not named as what they test: a folder `triton` would stand in front of
the package of that name."""

TOOLS = "test/tools"
"""Where lit tests need two processes, which the room's own tests start."""

GOLDEN = "test/test_golden_cycles.py"
NO_TESTS = 5
"""Exit code of pytest where no test was chosen."""


@dataclass(frozen=True)
class Mutant:
    """One operator of one module that becomes another."""

    module: str
    """Path from the root of the repository."""
    place: int
    """Number of the operator among those of the module that can be changed."""

    def sources(self, root: Path) -> tuple[str, str, int]:
        """Text of the mutated module, the change in words, and its line."""
        tree = ast.parse((root / self.module).read_text())
        node, index = list(places(tree))[self.place]
        before = ast.unparse(node)
        if isinstance(node, ast.Compare):
            node.ops[index] = SWAPS[type(node.ops[index])]()
        else:
            node.op = SWAPS[type(node.op)]()
        change = f"{before} -> {ast.unparse(node)}"
        return ast.unparse(tree) + "\n", change, node.lineno


def places(tree: ast.AST) -> Iterator[tuple[Holder, int]]:
    """Operators that can be changed: their node, and their number among its operators."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for index, operator in enumerate(node.ops):
                if type(operator) in SWAPS:
                    yield node, index
        elif isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in SWAPS:
            yield node, 0


def modules(root: Path) -> list[str]:
    """Modules of product code, in order."""
    found = []
    for folder in PRODUCT_CODE:
        for where, folders, files in os.walk(root / folder):
            folders.sort()
            found += [str((Path(where) / f).relative_to(root)) for f in files if f.endswith(".py")]
    return sorted(found)


def drawn(root: Path, count: int, seed: int) -> list[Mutant]:
    """Random mutants, each operator of product code as likely as any other."""
    all_of_them = [
        Mutant(module, place)
        for module in modules(root)
        for place, _ in enumerate(places(ast.parse((root / module).read_text())))
    ]
    return random.Random(seed).sample(all_of_them, min(count, len(all_of_them)))


def room_of(root: Path, module: str) -> Path:
    """The nearest folder of tests that mirrors the folder of a module."""
    folder = Path(module.removeprefix("python/davinci/")).parent
    folder = Path(ROOMS.get(str(folder), folder))
    while not (root / "test" / folder).is_dir():
        folder = folder.parent
    return root / "test" / folder


def tests_of(root: Path, module: str) -> list[list[str]]:
    """Arguments of pytest for one run after the other: from tests that name the module to all."""
    room, stem = room_of(root, module), Path(module).stem
    name = re.compile(rf"\b{re.escape(stem)}\b")
    texts = {path: path.read_text() for path in sorted(room.glob("test_*.py"))}
    lit: list[str] = []
    others: list[str] = []
    own = room != root / "test"  # else it is the room of all modules
    if own:
        texts |= {path: path.read_text() for path in sorted(room.glob("*/**/test_*.py"))}
        files = [path for path in room.rglob("*.mlir") if path.parent != root / TOOLS]
        inputs = sorted(path.relative_to(root / "test") for path in files)
        lit = [f"test/test_lit.py::test_run_lines[{path}]" for path in inputs]
    named = [str(p.relative_to(root)) for p, t in texts.items() if name.search(t) or stem in p.stem]
    if own:
        paths = [str(path.relative_to(root)) for path in texts]
        others = [path for path in paths if path not in (*named, GOLDEN)]
    runs = [named, lit, [GOLDEN] if (root / GOLDEN).exists() else [], others]
    return [run for run in runs if run]


def first_failure(root: Path, tests: list[str], seconds: float) -> str | None:
    """The name of the first test that fails, or None; `TimeoutExpired` after so many seconds."""
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "--tb=no", "-rfE", *tests],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root / "python"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if done.returncode in (0, NO_TESTS):
        return None
    found = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
    return found[1] if found else tests[0]


def judged(root: Path, mutant: Mutant, seconds: float) -> tuple[str, str]:
    """`killed`, `survived` or `unfinished`, and by which test."""
    path = root / mutant.module
    original = path.read_text()
    text, _, _ = mutant.sources(root)
    try:
        for tests in tests_of(root, mutant.module):
            path.write_text(text)
            failing = first_failure(root, tests, seconds)
            if failing is None:
                continue
            path.write_text(original)
            if first_failure(root, [failing], seconds) is not None:
                return "unfinished", f"{failing} fails on the code as it is"
            return "killed", failing
    except subprocess.TimeoutExpired:
        return "unfinished", f"tests take more than {seconds:.0f} s"
    finally:
        path.write_text(original)
    return "survived", ""


def copy_of(root: Path, target: Path) -> None:
    """Copies what tests need; symbolic links stay links."""
    ignored = shutil.ignore_patterns("__pycache__", ".*cache")
    for name in COPIED:
        if (root / name).is_dir():
            shutil.copytree(root / name, target / name, symlinks=True, ignore=ignored)
    for entry in sorted(root.iterdir()):
        if entry.is_file() and not entry.name.startswith("."):
            shutil.copy(entry, target / entry.name)


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="numbers of mutants, divided by commas, instead of all")
    parser.add_argument("--minutes", type=float, default=10.0, help="of one run of pytest")
    options = parser.parse_args()
    chosen = {int(number) for number in options.only.split(",")} if options.only else None
    counts = {"killed": 0, "survived": 0, "unfinished": 0}
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        copy_of(ROOT, root)
        for number, mutant in enumerate(drawn(root, options.count, options.seed)):
            if chosen is not None and number not in chosen:
                continue
            _, change, line = mutant.sources(root)
            outcome, why = judged(root, mutant, options.minutes * 60)
            counts[outcome] += 1
            said = f"{number:3} {mutant.module}:{line}: {change}"
            print(f"{outcome:10} {said}" + (f"  [{why}]" if why else ""), flush=True)
            if outcome == "survived":
                survivors.append(said)
    print(", ".join(f"{outcome} {count}" for outcome, count in counts.items()))
    print(*survivors, sep="\n")
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(main())

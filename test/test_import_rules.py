"""Data moves one way: who may import whom, and no circles; see CONTRIBUTING.md."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "davinci"
MAY_IMPORT = {
    "errors": "",
    "units": "",
    "tables": "",
    "narrow": "",
    "stand_ins": "",
    "garbage": "",
    "for_readers": "",
    "element_types": "narrow",
    "files": "errors",
    "arrays": "errors files narrow",
    "input_ranges": "arrays errors mlir",
    "isa": "errors native units",
    "machine": "errors isa units",
    "operators": "element_types errors isa units",
    "schedule": "errors isa machine operators units",
    "native": "mlir",
    "planning": "errors native units",
    "simulator": "errors isa machine native units",
    "mlir": "dialects",  # make_context loads the dialects, which are written with the bindings
    "dialects": "errors isa mlir operators units",
    "bytecode": "errors mlir units",
    "elements": "bytecode element_types errors mlir narrow stand_ins",
    "passes": (
        "dialects element_types elements errors for_readers isa machine mlir operators planning "
        "schedule stand_ins tables units narrow"
    ),
    "report": "dialects errors files isa machine mlir simulator units",
    "runtime": (
        "arrays diagnostics dialects elements errors files garbage isa machine mlir narrow native "
        "passes report schedule simulator units version"
    ),
    "frontends": (
        "bytecode diagnostics dialects element_types elements errors for_readers mlir narrow "
        "stand_ins tables units"
    ),
    "kernels": "compiler frontends mlir runtime",
    "zoo": "errors stand_ins",
    "quantization": "arrays compiler errors frontends units",
    "tuning": (
        "compiler dialects errors frontends input_ranges machine mlir passes report runtime "
        "schedule version"
    ),
    "compile_cache": "errors machine runtime version",
    "compiler": (
        "compile_cache diagnostics errors frontends garbage input_ranges machine mlir passes "
        "runtime schedule"
    ),
    "arena_problem": "compiler frontends mlir passes planning report",
    "gdp": "compiler errors frontends machine mlir operators passes runtime schedule units",
    "placement": "arrays compiler errors files frontends job machine reference report runtime",
    "version": "mlir",
    "triton": "compiler errors files frontends machine mlir runtime tuning units",
    "hivm_out": "dialects errors frontends machine mlir passes",
    "onnx_backend": "compiler errors machine runtime",
    "torch_backend": "compiler errors frontends runtime",
    "diagnostics": "errors mlir",
    "reference": "arrays elements errors files mlir passes narrow",
    "advice": "arrays errors job passes quantization reference",
    "job": (
        "arrays compiler errors files frontends input_ranges mlir quantization reference report "
        "runtime tuning zoo"
    ),
}
"""Rooms of the package: directories and single modules; tools may import all of them."""

BINDINGS = ("mlir", "torch_mlir")


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    rooms = [path for path in PACKAGE.iterdir() if path.is_dir()]
    names = {}
    for path in [*PACKAGE.glob("*.py"), *(file for room in rooms for file in room.rglob("*.py"))]:
        parts = ("davinci", *path.relative_to(PACKAGE).with_suffix("").parts)
        names[".".join(parts).removesuffix(".__init__")] = path
    return names


MODULES = modules()


def imported(nodes: Iterator[ast.AST] | list[ast.stmt]) -> Iterator[str]:
    """Dotted names that import statements among `nodes` bring in."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in MODULES else node.module


def room_of(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_one_way(module: str) -> None:
    room = room_of(module)
    if room in ("", "tools"):  # the package's front page and the commands see everything
        return
    assert room in MAY_IMPORT, f"davinci.{room} is new: say in MAY_IMPORT what it may import"
    allowed = {room, *MAY_IMPORT[room].split()}
    names = set(imported(ast.walk(ast.parse(MODULES[module].read_text()))))
    rooms = {room_of(name) for name in names if name in MODULES and name != "davinci"}
    assert rooms <= allowed, f"{room} must not import {', '.join(sorted(rooms - allowed))}"


def test_only_one_door_to_the_bindings() -> None:
    for module, path in MODULES.items():
        names = imported(ast.walk(ast.parse(path.read_text())))
        found = [name for name in names if name.split(".")[0] in BINDINGS]
        assert found == [] or module == "davinci.mlir", f"{module} imports {found}"


def test_modules_import_in_no_circle() -> None:
    """Statements at the top of a module; those inside a function run later."""
    graph = {
        module: {name for name in imported(ast.parse(path.read_text()).body) if name in MODULES}
        for module, path in MODULES.items()
    }
    # A package that lists its modules imports them; what they take from it lies in others.
    for module, names in graph.items():
        names.discard(module.rpartition(".")[0])
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))

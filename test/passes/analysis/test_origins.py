"""Names of nodes in locations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from davinci.mlir import ir, make_context
from davinci.passes.analysis.origins import fuse, origins, served

Chain = Callable[..., list[Any]]


@pytest.fixture
def chain() -> Iterator[Chain]:
    """Makes additions in a row at given places, and a return; their modules outlive them."""
    modules: list[Any] = []

    def build(*locations: str) -> list[Any]:
        modules.append(parsed(*locations))
        block = modules[-1].body.operations[0].regions[0].blocks[0]
        return [op.operation for op in block.operations]

    yield build


def parsed(*locations: str) -> Any:
    """A module of one function: additions, each of the result of the one before, and a return."""
    lines = [
        f"  %{i + 1} = arith.addi %{i}, %{i} : i32 loc({location})"
        for i, location in enumerate(locations)
    ]
    text = "\n".join(
        [
            "func.func @f(%0: i32) -> i32 {",
            *lines,
            f'  return %{len(lines)} : i32 loc("f.mlir":9:9)',
            "}",
        ]
    )
    return ir.Module.parse(text, make_context())


@pytest.mark.parametrize(
    ("location", "names"),
    [
        ('"/encoder/MatMul"', ("/encoder/MatMul",)),
        ('"jit(f)/dot_general"("a/net.py":3:4)', ("jit(f)/dot_general",)),
        ('"a/net.mlir":12:5', ("net.mlir:12:5",)),
        ('"-":12:5', ("line 12:5",)),
        ('fused["b", "a", fused<"x">["c"], unknown]', ("b", "a", "c")),
        ('callsite("inner" at "outer")', ("inner",)),
        ('callsite(unknown at "outer")', ("outer",)),
        ("unknown", ()),
    ],
)
def test_origins(location: str, names: tuple[str, ...], chain: Chain) -> None:
    addition, _ = chain(location)
    assert origins(addition.location) == names


def test_an_operation_without_a_name_serves_its_users(chain: Chain) -> None:
    first, second, third, last, _ = chain("unknown", "unknown", '"Add_1"', "unknown")
    assert served(first) == served(second) == served(third) == ("Add_1",)
    assert served(last) == (), "the function's return is no node"


def test_fused_places_are_kept_once(chain: Chain) -> None:
    first, second, _ = chain('"Add_1"', '"Add_2"')
    fuse(first, [second.location, first.location])
    assert origins(first.location) == ("Add_1", "Add_2")

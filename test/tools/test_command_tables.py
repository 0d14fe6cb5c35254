"""Tables of npu-profile, npu-split, npu-plan and placed runs on terminals of any width."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from davinci import planning
from davinci.placement import MovedTensor, PlacementProblem, PlacementTask, place, play
from davinci.placement.costs import LayerCost
from davinci.placement.devices import parse
from davinci.placement.priced import PricedNetwork
from davinci.placement.split import NetworkCut
from davinci.tools import npu_place, npu_plan, npu_profile, npu_split

NAMES = ("ascend310", "ascend910", "ascend310p")
DRAWN = set("\u2588\u2591\u00b7")
"""Letters of bars and lanes, which are as long as there is room."""


def profile() -> None:
    cost = LayerCost(1.25e-3, None, "simulated")
    layers = [
        SimpleNamespace(
            name=f"/encoder/layer.{number}/MatMul",
            operators=("Conv", "BatchNormalization", "Relu"),
            flops=1 << 30,
            read_bytes=1 << 22,
            write_bytes=1 << 20,
        )
        for number in range(4)
    ]
    network: Any = SimpleNamespace(layers=layers)
    priced = PricedNetwork("net.onnx", network, parse(",".join(NAMES)), [[cost] * 3] * 4)
    npu_profile.show(priced, "latency")


def split() -> None:
    cuts = [NetworkCut(i, f"layer.{i}", 1 << 22, 1e-3, 2e-3, 3e-3 * i, 0.25) for i in range(5)]
    npu_split.show(parse("ascend310,ascend910"), cuts, cuts[2], cuts[3], "latency")


def placed() -> None:
    move = tuple(tuple(float(a != b) for b in range(3)) for a in range(3))
    tasks = tuple(PlacementTask(f"layer.{number}", (2.0, 3.0, 4.0)) for number in range(6))
    tensors = tuple(MovedTensor(number, (number + 1,), move) for number in range(0, 5, 2))
    plan = place(PlacementProblem(NAMES, tasks, tensors), "hope:lp")
    single = place(PlacementProblem(NAMES, tasks, tensors), "single")
    npu_place.show(plan, play(plan.problem, plan.devices, plan.queues, plan.algorithm), single)


@cache
def solved() -> planning.Plan:
    """Solved once: the table shows the seconds that it took."""
    buffers = tuple(planning.Buffer(1 << 20, i, i + 2, f"b{i}") for i in range(5))
    return planning.solve(planning.Problem(buffers))


def planned() -> None:
    npu_plan.show(solved(), [], None, None)


def lines_of(show: Callable[[], None], width: int, patch: pytest.MonkeyPatch) -> list[str]:
    text = io.StringIO()
    console = Console(file=text, width=width, highlight=False)
    patch.setattr("rich.console.Console", lambda **_: console)
    show()
    return text.getvalue().splitlines()


def words(lines: list[str]) -> set[str]:
    rows = [line for line in lines if line[:1] in ("\u2502", "\u2503")]
    found = {word for line in rows for word in line.split() if word not in ("\u2502", "\u2503")}
    return {word for word in found if set(word) - DRAWN}


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("show", [profile, split, placed, planned])
def test_no_word_is_broken(
    show: Callable[[], None], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = lines_of(show, width, monkeypatch)
    assert max(map(len, lines)) <= width
    shown = words(lines)
    assert shown and shown <= words(lines_of(show, 300, monkeypatch))


@pytest.mark.parametrize("show", [profile, split])
def test_what_has_no_room_is_named(
    show: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any("no room for" in line for line in lines_of(show, 60, monkeypatch))

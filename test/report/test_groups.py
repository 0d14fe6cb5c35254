"""Launches by operator and by layer."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.report.groups import MOST_LAYERS, time_by_layer, time_by_operator
from davinci.report.names import scope_of


def record(*launches: tuple[str, float, list[str]]) -> dict[str, Any]:
    """Launches of 10 us overhead each: kernel, us and nodes. Kernels are `op unit`."""
    end_us, entries = 0.0, []
    for kernel, us, nodes in launches:
        start_us, end_us = end_us + 10, end_us + 10 + us
        times = {"start_us": start_us, "end_us": end_us}
        scope = scope_of(nodes, {})
        entries.append({"kernel": kernel, **times, "operators": nodes, "scope": scope})
    rows = [
        {"name": name, "op": name.split()[0], "unit": name.split()[1]}
        for name in dict.fromkeys(kernel for kernel, _, _ in launches)
    ]
    return {"launches_list": entries, "kernels": rows}


def layers(*launches: tuple[str, float, list[str]]) -> list[tuple[str, float, int]]:
    found = time_by_layer(record(*launches))
    return [(layer.name, layer.time_us, layer.launches) for layer in found]


def test_operators_with_their_units() -> None:
    found = time_by_operator(
        record(("add vector", 5, []), ("add scalar", 50, []), ("add vector", 7, []))
    )
    assert [(x.name, x.unit, x.kernel_us, x.launch_us, x.launches) for x in found] == [
        ("add", "scalar", 50, 10, 1),
        ("add", "vector", 12, 20, 2),
    ]


@pytest.mark.parametrize(
    ("nodes", "scope"),
    [
        ([], ""),
        (["MatMul_3"], ""),
        (["/encoder/layer.0/MatMul", "/pooler/Gemm"], "encoder/layer.0"),
        (["jit(f)/mlp/dot_general"], "jit(f)/mlp"),
        (["node_linear"], "layers.0/fc1"),
    ],
)
def test_scopes(nodes: list[str], scope: str) -> None:
    assert scope_of(nodes, {"node_linear": "layers.0/fc1"}) == scope


def test_layers_in_the_order_of_the_run() -> None:
    """The encoder takes most, so it is opened; the pooler, which is small, is not."""
    found = layers(
        ("add vector", 1, ["/net/embeddings/Add"]),
        ("matmul cube", 100, ["/net/encoder/layer.0/MatMul"]),
        ("matmul cube", 100, ["/net/encoder/layer.1/MatMul"]),
        ("add vector", 1, ["/net/encoder/Add"]),
        ("add vector", 1, ["/net/pooler/dense/Add"]),
        ("add vector", 1, ["/net/pooler/norm/Add"]),
    )
    assert found == [
        ("net/embeddings", 11, 1),
        ("net/encoder/layer.0", 110, 1),
        ("net/encoder/layer.1", 110, 1),
        ("net/encoder itself", 11, 1),
        ("net/pooler", 22, 2),
    ]


def test_nodes_without_scopes() -> None:
    found = layers(("add vector", 1, ["Add_0"]), ("add vector", 2, ["Add_1"]), ("a b", 1, []))
    assert found == [("Add_0", 11, 1), ("Add_1", 12, 1), ("outside of layers", 11, 1)]


def test_many_nodes_are_summed_up() -> None:
    launches = [("add vector", float(i), [f"Add_{i}"]) for i in range(100)]
    found = time_by_layer(record(*launches))
    assert len(found) == MOST_LAYERS
    assert sum(layer.launches for layer in found) == 100
    assert sorted(number for layer in found for number in layer.all_numbers()) == [*range(100)]
    assert {layer.name for layer in found} >= {"Add_99", f"{101 - MOST_LAYERS} others"}


def test_a_layer_of_many_parts_is_opened_if_it_is_most_of_the_run() -> None:
    launches = [("add vector", 1.0, [f"/encoder/layer.{i}/Add"]) for i in range(30)]
    found = layers(*launches, ("add vector", 1.0, ["/pooler/Add"]))
    assert len(found) == MOST_LAYERS
    assert found[0][0] == "encoder/layer.0" and found[-1][0] == "pooler"
    assert ("12 others", 132, 12) in found


def test_every_launch_is_in_one_layer() -> None:
    launches = [
        ("add vector", float(i % 7), [f"/a/b{i % 3}/c{i % 5}/d{i % 2}/Add_{i}"]) for i in range(60)
    ]
    found = time_by_layer(record(*launches))
    assert len(found) <= MOST_LAYERS
    assert sorted(number for layer in found for number in layer.all_numbers()) == [*range(60)]
    assert sum(x.time_us for x in found) == pytest.approx(600 + sum(i % 7 for i in range(60)))

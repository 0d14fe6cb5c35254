"""The table of networks: a line each, and the kernels that lose most."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="module")
def networks(benchmark_script: Any) -> Any:
    return benchmark_script("networks")


def test_a_small_network(networks: Any) -> None:
    record = networks.measure("mlp,layers=2,features=64,hidden=64", "ascend910", 4)
    cells = networks.cells_of("mlp", record)
    assert len(cells) == len(networks.HEADER)
    assert cells[1] == "2" and cells[3] == f"{record['total_cycles']:,}"
    kernels = list(networks.kernels_of(record, 5))
    assert len(kernels) == 2 and all(len(row) == len(networks.HEADER) for row in kernels)
    lost = [int(row[-1].replace(",", "")) for row in kernels]
    assert lost == sorted(lost, reverse=True)
    assert sum(lost) == record["idle"]["idle_core_cycles"]

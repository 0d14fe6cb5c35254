"""Schedules of attention: few that are weighed on fewer cores stand for all."""

from __future__ import annotations

import pytest

from davinci import machine as machines
from davinci.operators.vector_program import Value
from davinci.schedule.attention.attention import Attention, ScoreChain
from davinci.schedule.attention.choice import choose, quickly
from davinci.schedule.attention.cost import estimate
from davinci.schedule.attention.turn import MatrixTurn
from davinci.schedule.products.product import ProductOperand, ProductResult

MACHINE = machines.load("ascend910")
CORES = 32


def attention(batch: int, rows: int, keys: int, depth: int) -> Attention:
    each = MatrixTurn(1, batch)
    in_nz = ProductOperand(nz=True, k_rows=False, itemsize=2)
    return Attention(
        batch=batch,
        rows=rows,
        keys=keys,
        depth=depth,
        columns=depth,
        q=in_nz,
        k=in_nz,
        v=ProductOperand(nz=True, k_rows=True, itemsize=2),
        o=ProductResult(nz=True, itemsize=2),
        of_q=each,
        of_k=each,
        of_v=each,
        scale=1.0,
        chain=ScoreChain(Value(0, "f32"), (), (), ()),
    )


@pytest.mark.parametrize("shape", [(12, 512, 512, 64), (2, 128, 128, 64), (3, 64, 1024, 32)])
@pytest.mark.parametrize("cores", [1, 8, 24, 32])
def test_fewer_cores_are_weighed_by_sizes_that_are_good_on_all(
    shape: tuple[int, int, int, int], cores: int
) -> None:
    described = attention(*shape)
    best = choose(described, MACHINE, cores)
    found = quickly(described, MACHINE, cores, CORES)
    least = estimate(described, best, MACHINE, cores)
    assert least <= estimate(described, found, MACHINE, cores) <= 1.1 * least
    assert cores < CORES or found == best

"""Cycles of products on the 910B, by the types that they multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from davinci import machine
from davinci.simulator import Device

MACHINE = machine.load("ascend910b")


@pytest.mark.parametrize(
    ("kind", "cycles"),
    # 64 x 64 x 64: 16 results of whole fractals, 64 elements deep.
    [("f162f32", 16 * 4), ("bf162f32", 16 * 4), ("s82s32", 16 * 2), ("f322f32", 16 * 16)],
)
def test_depth_of_a_fractal(new_asm: Callable[[], Any], kind: str, cycles: int) -> None:
    asm = new_asm()
    asm.emit(f"mad.{kind}", c=0, a=0, b=0, m=64, k=64, n=64, init=1)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    device = Device(MACHINE, 1 << 20, data=False, checks=False)
    profile = device.launch("test", {"AIC": program}, [])
    assert profile.per_block[0].unit_cycles[f"mad.{kind}"] == cycles + MACHINE.cube.occupancy_cycles

"""Cycles of products on the 910B, by the types that they multiply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device
from split_support import Split

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


def test_results_reach_l1_at_the_rate_of_the_conversion(new_asm: Callable[[], Any]) -> None:
    """64 elements a cycle, 128 bytes, and 20 cycles (docs/hardware.md a3)."""
    asm = new_asm()
    sizes = {"n_size": 128, "m_size": 48, "src_stride": 48, "dst_stride": 48}
    asm.emit("fixpipe_to_l1.f322f16", dst=0, src=0, **sizes)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    device = Device(MACHINE, 1 << 20, data=False, checks=False)
    profile = device.launch("test", {"AIC": program}, [])
    assert profile.pipes["PIPE_FIX"] == 20 + 128 * 48 // 64


@pytest.mark.parametrize(("split", "rows"), [(0, 64), (1, 32)])
def test_both_vector_cores_get_their_halves_at_once(
    new_asm: Callable[[], Any], split: int, rows: int
) -> None:
    """On the 950: 64 elements a cycle to each, and 26 cycles (docs/hardware.md f)."""
    asm = new_asm()
    sizes = {"n_size": 128, "m_size": 64, "src_stride": 64, "dst_stride": 128}
    asm.emit("fixpipe_to_ub.f32", dst=0, src=0, split=split, core_stride=8192 * split, **sizes)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    def nothing(arguments: Any, block: int, blocks: int, core: Any) -> None:
        """Vector cores that only have the UB."""

    device = Device(machine.load("ascend950"), 1 << 20, data=False, checks=False)
    profile = device.launch("test", {"AIC": program, "AIV": nothing}, [])
    assert profile.pipes["PIPE_FIX"] == 26 + 128 * rows * 4 // 128


@pytest.mark.parametrize("ordered", [True, False])
def test_a_product_is_the_factor_of_the_next(split: Split, ordered: bool) -> None:
    """16 x 16 ones times ones, times ones: without leaving the core, and without a flag a race."""
    split.device.write(split.gm, np.ones(512, np.float16))

    def product(asm: Any, a: int) -> None:
        asm.emit("load_cbuf_to_ca.f16", dst=0, src=a, repeat=1)
        asm.emit("load_cbuf_to_cb.f16", dst=0, src=512, repeat=1)
        asm.flag(Pipe.MTE1, Pipe.M)
        asm.emit("mad.f162f32", c=0, a=0, b=0, m=16, k=16, n=16, init=1)
        asm.flag(Pipe.M, Pipe.FIX)

    def program(asm: Any, block: int, sub: int) -> None:
        split.load(asm, 0)
        asm.flag(Pipe.MTE2, Pipe.MTE1)
        product(asm, 0)
        sizes = {"n_size": 16, "m_size": 16, "src_stride": 16, "dst_stride": 16}
        asm.emit("fixpipe_to_l1.f322f16", dst=1024, src=0, **sizes)
        if ordered:
            asm.flag(Pipe.FIX, Pipe.MTE1)
            asm.flag(Pipe.FIX, Pipe.M)
        product(asm, 1024)
        asm.emit("fixpipe.f32", dst=split.gm + 1024, src=0, nz2nd=1, **sizes)

    if ordered:
        split.run(AIC=program)
        assert (split.device.read(split.gm + 1024, np.float32, (256,)) == 256).all()
    else:
        with pytest.raises(DeviceFault, match="fixpipe_to_l1"):
            split.run(AIC=program)

"""Sums of bytes that are scaled on their way out of L0C, by a number or by scales in UB."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device

MTE2, MTE1, M, V, MTE3 = Pipe.MTE2, Pipe.MTE1, Pipe.M, Pipe.V, Pipe.MTE3
SCALES = 0x800
FRACTAL = 512


class Case:
    """A product [16, 32] x [32, 32] of bytes whose two fractals leave L0C."""

    def __init__(self, device: Device) -> None:
        rng = np.random.default_rng(5)
        self.a = rng.integers(-128, 128, (16, 32), np.int8)
        self.b = rng.integers(-128, 128, (32, 32), np.int8)
        self.scales = rng.uniform(0.001, 0.1, (2, 16)).astype(np.float16)
        self.sums = self.a.astype(np.int32) @ self.b.astype(np.int32)
        arrays = self.a, self.b.T.copy(), self.scales
        self.places = [device.allocate(4096) for _ in range(4)]
        for place, array in zip(self.places, arrays, strict=False):
            device.write(place, array)

    def multiply(self, asm: Any) -> None:
        a, b, scales, _ = self.places
        asm.emit("copy_gm_to_cbuf", dst=0, src=a, n_burst=1, len_burst=16)
        asm.emit("copy_gm_to_cbuf", dst=4096, src=b, n_burst=1, len_burst=32)
        asm.flag(MTE2, MTE1)
        asm.emit("copy_gm_to_ubuf", dst=SCALES, src=scales, n_burst=1, len_burst=2)
        asm.emit("load_cbuf_to_ca.s8", src_stride=1, repeat=1)
        asm.emit("load_cbuf_to_cb.s8", src=4096, src_stride=1, repeat=2)
        asm.flag(MTE1, M)
        asm.emit("mad.s82s32", m=16, k=32, n=32, init=1)
        asm.flag(M, V)

    def leave(self, asm: Any, kind: str, bits: list[int]) -> None:
        """Each fractal with what DEQSCALE is to hold for it."""
        for number, word in enumerate(bits):
            place = {"dst": number * FRACTAL, "src": number * 2 * FRACTAL}
            asm.emit("set_deqscale", bits=word)
            asm.emit(f"copy_matrix_cc_to_ubuf.{kind}", n_burst=1, len_burst=1, **place)
        asm.flag(V, MTE3)
        asm.emit("copy_ubuf_to_gm", dst=self.places[3], src=0, n_burst=1, len_burst=32)

    def result(self, device: Device) -> Any:
        return device.read(self.places[3], np.float16, (2, 16, 16)).transpose(1, 0, 2)


def test_scales_of_columns(asm: Any, device: Device) -> None:
    case = Case(device)
    case.multiply(asm)
    asm.flag(MTE2, V, 1)
    case.leave(asm, "s322f16v", [SCALES // 32, SCALES // 32 + 1 | 1 << 15])
    asm.run(device)
    want = (case.sums.reshape(16, 2, 16) * case.scales.astype(np.float64)).astype(np.float16)
    want[:, 1] = np.maximum(want[:, 1], 0)
    np.testing.assert_array_equal(case.result(device), want)


def test_one_scale_for_each_copy(asm: Any, device: Device) -> None:
    case = Case(device)
    case.multiply(asm)
    numbers = case.scales[:, 0]
    case.leave(asm, "s322f16", numbers.view(np.uint16).tolist())
    asm.run(device)
    scales = numbers.astype(np.float64)[:, None]
    want = (case.sums.reshape(16, 2, 16) * scales).astype(np.float16)
    np.testing.assert_array_equal(case.result(device), want)


@pytest.mark.parametrize(
    ("flag", "block", "message"),
    [
        (False, SCALES // 32, "race"),
        (True, SCALES // 32 + 2, "nobody wrote"),
        (True, (1 << 15) - 1, "out of bounds"),
    ],
)
def test_what_is_wrong_with_scales(
    asm: Any, device: Device, flag: bool, block: int, message: str
) -> None:
    case = Case(device)
    case.multiply(asm)
    if flag:
        asm.flag(MTE2, V, 1)
    case.leave(asm, "s322f16v", [block])
    with pytest.raises(DeviceFault, match=message):
        asm.run(device)

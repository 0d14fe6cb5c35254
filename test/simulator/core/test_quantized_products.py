"""A layer of bytes on a cube core of the 910B, by hand: bias, product, scales of columns, relu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.isa.quantize import word
from davinci.isa.unit_flags import FLIP
from davinci.simulator import Device
from split_support import Split

M, K, N = 48, 64, 96
WORDS, BIAS, A, B, RESULT = 0, 1024, 2048, 8192, 16384
"""Places in global memory, and in L1."""


class Layer:
    """C = s8(relu(A B + bias) * scale), a scale for each column."""

    def __init__(self, split: Split, kind: str = "s322b8v") -> None:
        rng = np.random.default_rng(3)
        self.split, self.kind = split, kind
        self.a, self.b = rng.integers(-8, 8, (M, K)), rng.integers(-8, 8, (K, N))
        self.bias = rng.integers(-500, 500, N).astype(np.int32)
        self.scales = rng.choice([0.25, 0.125, 0.0625, 0.03125], N)
        self.ordered = {"words", "bias"}
        put = split.device.write
        words = np.array([word(scale) for scale in self.scales], np.uint64)
        put(split.gm + WORDS, words)
        put(split.gm + BIAS, self.bias)
        put(split.gm + A, self.a.reshape(M // 16, 16, 2, 32).swapaxes(1, 2).astype(np.int8))
        b = self.b.reshape(2, 32, N // 16, 16).transpose(0, 2, 3, 1)
        put(split.gm + B, np.ascontiguousarray(b).astype(np.int8))

    def program(self, asm: Any, block: int, sub: int) -> None:
        for at, size in ((WORDS, 8 * N), (BIAS, 4 * N), (A, M * K), (B, K * N)):
            at_gm = self.split.gm + at
            asm.emit("copy_gm_to_cbuf", dst=at, src=at_gm, n_burst=1, len_burst=-(-size // 32))
        asm.flag(Pipe.MTE2, Pipe.MTE1)
        asm.flag(Pipe.MTE2, Pipe.FIX)
        asm.emit("copy_cbuf_to_fbuf", dst=0, src=WORDS, n_burst=1, len_burst=8 * N // 128)
        bias = {"dst": 0, "src": BIAS, "n_burst": 1, "len_burst": 4 * N // 64}
        if "bias" in self.ordered:
            asm.emit("copy_cbuf_to_bt", **bias)
        asm.emit("load_cbuf_to_ca.s8", dst=0, src=A, src_stride=1, repeat=M * K // 512)
        asm.emit("load_cbuf_to_cb.s8", dst=0, src=B, src_stride=1, repeat=K * N // 512)
        asm.flag(Pipe.MTE1, Pipe.M)
        if "bias" not in self.ordered:
            asm.emit("copy_cbuf_to_bt", **bias)
        asm.emit("mad_bias.s82s32", c=0, a=0, b=0, bias=0, m=M, k=K, n=N, unit_flag=FLIP)
        if "words" in self.ordered:
            asm.barrier(Pipe.FIX)
        asm.emit("set_fpc", bits=0)
        asm.emit("set_quant_pre", bits=word(0.25))
        sizes = {"n_size": N, "m_size": M, "src_stride": M, "dst_stride": N, "nz2nd": 1}
        to = self.split.gm + RESULT
        asm.emit(f"fixpipe.{self.kind}", dst=to, src=0, relu=1, unit_flag=FLIP, **sizes)


@pytest.mark.parametrize("kind", ["s322b8v", "s322b8"])
def test_a_layer(split: Split, kind: str) -> None:
    layer = Layer(split, kind)
    split.run(AIC=layer.program)
    sums = np.maximum(layer.a @ layer.b + layer.bias, 0)
    scales = layer.scales if kind.endswith("v") else 0.25
    expected = np.clip(np.floor(sums * scales + 0.5), -128, 127).astype(np.int8)
    assert np.array_equal(split.device.read(split.gm + RESULT, np.int8, (M, N)), expected)


@pytest.mark.parametrize("left_out", ["words", "bias"])
def test_tables_are_waited_for(split: Split, left_out: str) -> None:
    """A product that does not wait for its bias is a race, fixpipe that does not for its words."""
    layer = Layer(split)
    layer.ordered.remove(left_out)
    with pytest.raises(DeviceFault, match="race"):
        split.run(AIC=layer.program)


def test_words_that_nobody_wrote(split: Split) -> None:
    """FPC names a place in FB that is empty."""
    layer = Layer(split)

    def elsewhere(asm: Any, block: int, sub: int) -> None:
        layer.program(asm, block, sub)
        for name, row in zip(asm.names, asm.rows, strict=True):
            if name == "set_fpc":
                row[1] = 7 << 8

    with pytest.raises(DeviceFault, match=r"reads bytes that nobody wrote.*FB"):
        split.run(AIC=elsewhere)


def test_times(new_asm: Callable[[], Any]) -> None:
    """32 bytes a cycle to both tables and 64 elements a cycle to L1, 20 cycles each; a product with
    a bias takes as long as one without (docs/hardware.md a3, b1)."""
    where = machine.load("ascend910b")
    sizes = {"n_size": 128, "m_size": 48, "src_stride": 48, "dst_stride": 48}
    for mnemonic, pipe, cycles, values in (
        ("copy_cbuf_to_bt", "PIPE_MTE1", 20 + 1024 // 32, {"n_burst": 1, "len_burst": 16}),
        ("copy_cbuf_to_fbuf", "PIPE_FIX", 20 + 2048 // 32, {"n_burst": 1, "len_burst": 16}),
        ("fixpipe_to_l1.f322b8", "PIPE_FIX", 20 + 128 * 48 // 64, sizes),
        ("mad_bias.f162f32", "PIPE_M", 4 + 61, {"m": 16, "k": 64, "n": 16}),
    ):
        asm = new_asm()
        asm.emit(mnemonic, **values)

        def program(arguments: Any, block: int, blocks: int, core: Any, asm: Any = asm) -> None:
            core.consume(asm.array())

        device = Device(where, 1 << 20, data=False, checks=False)
        assert device.launch("test", {"AIC": program}, []).pipes[pipe] == cycles, mnemonic

"""Stores that add to global memory: sums, and what needs an order beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import DTYPES, Pipe
from davinci.simulator import Device
from split_support import ALL, Split, signal, wait

BYTES = 64
"""Size of a buffer: two blocks."""

New = Callable[[], Any]


class Adding:
    """A device with a buffer of ones, and programs that fill UB and store it there."""

    def __init__(self, new_asm: New, name: str, dtype: str) -> None:
        self.device, self.dtype, self._new = Device(machine.load(name), 1 << 20), dtype, new_asm
        self.target, self.source = self.device.allocate(BYTES), self.device.allocate(BYTES)
        self.lanes = BYTES // DTYPES[dtype].itemsize
        self.device.write(self.target, np.ones(self.lanes, DTYPES[dtype]))
        self.device.write(self.source, np.arange(self.lanes).astype(DTYPES[dtype]))

    def begin(self) -> Any:
        """A program that has the source in UB."""
        asm = self._new()
        asm.emit("copy_gm_to_ubuf", dst=0, src=self.source, n_burst=1, len_burst=2)
        asm.flag(Pipe.MTE2, Pipe.MTE3)
        return asm

    def add(self, asm: Any, dtype: str = "") -> None:
        asm.emit(f"set_atomic_{dtype or self.dtype}")
        self.store(asm)
        asm.emit("set_atomic_none")

    def store(self, asm: Any) -> None:
        asm.emit("copy_ubuf_to_gm", dst=self.target, src=0, n_burst=1, len_burst=2)

    def load(self, asm: Any) -> None:
        asm.emit("copy_gm_to_ubuf", dst=4096, src=self.target, n_burst=1, len_burst=2)

    def found(self) -> Any:
        return self.device.read(self.target, DTYPES[self.dtype], (self.lanes,))

    def launch(self, blocks: Sequence[Any]) -> Any:
        """Runs a program for each block."""

        def program(arguments: Any, block: int, count: int, core: Any) -> None:
            core.consume(blocks[block].array())

        kind = "AIV" if self.device.machine.split else "AICORE"
        return self.device.launch("test", {kind: program}, [], len(blocks))


@pytest.fixture
def adding(new_asm: New) -> Adding:
    return Adding(new_asm, "ascend910", "f32")


@pytest.mark.parametrize(
    ("name", "dtype"),
    [("ascend910", "f32")]
    + [("ascend310p", dtype) for dtype in ("f32", "f16", "s16")]
    + [("ascend910b", dtype) for dtype in ("f32", "f16", "bf16", "s16", "s32", "s8")],
)
def test_sums(new_asm: New, name: str, dtype: str) -> None:
    """Twice from each of three blocks; what comes behind `set_atomic_none` overwrites."""
    adding = Adding(new_asm, name, dtype)
    blocks = []
    for _ in range(3):
        asm = adding.begin()
        for _ in range(2):
            adding.add(asm)
        blocks.append(asm)
    profile = adding.launch(blocks)
    expected = 1 + 6 * np.arange(adding.lanes).astype(DTYPES[dtype])
    assert np.array_equal(adding.found(), expected.astype(DTYPES[dtype]))
    assert profile.gm_read_bytes == 3 * 3 * BYTES, "an addition reads what it writes"
    assert profile.gm_write_bytes == 3 * 2 * BYTES
    asm = adding.begin()
    adding.store(asm)
    adding.launch([asm])
    assert np.array_equal(adding.found(), np.arange(adding.lanes).astype(DTYPES[dtype]))


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16", "s16", "s32", "s8"])
@pytest.mark.parametrize("which", ["max", "min"])
def test_maxima_and_minima(new_asm: New, which: str, dtype: str) -> None:
    """Two blocks, of which nothing orders the stores; one that adds may not be among them."""
    adding = Adding(new_asm, "ascend910b", dtype)
    adding.device.write(adding.target, np.full(adding.lanes, 5, DTYPES[dtype]))
    blocks = [adding.begin(), adding.begin()]
    for asm in blocks:
        adding.add(asm, f"{which}_{dtype}")
    adding.launch(blocks)
    function = np.maximum if which == "max" else np.minimum
    expected = function(np.arange(adding.lanes), 5).astype(DTYPES[dtype])
    assert np.array_equal(adding.found(), expected)
    blocks = [adding.begin(), adding.begin()]
    adding.add(blocks[0], f"{which}_{dtype}")
    adding.add(blocks[1], dtype)
    with pytest.raises(DeviceFault, match="race between blocks"):
        adding.launch(blocks)


def test_integers_wrap_around_and_halves_overflow(new_asm: New) -> None:
    adding = Adding(new_asm, "ascend910b", "s8")
    adding.device.write(adding.target, np.full(BYTES, 127, np.int8))
    asm = adding.begin()
    adding.add(asm)
    adding.launch([asm])
    assert adding.found()[:3].tolist() == [127, -128, -127]
    adding = Adding(new_asm, "ascend310p", "f16")
    adding.device.write(adding.target, np.full(adding.lanes, 65504, np.float16))
    adding.device.write(adding.source, np.full(adding.lanes, 65504, np.float16))
    asm = adding.begin()
    adding.add(asm)
    assert adding.launch([asm]).lost.overflows == adding.lanes
    assert np.isinf(adding.found()).all()


@pytest.mark.parametrize(("name", "dtype"), [("ascend910", "f16"), ("ascend310", "f32")])
def test_types_that_a_machine_has_not(new_asm: New, name: str, dtype: str) -> None:
    adding = Adding(new_asm, name, "f32")
    asm = adding.begin()
    adding.add(asm, dtype)
    with pytest.raises(DeviceFault, match=f"set_atomic_{dtype}"):
        adding.launch([asm])


def test_target_is_read(adding: Adding) -> None:
    adding.target = adding.device.allocate(BYTES)
    asm = adding.begin()
    adding.add(asm)
    with pytest.raises(DeviceFault, match="bytes that nobody wrote"):
        adding.launch([asm])


def test_runs_of_no_whole_elements(split: Split) -> None:
    def program(asm: Any, block: int, sub: int) -> None:
        split.read(asm, 0)
        asm.flag(Pipe.MTE2, Pipe.MTE3)
        asm.emit("set_atomic_f32")
        asm.emit("copy_ubuf_to_gm_align.b16", dst=split.gm, src=8192, n_burst=1, len_burst=6)

    with pytest.raises(DeviceFault, match="found runs of 6 bytes, expected a multiple of 4"):
        split.run(AIV=program)


@pytest.mark.parametrize("nz2nd", [0, 1])
def test_results_of_the_cube_are_added(split: Split, nz2nd: int) -> None:
    """16 x 16 ones times ones, moved out twice; the sums are of the stored type."""
    split.device.write(split.gm, np.ones(512, np.float16))

    def program(kind: str) -> Any:
        def build(asm: Any, block: int, sub: int) -> None:
            split.load(asm, 0)
            asm.flag(Pipe.MTE2, Pipe.MTE1)
            asm.emit("load_cbuf_to_ca.f16", dst=0, src=0, repeat=1)
            asm.emit("load_cbuf_to_cb.f16", dst=0, src=512, repeat=1)
            asm.flag(Pipe.MTE1, Pipe.M)
            asm.emit("mad.f162f32", c=0, a=0, b=0, m=16, k=16, n=16, init=1)
            asm.flag(Pipe.M, Pipe.FIX)
            asm.emit("set_atomic_f32")
            sizes = {"n_size": 16, "m_size": 16, "dst_stride": 16, "src_stride": 16}
            for _ in range(2):
                asm.emit(f"fixpipe.{kind}", dst=split.gm + 1024, src=0, nz2nd=nz2nd, **sizes)

        return build

    split.run(AIC=program("f32"))
    assert (split.device.read(split.gm + 1024, np.float32, (256,)) == 32).all()
    with pytest.raises(DeviceFault, match="adds: found f32, expected f16"):
        split.run(AIC=program("f322f16"))


@pytest.mark.parametrize(
    ("steps", "race"),
    [
        ("add add", ""),
        ("add store", "writes"),
        ("store add", "reads"),
        ("add flag load", ""),
        ("add load", "reads"),
        ("load add", "writes"),
    ],
)
def test_order_within_a_core(adding: Adding, steps: str, race: str) -> None:
    asm = adding.begin()
    for step in steps.split():
        if step == "flag":
            asm.flag(Pipe.MTE3, Pipe.MTE2, 1)
        else:
            getattr(adding, step)(asm)
    if not race:
        adding.launch([asm])
        return
    with pytest.raises(DeviceFault, match=f"race: it {race}"):
        adding.launch([asm])


@pytest.mark.parametrize(
    ("first", "second", "race"),
    [
        ("add", "add", ""),
        ("add", "store", "block 1 writes .* which block 0 adds to"),
        ("store", "add", "block 0 writes .* which block 1 adds to"),
        ("load", "add", "block 0 reads .* which block 1 adds to"),
        ("store", "load", "block 1 reads .* which block 0 writes"),
    ],
)
def test_blocks(adding: Adding, first: str, second: str, race: str) -> None:
    blocks = []
    for step in (first, second):
        asm = adding.begin()
        getattr(adding, step)(asm)
        blocks.append(asm)
    if not race:
        adding.launch(blocks)
        return
    with pytest.raises(DeviceFault, match=race):
        adding.launch(blocks)


def test_blocks_that_add_different_types(new_asm: New) -> None:
    adding = Adding(new_asm, "ascend310p", "f32")
    blocks = [adding.begin() for _ in range(2)]
    for asm, dtype in zip(blocks, ("f32", "f16"), strict=True):
        adding.add(asm, dtype)
    with pytest.raises(DeviceFault, match=r"block 1 adds to .* which block 0 adds to"):
        adding.launch(blocks)


@pytest.mark.parametrize("ordered", [True, False])
def test_cores_of_a_split_machine(split: Split, ordered: bool) -> None:
    """Two vector cores add to the same bytes, then one reads them."""

    def program(asm: Any, block: int, sub: int) -> None:
        asm.emit("set_vector_mask", low=(1 << 64) - 1)
        asm.emit("vector_dup.s32", dst=0, repeat=4, dst_rep_stride=8, value=3)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("set_atomic_s32")
        asm.emit("copy_ubuf_to_gm", dst=split.gm, src=0, n_burst=1, len_burst=32)
        if ordered:
            signal(asm, ALL)
            wait(asm)
        if block == 1:
            split.read(asm, 0)

    if ordered:
        split.run(2, AIV=program)
        assert (split.device.read(split.gm, np.int32, (256,)) == 6).all()
        return
    with pytest.raises(DeviceFault, match="race"):
        split.run(2, AIV=program)


TEXT = """
module {
  func.func @main(%x: memref<64xf32> {ascend.name = "x"},
                  %z: memref<64xf32> {ascend.name = "z", ascend.output}) attributes {ascend.entry} {
    call @copy(%x, %z) : (memref<64xf32>, memref<64xf32>) -> ()
    call @add(%x, %z) {ascend.blocks = 6} : (memref<64xf32>, memref<64xf32>) -> ()
    return
  }
  func.func private @copy(memref<64xf32>, memref<64xf32>)
      attributes {ascend.launch = @kernels::@copy}
  func.func private @add(memref<64xf32>, memref<64xf32>)
      attributes {ascend.launch = @kernels::@add}
  module @kernels {
KERNELS
  }
}
"""

KERNEL = """
    func.func @NAME(%x: !llvm.ptr<1>, %z: !llvm.ptr<1>)
        attributes {ascend.kernel, ascend.op = "NAME", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : i64
      %a = llvm.inttoptr %c0 : i64 to !llvm.ptr<6>
      "hivm.copy_gm_to_ubuf"(%a, %x) {n_burst = 1, len_burst = 8, src_gap = 0, dst_gap = 0}
          : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
      "hivm.set_flag"() {src_pipe = 4, dst_pipe = 5, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 5, event = 0} : () -> ()
      "hivm.MODE"() : () -> ()
      "hivm.copy_ubuf_to_gm"(%z, %a) {n_burst = 1, len_burst = 8, src_gap = 0, dst_gap = 0}
          : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()
      return
    }
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_kernels_in_text(processes: int) -> None:
    """One kernel overwrites, the six blocks of the other add: the same in several processes."""
    modes = {"copy": "set_atomic_none", "add": "set_atomic_f32"}
    kernels = [KERNEL.replace("NAME", name).replace("MODE", mode) for name, mode in modes.items()]
    executable = davinci.compile(TEXT.replace("KERNELS", "".join(kernels)))
    executable.processes = processes
    x = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    expected = x.copy()
    for _ in range(6):
        expected += x
    assert np.array_equal(executable.run({"x": x})["z"], expected)


KINDS = ("add", "store", "load")
SIZE = 8
"""Blocks of 32 bytes that random programs touch."""


def test_random_blocks_against_an_oracle(new_asm: New, adding: Adding) -> None:
    """Some ranges that each of three blocks adds to, stores to or loads, one after the other: a
    race wherever two blocks meet in a byte, unless both only add or only load."""
    rng = np.random.default_rng(5)
    device = adding.device
    gm = device.allocate(32 * SIZE)
    races = 0
    for _ in range(300):
        device.write(gm, np.zeros(8 * SIZE, np.float32))
        sums, blocks = np.zeros(8 * SIZE, np.float32), []
        touched: list[dict[str, set[int]]] = []
        for _ in range(3):
            asm, own = adding.begin(), {kind: set[int]() for kind in KINDS}
            for _ in range(rng.integers(1, 4)):
                kind = KINDS[rng.choice(3, p=(0.6, 0.2, 0.2))]
                low, high = sorted(rng.choice(SIZE + 1, 2, replace=False).tolist())
                at = {"n_burst": 1, "len_burst": min(high - low, 2)}
                own[kind] |= set(range(low, low + at["len_burst"]))
                asm.barrier(Pipe.ALL)
                if kind == "load":
                    asm.emit("copy_gm_to_ubuf", dst=4096, src=gm + 32 * low, **at)
                    continue
                asm.emit("set_atomic_f32" if kind == "add" else "set_atomic_none")
                asm.emit("copy_ubuf_to_gm", dst=gm + 32 * low, src=0, **at)
                count = 8 * at["len_burst"]
                part = slice(8 * low, 8 * low + count)
                sums[part] = np.arange(count) + (sums[part] if kind == "add" else 0)
            blocks.append(asm)
            touched.append(own)
        race = any(
            touched[i][a] & touched[j][b]
            for i in range(3)
            for j in range(i)
            for a in KINDS
            for b in KINDS
            if not (a == b and a != "store")
        )
        races += race
        if race:
            with pytest.raises(DeviceFault, match="race between blocks"):
                adding.launch(blocks)
        else:
            adding.launch(blocks)
            assert np.array_equal(device.read(gm, np.float32, (8 * SIZE,)), sums)
    assert 30 < races < 270

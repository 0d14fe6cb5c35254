"""Cycles worked out by hand, for ascend910."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.isa import TIMING_RULES, Pipe
from davinci.simulator import Device
from davinci.simulator.timing.rules import RULES

MTE2, V, M, S = Pipe.MTE2, Pipe.V, Pipe.M, Pipe.S
FIXED, VISIBLE, FLAG, BARRIER, DEPTH = 22, 2, 10, 20, 32
"""VISIBLE: from when the vector unit takes the next instruction until results are visible."""


def dup(asm: Any, repeat: int, scalar_ops: int = 0) -> None:
    asm.emit("vector_dup.f32", scalar_ops, dst=0, repeat=repeat, dst_rep_stride=8)


@pytest.fixture
def quick() -> Device:
    """A device without race checks: these programs only pass the time."""
    device = Device(machine.load("ascend910"), 1 << 24, checks=False)
    device.write(device.allocate(1 << 22), np.zeros(1 << 22, dtype=np.uint8))
    return device


def test_every_rule_of_the_records_exists() -> None:
    assert set(RULES) == set(TIMING_RULES)


def test_scalar_issue(asm: Any, quick: Device) -> None:
    dup(asm, 10, scalar_ops=7)
    assert asm.run(quick).cycles == 8 + FIXED + 10 + VISIBLE


def test_a_pipe_is_sequential(asm: Any, quick: Device) -> None:
    dup(asm, 10)
    dup(asm, 20)
    assert asm.run(quick).cycles == 1 + 2 * FIXED + 30 + VISIBLE


def test_barrier(asm: Any, quick: Device) -> None:
    dup(asm, 10)
    asm.barrier(V)
    dup(asm, 10)
    assert asm.run(quick).cycles == 1 + 2 * (FIXED + 10 + VISIBLE) + BARRIER


def test_barrier_all_stops_the_scalar_unit(asm: Any, quick: Device) -> None:
    dup(asm, 10)
    asm.barrier(Pipe.ALL)
    dup(asm, 10)
    assert asm.run(quick).cycles == 1 + 2 * (FIXED + 10 + VISIBLE) + BARRIER + 1


def test_queue_depth_stalls_the_issue(asm: Any, quick: Device) -> None:
    count = DEPTH + 4
    for _ in range(count):
        dup(asm, 78)
    asm.emit("mad.f162f32", m=16, k=16, n=16, init=1)
    # The instruction after may be issued once the 4th of the vector pipe has started.
    profile = asm.run(quick, timeline=True)
    mad = next(row for row in profile.rows if row.mnemonic == "mad.f162f32")
    assert mad.start == 1 + 3 * (FIXED + 78) + 1
    assert profile.cycles == 1 + count * (FIXED + 78) + VISIBLE


def test_flag(asm: Any, quick: Device) -> None:
    dup(asm, 10)
    asm.flag(V, M)
    asm.emit("mad.f162f32", m=32, k=32, n=32, init=1)
    assert asm.run(quick).cycles == 1 + FIXED + 10 + VISIBLE + FLAG + 8 + 61


def test_flag_waits_for_results_not_for_the_pipe(asm: Any, quick: Device) -> None:
    asm.emit("mad.f162f32", m=32, k=32, n=32, init=1)
    asm.emit("mad.f162f32", m=32, k=32, n=32, init=1)
    asm.flag(M, V)
    dup(asm, 1)
    assert asm.run(quick).cycles == 1 + (8 + 11) + (8 + 61) + FLAG + FIXED + 1 + VISIBLE


def test_scalar_unit_waits_for_a_flag(asm: Any, quick: Device) -> None:
    dup(asm, 10)
    asm.flag(V, S)
    asm.emit("set_vector_mask", low=1)
    assert asm.run(quick).cycles == 1 + FIXED + 10 + VISIBLE + FLAG + 1


def test_wait_before_its_set(asm: Any, quick: Device) -> None:
    asm.wait(M, V)
    dup(asm, 10)
    asm.emit("mad.f162f32", m=16, k=16, n=16, init=1)
    asm.set(M, V)
    assert asm.run(quick).cycles == 3 + 62 + FLAG + FIXED + 10 + VISIBLE


def test_transfers_overlap_their_starts(asm: Any, quick: Device) -> None:
    for i in range(3):
        asm.emit("copy_gm_to_ubuf", dst=8192 * i, src=512, n_burst=1, len_burst=256)
    assert asm.run(quick).cycles == 1 + 3 * 8192 // 128 + 265


@pytest.mark.parametrize("blocks", [1, 8, 16, 32])
def test_cores_share_the_bandwidth(asm: Any, quick: Device, blocks: int) -> None:
    asm.emit("copy_gm_to_ubuf", dst=0, src=512, n_burst=1, len_burst=1024)
    # All blocks read the same bytes: the memory gives them once, the L2 to all others.
    longer = 1 + (blocks - 1) * 0.012
    port, memory, l2 = 32768 / 128 * longer, 32768 / 32 / 32, 32768 * blocks / 32 / 110
    assert asm.run(quick, blocks=blocks).cycles == 1 + 265 + math.ceil(max(port, memory, l2))
    # Now the L2 has them.
    assert asm.run(quick, blocks=blocks).cycles == 1 + 265 + math.ceil(max(port, l2))


def test_a_core_that_moves_less_leaves_its_share(new_asm: Callable[[], Any], quick: Device) -> None:
    """Half of the blocks read half as much: the others get more than their share after that."""

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        length = 1024 if block % 2 else 512
        asm.emit("copy_gm_to_ubuf", dst=0, src=512 + block * 32768, n_burst=1, len_burst=length)
        core.consume(asm.array())

    profile = quick.launch("uneven", program, [], 32)
    small, large = (profile.per_block[i].cycles for i in (0, 1))
    assert small == 1 + 265 + 16384 // 32
    # 32 cores until the small ones are done, 16 after that.
    assert large == 1 + 265 + 16384 // 32 + 16384 // 64


def test_reads_and_writes_share_the_bandwidth(asm: Any, quick: Device) -> None:
    asm.emit("copy_gm_to_ubuf", dst=0, src=512, n_burst=1, len_burst=1024)
    asm.emit("copy_ubuf_to_gm", src=65536, dst=65536 + 512, n_burst=1, len_burst=1024)
    quick.flush()
    profile = asm.run(quick, blocks=32, timeline=True)
    first, second = (row for row in profile.rows if row.core == 0)
    assert first.end == 1 + math.ceil(32768 / 128 * (1 + 31 * 0.012)) + 265
    # The L2 takes what is written: nothing had to leave it. Both pass it in turn.
    assert second.end == math.ceil(1 + 32768 * (1 / 110 + 1 / 86)) + 220


def test_bank_conflicts(new_asm: Callable[[], Any], quick: Device) -> None:
    def cycles(src0: int, src1: int, dst: int, **fields: int) -> int:
        asm = new_asm()
        strides = {f"{side}_rep_stride": 8 for side in ("dst", "src0", "src1")} | fields
        asm.emit("vadd.f32", src0=src0, src1=src1, dst=dst, repeat=64, **strides)
        result: int = asm.run(quick).cycles
        return result - 1 - VISIBLE

    other, odd = 0x10000, 0x10100
    assert cycles(0, 0x4100, other) == FIXED + 64
    assert cycles(0, 0x4000, other) == FIXED + 128
    assert cycles(0, other, 0x14100) == FIXED + 128
    # A result is written 15 cycles after its sources were read. Where repeats alternate between
    # the halves of the groups it meets the other half: an even distance would conflict.
    assert cycles(0, odd, 0x4000) == FIXED + 64
    assert cycles(0, odd, odd) == FIXED + 64
    # Two cycles of reading make the distance 16: the 8th repeat meets its own half, then every
    # 8th after that, as all in between keep the delay.
    assert cycles(0, 0x4000, 0x8000) == FIXED + 128 + 7
    # Every write meets a read: turns, but for the 15 repeats that are under way at the end.
    assert cycles(0, odd, 0x4020) == FIXED + 64 + 64 - 15


def test_one_block_of_a_source_conflicts(new_asm: Callable[[], Any], quick: Device) -> None:
    """A block for all lanes meets the other source in half of the repeats, or in none."""

    def cycles(rep_stride: int, dst: int) -> int:
        asm = new_asm()
        strides = {"dst_rep_stride": 8, "src1_rep_stride": 8, "src0_blk_stride": 0}
        strides |= {"src0_rep_stride": rep_stride}
        asm.emit("vadd.f32", src0=0, src1=0x10100, dst=dst, repeat=64, **strides)
        result: int = asm.run(quick).cycles
        return result - 1 - VISIBLE

    assert cycles(8, 0x10100) == FIXED + 64
    assert cycles(1, 0x20000) == FIXED + 64 + 32
    # Where it does not in a row, writes of the same bank meet reads.
    assert cycles(1, 0x10100) == FIXED + 64 + 43


def test_an_operand_in_two_banks(new_asm: Callable[[], Any], quick: Device) -> None:
    def cycles(src: int, dst: int) -> int:
        asm = new_asm()
        asm.emit("vabs.f32", src=src, dst=dst, repeat=64, src_rep_stride=8, dst_rep_stride=9)
        result: int = asm.run(quick).cycles
        return result - 1 - VISIBLE

    apart = cycles(0, 0x20000)
    assert cycles(0x10000 - 32 * 256, 0x20000) == apart
    assert cycles(0, 0x8000) > cycles(0x10000 - 32 * 256, 0x8000) > apart


def test_strided_writes_conflict(new_asm: Callable[[], Any], quick: Device) -> None:
    for stride, beats in ((1, 1), (2, 1), (8, 4), (16, 8), (17, 1)):
        asm = new_asm()
        strides = {"dst_blk_stride": stride, "dst_rep_stride": 8 * stride}
        asm.emit("vector_dup.f32", dst=0, repeat=16, **strides)
        assert asm.run(quick).cycles == 1 + FIXED + 16 * beats + VISIBLE


def test_short_rows_cost_whole_lines(new_asm: Callable[[], Any], quick: Device) -> None:
    def cycles(src: int, rows: int, blocks: int) -> tuple[int, int]:
        """Not in the L2, and in it."""
        asm = new_asm()
        gap = {"src_gap": 1024 - blocks}
        asm.emit("copy_gm_to_ubuf", dst=0, src=src, n_burst=rows, len_burst=blocks, **gap)
        quick.flush()
        cold, warm = (asm.run(quick).cycles - 1 - 265 for _ in range(2))
        return cold, warm

    late = math.ceil(16 * 7.6)
    assert cycles(512, 16, 16) == (16 * 512 // 128 + late, 16 * 512 // 128)
    assert cycles(512, 16, 4) == (16 * 512 // 128 + late, 16 * 512 // 128)
    assert cycles(512 + 64, 16, 16) == (2 * 16 * 512 // 128 + late, 2 * 16 * 512 // 128)
    (long,) = {cycles(512, 1, 64)}
    assert long == (2048 // 128, 2048 // 128)


def test_mte1_rates(new_asm: Callable[[], Any], quick: Device) -> None:
    for name, rate in (("load_cbuf_to_ca.f16", 256), ("load_cbuf_to_cb.f16", 128)):
        asm = new_asm()
        asm.emit(name, src_stride=1, repeat=64)
        assert asm.run(quick).cycles == 1 + 24 + 64 * 512 // rate


@pytest.mark.parametrize(
    ("name", "stride", "cycles"),
    [
        ("ca", 1, 2 + (2 + 2) + 2),  # the second fractal has parts of two rows
        ("cb", 1, 4 + (2 + 4) + 4),
        ("ca", 2, 4 + (4 + 2) + 4),
        ("ca", 3, 3 * 16),
        ("cb", 8, 3 * 18),
    ],
)
def test_load3d_rates(asm: Any, quick: Device, name: str, stride: int, cycles: int) -> None:
    asm.emit("set_fmatrix", l1_w=24 * stride, l1_h=2, pad_left=0)
    fields = {f"{what}_{side}": 1 for what in ("filter", "dilation") for side in "hw"}
    fields |= {"stride_w": stride, "stride_h": 1, "jump_stride": 1, "repeat_mode": 1}
    asm.emit(f"img2col_cbuf_to_{name}.f16", repeat=3, **fields)
    assert asm.run(quick).cycles == 2 + 24 + cycles


def test_a_late_flag_wakes_each_instruction_once(asm: Any, quick: Device) -> None:
    """The two pipes hand a flag to and fro behind a wait that is answered last."""
    asm.wait(MTE2, V)
    for _ in range(6):
        asm.flag(V, M)
        asm.flag(M, V)
    dup(asm, 10)
    asm.set(MTE2, V)
    profile = asm.run(quick, timeline=True)
    assert sorted(row.index for row in profile.rows) == list(range(len(asm.rows)))
    start = len(asm.rows) + FLAG + 6 * 2 * FLAG
    assert profile.cycles == start + FIXED + 10 + VISIBLE


def test_a_queue_of_waits_may_be_long(asm: Any) -> None:
    """No depth of the host's stack is needed."""
    path = machine.DIRECTORY / "ascend910.toml"
    data = machine.read(path)
    data["sync"]["queue_depth"] = 4000
    deep = machine.parse(data, "deep.toml")
    asm.wait(MTE2, V)
    for _ in range(1500):
        asm.flag(V, M)
        asm.flag(M, V)
    asm.set(MTE2, V)
    asm.run(Device(deep, 1 << 20, checks=False))

"""Each check fires on the program it is for, and not on the same program put right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import BY_OPCODE, INSTRUCTIONS, Pipe, header
from davinci.simulator import Device
from fault_support import buffer, fault

MTE2, V, MTE3, MTE1, M, S = Pipe.MTE2, Pipe.V, Pipe.MTE3, Pipe.MTE1, Pipe.M, Pipe.S
REPEATS = {"dst_rep_stride": 8, "src0_rep_stride": 8, "src1_rep_stride": 8}


def pipeline(asm: Any, device: Device, rounds: int = 4) -> Any:
    """Double-buffered load, two dependent vector instructions, store; every flag is needed."""
    x, y = buffer(device), buffer(device)
    for i in range(rounds):
        ping, event = 8192 * (i % 2), i % 2
        if i >= 2:
            asm.wait(V, MTE2, event)
        asm.emit("copy_gm_to_ubuf", dst=ping, src=x + 512 * i, n_burst=1, len_burst=16)
        asm.flag(MTE2, V, event)
        if i >= 2:
            asm.wait(MTE3, V, event)
        asm.emit("vadd.f32", dst=ping + 1024, src0=ping, src1=ping, repeat=2, **REPEATS)
        if i < rounds - 2:
            asm.set(V, MTE2, event)
        asm.barrier(V)
        asm.emit(
            "vmul.f32", dst=ping + 2048, src0=ping + 1024, src1=ping + 1024, repeat=2, **REPEATS
        )
        asm.flag(V, MTE3, event)
        asm.emit("copy_ubuf_to_gm", dst=y + 512 * i, src=ping + 2048, n_burst=1, len_burst=16)
        if i < rounds - 2:
            asm.set(MTE3, V, event)
    return asm


def matmul(asm: Any, device: Device, rounds: int = 4) -> Any:
    """K-loop with ping-pong in L0A and L0B, one output tile."""
    a, c = buffer(device, 65536), buffer(device)
    asm.emit("copy_gm_to_cbuf", dst=0, src=a, n_burst=1, len_burst=2048)
    asm.flag(MTE2, MTE1)
    for i in range(rounds):
        ping, event = 8192 * (i % 2), i % 2
        if i >= 2:
            asm.wait(M, MTE1, event)
        load = {"src_stride": 1, "repeat": 4}
        asm.emit("load_cbuf_to_ca.f16", dst=ping, src=0, start_index=4 * i, **load)
        asm.emit("load_cbuf_to_cb.f16", dst=ping, src=16384, start_index=4 * i, **load)
        asm.flag(MTE1, M, event)
        asm.emit("mad.f162f32", c=0, a=ping, b=ping, m=32, k=32, n=32, init=int(i == 0))
        if i < rounds - 2:
            asm.set(M, MTE1, event)
    asm.flag(M, V)
    asm.emit("copy_matrix_cc_to_ubuf.f32", dst=0, src=0, n_burst=1, len_burst=4)
    asm.flag(V, MTE3)
    asm.emit("copy_ubuf_to_gm", dst=c, src=0, n_burst=1, len_burst=128)
    return asm


@pytest.mark.parametrize("build", [pipeline, matmul])
def test_every_synchronisation_is_needed(
    build: Callable[..., Any], asm: Any, device: Device
) -> None:
    program = build(asm, device)
    program.run(device)
    names = program.names
    for i, name in enumerate(names):
        if name == "pipe_barrier":
            assert "race" in fault(program.without(i), device)
        if name == "set_flag":
            text = fault(program.without(i), device)
            assert "deadlock" in text or "race" in text
            row = program.rows[i]
            j = next(
                j
                for j in range(i + 1, len(names))
                if names[j] == "wait_flag" and program.rows[j][1] == row[1]
            )
            text = fault(program.without(i, j), device)
            assert "race" in text and "without an order" in text, (i, j)
            assert "flag" in fault(program.without(j), device), "set twice, left set, or a race"


def test_race_message_names_both(asm: Any, device: Device) -> None:
    x = buffer(device)
    asm.emit("copy_gm_to_ubuf", location=1, dst=0, src=x, n_burst=1, len_burst=8)
    asm.emit("vadd.f32", location=2, dst=512, src0=0, src1=0, repeat=1)
    text = fault(asm, device, locations=["", "a.mlir:3:5", "a.mlir:4:5"])
    for part in (
        "kernel test, block 0, instruction #1 vadd.f32 of PIPE_V at a.mlir:4:5",
        "#0 copy_gm_to_ubuf of PIPE_MTE2 at a.mlir:3:5",
        "UB [0x0, 0x100)",
        "set_flag(PIPE_MTE2, PIPE_V, id)",
    ):
        assert part in text


def test_race_inside_a_pipe(new_asm: Callable[[], Any], device: Device) -> None:
    x = buffer(device)

    def program(barrier: bool, second: int) -> Any:
        asm = new_asm()
        asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=16)
        asm.flag(MTE2, V)
        asm.emit("vadd.f32", dst=1024, src0=0, src1=0, repeat=1)
        if barrier:
            asm.barrier(V)
        asm.emit("vadd.f32", dst=second, src0=0, src1=0, repeat=1)
        return asm

    assert "pipe_barrier(PIPE_V)" in fault(program(False, 1024), device)
    program(True, 1024).run(device)
    # A write after a read is ordered by the queue.
    program(False, 0).run(device)


def test_neighbours_are_no_race(asm: Any, device: Device) -> None:
    """Interleaved rows and the lanes beside a mask are different bytes."""
    x = buffer(device)
    asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=4, len_burst=1, dst_gap=1)
    asm.emit("copy_gm_to_ubuf", dst=32, src=x, n_burst=4, len_burst=1, dst_gap=1)
    asm.flag(MTE2, V)
    asm.emit("set_vector_mask", low=0b10101, high=0)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    asm.emit("set_vector_mask", low=0b01010, high=0)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    asm.run(device)
    asm.emit("set_vector_mask", low=0b00010, high=0)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    assert "UB [0x204, 0x208)" in fault(asm, device)


def test_scalar_accesses_take_part(new_asm: Callable[[], Any], device: Device) -> None:
    x = buffer(device)

    def program(ordered: bool) -> Any:
        asm = new_asm()
        asm.emit("scalar_access", stores=1, store_low=x, store_high=x + 4, space=1)
        if ordered:
            asm.flag(S, MTE2)
        asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=1)
        return asm

    assert "set_flag(PIPE_S, PIPE_MTE2, id)" in fault(program(False), device)
    program(True).run(device)


def test_order_goes_through_a_third_pipe(asm: Any, device: Device) -> None:
    x = buffer(device)
    asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=8)
    asm.flag(MTE2, M)
    asm.flag(M, V)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    asm.run(device)


def test_barrier_all_orders_all(asm: Any, device: Device) -> None:
    x = buffer(device)
    asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=8)
    asm.barrier(Pipe.ALL)
    asm.emit("vadd.f32", dst=0, src0=0, src1=0, repeat=1)
    asm.barrier(Pipe.ALL)
    asm.emit("copy_ubuf_to_gm", dst=x, src=0, n_burst=1, len_burst=8)
    asm.run(device)


def test_blocks_race(new_asm: Callable[[], Any], device: Device) -> None:
    x, y = buffer(device), buffer(device)

    def store(block: int, stride: int) -> Any:
        asm = new_asm()
        asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=4)
        asm.flag(MTE2, MTE3)
        gaps = {"n_burst": 2, "len_burst": 2, "dst_gap": 6}
        asm.emit("copy_ubuf_to_gm", dst=y + stride * block, src=0, **gaps)
        return asm.array()

    def launch(stride: int) -> None:
        device.launch("k", lambda a, block, n, core: core.consume(store(block, stride)), [], 4)

    launch(64)
    with pytest.raises(DeviceFault, match="race between blocks: block 1 writes GM byte"):
        launch(32)

    def read_other(arguments: Any, block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        if block == 0:
            asm.emit("copy_gm_to_ubuf", dst=0, src=x + 32, n_burst=1, len_burst=2)
        else:
            asm.emit("vector_dup.f32", dst=0, repeat=1)
            asm.flag(V, MTE3)
            asm.emit("copy_ubuf_to_gm", dst=x + 64 * block, src=0, n_burst=1, len_burst=2)
        core.consume(asm.array())

    with pytest.raises(DeviceFault, match=f"block 0 reads GM byte {x + 64:#x}"):
        device.launch("k", read_other, [], 2)
    device.launch("k", read_other, [], 1)


def test_bounds(new_asm: Callable[[], Any], device: Device) -> None:
    x, end = buffer(device), device.machine.buffers.UB.bytes

    def copy(dst: int, src: int, blocks: int) -> Any:
        asm = new_asm()
        asm.emit("copy_gm_to_ubuf", dst=dst, src=src, n_burst=1, len_burst=blocks)
        return asm

    copy(end - 64, x, 2).run(device)
    assert "out of bounds" in fault(copy(end - 64, x, 3), device)
    assert "GM" in fault(copy(0, (1 << 24) - 32, 2), device)
    assert "out of bounds" in fault(copy(0, (1 << 64) - 32, 1), device)


def test_alignment(new_asm: Callable[[], Any], device: Device) -> None:
    x = buffer(device)
    asm = new_asm()
    asm.emit("copy_gm_to_ubuf", dst=0, src=x + 1, n_burst=1, len_burst=1)
    asm.run(device)
    asm.emit("copy_gm_to_ubuf", dst=16, src=x, n_burst=1, len_burst=1)
    text = fault(asm, device)
    assert "misaligned" in text and "UB 0x10" in text and "multiple of 32" in text


def test_unwritten(new_asm: Callable[[], Any], device: Device) -> None:
    x, y = buffer(device), device.allocate(64)

    def program(blocks: int) -> Any:
        asm = new_asm()
        asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=blocks)
        asm.flag(MTE2, V)
        asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
        return asm

    program(8).run(device)
    text = fault(program(7), device)
    assert "bytes that nobody wrote" in text and "UB byte 0xe0" in text
    with pytest.raises(DeviceFault, match="host reads bytes that nobody wrote"):
        device.read(y, np.float32, (4,))
    unchecked = Device(device.machine, 1 << 20, checks=False)
    unchecked.launch("k", lambda a, b, n, core: core.consume(program(7).array()), [])


def test_masked_read_needs_only_its_lanes(asm: Any, device: Device) -> None:
    x = buffer(device)
    asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=1)
    asm.flag(MTE2, V)
    asm.emit("set_vector_mask", low=0b1010, high=0)
    asm.emit("vadd.f32", dst=512, src0=0, src1=0, repeat=1)
    asm.run(device)
    asm.emit("set_vector_mask", low=0b100001010, high=0)
    asm.emit("vadd.f32", dst=1024, src0=0, src1=0, repeat=1)
    assert "UB byte 0x20" in fault(asm, device)


def test_hand_made_words(new_asm: Callable[[], Any], device: Device) -> None:
    add = INSTRUCTIONS["vadd.f32"]

    def run(*row: int) -> str:
        asm = new_asm()
        asm.raw("raw", [*row, *[0] * (8 - len(row))])
        return fault(asm, device)

    assert "unknown opcode" in run(0)
    assert "unknown opcode" in run(max(BY_OPCODE) + 1)
    assert "dst_blk_stride is out of range" in run(header(add.opcode), 0, 0, 0, 0)
    assert "belong to no field" in run(
        header(add.opcode), 0, 0, 0, add.encode(dict.fromkeys(
            [f.name for f in add.fields] + ["dst", "src0", "src1"], 1))[3] | 1 << 55
    )  # fmt: skip
    dup = INSTRUCTIONS["vector_dup.f32"]
    words = dup.encode({f.name: 1 for f in dup.fields} | {"dst": 0})
    assert "belong to no field" in run(header(dup.opcode), *words[:-1], words[-1] | 1 << 40)
    flag = INSTRUCTIONS["set_flag"]
    assert "src_pipe is out of range" in run(header(flag.opcode), 0xF)
    assert "needs two pipes" in run(header(flag.opcode), 0x11)


def test_not_records(device: Device) -> None:
    with pytest.raises(DeviceFault, match="not a stream of records"):
        device.launch("k", lambda a, b, n, core: core.consume(np.zeros((2, 7), np.uint64)), [])


def test_full_gm() -> None:
    device = Device(machine.load("ascend910"), 4096)
    device.allocate(3000)
    with pytest.raises(DeviceFault, match="global memory is full"):
        device.allocate(600)

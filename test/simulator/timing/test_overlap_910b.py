"""Fixed cycles that pass while the instruction before ends, on the 910B."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from davinci import machine
from davinci.isa import Pipe
from davinci.simulator import Device

MACHINE = machine.load("ascend910b")
PLAIN = MACHINE.model_copy(
    update={
        "vector": MACHINE.vector.model_copy(update={"overlap_cycles": 0}),
        "mte1": MACHINE.mte1.model_copy(update={"overlap_cycles": 0}),
    }
)

HIDDEN, LOADED = MACHINE.vector.overlap_cycles, MACHINE.mte1.overlap_cycles


def saved(kind: str, new_asm: Callable[[], Any], fill: Callable[[Any], None]) -> int:
    """Cycles that overlaps save a program."""
    asm = new_asm()
    fill(asm)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    def cycles(of: machine.Machine) -> int:
        device = Device(of, 1 << 20, data=False)
        return int(device.launch("test", {kind: program}, []).cycles)

    return cycles(PLAIN) - cycles(MACHINE)


def add(asm: Any, dst: int, src0: int) -> None:
    asm.emit("vadd.f32", dst=dst, src0=src0, src1=0x8000, repeat=2, dst_rep_stride=8,
             src0_rep_stride=8, src1_rep_stride=8)  # fmt: skip


@pytest.mark.parametrize(
    ("dst", "src0", "hidden"),
    [
        (0x3000, 0x4000, HIDDEN),
        (0x1200, 0x4000, HIDDEN),  # right behind what the first one writes
        (0x11E0, 0x4000, 0),  # over its last block
        (0x3000, 0x10E0, 0),  # reads of it
        (0x3000, 0x0, HIDDEN),  # reads what it reads
    ],
)
def test_additions(new_asm: Callable[[], Any], dst: int, src0: int, hidden: int) -> None:
    def fill(asm: Any) -> None:
        add(asm, 0x1000, 0x0)
        add(asm, dst, src0)

    assert saved("AIV", new_asm, fill) == hidden


@pytest.mark.parametrize("waits", [False, True])
def test_loads(new_asm: Callable[[], Any], waits: bool) -> None:
    def fill(asm: Any) -> None:
        for i in range(3):
            if waits:
                asm.flag(Pipe.M, Pipe.MTE1)
            asm.emit("load_cbuf_to_ca.f16", dst=i * 8192, src=0, src_stride=1, repeat=16)

    assert saved("AIC", new_asm, fill) == (0 if waits else 2 * LOADED)


def test_reads_and_writes_of_the_l2_have_a_share_each(new_asm: Callable[[], Any]) -> None:
    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        asm, own = new_asm(), 512 + (block << 17)  # lines in common would take longer
        for i in range(64):
            asm.emit("copy_gm_to_ubuf", dst=0, src=own, n_burst=1, len_burst=2000)
            asm.emit("copy_ubuf_to_gm", dst=own + (1 << 16), src=1 << 16, n_burst=1, len_burst=2000)
            if i % 16 == 15:
                asm.barrier(Pipe.ALL)
        core.consume(asm.array())

    def cycles(separate: bool) -> int:
        l2 = MACHINE.l2.model_copy(update={"separate_writes": separate})
        device = Device(MACHINE.model_copy(update={"l2": l2}), 1 << 23, data=False)
        return int(device.launch("test", {"AIV": program}, [], 48).cycles)

    assert 1.3 < cycles(False) / cycles(True) < 2


@pytest.mark.parametrize("src0", [0x1000, 0x4000])
def test_additions_behind_a_barrier(new_asm: Callable[[], Any], src0: int) -> None:
    """The head needs nothing of what is written before the barrier, whatever is read."""

    def fill(asm: Any) -> None:
        add(asm, 0x1000, 0x0)
        asm.emit("pipe_barrier", pipe=Pipe.V)
        add(asm, 0x3000, src0)

    assert saved("AIV", new_asm, fill) == HIDDEN


def test_a_wait_hides_nothing(new_asm: Callable[[], Any]) -> None:
    def fill(asm: Any) -> None:
        add(asm, 0x1000, 0x0)
        asm.emit("pipe_barrier", pipe=Pipe.V)
        asm.emit("set_flag", src_pipe=Pipe.V, dst_pipe=Pipe.MTE2, event=0)
        asm.emit("wait_flag", src_pipe=Pipe.V, dst_pipe=Pipe.MTE2, event=0)
        asm.emit("set_flag", src_pipe=Pipe.MTE2, dst_pipe=Pipe.V, event=0)
        asm.emit("wait_flag", src_pipe=Pipe.MTE2, dst_pipe=Pipe.V, event=0)
        add(asm, 0x3000, 0x4000)

    assert saved("AIV", new_asm, fill) == 0

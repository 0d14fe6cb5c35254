"""Transfers between global memory and the cores of the 910B: past the L2, and rows to fractals."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device
from encoded import encoded

PART = 1024
MACHINE = machine.load("ascend910b")
OFFSET = MACHINE.l2.bypass_offset_bytes or 0


@pytest.fixture
def quick() -> Device:
    """A 910B, with zeros at 512 and after."""
    device = Device(MACHINE, 1 << 24)
    device.write(device.allocate(1 << 22), np.zeros(1 << 22, np.uint8))
    return device


def launch(device: Device, kind: str, asm: Any) -> Any:
    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    return device.launch("test", {kind: program}, [])


def test_an_address_that_bypasses_the_l2_is_the_same_memory(asm: Any, quick: Device) -> None:
    asm.emit("vector_dup.s32", dst=0, repeat=4, dst_rep_stride=8, value=7)
    asm.flag(Pipe.V, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=512, src=0, n_burst=1, len_burst=32)
    asm.barrier(Pipe.MTE3)
    asm.flag(Pipe.MTE3, Pipe.MTE2)
    asm.emit("copy_gm_to_ubuf", dst=8192, src=512 + OFFSET, n_burst=1, len_burst=32)
    asm.flag(Pipe.MTE2, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=512 + OFFSET + PART, src=8192, n_burst=1, len_burst=32)
    profile = launch(quick, "AIV", asm)
    assert (quick.read(512, np.int32, (2 * PART // 4,)) == 7).all()
    # What was written before is in the L2, what was written past it is not.
    assert (profile.traffic.filled_bytes, profile.traffic.written_back_bytes) == (0, PART)


def test_past_the_end_of_the_memory_that_bypasses_the_l2(asm: Any, quick: Device) -> None:
    asm.emit("copy_gm_to_ubuf", dst=0, src=OFFSET + (1 << 24), n_burst=1, len_burst=1)
    with pytest.raises(DeviceFault, match=r"out of bounds.*GM \[0x1000000, 0x1000020\)"):
        launch(quick, "AIV", asm)


def test_a_machine_that_cannot_bypass_the_l2(asm: Any, device: Device) -> None:
    assert device.machine.l2.bypass_offset_bytes is None
    asm.emit("copy_gm_to_ubuf", dst=0, src=OFFSET + 512, n_burst=1, len_burst=1)
    with pytest.raises(DeviceFault, match="out of bounds"):
        asm.run(device)


def test_rows_that_become_fractals(new_asm: Callable[[], Any], quick: Device) -> None:
    def cycles(rows: int, columns: int, row_elements: int, first: int = 0) -> int:
        asm = new_asm()
        asm.emit(
            "copy_gm_to_cbuf_multi_nd2nz.b16",
            src=512 + first,
            nd_num=1,
            n_value=rows,
            d_value=columns,
            src_d_value=row_elements,
            dst_nz_c0_stride=rows,
            dst_nz_n_stride=1,
        )
        launch(quick, "AIC", asm)
        found: int = launch(quick, "AIC", asm).cycles
        return found - 1

    assert cycles(64, 64, 1024) == math.ceil(40.5 + 64 * 2.54 + 64 * 128 / 153)
    assert cycles(64, 256, 1024) == math.ceil(40.5 + 64 * 2.54 + 64 * 512 / 153)
    # Rows that do not begin at whole blocks of 32 bytes.
    odd = math.ceil(40.5 + 64 * (2.54 + 4 * 1.9))
    assert cycles(64, 64, 1023) == cycles(64, 64, 1024, 2) == odd


def test_cube_and_vector_cores_share_the_memory(new_asm: Callable[[], Any], quick: Device) -> None:
    """What cube cores and vector cores read at the same time does not pass the memory faster."""
    size = 32768

    def program(mnemonic: str, which: int) -> Any:
        def run(arguments: Any, block: int, blocks: int, core: Any) -> None:
            asm = new_asm()
            place = OFFSET + 512 + (block * 3 + which + core.sub_block) * size
            asm.emit(mnemonic, dst=0, src=place, n_burst=1, len_burst=size // 32)
            core.consume(asm.array())

        return run

    cube, vector = program("copy_gm_to_cbuf", 0), program("copy_gm_to_ubuf", 1)
    alone = quick.launch("alone", {"AIC": cube}, [], 24).cycles
    start, rate = MACHINE.mte2.start_cycles, MACHINE.gm.read_bytes_per_cycle
    assert alone == pytest.approx(1 + start + size / rate, abs=2)
    both = quick.launch("both", {"AIC": cube, "AIV": vector}, [], 24).cycles
    assert both == pytest.approx(1 + start + 3 * size / rate, abs=2)


def spread(count: int, kind: str = "AIV") -> int:
    """Cycles of 32 KB to UB in so many bursts, which lie a block apart there if there are many."""

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(
            np.array(
                [
                    encoded(
                        "copy_gm_to_ubuf",
                        n_burst=count,
                        len_burst=1024 // count,
                        dst_gap=int(count > 1),
                        src=512,
                    )
                ],
                dtype=np.uint64,
            )
        )

    return Device(MACHINE, 1 << 20, data=False).launch("test", {kind: program}, []).cycles


def test_bursts_apart_in_ub_take_a_cycle_each() -> None:
    unit = MACHINE.mte2
    assert spread(1) == spread(16) == spread(256)
    assert spread(1024) - spread(1) == 1024 - 32768 // unit.port_bytes_per_cycle


def copy_inside_ub(bursts: int, blocks: int) -> int:
    """Cycles of a copy from UB to UB."""

    def program(arguments: Any, block: int, blocks_: int, core: Any) -> None:
        row = encoded("copy_ubuf_to_ubuf", n_burst=bursts, len_burst=blocks, dst=0x10000)
        core.consume(np.array([row], dtype=np.uint64))

    return Device(MACHINE, 1 << 20, data=False).launch("test", {"AIV": program}, []).cycles


@pytest.mark.parametrize(
    ("bursts", "blocks", "moving"), [(1, 384, 384), (64, 8, 64), (8, 1, 1), (9, 3, 6), (1, 1, 1)]
)
def test_eight_bursts_inside_ub_move_at_once(bursts: int, blocks: int, moving: int) -> None:
    assert copy_inside_ub(bursts, blocks) - copy_inside_ub(1, 1) == moving - 1


def rows_to_ub(cores: int, apart: bool) -> int:
    """Cycles of 8 reads of 64 rows of 128 bytes, 1 KB apart, by so many vector cores: all of them
    the same rows, or each its own."""
    size = 8 * 64 * 1024

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        first = 512 + block * size * int(apart)
        rows = {"n_burst": 64, "len_burst": 4, "src_gap": 28}
        reads = [
            encoded("copy_gm_to_ubuf", src=first + i * 64 * 1024, dst=i * 8192, **rows)
            for i in range(8)
        ]
        core.consume(np.array(reads, dtype=np.uint64))

    device = Device(MACHINE, 1 << 26, data=False)
    cycles = 0
    for _ in range(2):  # the second time all is in the L2
        cycles = device.launch("test", {"AIV": program}, [], cores).cycles
    return cycles


@pytest.mark.parametrize("cores", [2, 8, 24, 48])
def test_a_line_serves_the_cores_that_read_it_one_after_the_other(cores: int) -> None:
    gm, rows = MACHINE.gm, 8 * 64
    alone = 4 * rows  # a line at the port's rate
    longer = alone * (1 + (cores - 1) * gm.same_line_percent / 100)
    served = rows * cores * gm.same_line_request_cycles
    more = rows_to_ub(cores, apart=False) - rows_to_ub(cores, apart=True)
    assert more == pytest.approx(max(longer, served) - alone, abs=8)


def test_rows_of_one_line_are_requests_of_their_own(new_asm: Callable[[], Any]) -> None:
    """Fractals of rows of 256 bytes, two of which are a line."""

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        sizes = {"nd_num": 1, "n_value": 128, "d_value": 128, "src_d_value": 128}
        name = "copy_gm_to_cbuf_multi_nd2nz.b16"
        asm.emit(name, src=512, dst_nz_c0_stride=128, dst_nz_n_stride=1, **sizes)
        core.consume(asm.array())

    device = Device(MACHINE, 1 << 20, data=False)
    cycles = [device.launch("test", {"AIC": program}, [], cores).cycles for cores in (1, 1, 24)]
    served = 128 * 24 * MACHINE.gm.same_line_request_cycles
    assert cycles[2] == pytest.approx(1 + served, abs=2)
    assert cycles[1] < served / 1.5

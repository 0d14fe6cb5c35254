"""Cube and vector cores with programs of their own: flags between them, races, deadlocks, time."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile

PART = 1024
"""Bytes that a vector core writes in these programs: 4 repeats."""

ALL, PAIR, CUBE_VECTOR = 0, 1, 2
FLAG_CYCLES = 20
Build = Callable[[Any, int, int], None]
"""Emits the program of (assembler, block, sub-block)."""


class Split:
    """A 910B and a buffer of zeros in its memory."""

    def __init__(self, new_asm: Callable[[], Any]) -> None:
        self.device = Device(machine.load("ascend910b"), 1 << 24)
        self.gm = self.device.allocate(1 << 20)
        self.device.write(self.gm, np.zeros(1 << 20, np.uint8))
        self._new = new_asm

    def run(self, blocks: int = 1, **builds: Build) -> LaunchProfile:
        def program(build: Build) -> Any:
            def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
                asm = self._new()
                build(asm, block, core.sub_block)
                core.consume(asm.array())

            return run

        programs = {kind: program(build) for kind, build in builds.items()}
        return self.device.launch("test", programs, [], blocks=blocks)

    def write(self, asm: Any, part: int, value: int = 1) -> None:
        """A vector core fills a part of the buffer."""
        asm.emit("set_vector_mask", low=(1 << 64) - 1)
        asm.emit("vector_dup.s32", dst=0, repeat=4, dst_rep_stride=8, value=value)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=self.gm + part * PART, src=0, n_burst=1, len_burst=32)

    def read(self, asm: Any, part: int) -> None:
        """A vector core reads a part, to another place in UB."""
        asm.emit("copy_gm_to_ubuf", dst=8192, src=self.gm + part * PART, n_burst=1, len_burst=32)

    def load(self, asm: Any, part: int) -> None:
        """A cube core reads a part."""
        asm.emit("copy_gm_to_cbuf", dst=0, src=self.gm + part * PART, n_burst=1, len_burst=32)


def signal(asm: Any, mode: int, flag: int = 0, pipe: Pipe = Pipe.MTE3) -> None:
    asm.emit("ffts_cross_core_sync", pipe=pipe, mode=mode, flag=flag)


def wait(asm: Any, flag: int = 0) -> None:
    asm.emit("wait_flag_dev", flag=flag)


@pytest.fixture
def split(new_asm: Callable[[], Any]) -> Split:
    return Split(new_asm)


def nothing(asm: Any, block: int, sub: int) -> None:
    """A program without instructions."""


@pytest.mark.parametrize("ordered", [True, False])
def test_vector_cores_to_their_cube_core(split: Split, ordered: bool) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        split.write(asm, 2 * block + sub)
        if ordered:
            signal(asm, CUBE_VECTOR)

    def cube(asm: Any, block: int, sub: int) -> None:
        if ordered:
            wait(asm)
        split.load(asm, 2 * block + 1)

    if ordered:
        split.run(blocks=3, AIC=cube, AIV=vector)
        assert split.device.read(split.gm, np.int32, (6 * PART // 4,)).all()
        return
    with pytest.raises(DeviceFault, match=r"race between cores: AIV 1 of block 0 writes .* AIC"):
        split.run(blocks=3, AIC=cube, AIV=vector)


def test_flag_before_the_write_orders_nothing(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        signal(asm, CUBE_VECTOR)
        split.write(asm, sub)

    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm)
        split.load(asm, 0)

    with pytest.raises(DeviceFault, match="race between cores"):
        split.run(AIC=cube, AIV=vector)


@pytest.mark.parametrize("first", [True, False])
def test_two_vector_cores_exchange(split: Split, first: bool) -> None:
    """Reading before the pair has met is a race, behind it none."""

    def vector(asm: Any, block: int, sub: int) -> None:
        split.write(asm, sub)
        if not first:
            split.read(asm, 1 - sub)
        signal(asm, PAIR, 3)
        wait(asm, 3)
        if first:
            split.read(asm, 1 - sub)

    if first:
        split.run(AIC=nothing, AIV=vector)
        return
    with pytest.raises(DeviceFault, match="race between cores"):
        split.run(AIC=nothing, AIV=vector)


@pytest.mark.parametrize("ordered", [True, False])
def test_all_vector_cores_meet(split: Split, ordered: bool) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        split.write(asm, block)
        signal(asm, ALL, 10)
        if ordered:
            wait(asm, 10)
        split.read(asm, (block + 1) % 5)
        if not ordered:
            wait(asm, 10)

    if ordered:
        split.run(blocks=5, AIV=vector)
        return
    with pytest.raises(DeviceFault, match="race between cores: AIV 0 of block"):
        split.run(blocks=5, AIV=vector)


def test_blocks_without_flags_between_them_race(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        split.write(asm, block // 3)

    with pytest.raises(DeviceFault, match="race between blocks: block 1 writes"):
        split.run(blocks=4, AIV=vector)


@pytest.mark.parametrize("reader", [0, 1])
def test_knowledge_goes_on_through_a_third_core(split: Split, reader: int) -> None:
    """AIV 0 tells AIC, which tells both: AIV 1 may read what AIV 0 wrote, and overwrite it."""

    def vector(asm: Any, block: int, sub: int) -> None:
        if sub == 0:
            split.write(asm, 0)
        signal(asm, CUBE_VECTOR)
        wait(asm, 1)
        if sub == reader:
            split.read(asm, 0)

    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm)
        signal(asm, CUBE_VECTOR, 1, Pipe.FIX)

    split.run(AIC=cube, AIV=vector)


def test_own_pipes_are_known_to_be_done_through_another_core(split: Split) -> None:
    """No flag from MTE3 to MTE2 is needed: the cube core has waited for MTE3."""

    def vector(asm: Any, block: int, sub: int) -> None:
        split.write(asm, sub)
        signal(asm, CUBE_VECTOR)
        wait(asm, 1)
        split.read(asm, sub)

    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm)
        signal(asm, CUBE_VECTOR, 1, Pipe.FIX)

    split.run(AIC=cube, AIV=vector)


def test_flags_count(split: Split) -> None:
    """20 tiles through a ring of 4, with a flag back for every tile that is free again."""

    def vector(asm: Any, block: int, sub: int) -> None:
        for tile in range(20):
            if tile >= 4:
                wait(asm, 1)
            if tile:
                asm.flag(Pipe.MTE3, Pipe.V)
            split.write(asm, 2 * (tile % 4) + sub, value=tile)
            signal(asm, CUBE_VECTOR, 0)
        for _ in range(4):
            wait(asm, 1)

    def cube(asm: Any, block: int, sub: int) -> None:
        for tile in range(20):
            wait(asm, 0)
            if tile:
                asm.barrier(Pipe.MTE2)
            split.load(asm, 2 * (tile % 4))
            signal(asm, CUBE_VECTOR, 1, Pipe.MTE2)

    split.run(blocks=1, AIC=cube, AIV=vector)


def test_a_ring_that_is_overwritten_too_early_races(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        for tile in range(3):
            if tile:
                asm.flag(Pipe.MTE3, Pipe.V)
                asm.barrier(Pipe.MTE3)
            split.write(asm, sub, value=tile)
            signal(asm, CUBE_VECTOR, 0)

    def cube(asm: Any, block: int, sub: int) -> None:
        for _ in range(3):
            wait(asm, 0)
            asm.barrier(Pipe.MTE2)
            split.load(asm, 0)

    with pytest.raises(DeviceFault, match="race between cores"):
        split.run(AIC=cube, AIV=vector)


def test_counter_overflow(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        for _ in range(16):
            signal(asm, CUBE_VECTOR, 2, Pipe.FIX)

    with pytest.raises(DeviceFault, match=r"may count too far.*flag 2 of AIV 0.*16 sets"):
        split.run(AIC=cube, AIV=nothing)


@pytest.mark.parametrize(
    ("core", "mode"), [("AIV", CUBE_VECTOR), ("AIC", CUBE_VECTOR), ("AIC", PAIR), ("AIV", PAIR)]
)
def test_nobody_receives(split: Split, core: str, mode: int) -> None:
    def program(asm: Any, block: int, sub: int) -> None:
        signal(asm, mode)

    with pytest.raises(DeviceFault, match="nobody receives"):
        split.run(**{core: program})


def test_deadlock_names_who_waits_for_what(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm, 0)
        signal(asm, CUBE_VECTOR, 1, Pipe.FIX)

    def vector(asm: Any, block: int, sub: int) -> None:
        wait(asm, 1)
        signal(asm, CUBE_VECTOR, 0)

    threads = threading.active_count()
    with pytest.raises(DeviceFault) as caught:
        split.run(AIC=cube, AIV=vector)
    text = str(caught.value)
    circle = "AIC of block 0 -> AIV 0 of block 0 -> AIC of block 0"
    assert f"deadlock: no core can go on; the circle of waits: {circle}; found in the ci" in text
    where = "waits at instruction #0 (unknown location) for flag"
    both = "AIV 0 of block 0, AIV 1 of block 0"
    assert f"AIC of block 0 {where} 0, which nobody has set: {both} could, but wait too" in text
    assert f"AIV 0 of block 0 {where} 1, which nobody has set: AIC of block 0, AIV 1 of" in text
    assert f"beside it: AIV 1 of block 0 {where} 1" in text
    assert threading.active_count() == threads


def test_deadlock_names_who_has_not_set(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm, 4)

    def vector(asm: Any, block: int, sub: int) -> None:
        if sub == 0:
            signal(asm, CUBE_VECTOR, 4)

    with pytest.raises(DeviceFault) as caught:
        split.run(AIC=cube, AIV=vector)
    text = str(caught.value)
    assert "flag 4, which AIV 0 of block 0 set, but not AIV 1 of block 0" in text
    assert "(AIV 1 of block 0: the program has ended)" in text
    assert "circle" not in text


def test_deadlock_with_a_set_in_a_queue(split: Split) -> None:
    """The set was issued, but its pipe waits for a flag that the scalar unit would set later."""

    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm)

    def vector(asm: Any, block: int, sub: int) -> None:
        asm.wait(Pipe.V, Pipe.MTE3)
        signal(asm, CUBE_VECTOR)
        wait(asm, 1)
        asm.set(Pipe.V, Pipe.MTE3)

    with pytest.raises(DeviceFault) as caught:
        split.run(AIC=cube, AIV=vector)
    text = str(caught.value)
    assert "the circle of waits: AIC of block 0 -> AIV 0 of block 0 -> AIC of block 0" in text
    assert (
        "the set of AIV 1 of block 0 at instruction #1 (unknown location) is in the queue" in text
    )
    assert "(on AIV 0 of block 0: PIPE_MTE3 waits at #0 wait_flag" in text


def test_deadlock_without_anyone_to_set(split: Split) -> None:
    with pytest.raises(DeviceFault, match="flag 3, which no program that has not ended can set"):
        split.run(AIC=lambda asm, block, sub: wait(asm, 3))


@pytest.mark.parametrize("ordered", [True, False])
def test_sets_of_two_pipes_come_in_a_known_order(split: Split, ordered: bool) -> None:
    """Which of two unordered sets a wait has seen nobody knows."""

    def cube(asm: Any, block: int, sub: int) -> None:
        signal(asm, CUBE_VECTOR, 6, Pipe.FIX)
        if ordered:
            asm.flag(Pipe.FIX, Pipe.MTE2)
        signal(asm, CUBE_VECTOR, 6, Pipe.MTE2)

    def vector(asm: Any, block: int, sub: int) -> None:
        wait(asm, 6)
        wait(asm, 6)

    if ordered:
        split.run(AIC=cube, AIV=vector)
        return
    message = r"either order; found flag 6, set by AIC of block 0 at instruction #0 .* and by AIC"
    with pytest.raises(DeviceFault, match=message):
        split.run(AIC=cube, AIV=vector)


@pytest.mark.parametrize("ordered", [True, False])
def test_sets_of_two_modes_come_in_a_known_order(split: Split, ordered: bool) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        signal(asm, CUBE_VECTOR, 6, Pipe.FIX)
        if ordered:
            signal(asm, CUBE_VECTOR, 7, Pipe.FIX)

    def vector(asm: Any, block: int, sub: int) -> None:
        if ordered:
            wait(asm, 7)
        signal(asm, PAIR, 6, Pipe.S)
        wait(asm, 6)
        wait(asm, 6)

    if ordered:
        split.run(AIC=cube, AIV=vector)
        return
    with pytest.raises(DeviceFault, match="may come in either order; found flag 6"):
        split.run(AIC=cube, AIV=vector)


def test_sets_of_two_modes_do_not_make_one_count(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        signal(asm, CUBE_VECTOR if sub else PAIR, 2)

    with pytest.raises(DeviceFault, match=r"left set.*flag 2 set by AIV 0.*flag 2 set by AIV 1"):
        split.run(AIC=nothing, AIV=vector)


@pytest.mark.parametrize("told", [True, False])
def test_counter_overflow_that_another_order_would_bring(split: Split, told: bool) -> None:
    """The vector cores have waited by the 16th set, but the cube core does not know."""

    def cube(asm: Any, block: int, sub: int) -> None:
        for i in range(16):
            signal(asm, CUBE_VECTOR, 2, Pipe.FIX)
            if i == 7:
                wait(asm, 0)

    def vector(asm: Any, block: int, sub: int) -> None:
        if not told:
            signal(asm, CUBE_VECTOR, 0, Pipe.S)
        for i in range(16):
            wait(asm, 2)
            if i == 0 and told:
                signal(asm, CUBE_VECTOR, 0, Pipe.S)

    if told:
        split.run(AIC=cube, AIV=vector)
        return
    with pytest.raises(DeviceFault, match=r"may count too far; found flag 2 of AIV 0"):
        split.run(AIC=cube, AIV=vector)


def test_a_barrier_of_more_blocks_than_run_at_once_is_a_deadlock(split: Split) -> None:
    """Real ones never meet either: the last block starts when another has ended."""

    def cube(asm: Any, block: int, sub: int) -> None:
        signal(asm, ALL, 0, Pipe.FIX)
        wait(asm, 0)
        if block == 24:
            wait(asm, 0)

    with pytest.raises(DeviceFault, match="deadlock"):
        split.run(blocks=25, AIC=cube)


def test_flag_left_set(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        signal(asm, CUBE_VECTOR, 5, Pipe.FIX)

    with pytest.raises(DeviceFault, match=r"left set.*flag 5 on AIV 0 of block 0, flag 5 on AIV 1"):
        split.run(AIC=cube, AIV=nothing)


def test_fault_while_others_are_held(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm, 0)

    def vector(asm: Any, block: int, sub: int) -> None:
        asm.emit("copy_ubuf_to_gm", dst=split.gm, src=0, n_burst=1, len_burst=1)

    threads = threading.active_count()
    with pytest.raises(DeviceFault, match=r"AIV 0 of block 0, .*it reads bytes that nobody wrote"):
        split.run(AIC=cube, AIV=vector)
    assert threading.active_count() == threads


@pytest.mark.parametrize(
    ("core", "mnemonic", "fields", "message"),
    [
        ("AIV", "copy_gm_to_cbuf", {}, "illegal instruction: .* needs L1, which a vector core"),
        ("AIC", "vector_dup.f32", {"dst_rep_stride": 8}, "needs PIPE_V and UB, which a cube core"),
        ("AIV", "copy_ubuf_to_cbuf", {}, "ascend910b has no instruction copy_ubuf_to_cbuf"),
        ("AIV", "set_flag", {"src_pipe": 2, "dst_pipe": 1}, "names PIPE_M, which a vector core"),
        ("AIC", "wait_flag_dev", {"flag": 11}, "no such flag between cores"),
        ("AIC", "set_flag", {"src_pipe": 2, "dst_pipe": 3, "event": 8}, "no such event id"),
    ],
)
def test_what_a_core_has_not(
    split: Split, core: str, mnemonic: str, fields: dict[str, int], message: str
) -> None:
    def program(asm: Any, block: int, sub: int) -> None:
        asm.emit(mnemonic, **fields)

    with pytest.raises(DeviceFault, match=message):
        split.run(**{core: program})


def test_coupled_machine_has_no_fixpipe(asm: Any, device: Device) -> None:
    asm.emit("fixpipe.f32", dst=512, src=0)
    with pytest.raises(DeviceFault, match="ascend910 has no instruction fixpipe"):
        asm.run(device)


def test_programs_must_fit_the_machine(asm: Any, device: Device, split: Split) -> None:
    with pytest.raises(DeviceFault, match=r"no program for the cores of ascend910;"):
        device.launch("k", {"AIC": lambda *_: None}, [])
    with pytest.raises(DeviceFault, match=r"no program for the cores of ascend910b.*AIC or AIV"):
        asm.run(split.device)


def dup(asm: Any) -> None:
    asm.emit("vector_dup.f32", dst=0, repeat=10, dst_rep_stride=8)


def test_a_wait_takes_until_the_flag_arrives(split: Split) -> None:
    def cube(asm: Any, block: int, sub: int) -> None:
        asm.emit("ffts_cross_core_sync", scalar_ops=1000, pipe=Pipe.S, mode=CUBE_VECTOR, flag=0)

    def vector(asm: Any, block: int, sub: int) -> None:
        wait(asm)
        dup(asm)

    alone = split.run(AIC=nothing, AIV=lambda asm, block, sub: dup(asm))
    # The cube core sets the flag in cycle 1001; the vector cores issue the next one cycle later.
    together = split.run(AIC=cube, AIV=vector)
    assert together.cycles == alone.cycles + 1001 + FLAG_CYCLES


def test_a_flag_waits_for_its_pipe(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        dup(asm)
        signal(asm, CUBE_VECTOR, 0, Pipe.V)

    def cube(asm: Any, block: int, sub: int) -> None:
        wait(asm)

    alone = split.run(AIV=lambda asm, block, sub: dup(asm))
    assert split.run(AIC=cube, AIV=vector).cycles == alone.cycles + FLAG_CYCLES


@pytest.mark.parametrize(("blocks", "rounds"), [(48, 1), (49, 2)])
def test_vector_cores_run_blocks_of_their_own(split: Split, blocks: int, rounds: int) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        assert sub == 0
        dup(asm)

    one = split.run(AIV=vector).cycles
    profile = split.run(blocks=blocks, AIV=vector)
    assert (profile.cycles, profile.cores) == (rounds * one, 48)
    assert {b.core for b in profile.per_block} == {i for i in range(72) if i % 3}


def test_cube_and_vector_cores_of_a_block_run_at_the_same_time(split: Split) -> None:
    seen = []

    def vector(asm: Any, block: int, sub: int) -> None:
        seen.append((block, sub))
        dup(asm)

    one = split.run(AIV=vector).cycles
    seen.clear()
    profile = split.run(blocks=25, AIC=nothing, AIV=vector)
    assert sorted(seen) == [(block, sub) for block in range(25) for sub in (0, 1)]
    assert (profile.cycles, profile.cores, len(profile.per_block)) == (2 * one, 72, 75)


def test_an_address_that_bypasses_the_l2_is_the_same_memory(new_asm: Callable[[], Any]) -> None:
    split = Split(new_asm)
    offset = split.device.machine.l2.bypass_offset_bytes
    assert offset is not None

    def build(asm: Any, block: int, sub_block: int) -> None:
        split.write(asm, 0, 7)
        asm.barrier(Pipe.MTE3)
        asm.flag(Pipe.MTE3, Pipe.MTE2)
        asm.emit("copy_gm_to_ubuf", dst=8192, src=split.gm + offset, n_burst=1, len_burst=32)
        asm.flag(Pipe.MTE2, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=split.gm + offset + PART, src=8192, n_burst=1, len_burst=32)

    profile = split.run(AIV=build)
    assert (split.device.read(split.gm, np.int32, (2 * PART // 4,)) == 7).all()
    # What was written before is in the L2, what was written past it is not.
    assert (profile.traffic.filled_bytes, profile.traffic.written_back_bytes) == (0, PART)


def test_past_the_end_of_the_memory_that_bypasses_the_l2(new_asm: Callable[[], Any]) -> None:
    split = Split(new_asm)
    offset = split.device.machine.l2.bypass_offset_bytes or 0

    def build(asm: Any, block: int, sub_block: int) -> None:
        asm.emit("copy_gm_to_ubuf", dst=0, src=offset + (1 << 24), n_burst=1, len_burst=1)

    with pytest.raises(DeviceFault, match=r"out of bounds.*GM \[0x1000000, 0x1000020\)"):
        split.run(AIV=build)


def test_a_machine_that_cannot_bypass_the_l2(asm: Any, device: Device) -> None:
    assert device.machine.l2.bypass_offset_bytes is None
    asm.emit("copy_gm_to_ubuf", dst=0, src=(1 << 40) + 512, n_burst=1, len_burst=1)
    with pytest.raises(DeviceFault, match="out of bounds"):
        asm.run(device)


def test_rows_that_become_fractals(new_asm: Callable[[], Any]) -> None:
    split = Split(new_asm)
    mte2 = split.device.machine.mte2

    def cycles(rows: int, columns: int, row_elements: int, first: int = 0) -> int:
        def build(asm: Any, block: int, sub_block: int) -> None:
            nz = {"dst_nz_c0_stride": rows, "dst_nz_n_stride": 1, "nd_num": 1}
            asm.emit(
                "copy_gm_to_cbuf_multi_nd2nz.b16",
                src=split.gm + first,
                n_value=rows,
                d_value=columns,
                src_d_value=row_elements,
                **nz,
            )

        split.run(AIC=build)
        return split.run(AIC=build).cycles - 1

    assert mte2.nd2nz_fixed_cycles == 40.5
    assert cycles(64, 64, 1024) == math.ceil(40.5 + 64 * 2.54 + 64 * 128 / 153)
    assert cycles(64, 256, 1024) == math.ceil(40.5 + 64 * 2.54 + 64 * 512 / 153)
    # Rows that do not begin at whole blocks of 32 bytes.
    assert cycles(64, 64, 1023) == cycles(64, 64, 1024, 2) == math.ceil(40.5 + 64 * (2.54 + 4 * 2))

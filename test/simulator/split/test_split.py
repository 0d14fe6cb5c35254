"""Cube and vector cores with programs of their own: flags between them, races, deadlocks, time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import DeviceFault
from davinci.isa import Pipe, Space
from davinci.simulator import Device
from split_support import ALL, CUBE_VECTOR, PAIR, PART, Split, nothing, signal, wait

FLAG_CYCLES = 20


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


@pytest.mark.parametrize("reader", ["idle", "stores", "looks"])
def test_what_stays_with_a_core_races_with_nothing_in_foreign_code(
    split: Split, reader: str
) -> None:
    """The second vector core reads what the first one writes: that is no race as long as it stores
    nothing, and its scalar unit looks at nothing in UB."""

    def vector(asm: Any, block: int, sub: int) -> None:
        if sub == 0:
            split.write(asm, 0)
            return
        split.read(asm, 0)
        if reader == "stores":
            split.write(asm, 1)
        if reader == "looks":
            asm.flag(Pipe.MTE2, Pipe.S)
            scalar = {"loads": 1, "load_low": 8192, "load_high": 8196}
            asm.emit("scalar_access", space=Space.UB, **scalar)

    if reader == "idle":
        split.run(AIC=nothing, AIV=vector, foreign=True)
        with pytest.raises(DeviceFault, match="race between cores: AIV 1 of block 0 reads"):
            split.run(AIC=nothing, AIV=vector)
        return
    with pytest.raises(DeviceFault, match="race between cores: AIV 1 of block 0 reads"):
        split.run(AIC=nothing, AIV=vector, foreign=True)


@pytest.mark.parametrize("block", ["alike", "differs", "reads"])
def test_blocks_of_foreign_code_may_store_the_same(split: Split, block: str) -> None:
    """All blocks fill one part with ones; it is a race if one has twos, or if another reads it."""

    def vector(asm: Any, number: int, sub: int) -> None:
        if block == "reads" and number == 2:
            split.read(asm, 0)
            return
        split.write(asm, 0, value=2 if block == "differs" and number == 1 else 1)

    if block == "alike":
        split.run(blocks=3, foreign=True, AIV=vector)
        with pytest.raises(DeviceFault, match="race between blocks: block 1 writes"):
            split.run(blocks=3, AIV=vector)
        return
    does = "block 2 reads" if block == "reads" else "block 1 writes"
    with pytest.raises(DeviceFault, match=f"race between blocks: {does}.*which block 0 writes"):
        split.run(blocks=3, foreign=True, AIV=vector)


@pytest.mark.parametrize("blocks", [3, 100])
def test_blocks_have_their_turns_in_a_lock(split: Split, blocks: int) -> None:
    """Each block overwrites one part in its turn, also those of a later round."""

    def vector(asm: Any, block: int, sub: int) -> None:
        asm.emit("await_turn", lock=1)
        split.write(asm, 0, value=block)
        asm.emit("pass_turn", pipe=Pipe.MTE3, lock=1)

    profile = split.run(blocks=blocks, AIV=vector, timeline=True)
    assert split.device.read(split.gm, np.int32, (4,)).tolist() == [blocks - 1] * 4
    ends = {r.block: r.end for r in profile.rows if r.mnemonic == "pass_turn"}
    begins = {r.block: r.end for r in profile.rows if r.mnemonic == "await_turn"}
    assert all(begins[block + 1] > ends[block] for block in range(blocks - 1))


def test_a_turn_that_is_not_passed_on(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        asm.emit("await_turn", lock=0)
        if block != 1:
            asm.emit("pass_turn", pipe=Pipe.MTE3, lock=0)

    message = "waits at .* for its turn in lock 0, which block 1 has not passed on"
    with pytest.raises(DeviceFault, match=message):
        split.run(blocks=3, AIV=vector)


def test_a_turn_that_is_passed_on_twice(split: Split) -> None:
    def vector(asm: Any, block: int, sub: int) -> None:
        for _ in range(2):
            asm.emit("pass_turn", pipe=Pipe.MTE3, lock=0)

    with pytest.raises(DeviceFault, match="a turn in a lock is passed on twice"):
        split.run(blocks=2, AIV=vector)


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


def test_fewer_flags_than_can_be_encoded(new_asm: Any) -> None:
    machine = machines.load("ascend910b")
    assert machine.cross_core is not None
    flags = machine.cross_core.model_copy(update={"flag_ids": 11})
    few = machine.model_copy(update={"cross_core": flags})
    asm = new_asm()
    asm.emit("wait_flag_dev", flag=11)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    with pytest.raises(
        DeviceFault, match=r"no such flag between cores; found 11; expected 0\.\.10"
    ):
        Device(few, 1 << 20).launch("test", {"AIC": program}, [])


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


def load_and_signal(split: Split, flags: bool) -> tuple[Any, Any]:
    """Each cube core loads 32 KB of its own; with `flags` its vector cores wait for that."""

    def cube(asm: Any, block: int, sub: int) -> None:
        place = split.gm + block * 32 * PART
        asm.emit("copy_gm_to_cbuf", dst=0, src=place, n_burst=1, len_burst=PART)
        if flags:
            signal(asm, CUBE_VECTOR, 0, Pipe.MTE2)

    def vector(asm: Any, block: int, sub: int) -> None:
        if flags:
            wait(asm)
        dup(asm)

    return cube, vector


@pytest.mark.parametrize("blocks", [24, 30])
def test_what_the_l2_holds_shortens_waits_for_other_cores(split: Split, blocks: int) -> None:
    """The second time the loads are faster, and whoever waits for them begins earlier."""
    cube, vector = load_and_signal(split, flags=True)
    cold = split.run(blocks=blocks, timeline=True, AIC=cube, AIV=vector)
    hot = split.run(blocks=blocks, timeline=True, AIC=cube, AIV=vector)
    assert hot.traffic.read_hit_rate == 1
    assert hot.cycles < 0.7 * cold.cycles
    for profile in (cold, hot):
        sets = {r.block: r.end for r in profile.rows if r.mnemonic == "ffts_cross_core_sync"}
        waits = [row for row in profile.rows if row.mnemonic == "wait_flag_dev"]
        assert len(waits) == 2 * blocks
        for row in waits:
            assert row.end == sets[row.block] + FLAG_CYCLES


def test_flags_between_cores_leave_loads_their_time(split: Split) -> None:
    """A load takes as long with flags as without."""
    found = []
    for flags in (False, True):
        split.device.flush()
        cube, vector = load_and_signal(split, flags)
        profile = split.run(blocks=24, AIC=cube, AIV=vector)
        found.append(sorted(b.pipes["PIPE_MTE2"] for b in profile.per_block))
    assert found[0] == found[1]


def test_programs_that_issue_the_same_wait_for_their_own_flags(split: Split) -> None:
    """Two rounds through a ring of flags: each core's times are its own, without rows too."""

    def cube(asm: Any, block: int, sub: int) -> None:
        for tile in range(4):
            if tile:
                wait(asm, 1)
            place = split.gm + (block % 24) * 32 * PART
            asm.emit("copy_gm_to_cbuf", dst=0, src=place, n_burst=1, len_burst=PART)
            signal(asm, CUBE_VECTOR, 0, Pipe.MTE2)
            asm.barrier(Pipe.MTE2)

    def vector(asm: Any, block: int, sub: int) -> None:
        for tile in range(4):
            wait(asm, 0)
            dup(asm)
            if tile < 3:
                signal(asm, CUBE_VECTOR, 1, Pipe.V)

    found = []
    for timeline in (True, False):
        split.device.flush()
        found.append(split.run(blocks=30, timeline=timeline, AIC=cube, AIV=vector))
    rows, plain = found
    assert plain.cycles == rows.cycles
    assert [b.cycles for b in plain.per_block] == [b.cycles for b in rows.per_block]

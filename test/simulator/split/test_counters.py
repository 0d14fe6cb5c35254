"""Blocks of a coupled machine that wait for each other by counters in global memory."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.isa.counters import LINE_BYTES
from talking_support import LINES, Program, Talking


@pytest.fixture
def talking(asm: Any) -> Talking:
    return Talking(type(asm))


def rotate(program: Program, rounds: int = 3, late: int = 0) -> None:
    """Each block writes a part of its own, then reads that of its neighbour; block 0 comes late."""
    for number in range(1, 2 * rounds + 1, 2):
        if program.block == 0 and late:
            program.read(program.block, late)
            program.emit("pipe_barrier", pipe=Pipe.ALL)
        program.write(program.block, 100 * number + program.block)
        program.synchronise(number)
        program.read((program.block + 1) % program.blocks)
        program.synchronise(number + 1)


@pytest.mark.parametrize("blocks", [1, 2, 5, 32])
def test_every_block_sees_what_others_wrote(talking: Talking, blocks: int) -> None:
    profile = talking.run(rotate, blocks)
    assert talking.parts(blocks) == [500 + block for block in range(blocks)]
    assert profile.cycles > 0 and len(profile.per_block) == blocks


def test_those_who_wait_are_as_late_as_the_last(talking: Talking) -> None:
    early = talking.run(lambda program: rotate(program, 1), 4).cycles
    talking.clear()
    late = talking.run(lambda program: rotate(program, 1, late=40), 4)
    assert late.cycles > early + 1000
    ends = [block.cycles for block in late.per_block]
    assert max(ends) - min(ends) < 1000, "nobody ends before block 0 has come"


def test_a_look_that_comes_too_early_is_repeated(talking: Talking) -> None:
    """Block 1 polls while block 0 reads for long: the last look begins when the counter is there,
    and at most one turn later."""

    def build(program: Program) -> None:
        if program.block == 0:
            program.read(0, 60)
            program.post(1)
        else:
            program.wait(1, 0, 1)

    profile = talking.run(build, 2, timeline=True)
    (posted,) = [row.end for row in profile.rows if row.mnemonic == "post_counter"]
    (polled,) = [row for row in profile.rows if row.mnemonic == "poll_counters"]
    (look,) = [row for row in profile.rows if row.block == 1 and row.mnemonic == "copy_gm_to_ubuf"]
    turn = max(row.end for row in profile.rows if row.block == 1) - look.start
    assert polled.start < posted <= polled.end < look.start < posted + turn + 50


def test_without_a_wait_it_is_a_race(talking: Talking) -> None:
    def build(program: Program) -> None:
        program.write(program.block, 1)
        program.post(1)
        program.read((program.block + 1) % program.blocks)

    with pytest.raises(DeviceFault, match=r"race between cores: block \d reads"):
        talking.run(build, 2)


def test_a_post_before_the_write_orders_nothing(talking: Talking) -> None:
    def build(program: Program) -> None:
        program.post(1)
        program.write(program.block, 1)
        program.wait(1)
        program.read((program.block + 1) % program.blocks)

    with pytest.raises(DeviceFault, match="race between cores"):
        talking.run(build, 2)


@pytest.mark.parametrize("loaded", [True, False])
def test_who_overwrites_must_know_that_it_was_loaded(talking: Talking, loaded: bool) -> None:
    def build(program: Program) -> None:
        if program.block == 0:
            program.read(1)
            program.post(1, loaded=loaded)
        else:
            program.wait(1, 0, 1)
            program.write(1, 1)

    if loaded:
        talking.run(build, 2)
        return
    with pytest.raises(DeviceFault, match="race between cores"):
        talking.run(build, 2)


def test_a_load_between_the_look_and_its_end_is_a_race(talking: Talking) -> None:
    def build(program: Program) -> None:
        if program.block == 0:
            program.write(0, 1)
            program.post(1)
            return
        program.emit("poll_counters", lines=talking.lines, result=LINES, count=1, looks=1, value=1)
        program.emit("copy_gm_to_ubuf", dst=LINES, src=talking.lines, n_burst=1, len_burst=1)
        program.read(0)
        program.flag(Pipe.MTE2, Pipe.S)
        program.emit("end_poll", value=min(program.load(LINES, 1)))

    with pytest.raises(DeviceFault, match="race between cores: block 1 reads"):
        talking.run(build, 2)


def test_who_goes_on_without_having_seen_enough_knows_nothing(talking: Talking) -> None:
    def build(program: Program) -> None:
        if program.block == 0:
            program.write(0, 1)
            program.post(1)
            return
        program.emit("poll_counters", lines=talking.lines, result=LINES, count=1, looks=1, value=1)
        program.emit("end_poll", value=0)
        program.read(0)

    with pytest.raises(DeviceFault, match="race between cores"):
        talking.run(build, 2)


def test_a_block_that_never_comes_is_named(talking: Talking) -> None:
    def build(program: Program) -> None:
        program.synchronise(1)
        if program.block != 2:
            program.synchronise(2)

    with pytest.raises(DeviceFault) as caught:
        talking.run(build, 4)
    text = str(caught.value)
    assert "deadlock: no block can go on" in text
    assert "holds 1 of block 2, whose program has ended" in text


def test_blocks_that_wait_for_each_other_are_a_circle(talking: Talking) -> None:
    def build(program: Program) -> None:
        program.post(1)
        program.wait(2, 1 - program.block, 1)
        program.post(2)

    with pytest.raises(DeviceFault, match=r"the circle of waits: block \d -> "):
        talking.run(build, 2)


def test_a_post_behind_a_wait_in_its_queue_is_named(talking: Talking) -> None:
    def build(program: Program) -> None:
        if program.block == 0:
            program.emit("wait_flag", src_pipe=Pipe.V, dst_pipe=Pipe.MTE3, event=3)
            line = talking.lines
            program.emit("copy_ubuf_to_gm", dst=line, src=0, n_burst=1, len_burst=1)
            program.emit("post_counter", line=line, value=0)
        program.wait(1, 1 - program.block, 1)

    with pytest.raises(DeviceFault):
        talking.run(build, 2)


@pytest.mark.parametrize(
    ("told", "store", "match"),
    [
        (7, True, "a counter is posted that its line does not hold"),
        (1, False, "a counter is posted that its line does not hold"),
    ],
)
def test_a_post_must_be_true(talking: Talking, told: int, store: bool, match: str) -> None:
    with pytest.raises(DeviceFault, match=match):
        talking.run(lambda program: program.post(1, store=store, told=told), 2)


def test_a_counter_must_grow(talking: Talking) -> None:
    def build(program: Program) -> None:
        program.post(3)
        program.post(2)

    with pytest.raises(DeviceFault, match="a counter that other blocks wait for does not grow"):
        talking.run(build, 2)


def test_a_line_belongs_to_one_block(talking: Talking) -> None:
    def build(program: Program) -> None:
        number, program.block = program.block + 1, 0
        program.post(number)

    with pytest.raises(DeviceFault, match="two blocks count in one line"):
        talking.run(build, 2)


def test_all_blocks_must_be_resident(talking: Talking) -> None:
    with pytest.raises(DeviceFault, match=r"do not all run at the same time.*at most 32"):
        talking.run(rotate, 33)


def test_times_without_data_are_the_same(asm: Any) -> None:
    with_data, without = Talking(type(asm)), Talking(type(asm), data=False)
    assert with_data.run(rotate, 4).cycles == without.run(rotate, 4).cycles


def test_lines_are_memory_like_any_other_elsewhere(talking: Talking) -> None:
    """A block that stores into the line of another one without an order is found."""

    def build(program: Program) -> None:
        if program.block == 0:
            program.post(1)
        elif program.block == 1:
            program.store(0, 1)
            program.flag(Pipe.S, Pipe.MTE3)
            address = talking.lines + 40 * LINE_BYTES
            program.emit("copy_ubuf_to_gm", dst=address, src=0, n_burst=1, len_burst=1)
        else:
            address = talking.lines + 40 * LINE_BYTES
            program.emit("copy_gm_to_ubuf", dst=LINES, src=address, n_burst=1, len_burst=1)

    with pytest.raises(DeviceFault, match="race between cores"):
        talking.run(build, 3)

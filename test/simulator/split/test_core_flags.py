"""Flags between cores that are misused: deadlocks, counts too far, sets in no known order."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import INSTRUCTIONS, Pipe
from davinci.isa.core import header
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import Decoder
from davinci.simulator.core.launch import JoinedKernels, KernelCall
from davinci.simulator.core.memory import GlobalMemory
from davinci.simulator.core.tables import Tables
from davinci.simulator.split.cross_core import Count, CrossCoreFlags, Link, Seat
from davinci.simulator.split.times import Replay, replay_together
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.timeline import Timeline
from split_support import ALL, CUBE_VECTOR, PAIR, Split, nothing, signal, wait


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
    assert f"AIC of block 0 {where} 0, which nobody has set; {both} could, but wait too" in text
    assert f"AIV 0 of block 0 {where} 1, which nobody has set; AIC of block 0, AIV 1 of" in text
    assert f"beside it: AIV 1 of block 0 {where} 1" in text
    assert threading.active_count() == threads


def test_cores_without_a_block_in_a_phase_set_no_flags(split: Split) -> None:
    """A flag of all cores of a kind is one of all that the launch has."""

    def vector(asm: Any, block: int, sub: int) -> None:
        signal(asm, ALL, 1)
        wait(asm, 1)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        asm = split.new()
        vector(asm, block, 0)
        core.consume(asm.array())

    call = KernelCall("meet", {"AIV": program}, [], 3, (), alone=True)
    whole = JoinedKernels((call,), launch_cores=3, launch_kinds=frozenset({"AIV"}))
    ((profile,),) = split.device.run([whole], [[0]]) or [[]]
    assert (profile.launch_cores, profile.cores) == (3, 3)
    with pytest.raises(DeviceFault, match=r"AIV 0 of block 2 set, but not .*block 3.* has ended"):
        split.device.run([replace(whole, launch_cores=4)], [[0]])


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
    """No circle: who could have set the flag has ended."""
    message = "flag 3, which nobody has set; each wait_flag_dev needs"
    with pytest.raises(DeviceFault, match=message):
        split.run(AIC=lambda asm, block, sub: wait(asm, 3))
    with pytest.raises(DeviceFault) as caught:
        split.run(AIC=nothing, AIV=lambda asm, block, sub: wait(asm, 3))
    text = str(caught.value)
    assert "nobody has set; AIV 1 of block 0 could, but wait too; AIC of block 0 could have" in text
    assert "circle" not in text


def test_deadlock_of_many_cores_names_some(split: Split) -> None:
    with pytest.raises(DeviceFault) as caught:
        split.run(AIV=lambda asm, block, sub: wait(asm, 3), blocks=48)
    text = str(caught.value)
    assert "the circle of waits: AIV 0 of block 0 -> AIV 0 of block 1 -> AIV 0 of block 0" in text
    assert "and 41 more could, but wait too" in text and "; 42 more cores wait" in text


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


def test_a_replay_that_stops_names_the_cores_that_wait() -> None:
    chip = machine.load("ascend910b")
    limits = chip.cross_core
    assert limits is not None

    def waits(number: int, flag: int) -> Replay:
        tables = Tables(chip, Decoder(chip, "AIC"))
        core = Core(chip, "AIC", GlobalMemory(chip, 0), tables, checks=False, data=False)
        seat = Seat(number, "AIC", number, 0, number, 3 * number)
        link = Link(CrossCoreFlags([seat], limits), seat, 0, lambda: None)
        link.wait_flag = lambda *_: Count(0, {})  # type: ignore[method-assign]
        core.begin("k", number, rates_of(chip, 2), [], False, link)
        words = INSTRUCTIONS["wait_flag_dev"].encode({"flag": flag})
        record = [header(INSTRUCTIONS["wait_flag_dev"].opcode), *words]
        core.consume(np.array([record + [0] * (8 - len(record))], dtype=np.uint64))
        timeline = core.timeline
        return Replay(seat, 0, timeline.log, Timeline(tables, False, timeline.rates))

    expected = "AIC of block 0 for flag 3, AIC of block 1 for flag 5"
    with pytest.raises(AssertionError, match=expected):
        replay_together([waits(0, 3), waits(1, 5)], limits)

"""Flags, barriers and deadlocks: each fault fires, and says who waits for whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from davinci.isa import Pipe
from davinci.simulator import Device
from fault_support import buffer, fault

MTE2, V, MTE3, MTE1, M, S = Pipe.MTE2, Pipe.V, Pipe.MTE3, Pipe.MTE1, Pipe.M, Pipe.S


def test_double_set(asm: Any, device: Device) -> None:
    asm.set(MTE2, V)
    asm.set(MTE2, V)
    asm.wait(MTE2, V)
    asm.wait(MTE2, V)
    assert "flag set twice" in fault(asm, device)


def test_set_again_before_the_wait_is_over(new_asm: Callable[[], Any], device: Device) -> None:
    def program(answered: bool) -> Any:
        asm = new_asm()
        asm.flag(MTE2, V)
        if answered:
            asm.flag(V, MTE2)
        asm.flag(MTE2, V)
        return asm

    assert "may be set again before the wait" in fault(program(False), device)
    program(True).run(device)


def test_left_set(asm: Any, device: Device) -> None:
    asm.set(MTE2, V, 3)
    text = fault(asm, device)
    assert "left set" in text and "event 3 from PIPE_MTE2 to PIPE_V" in text


def test_deadlock(asm: Any, device: Device) -> None:
    asm.wait(MTE2, V, 2)
    asm.wait(V, M, 1)
    text = fault(asm, device)
    assert "deadlock" in text
    assert "PIPE_V waits at #0 wait_flag (unknown location) for event 2 of PIPE_MTE2" in text
    assert "PIPE_M waits at #1 wait_flag (unknown location) for event 1 of PIPE_V" in text
    assert text.count("which no set_flag sets") == 2
    assert "circle" not in text


def test_deadlock_by_the_wrong_event(asm: Any, device: Device) -> None:
    asm.set(MTE2, V, 1)
    asm.wait(MTE2, V, 0)
    assert "for event 0 of PIPE_MTE2, which no set_flag sets (but it set event 1 at #0)" in fault(
        asm, device
    )


def test_circular_wait(asm: Any, device: Device) -> None:
    asm.wait(M, V)
    asm.set(V, M)
    asm.wait(V, M)
    asm.set(M, V)
    text = fault(asm, device)
    assert "deadlock: the program has ended; the circle of waits: PIPE_V -> PIPE_M -> PI" in text
    assert "found in the circle: PIPE_V waits at #0 wait_flag (unknown location) for" in text
    assert "whose set_flag #3 (unknown location) is in the queue behind #2 wait_flag" in text
    assert "PIPE_M waits at #2 wait_flag (unknown location) for event 0 of PIPE_V" in text
    assert "whose set_flag #1 (unknown location) is in the queue behind #0 wait_flag" in text


def test_circle_of_three_with_locations(asm: Any, device: Device) -> None:
    for i, (first, second) in enumerate([(M, V), (V, MTE3), (MTE3, M)]):
        asm.emit("wait_flag", location=1 + i, src_pipe=first, dst_pipe=second, event=0)
    for first, second in [(M, V), (V, MTE3), (MTE3, M)]:
        asm.set(first, second)
    text = fault(asm, device, locations=["", "a.mlir:1:1", "a.mlir:2:1", "a.mlir:3:1"])
    assert "the circle of waits: PIPE_V -> PIPE_M -> PIPE_MTE3 -> PIPE_V" in text
    for line in (1, 2, 3):
        assert f"(a.mlir:{line}:1)" in text


def test_waiting_beside_a_circle(asm: Any, device: Device) -> None:
    """A pipe that waits for one in the circle is no part of it."""
    asm.wait(M, MTE2)
    asm.wait(MTE3, M)
    asm.wait(M, MTE3)
    asm.set(M, MTE3)
    asm.set(MTE3, M)
    asm.set(M, MTE2)
    text = fault(asm, device)
    assert "the circle of waits: PIPE_M -> PIPE_MTE3 -> PIPE_M;" in text
    assert "beside it: PIPE_MTE2 waits at #0" in text


def test_a_circle_behind_a_chain(asm: Any, device: Device) -> None:
    """The circle is found from a pipe outside it, and is the short one."""
    asm.wait(V, MTE1)
    asm.wait(M, V)
    asm.set(V, MTE1)
    asm.wait(MTE3, M)
    asm.wait(M, MTE3)
    asm.set(M, V)
    asm.set(M, MTE3)
    asm.set(MTE3, M)
    text = fault(asm, device)
    assert "the circle of waits: PIPE_M -> PIPE_MTE3 -> PIPE_M;" in text
    assert text.index("PIPE_MTE3 waits at") < text.index("beside it") < text.index("PIPE_V waits")


def test_scalar_unit_waits_for_ever(asm: Any, device: Device) -> None:
    asm.wait(V, S)
    asm.set(V, S)
    text = fault(asm, device)
    assert "the scalar unit waits" in text
    assert "PIPE_S waits at #0 wait_flag (unknown location) for event 0 of PIPE_V" in text
    assert "whose set_flag the scalar unit has not issued" in text


def test_the_scalar_unit_in_a_circle(asm: Any, device: Device) -> None:
    asm.wait(S, V)
    asm.set(V, S)
    asm.wait(V, S)
    asm.set(S, V)
    text = fault(asm, device)
    assert "the circle of waits: PIPE_V -> PIPE_S -> PIPE_V" in text
    assert "PIPE_V waits at #0 wait_flag (unknown location) for event 0 of PIPE_S" in text
    assert "PIPE_S waits at #2 wait_flag (unknown location) for event 0 of PIPE_V" in text


def test_barrier_of_all_in_a_circle(asm: Any, device: Device) -> None:
    asm.wait(MTE2, V)
    asm.wait(V, M)
    asm.set(V, M)
    asm.barrier(Pipe.ALL)
    asm.set(MTE2, V)
    text = fault(asm, device)
    assert "the circle of waits: PIPE_V -> PIPE_S -> PIPE_V" in text
    assert "PIPE_S, the scalar unit, waits at #3 pipe_barrier (unknown location) for all" in text


def test_full_queue_before_the_set(asm: Any, device: Device) -> None:
    asm.wait(MTE2, V)
    for _ in range(device.machine.sync.queue_depth - 1):
        asm.emit("vector_dup.f32", dst=0, repeat=0)
    stuck = asm.without()
    asm.set(MTE2, V)
    asm.run(device)
    stuck.emit("vector_dup.f32", dst=0, repeat=0)
    stuck.set(MTE2, V)
    text = fault(stuck, device)
    depth = device.machine.sync.queue_depth
    assert "queue of PIPE_V is full; the circle of waits: PIPE_V -> PIPE_S -> PIPE_V" in text
    assert f"PIPE_S, the scalar unit, waits at #{depth} vector_dup.f32 (unknown location)" in text
    assert "for room in the queue of PIPE_V" in text


def test_a_wait_that_has_no_room_in_the_queue(asm: Any, device: Device) -> None:
    """What the scalar unit cannot issue is a wait itself: it waits for room, not for the flag."""
    asm.wait(MTE2, V)
    for _ in range(device.machine.sync.queue_depth - 1):
        asm.emit("vector_dup.f32", dst=0, repeat=0)
    asm.wait(MTE2, V, 1)
    asm.set(MTE2, V)
    text = fault(asm, device)
    assert "the circle of waits: PIPE_V -> PIPE_S -> PIPE_V" in text
    assert (
        f"waits at #{device.machine.sync.queue_depth} wait_flag (unknown location) for room" in text
    )


def test_wait_before_its_set_is_no_order_for_what_lies_between(
    new_asm: Callable[[], Any], device: Device
) -> None:
    x = buffer(device)
    asm = new_asm()
    asm.wait(MTE2, V)
    asm.emit("vector_dup.f32", dst=0, repeat=1)
    asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=8)
    asm.set(MTE2, V)
    assert "race" in fault(asm, device)


def test_event_ids(asm: Any, device: Device) -> None:
    asm.flag(MTE2, V, 3)
    asm.run(device)
    asm.flag(MTE2, V, 4)
    assert "no such event id" in fault(asm, device)

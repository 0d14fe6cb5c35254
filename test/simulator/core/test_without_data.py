"""Blocks without data: their times are those with data, whatever they have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile
from davinci.simulator.core.core import Core
from davinci.simulator.core.forms import Decoder
from davinci.simulator.core.memory import GlobalMemory
from davinci.simulator.core.tables import Tables
from davinci.simulator.timing.gm_model import rates_of
from davinci.simulator.timing.l2 import WRITTEN

GM_BYTES = 1 << 20
Emit = Callable[[Any, int], None]
"""`emit(assembler, block)` assembles the program of a block."""

Run = Callable[..., LaunchProfile]


@pytest.fixture
def run(new_asm: Callable[[], Any]) -> Run:
    """Launches what `emit` assembles on four blocks, without data if not asked for it."""

    def launch(emit: Emit, data: bool = False, most: int = 1000) -> LaunchProfile:
        device = Device(machine.load("ascend910"), GM_BYTES, False, data, most)

        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            asm = new_asm()
            emit(asm, block)
            core.consume(asm.array())

        return device.launch("test", program, [], blocks=4)

    return launch


def copy(asm: Any, address: int) -> None:
    asm.emit("copy_gm_to_ubuf", src=address, dst=0, n_burst=1, len_burst=64)
    asm.flag(Pipe.MTE2, Pipe.V)


@pytest.mark.parametrize("step", [0, 4096, 4096 + 32])
def test_times_are_those_with_data(run: Run, step: int) -> None:
    def emit(asm: Any, block: int) -> None:
        copy(asm, 512 + step * block)

    assert run(emit) == run(emit, data=True)


def test_lines_of_each_block_meet_the_l2(run: Run) -> None:
    apart = run(lambda asm, block: copy(asm, 512 + 4096 * block))
    together = run(lambda asm, block: copy(asm, 512))
    assert apart.traffic.filled_bytes == 4 * together.traffic.filled_bytes


def test_lines_of_rows(asm: Any) -> None:
    """Three rows of 608 bytes that begin inside a line."""
    chip = machine.load("ascend910")
    tables, memory = Tables(chip, Decoder(chip, "AICORE")), GlobalMemory(chip, GM_BYTES)
    core = Core(chip, "AICORE", memory, tables, checks=False, data=False)
    core.begin("k", 0, rates_of(chip, 1), [], keep_rows=False)
    asm.emit("copy_ubuf_to_gm", dst=2 * 512 - 32, src=0, n_burst=3, len_burst=19, dst_gap=45)
    core.consume(asm.array())
    touched = core.timeline.touched()
    assert touched.lines.tolist() == [1, 2, 3, 5, 6, 7, 9, 10, 11]
    assert touched.kinds.tolist() == [WRITTEN] * 9
    assert touched.sizes == (0, 1824, 0, 0)


@pytest.mark.parametrize("change", ["repeat", "dst"])
def test_fields_and_places_differ_by_block(run: Run, change: str) -> None:
    def emit(asm: Any, block: int) -> None:
        fields = {"dst": 0, "repeat": 1}
        fields[change] += 256 * block if change == "dst" else block
        asm.emit("vector_dup.f32", value=0, dst_rep_stride=8, **fields)

    assert run(emit) == run(emit, data=True)


def test_masks_change_what_is_touched(run: Run) -> None:
    def emit(asm: Any, block: int) -> None:
        for low in (3, 255, 3 << 40):
            asm.emit("set_vector_mask", low=low, high=0)
            asm.emit("vector_dup.f32", value=0, dst=0, repeat=2, dst_rep_stride=8)
            asm.emit("pipe_barrier", pipe=Pipe.V)

    assert run(emit) == run(emit, data=True)


def test_scalar_accesses_are_counted(run: Run) -> None:
    def emit(asm: Any, block: int) -> None:
        for count in (3, 5):
            low = 1024 * (block + 1)
            asm.emit("scalar_access", loads=count, load_low=low, load_high=low + 12, space=1)

    profile = run(emit)
    assert profile.scalar_accesses == 4 * 8
    assert profile == run(emit, data=True)


@pytest.mark.parametrize("scalar", [False, True])
def test_a_block_that_leaves_global_memory_is_found(run: Run, scalar: bool) -> None:
    def emit(asm: Any, block: int) -> None:
        low = GM_BYTES - 1024 + 512 * block
        if scalar:
            asm.emit("scalar_access", loads=2, load_low=low, load_high=low + 1024, space=1)
        else:
            copy(asm, low - 1024)

    with pytest.raises(DeviceFault, match="out of bounds") as fault:
        run(emit)
    with pytest.raises(DeviceFault) as expected:
        run(emit, data=True)
    assert str(fault.value) == str(expected.value)
    assert "block 1" in str(fault.value)


def test_what_is_in_the_l2_stays_there(asm: Any) -> None:
    device = Device(machine.load("ascend910"), GM_BYTES, data=False)
    copy(asm, 512)
    first, second = asm.run(device), asm.run(device)
    assert first.instructions == second.instructions
    assert second.traffic.filled_bytes == 0


@pytest.mark.parametrize("data", [False, True])
def test_a_program_that_issues_too_much_is_ended(run: Run, data: bool) -> None:
    def emit(asm: Any, block: int) -> None:
        for _ in range(5000):
            asm.emit("pipe_barrier", pipe=Pipe.V)

    with pytest.raises(DeviceFault, match="too many instructions") as fault:
        run(emit, data, most=4500)
    assert "#4500" in str(fault.value) and "at most 4,500" in str(fault.value)

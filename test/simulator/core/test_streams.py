"""Without data, blocks that issue the same but for lines of global memory are executed once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile
from davinci.simulator.core.core import Core

GM_BYTES = 1 << 20
Emit = Callable[[Any, int], None]
"""`emit(assembler, block)` assembles the program of a block."""

Run = Callable[..., LaunchProfile]


@pytest.fixture
def run(new_asm: Callable[[], Any]) -> Run:
    """Launches what `emit` assembles on four blocks, without data if not asked for it."""

    def launch(emit: Emit, data: bool = False) -> LaunchProfile:
        device = Device(machine.load("ascend910"), GM_BYTES, checks=False, data=data)

        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            asm = new_asm()
            emit(asm, block)
            core.consume(asm.array())

        return device.launch("test", program, [], blocks=4)

    return launch


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Blocks that a core began."""
    found: list[int] = []
    begin = Core.begin

    def watched(self: Core, kernel: str, block: int, *rest: Any) -> None:
        found.append(block)
        begin(self, kernel, block, *rest)

    monkeypatch.setattr(Core, "begin", watched)
    return found


def copy(asm: Any, address: int) -> None:
    asm.emit("copy_gm_to_ubuf", src=address, dst=0, n_burst=1, len_burst=64)
    asm.flag(Pipe.MTE2, Pipe.V)


def test_other_lines_are_executed_once(run: Run, executed: list[int]) -> None:
    def emit(asm: Any, block: int) -> None:
        copy(asm, 512 + 4096 * block)

    assert run(emit) == run(emit, data=True)
    assert executed == [0, 0, 1, 2, 3]


def test_lines_of_each_block_meet_the_l2(run: Run) -> None:
    apart = run(lambda asm, block: copy(asm, 512 + 4096 * block))
    together = run(lambda asm, block: copy(asm, 512))
    assert apart.traffic.filled_bytes == 4 * together.traffic.filled_bytes


def test_another_place_in_a_line_is_executed(run: Run, executed: list[int]) -> None:
    def emit(asm: Any, block: int) -> None:
        copy(asm, 512 + 4096 * block + 32 * (block % 2))

    assert run(emit) == run(emit, data=True)
    assert executed[:2] == [0, 1]


def test_data_of_scalar_operands_make_no_difference(run: Run, executed: list[int]) -> None:
    run(lambda asm, block: asm.emit("vector_dup.f32", dst=0, value=block, repeat=1))
    assert executed == [0]


@pytest.mark.parametrize("change", ["repeat", "dst"])
def test_other_fields_are_executed(run: Run, change: str, executed: list[int]) -> None:
    def emit(asm: Any, block: int) -> None:
        fields = {"dst": 0, "repeat": 1}
        fields[change] += 256 * block if change == "dst" else block
        asm.emit("vector_dup.f32", value=0, dst_rep_stride=8, **fields)

    assert run(emit) == run(emit, data=True)
    assert executed[:4] == [0, 1, 2, 3]


def test_scalar_accesses_elsewhere_are_executed_once(run: Run, executed: list[int]) -> None:
    def emit(asm: Any, block: int) -> None:
        low = 1024 * (block + 1)
        asm.emit("scalar_access", loads=3, load_low=low, load_high=low + 12, space=1)

    profile = run(emit)
    assert executed == [0]
    assert profile.scalar_accesses == 12
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


def test_next_launch_finds_the_streams_of_the_last(asm: Any, executed: list[int]) -> None:
    device = Device(machine.load("ascend910"), GM_BYTES, data=False)
    copy(asm, 512)
    first, second = asm.run(device), asm.run(device)
    assert executed == [0]
    assert first.instructions == second.instructions
    assert second.traffic.filled_bytes == 0

"""What a gather's data names is checked like any other region, each time anew."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci import machine
from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device

OFFSETS, SOURCE, RESULT = 0x1000, 0, 0x8000
SOURCE_BYTES = 1024
FULL = {"dst_rep_stride": 8, "repeat": 1}


class Gathering:
    """A program of a vector core: 256 numbers come to UB, and 64 offsets; what they name leaves."""

    def __init__(self, new_asm: Callable[[], Any]) -> None:
        self._new = new_asm
        self.device = Device(machine.load("ascend910b"), 1 << 20)
        self.numbers = np.arange(SOURCE_BYTES // 4, dtype=np.uint32) + 7
        self.gm = [self.device.allocate(size) for size in (SOURCE_BYTES, 256, 256)]
        self.device.write(self.gm[0], self.numbers)

    def run(
        self,
        offsets: Any,
        before: Callable[[Any], None] = lambda asm: None,
        offset_blocks: int = 8,
        **fields: int,
    ) -> Any:
        """What is gathered; `before`: instructions before the gather."""
        self.device.write(self.gm[1], np.asarray(offsets, dtype=np.uint32))
        asm = self._new()
        source, table, result = self.gm
        asm.emit("copy_gm_to_ubuf", dst=SOURCE, src=source, n_burst=1, len_burst=32)
        asm.emit("copy_gm_to_ubuf", dst=OFFSETS, src=table, n_burst=1, len_burst=offset_blocks)
        asm.flag(Pipe.MTE2, Pipe.V)
        before(asm)
        asm.emit("vgather.b32", dst=RESULT, offsets=OFFSETS, src=SOURCE, **FULL | fields)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=result, src=RESULT, n_burst=1, len_burst=8)

        def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
            core.consume(asm.array())

        self.device.launch("test", {"AIV": program}, [])
        return self.device.read(result, np.uint32, (64,))


@pytest.fixture
def gathering(new_asm: Callable[[], Any]) -> Gathering:
    return Gathering(new_asm)


def test_the_same_stream_gathers_by_other_data(gathering: Gathering) -> None:
    for seed in range(3):
        places = np.random.default_rng(seed).integers(0, 256, 64)
        assert np.array_equal(gathering.run(4 * places), gathering.numbers[places])


def test_what_nobody_wrote(gathering: Gathering) -> None:
    gathering.run(np.zeros(64))
    with pytest.raises(DeviceFault, match=r"nobody wrote.*UB byte 0x400"):
        gathering.run([*[0] * 63, SOURCE_BYTES])
    with pytest.raises(DeviceFault, match=r"nobody wrote.*UB byte 0x1080"):
        gathering.run(np.zeros(64), offset_blocks=4)


def test_beyond_the_memory(gathering: Gathering) -> None:
    for offset in (196608, 2**32 - 4):
        with pytest.raises(DeviceFault, match=r"out of bounds.*expected addresses below 0x30000"):
            gathering.run([*[0] * 63, offset])


def test_between_elements(gathering: Gathering) -> None:
    with pytest.raises(DeviceFault, match="offset 6 is no multiple of 4"):
        gathering.run([*[0] * 63, 6])


def test_only_what_is_gathered_races(gathering: Gathering) -> None:
    def writes(asm: Any) -> None:
        asm.emit("set_vector_mask", low=0xFF, high=0)
        asm.emit("vector_dup.s32", dst=SOURCE + 512, repeat=1, dst_rep_stride=8, value=1)
        asm.emit("set_vector_mask", low=(1 << 64) - 1, high=0)

    found = gathering.run([0, 508, 544, *[4] * 61], writes)
    assert found[:3].tolist() == [7, 134, 143]
    with pytest.raises(DeviceFault, match=r"race: it reads UB \[0x21c, 0x220\)"):
        gathering.run([0, 508, 540, *[4] * 61], writes)
    ordered = gathering.run(
        [0, 508, 540, *[4] * 61], lambda asm: (writes(asm), asm.barrier(Pipe.V))
    )
    assert ordered[2] == 1


def test_without_data_nothing_is_found(new_asm: Callable[[], Any]) -> None:
    device = Device(machine.load("ascend910b"), 1 << 20, data=False)
    asm = new_asm()
    asm.emit("vgather.b32", dst=RESULT, offsets=OFFSETS, src=SOURCE, **FULL)

    def program(arguments: Any, block: int, blocks: int, core: Any) -> None:
        core.consume(asm.array())

    # Issue, 10 and 13 of docs/hardware.md b2, and 2 until the result is there.
    assert device.launch("test", {"AIV": program}, []).cycles == 26

"""Parts of streams that blocks have in common are executed one by one only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from davinci.errors import DeviceFault
from davinci.isa import BY_NAME, Pipe, Space
from davinci.simulator import Device
from davinci.simulator.core.core import Core
from davinci.simulator.core.parts import MOST_KEPT


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of records of each part whose instructions were executed one by one."""
    found: list[int] = []
    one_by_one = Core._one_by_one

    def counted(core: Core, part: Any) -> None:
        found.append(len(part.records))
        one_by_one(core, part)

    monkeypatch.setattr(Core, "_one_by_one", counted)
    return found


def test_what_lies_behind_the_words_of_records_does_not_tell_parts_apart(
    asm: Any, device: Device, alone: list[int]
) -> None:
    """The buffer of records is used again: words that an instruction does not have hold what the
    one before has left there."""
    x = np.arange(64, dtype=np.float32)
    source, targets = device.allocate(256), [device.allocate(256) for _ in range(3)]
    device.write(source, x)
    asm.emit("copy_gm_to_ubuf", dst=0, src=source, n_burst=1, len_burst=8)
    asm.flag(Pipe.MTE2, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=targets[0], src=0, n_burst=1, len_burst=8)
    records = asm.array()
    (flag,) = BY_NAME["set_flag"].values()
    used = 1 + len(flag.operands) + flag.words

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        mine = records.copy()
        mine[1:3, used:] = 1000 + block
        mine[3, 1] = targets[block]
        core.consume(mine)

    device.launch("test", program, [], blocks=3)
    for target in targets:
        np.testing.assert_array_equal(device.read(target, np.float32, (64,)), x)
    assert alone == [4]


def test_scalar_operands_are_data(new_asm: Any, device: Device, alone: list[int]) -> None:
    targets = [device.allocate(256) for _ in range(3)]

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        asm.emit("set_vector_mask", low=(1 << 64) - 1)
        asm.emit("vector_dup.s32", dst=0, repeat=1, dst_rep_stride=8, value=7 * block)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=targets[block], src=0, n_burst=1, len_burst=8)
        core.consume(asm.array())

    device.launch("test", program, [], blocks=3)
    for block, target in enumerate(targets):
        assert (device.read(target, np.int32, (64,)) == 7 * block).all()
    assert alone == [5]


def loads(device: Device, asm: Any, load: int, target: int) -> None:
    """A store of 64 numbers, and a load of the scalar unit that nothing orders behind it."""
    asm.emit("set_vector_mask", low=(1 << 64) - 1)
    asm.emit("vector_dup.s32", dst=0, repeat=1, dst_rep_stride=8, value=1)
    asm.flag(Pipe.V, Pipe.MTE3)
    asm.emit("copy_ubuf_to_gm", dst=target, src=0, n_burst=1, len_burst=8)
    asm.emit("scalar_access", loads=1, load_low=load, load_high=load + 4, space=Space.GM)


def test_parts_with_scalar_loads_are_known_and_checked(
    new_asm: Any, device: Device, alone: list[int]
) -> None:
    sources, targets = [[device.allocate(256) for _ in range(3)] for _ in range(2)]

    def launch(read: Sequence[int]) -> None:
        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            asm = new_asm()
            loads(device, asm, read[block], targets[block])
            core.consume(asm.array())

        device.launch("test", program, [], blocks=3)

    launch(sources)
    assert alone == [6]
    with pytest.raises(DeviceFault, match=r"block 2.*scalar_access.*race: it reads GM"):
        launch([*sources[:2], targets[2] + 64])
    assert alone == [6], "the race is found where the others were passed over"


def test_several_scalar_stores_to_global_memory_are_known(
    new_asm: Any, device: Device, alone: list[int]
) -> None:
    """What is read there is checked each time."""
    target = device.allocate(1024)

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        asm = new_asm()
        places = {"store_low": target + 64 * block, "store_high": target + 64 * block + 8}
        asm.emit("scalar_access", stores=1 + arguments[0], **places, space=Space.GM)
        core.consume(asm.array())

    device.launch("test", program, [0], blocks=3)
    assert alone == [1]
    device.launch("test", program, [1], blocks=3)
    assert alone == [1, 1]


def test_what_several_scalar_stores_leave_out_tells_parts_apart(
    new_asm: Any, device: Device, alone: list[int]
) -> None:
    """Blocks store eight numbers each to a range of as many; the last one stores two of them to the
    same place, which its records do not tell."""
    target = device.allocate(1024)

    def launch(*last: int) -> None:
        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            asm, near = new_asm(), core.memory(Space.UB)
            for word in [*range(7), 7 if block < 2 else last[0]]:
                near.data[4 * word : 4 * word + 4] = block
                near.written[4 * word : 4 * word + 4] = True
            asm.emit("scalar_access", stores=8, store_high=32, space=Space.UB)
            asm.flag(Pipe.S, Pipe.MTE3)
            place = target + 32 * block
            asm.emit("copy_ubuf_to_gm", dst=place, src=0, n_burst=1, len_burst=1)
            core.consume(asm.array())

        device.launch("test", program, [], blocks=3)

    launch(7)
    np.testing.assert_array_equal(
        device.read(target, np.uint8, (3, 32)), np.repeat([[0], [1], [2]], 32, axis=1)
    )
    assert alone == [4]
    with pytest.raises(DeviceFault, match="UB byte 0x1c, the first unwritten one"):
        launch(3)
    assert alone == [4, 4]


def test_all_parts_of_a_long_block_are_known_to_the_next(
    asm: Any, device: Device, alone: list[int]
) -> None:
    asm.flag(Pipe.MTE2, Pipe.MTE3)
    asm.flag(Pipe.MTE3, Pipe.MTE2)
    records = np.tile(asm.array(), (MOST_KEPT // 32, 1))
    parts = 7

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        for _ in range(parts):
            core.consume(records)

    device.launch("test", program, [], blocks=2)
    assert alone == [len(records)] * parts

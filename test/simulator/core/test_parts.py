"""Parts of streams that blocks have in common are executed one by one only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from davinci.isa import BY_NAME, Pipe
from davinci.simulator import Device
from davinci.simulator.core.core import Core


def test_what_lies_behind_the_words_of_records_does_not_tell_parts_apart(
    asm: Any, device: Device, monkeypatch: pytest.MonkeyPatch
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
    alone: list[int] = []
    one_by_one = Core._one_by_one

    def counted(core: Core, part: Any) -> None:
        alone.append(len(part.records))
        one_by_one(core, part)

    monkeypatch.setattr(Core, "_one_by_one", counted)

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        mine = records.copy()
        mine[1:3, used:] = 1000 + block
        mine[3, 1] = targets[block]
        core.consume(mine)

    device.launch("test", program, [], blocks=3)
    for target in targets:
        np.testing.assert_array_equal(device.read(target, np.float32, (64,)), x)
    assert alone == [4]

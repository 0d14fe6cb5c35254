"""The race check against an oracle that knows the whole order: no false alarm, no escape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from davinci.errors import DeviceFault
from davinci.isa import Pipe
from davinci.simulator import Device
from fuzz.random_order import SPACE_BYTES, random_program


def test_against_oracle(new_asm: Callable[[], Any], device: Device) -> None:
    rng = np.random.default_rng(11)
    gm = device.allocate(2 * SPACE_BYTES)
    device.write(gm, np.zeros(2 * SPACE_BYTES, dtype=np.uint8))
    clean = 0
    for _ in range(400):
        asm = new_asm()
        first = random_program(rng, asm, gm)
        if first is None:
            asm.run(device)
            clean += 1
        else:
            with pytest.raises(DeviceFault, match=f"instruction #{first} .*(race: it|set again)"):
                asm.run(device)
    assert 20 < clean < 380


def test_many_accesses_in_flight(new_asm: Callable[[], Any], device: Device) -> None:
    """More than are compared one by one."""
    x = device.allocate(4096)
    device.write(x, np.zeros(4096, dtype=np.uint8))
    asm = new_asm()
    for i in range(100):
        asm.emit("copy_gm_to_ubuf", dst=32 * i, src=x, n_burst=1, len_burst=1)
    asm.run(device)
    asm.emit("copy_gm_to_ubuf", dst=32 * 7, src=x, n_burst=1, len_burst=1)
    with pytest.raises(DeviceFault, match="which #7 copy_gm_to_ubuf"):
        asm.run(device)


PAIR = "PIPE_MTE2, PIPE_V"


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (
            "load copy",
            f"put set_flag({PAIR}, id) after the first and wait_flag({PAIR}, id) before this",
        ),
        ("load set0 copy", f"; put wait_flag({PAIR}, 0) before this, for the flag of #1"),
        (
            "load wait0 copy",
            "wait_flag #1 waits for event 0 from PIPE_MTE2 to PIPE_V, which no set_flag has set; "
            "so race: it reads UB",
        ),
        ("load wait0 copy", f"; put set_flag({PAIR}, 0) after the first"),
        (
            "load set1 wait0 copy",
            "give set_flag #1 and wait_flag #2 one event id: they have 1 and 0",
        ),
        ("set0 load wait0 copy", "; put set_flag #0 after the first"),
        (
            "set0 load copy",
            f"put set_flag #0 after the first and put wait_flag({PAIR}, 0) before this, for the",
        ),
        # The second load is unordered with the first one too, which a barrier would mend.
        ("load set0 wait0 copy load", "put set_flag(PIPE_V, PIPE_MTE2, id) after the first"),
        ("load set0 wait0 copy load", "which #3 copy_ubuf_to_ubuf of PIPE_V"),
        ("load set0 wait0 copy copy", "put pipe_barrier(PIPE_V) between them"),
        (
            "load set0 wait0 other copy copy",
            "wait_flag #3 waits for event 0 from PIPE_MTE3 to PIPE_V, which no set_flag has set",
        ),
        (
            "load set0 wait0 other copy copy",
            "; put set_flag(PIPE_MTE3, PIPE_V, 0) before that wait_flag, or remove it",
        ),
    ],
)
def test_message_says_what_is_missing(
    steps: str, message: str, new_asm: Callable[[], Any], device: Device
) -> None:
    x = device.allocate(64)
    device.write(x, np.zeros(64, dtype=np.uint8))
    asm = new_asm()
    actions: dict[str, Callable[[], None]] = {
        "load": lambda: asm.emit("copy_gm_to_ubuf", dst=0, src=x, n_burst=1, len_burst=1),
        "copy": lambda: asm.emit("copy_ubuf_to_ubuf", dst=64, src=0, n_burst=1, len_burst=1),
        "set0": lambda: asm.set(Pipe.MTE2, Pipe.V, 0),
        "set1": lambda: asm.set(Pipe.MTE2, Pipe.V, 1),
        "wait0": lambda: asm.wait(Pipe.MTE2, Pipe.V, 0),
        "other": lambda: asm.wait(Pipe.MTE3, Pipe.V, 0),
    }
    for step in steps.split():
        actions[step]()
    with pytest.raises(DeviceFault) as caught:
        asm.run(device)
    assert message in str(caught.value)

"""Several processes compute the data of launches: as one does, whatever goes wrong."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import davinci
from davinci import machine as machines
from davinci import zoo
from davinci.errors import DeviceFault, InputError
from davinci.isa import Pipe
from davinci.simulator import Device, JoinedKernels, KernelCall

BYTES = 32
"""Of each block's part of a buffer."""

BLOCKS = 6
Program = Callable[[Sequence[int], int, int, Any], None]


class Buffers:
    """A device with a buffer of numbers and others behind it, and launches that add one."""

    def __init__(self, new_asm: Callable[[], Any]) -> None:
        self.device = Device(machines.load("ascend910"), 1 << 16)
        self.places = [self.device.allocate(BLOCKS * BYTES) for _ in range(4)]
        self.device.write(self.places[0], np.arange(8 * BLOCKS, dtype=np.float32))
        self._new_asm = new_asm

    def add_one(self, arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        """Of its part, in rows of eight numbers."""
        x, y = arguments
        asm = self._new_asm()
        asm.emit("copy_gm_to_ubuf", dst=0, src=x + block * BYTES, n_burst=1, len_burst=1)
        asm.flag(Pipe.MTE2, Pipe.V)
        asm.emit("set_vector_mask", low=0xFF, high=0)
        asm.emit("vadds.f32", dst=64, src=0, value=0x3F800000, repeat=1)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=y + block * BYTES, src=64, n_burst=1, len_burst=1)
        core.consume(asm.array())

    def chain(
        self, program: Program | None = None, alone: int | None = None
    ) -> list[JoinedKernels]:
        """Each launch reads what the one before it wrote; the second may be of this program."""
        programs = [self.add_one, program or self.add_one, self.add_one]
        return [
            JoinedKernels((self._call(i, each, i == alone),)) for i, each in enumerate(programs)
        ]

    def _call(self, number: int, program: Program, alone: bool) -> KernelCall:
        places = self.places[number : number + 2]
        return KernelCall(f"k{number}", {"AICORE": program}, places, BLOCKS, [""], alone)

    def run(self, launches: list[JoinedKernels], count: int) -> Any:
        kept = [[1]] + [[0]] * (len(launches) - 1)
        found = self.device.run(launches, kept, count)
        return found and [profile for profiles in found for profile in profiles]

    def found(self) -> Any:
        return self.device.read(self.places[3], np.float32, (8 * BLOCKS,))


@pytest.fixture
def buffers(new_asm: Callable[[], Any]) -> Buffers:
    return Buffers(new_asm)


@pytest.mark.parametrize("alone", [None, 0, 1, 2])
def test_several_are_as_one(new_asm: Callable[[], Any], alone: int | None) -> None:
    one, several = Buffers(new_asm), Buffers(new_asm)
    wanted, found = one.run(one.chain(), 1), several.run(several.chain(alone=alone), 3)
    rows = [[replace(row, accesses=()) for row in x[0].rows] for x in (wanted, found)]
    assert rows[0] == rows[1] != []
    assert [replace(x, rows=[]) for x in wanted] == [replace(x, rows=[]) for x in found]
    np.testing.assert_array_equal(several.found(), np.arange(8 * BLOCKS) + 3)
    np.testing.assert_array_equal(one.found(), several.found())
    assert not multiprocessing.active_children()


def test_all_take_part(buffers: Buffers) -> None:
    """Each process notes itself where the others see it."""
    noted = buffers.device.allocate(4 * BLOCKS)

    def note(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        buffers.add_one(arguments, block, blocks, core)
        if core.memory(0).written.size and core in made:  # not for its time only
            buffers.device.write(noted + 4 * block, np.array([os.getpid()], np.int32))
            while block == 0 and (written() == os.getpid()).all():
                pass  # until another process is there

    made: list[Any] = []
    take = buffers.device.cores.take

    def taken(kind: str) -> Any:
        made.append(take(kind))
        return made[-1]

    def written() -> Any:
        found = buffers.device._gm.data[noted : noted + 4 * BLOCKS].view(np.int32)
        return found[found > 0]

    buffers.device.cores.take = taken  # type: ignore[method-assign]
    assert buffers.run(buffers.chain(note), 2) is not None
    assert len(set(written().tolist())) == 2


@pytest.mark.parametrize(
    "wrong, message",
    [
        ("race", "race between blocks: block 5 writes"),
        ("unwritten", "bytes that nobody wrote"),
        ("deadlock", "deadlock"),
    ],
)
def test_what_is_wrong_is_left_to_one(
    buffers: Buffers, new_asm: Callable[[], Any], wrong: str, message: str
) -> None:
    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        place = min(block, BLOCKS - 2) if wrong == "race" else block
        if wrong == "unwritten" and block == 3:
            arguments = (buffers.places[3], arguments[1])
        if wrong == "deadlock" and block == 4:
            asm = new_asm()
            asm.wait(Pipe.V, Pipe.S)
            core.consume(asm.array())
        buffers.add_one(arguments, place, blocks, core)

    launches = buffers.chain(program)
    assert buffers.run(launches, 2) is None
    with pytest.raises(DeviceFault, match=message):
        buffers.run(launches, 1)
    assert not multiprocessing.active_children()


def test_an_error_of_a_worker_is_left_to_one(buffers: Buffers) -> None:
    parent = os.getpid()

    def failing(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        if os.getpid() != parent:
            raise MemoryError
        signal.sigtimedwait([], 0.05)  # so that the worker gets a block
        buffers.add_one(arguments, block, blocks, core)

    launches = buffers.chain(failing)
    assert buffers.run(launches, 2) is None
    assert buffers.run(launches, 1) is not None


def test_a_killed_worker_is_told(buffers: Buffers) -> None:
    parent = os.getpid()

    def killed(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        signal.sigtimedwait([], 0.05)  # so that the worker gets a block
        buffers.add_one(arguments, block, blocks, core)

    with pytest.raises(InputError, match="was killed"):
        buffers.run(buffers.chain(killed), 2)
    assert not multiprocessing.active_children()


def test_no_processes(buffers: Buffers, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second one cannot be started; the first does not stay."""
    fork, made = os.fork, []

    def few() -> int:
        made.append(0)
        if len(made) > 1:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        return fork()

    monkeypatch.setattr(os, "fork", few)
    with pytest.raises(InputError, match="no processes to compute data; found Resource temp"):
        buffers.run(buffers.chain(), 3)
    assert not multiprocessing.active_children()


def test_a_network_is_as_in_one() -> None:
    """With a look-up, whose scalar program loads from memory."""
    network = zoo.build("bert-tiny,layers=1")
    executable = davinci.compile(network.proto)
    inputs = network.inputs(0)
    one, launches = executable.run(inputs), executable.launches
    executable.processes = 2
    several = executable.run(inputs)
    assert executable.launches == launches
    for name, array in one.items():
        np.testing.assert_array_equal(several[name], array)

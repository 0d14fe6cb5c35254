"""Programs by hand whose blocks wait for each other on a coupled machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci import machine
from davinci.isa import Pipe, Space
from davinci.isa.counters import LINE_BYTES
from davinci.simulator import Device, LaunchProfile

PART = 1024
"""Bytes that a block writes in these programs: 4 repeats."""

OWN, LINES, DATA, READ = 0, 1024, 4096, 8192
"""Places in UB: the block's own counter, those of others, what it writes, and what it reads."""

Build = Callable[["Program"], None]


class Program:
    """The program of one block, which stores and loads with the scalar unit.

    Attributes:
        block: its number.
        blocks: how many there are.
    """

    def __init__(self, rig: Talking, asm: Any, core: Any, block: int, blocks: int) -> None:
        self.rig, self.block, self.blocks = rig, block, blocks
        self._asm, self._core, self._sent = asm, core, 0

    def emit(self, mnemonic: str, **values: int) -> None:
        """Issues an instruction."""
        self._asm.emit(mnemonic, **values)

    def flag(self, source: Pipe, target: Pipe) -> None:
        """A flag from one pipe to another, waited for at once."""
        self._asm.flag(source, target)

    def send(self) -> None:
        """Hands over what was issued."""
        records = self._asm.array()
        self._core.consume(records[self._sent :])
        self._sent = len(records)

    def store(self, address: int, value: int) -> None:
        """The scalar unit puts a number into a line of UB."""
        self.send()
        line = np.full(LINE_BYTES // 4, value, np.int32)
        memory = self._core.memory(Space.UB)
        memory.data[address : address + LINE_BYTES] = line.view(np.uint8)
        if len(memory.written):
            memory.written[address : address + LINE_BYTES] = 1
        self.scalar(stores=8, store_low=address, store_high=address + LINE_BYTES)

    def load(self, address: int, count: int) -> list[int]:
        """The scalar unit looks at the first numbers of lines in UB."""
        size = count * LINE_BYTES
        self.scalar(loads=count, load_low=address, load_high=address + size)
        self.send()
        data = self._core.memory(Space.UB).data[address : address + size]
        return data.view(np.int32)[:: LINE_BYTES // 4].tolist()

    def scalar(self, **fields: int) -> None:
        """What the scalar unit has accessed in UB."""
        names = ("loads", "stores", "load_low", "load_high", "store_low", "store_high")
        self.emit("scalar_access", **dict.fromkeys(names, 0) | fields, space=Space.UB)

    def post(
        self, number: int, store: bool = True, told: int | None = None, loaded: bool = True
    ) -> None:
        """Stores the block's counter, when all it loads is there if `loaded`, and says so."""
        line = self.rig.lines + self.block * LINE_BYTES
        if loaded:
            self.flag(Pipe.MTE2, Pipe.MTE3)
        if store:
            self.store(OWN, number)
            self.flag(Pipe.S, Pipe.MTE3)
            self.emit("copy_ubuf_to_gm", dst=line, src=OWN, n_burst=1, len_burst=1)
        self.emit("post_counter", line=line, value=number if told is None else told)
        self.flag(Pipe.MTE3, Pipe.S)

    def wait(
        self,
        number: int,
        first: int = 0,
        count: int | None = None,
        part: int | None = None,
        slot: int = 0,
        ordered: bool = True,
    ) -> None:
        """Looks at counters until all of them have reached a number.

        Args:
            part: read in each look, into a slot; behind the counters if `ordered`.
        """
        count = self.blocks if count is None else count
        lines = self.rig.lines + first * LINE_BYTES
        while True:
            fields = {"count": count, "looks": count, "value": number}
            self.emit("poll_counters", lines=lines, result=LINES, **fields)
            self.emit("copy_gm_to_ubuf", dst=LINES, src=lines, n_burst=1, len_burst=count)
            if part is not None:
                if ordered:
                    self.emit("pipe_barrier", pipe=Pipe.MTE2)
                place, address = READ + slot * PART, self.rig.data + part * PART
                long = PART // LINE_BYTES
                self.emit("copy_gm_to_ubuf", dst=place, src=address, n_burst=1, len_burst=long)
            self.flag(Pipe.MTE2, Pipe.S)
            least = min(self.load(LINES, count))
            self.emit("end_poll", value=least)
            if least >= number:
                return

    def synchronise(self, number: int) -> None:
        """All blocks wait for each other."""
        self.post(number)
        self.wait(number)

    def write(self, part: int, value: int) -> None:
        """Fills a part of the buffer."""
        self.emit("set_vector_mask", low=(1 << 64) - 1)
        self.flag(Pipe.MTE3, Pipe.V)
        self.emit("vector_dup.s32", dst=DATA, repeat=4, dst_rep_stride=8, value=value)
        self.flag(Pipe.V, Pipe.MTE3)
        address = self.rig.data + part * PART
        self.emit("copy_ubuf_to_gm", dst=address, src=DATA, n_burst=1, len_burst=PART // 32)

    def read(self, part: int, times: int = 1) -> None:
        """Reads a part into UB, several times to different places."""
        address = self.rig.data + part * PART
        for i in range(times):
            place = READ + i * PART
            self.emit("copy_gm_to_ubuf", dst=place, src=address, n_burst=1, len_burst=PART // 32)


class Talking:
    """A 910, lines of counters and a buffer of zeros in its memory."""

    def __init__(self, new_asm: Callable[[], Any], **options: bool) -> None:
        self.machine = machine.load("ascend910")
        self.device = Device(self.machine, 1 << 22, **options)
        self.lines = self.device.allocate(64 * LINE_BYTES)
        self.data = self.device.allocate(64 * PART)
        self._new = new_asm
        self.clear()

    def clear(self) -> None:
        """Sets all counters and the buffer to 0."""
        self.device.write(self.lines, np.zeros(64 * LINE_BYTES, np.uint8))
        self.device.write(self.data, np.zeros(64 * PART, np.uint8))

    def run(self, build: Build, blocks: int, timeline: bool = False) -> LaunchProfile:
        """Runs the program that `build` issues for each block."""

        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            made = Program(self, self._new(), core, block, blocks)
            build(made)
            made.send()

        return self.device.launch("test", program, [], blocks, timeline=timeline, talks=True)

    def parts(self, count: int) -> list[int]:
        """The first number of each part."""
        found = self.device.read(self.data, np.int32, (count, PART // 4))
        return [int(value) for value in found[:, 0]]

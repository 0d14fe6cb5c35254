"""Programs by hand for the cores of a split machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from davinci import machine
from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile
from davinci.simulator.core.launch import JoinedKernels, KernelCall

PART = 1024
"""Bytes that a vector core writes in these programs: 4 repeats."""

ALL, PAIR, CUBE_VECTOR = 0, 1, 2
Build = Callable[[Any, int, int], None]
"""Emits the program of (assembler, block, sub-block)."""


class Split:
    """A 910B and a buffer of zeros in its memory."""

    def __init__(self, new_asm: Callable[[], Any]) -> None:
        self.device = Device(machine.load("ascend910b"), 1 << 24)
        self.gm = self.device.allocate(1 << 20)
        self.device.write(self.gm, np.zeros(1 << 20, np.uint8))
        self.new = new_asm

    def run(
        self, blocks: int = 1, timeline: bool = False, foreign: bool = False, **builds: Build
    ) -> LaunchProfile:
        def program(build: Build) -> Any:
            def run(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
                asm = self.new()
                build(asm, block, core.sub_block)
                core.consume(asm.array())

            return run

        programs = {kind: program(build) for kind, build in builds.items()}
        if foreign:
            call = KernelCall("test", programs, [], blocks, (), alone=True, foreign=True)
            ((profile,),) = self.device.run([JoinedKernels((call,))], [[0]]) or [[]]
            return profile
        return self.device.launch("test", programs, [], blocks=blocks, timeline=timeline)

    def write(self, asm: Any, part: int, value: int = 1) -> None:
        """A vector core fills a part of the buffer."""
        asm.emit("set_vector_mask", low=(1 << 64) - 1)
        asm.emit("vector_dup.s32", dst=0, repeat=4, dst_rep_stride=8, value=value)
        asm.flag(Pipe.V, Pipe.MTE3)
        asm.emit("copy_ubuf_to_gm", dst=self.gm + part * PART, src=0, n_burst=1, len_burst=32)

    def read(self, asm: Any, part: int) -> None:
        """A vector core reads a part, to another place in UB."""
        asm.emit("copy_gm_to_ubuf", dst=8192, src=self.gm + part * PART, n_burst=1, len_burst=32)

    def load(self, asm: Any, part: int) -> None:
        """A cube core reads a part."""
        asm.emit("copy_gm_to_cbuf", dst=0, src=self.gm + part * PART, n_burst=1, len_burst=32)


def signal(asm: Any, mode: int, flag: int = 0, pipe: Pipe = Pipe.MTE3) -> None:
    asm.emit("ffts_cross_core_sync", pipe=pipe, mode=mode, flag=flag)


def wait(asm: Any, flag: int = 0) -> None:
    asm.emit("wait_flag_dev", flag=flag)


def nothing(asm: Any, block: int, sub: int) -> None:
    """A program without instructions."""

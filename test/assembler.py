"""Hand-assembled programs: a list of encoded instructions that runs as a launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from davinci.isa import Pipe
from davinci.simulator import Device, LaunchProfile
from encoded import encoded


class Assembler:
    """Collects instructions by mnemonic, as `encoded` makes them."""

    def __init__(self) -> None:
        self.rows: list[list[int]] = []
        self.names: list[str] = []

    def emit(self, mnemonic: str, scalar_ops: int = 0, location: int = 0, **values: int) -> None:
        self.raw(mnemonic, encoded(mnemonic, scalar_ops, location, **values))

    def raw(self, name: str, row: Sequence[int]) -> None:
        self.names.append(name)
        self.rows.append(list(row))

    def set(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        self.emit("set_flag", src_pipe=src, dst_pipe=dst, event=event)

    def wait(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        self.emit("wait_flag", src_pipe=src, dst_pipe=dst, event=event)

    def flag(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        self.set(src, dst, event)
        self.wait(src, dst, event)

    def barrier(self, pipe: Pipe) -> None:
        self.emit("pipe_barrier", pipe=pipe)

    def without(self, *indices: int) -> Assembler:
        """A copy of this program that lacks the instructions of some numbers."""
        other = Assembler()
        for i, (name, row) in enumerate(zip(self.names, self.rows, strict=True)):
            if i not in indices:
                other.raw(name, row)
        return other

    def array(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return np.array(self.rows, dtype=np.uint64).reshape(-1, 8)

    def run(self, device: Device, **options: Any) -> LaunchProfile:
        """Launches it as kernel `test`, the same program for every block."""

        def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
            core.consume(self.array())

        return device.launch("test", program, [], **options)

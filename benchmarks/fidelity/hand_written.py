"""Instruction streams written by hand, for measurements that others made on the 910B."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test"))

import numpy as np

from davinci.isa import INSTRUCTIONS, Pipe
from davinci.simulator import Device, LaunchProfile
from encoded import encoded

CHUNK = 16384
"""Instructions that are handed to the core at a time."""


class Stream:
    """Issues instructions to a core by mnemonic, as `encoded` makes them."""

    def __init__(self, core: Any) -> None:
        self._core = core
        self._rows: list[list[int]] = []
        self._made: dict[tuple[Any, ...], list[int]] = {}

    def emit(self, mnemonic: str, scalar_ops: int = 0, **values: int) -> None:
        """One instruction, `scalar_ops` operations of the scalar unit after the last one."""
        record = INSTRUCTIONS[mnemonic]
        addresses = [values.pop(operand.name, 0) for operand in record.operands]
        key = (mnemonic, scalar_ops, *values.items())
        row = self._made.get(key)
        if row is None:
            row = self._made[key] = encoded(mnemonic, scalar_ops, **values)
        row = row.copy()
        row[1 : 1 + len(addresses)] = addresses
        self._rows.append(row)
        if len(self._rows) == CHUNK:
            self.flush()

    def extend(self, rows: Sequence[list[int]]) -> None:
        """Instructions that `rows_of` has made."""
        self._rows.extend(rows)
        if len(self._rows) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Hands over what is left."""
        if self._rows:
            self._core.consume(np.array(self._rows, dtype=np.uint64))
            self._rows = []

    def set(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        self.emit("set_flag", src_pipe=src, dst_pipe=dst, event=event)

    def wait(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        self.emit("wait_flag", src_pipe=src, dst_pipe=dst, event=event)

    def flag(self, src: Pipe, dst: Pipe, event: int = 0) -> None:
        """`dst` waits for all that `src` has been given."""
        self.set(src, dst, event)
        self.wait(src, dst, event)

    def lend(self, owner: Pipe, user: Pipe, events: int = 1) -> None:
        """`user` has all its buffers empty at the start."""
        for event in range(events):
            self.set(user, owner, event)

    def collect(self, owner: Pipe, user: Pipe, events: int = 1) -> None:
        """`owner` takes all buffers back at the end."""
        for event in range(events):
            self.wait(user, owner, event)


def rows_of(issue: Callable[[Stream], None]) -> list[list[int]]:
    """The instructions that a function issues, for `Stream.extend`: fewer than a chunk of them."""
    stream = Stream(None)
    issue(stream)
    return stream._rows


Body = Callable[[Stream, int], None]


def run(
    device: Device, body: Body, kind: str, blocks: int = 1, timeline: bool = False
) -> LaunchProfile:
    """Launches `body(stream, block)` on cores of that kind."""

    def program(arguments: Sequence[int], block: int, blocks: int, core: Any) -> None:
        stream = Stream(core)
        body(stream, block)
        stream.flush()

    programs: Mapping[str, Any] = {kind: program}
    return device.launch("measured", programs, [], blocks, timeline=timeline)

"""What the scalar program of a block is to the simulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from davinci.isa.core import Records, Space
from davinci.simulator.core.memory import Memory


class ScalarCore(Protocol):
    """The interface of a core that a scalar program calls."""

    @property
    def sub_block(self) -> int: ...

    @property
    def most_turns(self) -> int: ...

    def memory(self, space: Space) -> Memory: ...

    def consume(self, records: Records) -> None: ...


BlockProgram = Callable[[Sequence[int], int, int, ScalarCore], None]
"""`program(arguments, block, blocks, core)`: runs the scalar program of one block."""

"""What is launched, and the cores that run it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from davinci.simulator.core.core import BlockProgram, Core


@dataclass(frozen=True)
class Launch:
    """A kernel to be launched.

    Attributes:
        name: of the kernel, for messages and reports.
        programs: its scalar programs, by kind of core.
        arguments: addresses of its buffers in global memory.
        blocks: number of blocks.
        locations: source locations by id, number 0 unknown.
        alone: a scalar program accesses memory, so what it issues may depend on data.
    """

    name: str
    programs: Mapping[str, BlockProgram]
    arguments: Sequence[int]
    blocks: int
    locations: Sequence[str]
    alone: bool


class Pool:
    """Cores that are free, by kind: a core is needed only while its program runs."""

    def __init__(self, make: Callable[[str], Core]) -> None:
        self._make = make
        self._free: dict[str, list[Core]] = {}

    def take(self, kind: str) -> Core:
        """A core of that kind."""
        free = self._free.setdefault(kind, [])
        return free.pop() if free else self._make(kind)

    def give(self, kind: str, core: Core) -> None:
        """Takes a core back."""
        self._free[kind].append(core)

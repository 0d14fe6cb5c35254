"""Launches, and the cores that run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from davinci.simulator.core.core import Core
from davinci.simulator.core.memory import Memory
from davinci.simulator.core.program import BlockProgram


@dataclass(frozen=True)
class KernelCall:
    """A kernel of a launch.

    Attributes:
        name: of the kernel, for messages and reports.
        programs: its scalar programs, by kind of core.
        arguments: addresses of its buffers in global memory.
        blocks: number of blocks.
        locations: source locations by id, number 0 unknown.
        alone: its blocks run in one process and in order: a scalar program accesses memory, so what
            it issues may depend on data, or its stores add, and the order decides on last bits.
        talks: its blocks wait for each other by counters in global memory.
        foreign: code of AscendNPU-IR, with what it relies on. A flag may be set again before the
            wait for it is over, and waits answer sets in order; what is published leaves that
            undefined. A vector core that stores nothing may read what another one writes, and
            blocks and vector cores may store the same to the same bytes.
        crosses: programs may set flags of other cores of a split machine, or wait for them.
    """

    name: str
    programs: Mapping[str, BlockProgram]
    arguments: Sequence[int]
    blocks: int
    locations: Sequence[str]
    alone: bool
    talks: bool = False
    foreign: bool = False
    crosses: bool = True


@dataclass(frozen=True)
class JoinedKernels:
    """Kernels that are launched as one, on disjoint sets of cores: the blocks of the first kernel,
    then those of the next one. Each kernel sees its own blocks only, numbered from 0.

    A launch may consist of phases, of which each is one of these: behind each but the last one all
    cores of the launch meet, which is a phase too. Nothing of a phase begins before all of the one
    before it is complete.

    Attributes:
        kernels: mostly one.
        launch_cores: of a launch in phases, in all of them together; 0 for one without. On a split
            machine a cube core and its vector cores are one where both kinds are in the launch.
        launch_kinds: kinds of the cores of a launch in phases.
        continues: whether it is a phase of the launch before it.
        meeting: of a phase in which the cores do nothing but meet, the number of the argument that
            their counters have to reach, `BY_FLAGS` if they need none; None for all others.
    """

    kernels: tuple[KernelCall, ...]
    launch_cores: int = 0
    launch_kinds: frozenset[str] = frozenset()
    continues: bool = False
    meeting: int | None = None

    @property
    def name(self) -> str:
        """For messages."""
        return " | ".join(kernel.name for kernel in self.kernels)

    @property
    def blocks(self) -> int:
        """Number of blocks of all kernels together."""
        return sum(kernel.blocks for kernel in self.kernels)

    @property
    def alone(self) -> bool:
        """Whether what a kernel issues may depend on data."""
        return any(kernel.alone for kernel in self.kernels)

    @property
    def meets(self) -> bool:
        """Whether the cores do nothing but meet in it."""
        return self.meeting is not None

    @property
    def in_phases(self) -> bool:
        """Whether it is a phase, so that its cores look which kernel they are to run."""
        return self.launch_cores > 0

    def party(self, block: int) -> str:
        """What a message calls a block: by its number, and by its kernel if that is not all."""
        number, own = self.of_block(block)
        if len(self.kernels) == 1:
            return f"block {own}"
        return f"block {own} of kernel {self.kernels[number].name}"

    def of_block(self, block: int) -> tuple[int, int]:
        """The number of the kernel that a block of the launch belongs to, and of the block in it.

        >>> calls = [KernelCall(name, {}, [], 3, [], False) for name in "ab"]
        >>> Launch(tuple(calls)).of_block(4)
        (1, 1)
        """
        for number, kernel in enumerate(self.kernels):
            if block < kernel.blocks:
                return number, block
            block -= kernel.blocks
        raise IndexError("a block that the launch has not")


@dataclass(frozen=True)
class CoreGroup:
    """A cube core and its vector cores that write into each other's memories.

    Attributes:
        cores: the cube core first.
        shared: the memories that several of them reach.
    """

    cores: Sequence[Core]
    shared: Sequence[Memory]

    def forget(self) -> None:
        """Nothing is in what they share, as at the start of a block."""
        for memory in self.shared:
            memory.forget()


class FreeCores:
    """Cores that are free, by kind: a core is needed only while its program runs."""

    def __init__(self, make: Callable[[str], Core], make_group: Callable[[], CoreGroup]) -> None:
        self._make, self._make_group = make, make_group
        self._free: dict[str, list[Core]] = {}
        self._groups: list[CoreGroup] = []

    def take_group(self) -> CoreGroup:
        """A cube core and its vector cores, with nothing in what they share."""
        group = self._groups.pop() if self._groups else self._make_group()
        group.forget()
        return group

    def give_group(self, group: CoreGroup) -> None:
        """Takes a group back."""
        self._groups.append(group)

    def take(self, kind: str) -> Core:
        """A core of that kind."""
        free = self._free.setdefault(kind, [])
        return free.pop() if free else self._make(kind)

    def give(self, kind: str, core: Core) -> None:
        """Takes a core back."""
        self._free[kind].append(core)

"""Builders of kernels: they make operations of cce of groups and their schedules.

`groups` reads a kernel, asks `davinci.schedule` for the plan of each of its parts, and has the
builder of its kind make it. Builders decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from davinci.machine import Machine
from davinci.mlir import ir
from davinci.schedule.choices import Choices
from davinci.schedule.core_count import CoreCount


@dataclass(frozen=True)
class LaunchBlocks:
    """The blocks of a launch that a part of its kernel has.

    Attributes:
        index: number of the block among them.
        count: how many.
    """

    index: ir.Value
    count: int


@dataclass(frozen=True)
class Target:
    """What builders may ask about: the machine and the options of convert-ascend-to-cce.

    Attributes:
        machine: sizes, alignments and legal instruction types.
        cores: most blocks a kernel may be launched with.
        matmul_strategy: "os", "is" or "ws".
        tile: (m, n, k) of the matmul strategy, (0, 0, 0) to choose.
        fractalize: "improved" or "naive".
        blocks: those that do the work; None for all of the launch.
        all_cores: whether a kernel takes all of them; else as many as its cost says.
        given: choices of kernels by key.
        schedules: the file that they are from.
        phases: that a launch has, by whose number kernels share the price of launching on more
            cores; 1 if each kernel has its own.
        joined: whether kernels that take all cores are phases of one launch.
        counts: the cores of kernels that were weighed before, by name.
        adders: the vector cores beside those that run a kernel, as a machine, if they are apart
            and the kernel may have a program for them.
    """

    machine: Machine
    cores: int
    matmul_strategy: str = "os"
    tile: tuple[int, int, int] = (0, 0, 0)
    fractalize: str = "improved"
    blocks: LaunchBlocks | None = None
    all_cores: bool = False
    given: Mapping[str, Choices] = field(default_factory=dict)
    schedules: str = ""
    phases: int = 1
    joined: bool = False
    counts: Mapping[str, CoreCount] = field(default_factory=dict)
    adders: Machine | None = None

    @property
    def has_idle_blocks_meet(self) -> bool:
        """Whether blocks without work meet in a kernel whose cores do: in a phase of a launch whose
        cores have flags for each other, which are those of all its cores."""
        return self.machine.cross_core is not None and (self.phases > 1 or self.joined)

    def most_blocks(self, cores: int) -> int:
        """Blocks that a kernel whose cores meet is launched with at most, where so many have work;
        of vector cores where those run it."""
        return self.machine.cores if self.has_idle_blocks_meet else cores

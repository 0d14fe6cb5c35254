"""Lowerings of ascend operators to cce kernels, one module a family of operators.

A lowering is a function registered with `@lowering("add", "sub", ...)`. It is called with the
ascend op (memref form) and the `Target`, builds cce operations in front of it, and returns how many
blocks the work can be shared by. `convert-ascend-to-cce` erases the op and updates the launches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from davinci.machine import Machine
from davinci.mlir import ir
from davinci.schedule.choices import Choices
from davinci.tables import Table


@dataclass(frozen=True)
class Blocks:
    """The blocks of a launch that a part of its kernel has.

    Attributes:
        index: number of the block among them.
        count: how many.
    """

    index: ir.Value
    count: int


@dataclass(frozen=True)
class Target:
    """What a lowering may ask about: the machine and the options of convert-ascend-to-cce.

    Attributes:
        machine: sizes, alignments and legal instruction types.
        cores: most blocks a kernel may be launched with.
        matmul_strategy: "os", "is" or "ws".
        tile: (m, n, k) of the matmul strategy, (0, 0, 0) to choose.
        fractalize: "improved" or "naive".
        blocks: those that do the work; None for all of the launch.
        given: choices of kernels by key.
    """

    machine: Machine
    cores: int
    matmul_strategy: str = "os"
    tile: tuple[int, int, int] = (0, 0, 0)
    fractalize: str = "improved"
    blocks: Blocks | None = None
    given: Mapping[str, Choices] = field(default_factory=dict)


Lowering = Callable[[Any, Target], int]
LOWERINGS: Table[str, Lowering] = Table("a lowering to cce")
lowering = LOWERINGS.register

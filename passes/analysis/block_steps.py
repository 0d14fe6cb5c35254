"""What a block of a kernel does: its steps, and the operations that they are made from."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.mlir import Op, ir
from davinci.passes.analysis.accesses import Dims
from davinci.passes.analysis.affine import AffineForm
from davinci.passes.analysis.core_pipes import Numbers

READ, WRITE, ADD, COUNT = ("reads", "writes", "adds to", "counts in")
"""Kinds of accesses to global memory, as messages name them."""


@dataclass(frozen=True)
class GlobalAccess:
    """Bytes of global memory that a block touches between two of its meetings.

    Attributes:
        op: the operation that does.
        what: one of READ, WRITE, ADD and COUNT.
        memory: the array, an argument of the kernel.
        start: the first byte.
        dims: (count, stride in bytes), strides positive and larger than what is inside them.
        run: contiguous bytes.
        exact: whether all of the bytes are touched for certain.
        pipe: that does, where pipes are followed.
        numbers: of its first and last instruction there, see `CorePipes.work`.
    """

    op: Op
    what: str
    memory: ir.Value
    start: int
    dims: Dims
    run: int
    exact: bool
    pipe: str = ""
    numbers: tuple[int, int] = (0, 0)


@dataclass(frozen=True)
class BlockMeeting:
    """A block says that it has come, and waits for others; or, if `reads`, looks at its counter.

    Attributes:
        op: `sync_cores`, `sync_and_copy` or `read_counter`.
        lines: the array of counters.
        number: that it posts and waits for, but for what it counts on from.
        relative: whether it counts on from its own counter, as `read_counter` found it; else from
            an argument of the kernel.
        own: lines in which it counts, and by how much that is higher than `number`.
        seen: lines that it waits for.
    """

    op: Op
    lines: ir.Value
    number: int
    relative: bool
    own: tuple[tuple[int, int], ...]
    seen: range
    reads: bool = False


@dataclass(frozen=True)
class FlagSet:
    """A flag between cores is set.

    Attributes:
        op: that does, `set_core_flag` or one by which all meet.
        pipe: whose work so far is complete then.
        flag: its number.
        of_all: whether it is for all cores of the setter's kind, not for the others of its group.
        number: of the set on its pipe.
        complete: how much work of each pipe is, see `CorePipes.behind`.
    """

    op: Op
    pipe: str
    flag: int
    of_all: bool
    number: int
    complete: Numbers


@dataclass(frozen=True)
class FlagWait:
    """A core waits for a flag between cores."""

    op: Op
    flag: int


BlockStep = GlobalAccess | BlockMeeting | FlagSet | FlagWait


@dataclass(frozen=True)
class ProgramSteps:
    """The steps of a program on a core whose pipes are followed.

    Attributes:
        steps: in their order.
        done: how much work each pipe has had.
        complete: how much of it the scalar unit knows to be complete at the end.
    """

    steps: list[BlockStep]
    done: Numbers
    complete: Numbers


@dataclass(frozen=True)
class PlacedTransfer:
    """An operation's access to global memory by a pipe, the block's number still a symbol."""

    op: Op
    pipe: str
    what: str
    memory: ir.Value
    offset: AffineForm
    dims: Dims
    run: int


@dataclass(frozen=True)
class LoopNode:
    op: Op
    body: list[KernelNode]
    meets: bool

    @property
    def variable(self) -> ir.Value:
        """The number of the iteration."""
        return self.op.regions[0].blocks[0].arguments[0]


@dataclass(frozen=True)
class BranchNode:
    op: Op
    bodies: list[list[KernelNode]]
    meets: bool


KernelNode = PlacedTransfer | LoopNode | BranchNode | Op

"""Kernels whose blocks wait for each other."""

from __future__ import annotations

from davinci.dialects.base import attribute
from davinci.dialects.cce.effects import MEETINGS
from davinci.isa import Pipe
from davinci.machine import Machine
from davinci.mlir import Op, operations
from davinci.passes.analysis.kernels import CORE, kernel_around
from davinci.passes.pipeline.base import fail
from davinci.schedule.meetings import can_meet

FLAG_PAIRS = frozenset(
    (source, target)
    for source, targets in (
        (Pipe.MTE2, (Pipe.S, Pipe.V, Pipe.MTE3, Pipe.FIX)),
        (Pipe.V, (Pipe.S,)),
        (Pipe.MTE3, (Pipe.S,)),
        (Pipe.S, (Pipe.MTE3,)),
    )
    for target in targets
)
"""Pairs of pipes, the one that sets a flag first, between which meetings have flags."""

FLAG_OF_ALL = 0
"""The flag between cores by which, on a split machine, all of a kind wait for each other."""


def meetings_in(kernel: Op) -> list[Op]:
    """The operations of a kernel at which its blocks wait for each other."""
    return [op for op in operations(kernel, "cce") if op.name in MEETINGS]


def storing_pipe(meeting: Op) -> Pipe:
    """The pipe by which the core of a split machine that runs a meeting stores to global memory,
    behind which it sets its flag."""
    return Pipe.FIX if attribute(kernel_around(meeting), CORE, "") == "aic" else Pipe.MTE3


def event_of(meeting: Op, machine: Machine) -> int:
    """The event id of the flags that a meeting becomes: the machine's last one.

    Raises:
        CompileError: there is only one, which the other operations of the kernel need.
    """
    if not can_meet(machine):
        fail(
            meeting,
            "needs an event id of its own",
            found="sync.event_ids = 1",
            expected="2 or more",
        )
    return machine.sync.event_ids - 1

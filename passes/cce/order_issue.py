"""order-issue: issues operations of different pipes in the order in which they start.

before:
    "cce.copy"(%rows, %ub)                                      // MTE2
    "cce.set_flag"() {src = "MTE2", dst = "V", ..}
    "cce.wait_flag"() {src = "MTE2", dst = "V", ..}
    "cce.vadd"(..) .. "cce.vadd"(..)                            // V, more than its queue holds
    "cce.mad"(..)                                               // M
after:
    "cce.copy"(%rows, %ub)
    "cce.set_flag"() {src = "MTE2", dst = "V", ..}
    "cce.mad"(..)
    "cce.wait_flag"() {src = "MTE2", dst = "V", ..}
    "cce.vadd"(..) .. "cce.vadd"(..)

The scalar unit issues one instruction after the other, and waits where a queue is full: what comes
behind is late then, whichever pipe it is for. A model of the pipes (`issue_model`), with the
machine's queues and estimated durations, says whether that happens in a straight line; then its
operations are put into the order in which they would start if queues were endless. The order within
a pipe stays, flags and barriers included, so nothing else changes.

Needs the flags and barriers of `insert-sync`. What the scalar unit does itself, loops and branches
stay in their places.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.cce.effects import MEETINGS, effects_of
from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.mlir import Op, ir, operations
from davinci.passes.analysis.durations import Durations
from davinci.passes.analysis.kernels import BLOCKS, kernels, seen_by
from davinci.passes.cce.issue_model import Item, Rules, by_start
from davinci.passes.cce.ordering import is_free, place
from davinci.passes.pipeline.base import Pass, option, register_pass


@register_pass
@dataclass(frozen=True)
class OrderIssuePass(Pass):
    """Issue operations of different pipes in the order in which they start."""

    NAME = "order-issue"

    machine: str = option("ascend910", "machine file that gives queues and times of operations")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            if "cce.synced" in kernel.attributes:
                _order(kernel, seen_by(kernel, machine))


def _order(kernel: Op, machine: Machine) -> None:
    blocks = kernel.attributes[BLOCKS].value if BLOCKS in kernel.attributes else 1
    sync = machine.sync
    rules = Rules(
        sync.queue_depth, machine.scalar.issue_cycles, sync.flag_cycles, sync.barrier_cycles
    )
    durations = Durations(machine, blocks)
    for owner in [kernel, *operations(kernel, "scf")]:
        for region in owner.regions:
            for block in region:
                _order_block(block, rules, durations, owner.name == "scf.for")


def _order_block(block: ir.Block, rules: Rules, durations: Durations, in_loop: bool) -> None:
    """Orders the straight lines of a block."""
    lines: list[list[tuple[Op, Item]]] = [[]]
    ends: list[Op] = []
    for op in [view.operation for view in block.operations]:
        item = _item(op, durations)
        if item is not None:
            lines[-1].append((op, item))
        elif not is_free(op):
            ends.append(op)
            lines.append([])
    for line, end in zip(lines, ends, strict=False):
        items = [item for _, item in line]
        if len(items) > rules.depth:
            order = by_start(items, rules, repeated=in_loop and len(ends) == 1)
            if order is not None:
                place([line[number][0] for number in order], end)


def _item(op: Op, durations: Durations) -> Item | None:
    """What an operation tells a pipe; None of the scalar unit's own."""
    if op.name in ("cce.set_flag", "cce.wait_flag"):
        src, dst = (Pipe[op.attributes[name].value] for name in ("src", "dst"))
        flag = int(src), int(dst), int(op.attributes["event"].value)
        sets = op.name == "cce.set_flag"
        pipe = src if sets else dst
        return None if pipe == Pipe.S else Item(pipe, "set" if sets else "wait", flag)
    if op.name == "cce.pipe_barrier":
        pipe = Pipe[op.attributes["pipe"].value]
        return None if pipe in (Pipe.ALL, Pipe.S) else Item(pipe, "barrier")
    effects = effects_of(op)
    if effects is None or effects.pipe == "S" or op.name in MEETINGS:
        return None
    pipe = Pipe[effects.pipe]
    duration = durations.of(op, pipe)
    return Item(pipe, "work", None, max(1, duration.issue), duration.busy, duration.result)

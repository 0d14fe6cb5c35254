"""insert-sync: orders the pipes of a kernel by flags and barriers, from its dependences.

before:
    scf.for %i = ... {
      "cce.copy"(%x_tile, %ub)                    // MTE2
      "cce.vexp"(%ub, %ub)                        // V
      "cce.copy"(%ub, %y_tile)                    // MTE3
    }
after:
    "cce.set_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64}
    scf.for %i = ... {
      "cce.wait_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64}
      "cce.copy"(%x_tile, %ub)
      "cce.set_flag"() {src = "MTE2", dst = "V", event = 0 : i64}
      "cce.wait_flag"() {src = "MTE2", dst = "V", event = 0 : i64}
      "cce.vexp"(%ub, %ub)
      "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64}
      "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64}
      "cce.copy"(%ub, %y_tile)
      "cce.set_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64}
    }
    "cce.wait_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64}

Two operations that touch the same bytes, one writing, are ordered unless the machine does it by
itself (see "Ordering that the machine gives by itself" in docs/architecture.md). Between two pipes
the first one sets a flag and the second waits for it, both in the innermost block around the two
operations. If the second is in a later iteration of a loop, the flag is set once before the
outermost loop and waited for once after it. Within a pipe there is a barrier before the second one.

What is missing is found by running the kernel on paper (`sync_trace`); syncs that others imply are
left out again. No two uses of an event id can meet. Needs planned buffers (`plan-memory`). Kernels
that are `cce.synced`, or have flags or barriers of their own, are left alone. If event ids ran out
and a barrier of all pipes was put instead of a flag, `cce.sync_degraded` on the kernel says how
often.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from davinci import machine as machines
from davinci.dialects.cce.effects import SYNC_OPS, effects_of
from davinci.isa.core import Pipe
from davinci.machine import Machine
from davinci.mlir import ir
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce.sync_program import Node, Program
from davinci.passes.cce.sync_solver import solve
from davinci.passes.cce.sync_trace import Action, Gaps
from davinci.passes.pipeline.base import Pass, option, register_pass


@register_pass
@dataclass(frozen=True)
class InsertSyncPass(Pass):
    """Order the pipes of kernels by flags and barriers."""

    NAME = "insert-sync"

    machine: str = option("ascend910", "machine file that gives event ids and sequential pipes")

    def run(self, op: Any) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            if "cce.synced" not in kernel.attributes:
                _synchronise(kernel, machine)
                kernel.attributes["cce.synced"] = ir.UnitAttr.get()


def _synchronise(kernel: Any, machine: Machine) -> None:
    sequential = frozenset(Pipe[name] for name in machine.sync.sequential_pipes)
    pipes, by_hand = _pipes(kernel)
    if by_hand or not pipes or (len(pipes) == 1 and pipes <= sequential):
        return
    solution = solve(Program(kernel, sequential), machine.sync.event_ids)
    gaps = Gaps(solution.syncs)
    for node, actions in gaps.before.items():
        _emit(ir.InsertionPoint(node.op), node, actions)
    for node, actions in gaps.after.items():
        _emit(ir.InsertionPoint.after(node.op), node, actions)
    if solution.degraded:
        kernel.attributes["cce.sync_degraded"] = builder.as_attribute(solution.degraded)


def _pipes(kernel: Any) -> tuple[set[Pipe], bool]:
    """The pipes that touch memory, and whether the kernel has flags or barriers already."""
    pipes: set[Pipe] = set()
    by_hand = False

    def visit(op: Any) -> Any:
        nonlocal by_hand
        by_hand = by_hand or op.name in SYNC_OPS
        effects = effects_of(op)
        if effects:
            pipes.add(Pipe[effects.pipe])
        return ir.WalkResult.ADVANCE

    kernel.walk(visit)
    return pipes, by_hand


def _emit(point: Any, node: Node, actions: list[Action]) -> None:
    with point, node.op.location:
        for kind, sync in actions:
            if kind == "barrier":
                builder.op("cce.pipe_barrier", [], pipe=sync.src.name)
                continue
            src, dst = sync.src.name, sync.dst.name
            builder.op(f"cce.{kind}_flag", [], src=src, dst=dst, event=sync.event)

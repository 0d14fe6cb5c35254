"""insert-sync: orders the pipes of a kernel by flags and barriers, from its dependences.

before:
    scf.for %i = ... {
      "cce.copy"(%x_tile, %ub)                    // MTE2
      "cce.vexp"(%ub, %ub)                        // V
      "cce.copy"(%ub, %y_tile)                    // MTE3
    }
after:
    "cce.set_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64} : () -> ()
    scf.for %i = ... {
      "cce.wait_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64} : () -> ()
      "cce.copy"(%x_tile, %ub)
      "cce.set_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
      "cce.vexp"(%ub, %ub)
      "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
      "cce.copy"(%ub, %y_tile)
      "cce.set_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64} : () -> ()
    }
    "cce.wait_flag"() {src = "MTE3", dst = "MTE2", event = 0 : i64} : () -> ()

Two operations that touch the same bytes, one writing, are ordered unless the machine does it by
itself (see "Ordering that the machine gives by itself" in docs/architecture.md). Between two pipes
the first one sets a flag and the second waits for it, both in the innermost block around the two
operations. If the second is in a later iteration of a loop, the flag is set once before the
outermost loop and waited for once after it. Within a pipe the order goes over flags to an idle pipe
and back (a relay) if other work of the pipe lies between the two and fills the time; else there is
a barrier before the second one (`sync_completion`).

What is missing is found by running the kernel on paper with a clock for each pipe (`sync_trace`).
What each operation has to wait for is found before, once, by memory and segments (`sync_record`),
so that the time grows with the number of operations. What other syncs imply is not put. Flags whose
uses cannot meet share an event id. Where ids run out, a pipe is told in front of a loop that flags
before it are clear, flags are set later than they could be, or wait for an answer, two become one,
or the scalar unit waits for one: `cce.sync_merged` on the kernel says how many; `cce.sync_degraded`
counts those that became barriers of all pipes.

Needs planned buffers (`plan-memory`). Kernels that are `cce.synced`, or have flags or barriers of
their own, are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.cce.effects import SYNC_OPS, effects_of
from davinci.machine import Machine
from davinci.mlir import Op, ir, operations
from davinci.passes import builder
from davinci.passes.analysis.kernels import kernels, seen_by
from davinci.passes.analysis.meetings import FLAG_PAIRS, event_of, meetings_in
from davinci.passes.cce.sync_completion import Resources
from davinci.passes.cce.sync_memory import ProgramAccesses
from davinci.passes.cce.sync_plan import Action
from davinci.passes.cce.sync_program import Program, SyncNode, exclusive_branches
from davinci.passes.cce.sync_queues import EventIds, Queue
from davinci.passes.cce.sync_record import Record
from davinci.passes.cce.sync_solver import solve
from davinci.passes.pipeline.base import Pass, option, register_pass

RELAYS = (Queue.M, Queue.MTE1, Queue.MTE2, Queue.MTE3)
"""Pipes over which relays may go if the kernel does not use them."""


@register_pass
@dataclass(frozen=True)
class InsertSyncPass(Pass):
    """Order the pipes of kernels by flags and barriers."""

    NAME = "insert-sync"

    machine: str = option("ascend910", "machine file that gives event ids and sequential pipes")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            if "cce.synced" not in kernel.attributes:
                _synchronise(kernel, seen_by(kernel, machine))
                kernel.attributes["cce.synced"] = ir.UnitAttr.get()


def _synchronise(kernel: Op, machine: Machine) -> None:
    sequential = frozenset(Queue[name] for name in machine.sync.sequential_pipes)
    pipes, by_hand = _pipes(kernel)
    if by_hand or not pipes or (len(pipes) == 1 and pipes <= sequential):
        return
    fewer = {}
    if meetings := meetings_in(kernel):
        left = event_of(meetings[0], machine)
        fewer = {(Queue[src.name], Queue[dst.name]): left for src, dst in FLAG_PAIRS}
    event_ids = EventIds(machine.sync.event_ids, fewer)
    resources = Resources(event_ids, _relays(machine, pipes, sequential))
    merged = degraded = 0
    for part in exclusive_branches(kernel) or [kernel]:
        program = Program(part)
        solution = solve(Record(program, ProgramAccesses(program, sequential)), resources)
        for node in solution.plan.nodes():
            _emit(ir.InsertionPoint(node.op), node, solution.plan.before(node))
            _emit(ir.InsertionPoint.after(node.op), node, solution.plan.after(node))
        merged, degraded = merged + solution.merged, degraded + solution.degraded
    for name, count in (("merged", merged), ("degraded", degraded)):
        if count:
            kernel.attributes[f"cce.sync_{name}"] = builder.as_attribute(count)


def _relays(
    machine: Machine, pipes: set[Queue], sequential: frozenset[Queue]
) -> dict[Queue, Queue]:
    """For pipes whose instructions overlap, the vector pipe first, an idle pipe each: on a common
    one relays of one pipe would wait for those of another."""
    common = set.intersection(*(set(core.pipes) for core in machine.core_types.values()))
    idle = [pipe for pipe in RELAYS if pipe.name in common and pipe not in pipes]
    overlapping = sorted(pipes - sequential, key=lambda pipe: (pipe != Queue.V, pipe))
    return dict(zip(overlapping, idle, strict=False))


def _pipes(kernel: Op) -> tuple[set[Queue], bool]:
    """The pipes that touch memory, and whether the kernel has flags or barriers already."""
    found = operations(kernel, "cce", "memref")
    pipes = {Queue[effects.pipe] for op in found if (effects := effects_of(op))}
    return pipes, any(op.name in SYNC_OPS for op in found)


def _emit(point: ir.InsertionPoint, node: SyncNode, actions: Iterable[Action]) -> None:
    """Writes flags and barriers at a point before or behind the operation of a node."""
    with point, node.op.location:
        for action in actions:
            flag = action.flag
            if flag is None:
                builder.op("cce.pipe_barrier", [], pipe=action.sync.dst.name)
                continue
            src, dst = flag.src.name, flag.dst.name
            builder.op(f"cce.{action.kind}_flag", [], src=src, dst=dst, event=flag.event)

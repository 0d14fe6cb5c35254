"""multi-buffer: tiles of a loop take turns on several buffers, and their work is interleaved.

before:
    scf.for %i = %c0 to %c4 step %c1 {
      %x = memref.alloc() {cce.slots = 2 : i64} : memref<64xf32, #cce.space<"UB">>
      "cce.copy"(%tile_i, %x)
      "cce.vexp"(%x, %x)
      "cce.copy"(%x, %result_i)
    } {cce.unroll = 4 : i64}
after:
    %x0 = memref.alloc() : memref<64xf32, #cce.space<"UB">>
    %x1 = memref.alloc() : memref<64xf32, #cce.space<"UB">>
    "cce.copy"(%tile_0, %x0)
    "cce.copy"(%tile_1, %x1)
    "cce.vexp"(%x0, %x0)
    "cce.copy"(%x0, %result_0)
    "cce.vexp"(%x1, %x1)
    "cce.copy"(%tile_2, %x0)
    ...

A loop with `cce.unroll = N` becomes copies of its body (`unroll`), in a straight line if it has at
most N iterations. Straight lines are then ordered by a list scheduler (`list_scheduler`): loads
come as early as their buffers allow, the vector operations of different tiles fill the time in
which each other's results are not there yet, stores leave as soon as they can. Operations that
touch the same bytes, one writing, keep their order, so results do not change. If the buffers do not
fit the on-chip memories with the order found, operations stay closer to their places.

`cce.order` on a kernel, loop or branch asks for the order of a block that was a straight line all
along. Kernels without these attributes stay as they are. Needs buffers without addresses and no
flags or barriers: `plan-memory` and `insert-sync` come after it.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.cce.effects import SYNC_OPS
from davinci.machine import Machine
from davinci.mlir import Op, operations, run_unverified
from davinci.passes.analysis.kernels import BLOCKS, kernels, seen_by
from davinci.passes.cce.list_scheduler import TaskOrder
from davinci.passes.cce.ordering import Orderer, Ordering
from davinci.passes.cce.plan_memory import needed_bytes
from davinci.passes.cce.unroll import ORDER, UNROLL, unroll
from davinci.passes.pipeline.base import Pass, fail, option, register_pass

NARROWER = 4
"""By how much the next try is closer to the given order, where buffers do not fit."""

CLEAN_UP = "func.func(canonicalize,cse)"


@register_pass
@dataclass(frozen=True)
class MultiBufferPass(Pass):
    """Unroll loops over tiles onto several buffers, and interleave the work of the tiles."""

    NAME = "multi-buffer"

    machine: str = option("ascend910", "machine file that gives the times of operations")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        for kernel in kernels(op):
            _transform(kernel, seen_by(kernel, machine))


def _transform(kernel: Op, machine: Machine) -> None:
    # Inner loops come first, so the copies of an outer one hold what has become of them.
    loops = [
        loop
        for loop in operations(kernel, "scf.for")
        if UNROLL in loop.attributes and loop.attributes[UNROLL].value
    ]
    if not loops and not _to_order(kernel):
        return
    if by_hand := operations(kernel, *SYNC_OPS):
        fail(
            by_hand[0],
            "is in a kernel whose loops are to be unrolled or whose operations to be ordered",
            hint="leave synchronisation to insert-sync, or the attributes away",
        )
    for loop in loops:
        unroll(loop)
    run_unverified(kernel, CLEAN_UP)
    blocks = kernel.attributes[BLOCKS].value if BLOCKS in kernel.attributes else 1
    orderer = Orderer(machine, blocks)
    orderings = []
    for owner in _to_order(kernel):
        del owner.attributes[ORDER]
        for region in owner.regions:
            orderings += [orderer.ordering(block) for block in region]
    _order(kernel, machine, orderings)


def _order(kernel: Op, machine: Machine, orderings: list[Ordering]) -> None:
    """Orders blocks so that buffers fit: operations far from their places hold them for longer."""
    window = max(1, *(ordering.longest for ordering in orderings))
    while True:
        plans = [ordering.plain(window) for ordering in orderings]
        plain = _needed(kernel, machine, orderings, plans)
        if window == 1 or all(size <= machine.buffer(space).bytes for space, size in plain.items()):
            break
        window = max(1, window // NARROWER)
    # An order that is better for the pipes alone is not, if it takes the room that buffers have.
    others = [each.mixed(window, own) for each, own in zip(orderings, plans, strict=True)]
    if others == plans:
        return
    mixed = _needed(kernel, machine, orderings, others)

    def room(needed: dict[str, int], space: str) -> int:
        return machine.buffer(space).bytes - needed[space]

    if any(room(mixed, space) < room(plain, space) / 2 for space in plain):
        _place(orderings, plans)


def _needed(
    kernel: Op, machine: Machine, orderings: list[Ordering], plans: list[list[TaskOrder]]
) -> dict[str, int]:
    """Orders blocks; bytes that buffers then need of each memory that cannot hold all of them side
    by side."""
    _place(orderings, plans)
    return needed_bytes(kernel, machine)


def _place(orderings: list[Ordering], plans: list[list[TaskOrder]]) -> None:
    for ordering, own in zip(orderings, plans, strict=True):
        ordering.place(own)


def _to_order(kernel: Op) -> list[Op]:
    """The operations whose blocks are to be ordered."""
    return [op for op in operations(kernel, "func", "scf") if ORDER in op.attributes]

"""load-at-meetings: what is loaded first behind a meeting of cores is loaded in it.

before:
    "cce.sync_cores"(%lines, %number, %scratch)
    %sums = memref.alloc() : memref<16x128xf32, #cce.space<"UB">>
    "cce.copy"(%partial, %sums) : (memref<16x128xf32>, memref<16x128xf32, #cce.space<"UB">>) -> ()
after:
    %sums = memref.alloc() : memref<16x128xf32, #cce.space<"UB">>
    "cce.sync_and_copy"(%lines, %number, %scratch, %partial, %sums)

A core that waits for others loads their counters until all have come, and the scalar unit looks at
what came. `sync_and_copy` loads what follows while it looks; what came too early is loaded again.

Only what touches no memory may stand between the two operations. Needs buffers without addresses
and no flags or barriers, as `multi-buffer` leaves them: `plan-memory` and `insert-sync` come after
it. On machines whose cores have flags for each other nothing is loaded while they wait, and kernels
stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from davinci import machine as machines
from davinci.dialects.base import attribute
from davinci.dialects.cce import build as cce
from davinci.dialects.cce.buffers import space_name
from davinci.mlir import Op, ir, operations
from davinci.passes.analysis.kernels import kernels
from davinci.passes.cce.ordering import is_free, place
from davinci.passes.pipeline.base import Pass, option, register_pass

ON_CHIP = ("UB", "L1")


@register_pass
@dataclass(frozen=True)
class LoadAtMeetingsPass(Pass):
    """Load what comes first behind a meeting of cores while the scalar unit looks at counters."""

    NAME = "load-at-meetings"

    machine: str = option("ascend910", "machine file that says how cores meet")

    def run(self, op: Op) -> None:
        if machines.load(self.machine).cross_core is not None:
            return
        for kernel in kernels(op):
            for meeting in operations(kernel, "cce.sync_cores"):
                _load_at(meeting)


def _load_at(meeting: ir.Operation) -> None:
    """Has a meeting load what the operation behind it does, if that is a load."""
    between: list[Op] = []
    behind = False
    for view in meeting.block.operations:
        op = view.operation
        if not behind:
            behind = op == meeting
        elif is_free(op):
            between.append(op)
        else:
            if _is_load(op):
                _join(meeting, op, between)
            return


def _is_load(op: Op) -> bool:
    """Whether an operation copies whole blocks from global memory to the chip."""
    if op.name != "cce.copy" or len(op.attributes):
        return False
    source, target = (space_name(value.type) for value in op.operands)
    return source == "GM" and target in ON_CHIP


def _join(meeting: ir.Operation, load: ir.Operation, between: Sequence[Op]) -> None:
    """Makes one operation of both, behind the free ones that stand between them."""
    place(between, meeting)
    with meeting.location, ir.InsertionPoint(meeting):
        some = {key: attribute(meeting, key) for key in meeting.attributes}
        cce.sync_and_copy(*meeting.operands, *load.operands, **some)
    load.erase()
    meeting.erase()

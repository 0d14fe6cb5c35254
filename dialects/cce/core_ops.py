"""The operations of the cce dialect by which programs of a launch wait for each other.

All blocks of the launch run at the same time, each on a core of its own. Each has a line of 32
bytes in global memory whose counter only grows; a block that has come stores the next number and
waits until all lines have reached it.

Where a block is a cube core and its vector cores, with a program each, these hand tiles to each
other in global memory and count them by flags.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.base import FLAG, integer, one_of, verifier
from davinci.dialects.cce.buffers import BufferView, buffer_of
from davinci.dialects.cce.checks import PIPES, check_copy, require_contiguous, require_space
from davinci.dialects.cce.ops import Cce as Cce  # complete only with the operations below
from davinci.errors import require
from davinci.isa import INSTRUCTIONS
from davinci.isa.counters import LINE_BYTES
from davinci.mlir import ext, ir, type_text

Operand = ext.Operand

LANES = LINE_BYTES // 4
"""Numbers of a line; the first one is the counter."""

CORE_FLAG = integer(0, next(f.limit for f in INSTRUCTIONS["wait_flag_dev"].fields))
"""The number of a flag between a cube core and its vector cores."""


def check_meeting(lines: ir.Value, scratch: ir.Value, number: ir.Value) -> None:
    """C1 to C3 of `sync_cores`."""
    check_lines(buffer_of(lines), buffer_of(scratch))
    require(type_text(number.type) == "i32", "type of number", str(number.type), "i32")


def check_lines(lines: BufferView, scratch: BufferView) -> None:
    """Lines in global memory, one for each block, and room for all of them and one more in UB."""
    require_space("lines", lines, "GM")
    require_space("scratch", scratch, "UB")
    for role, buffer in (("lines", lines), ("scratch", scratch)):
        found = f"{buffer.dtype} {list(buffer.shape)}"
        legal = buffer.dtype == "s32" and len(buffer.shape) == 2 and buffer.shape[1] == LANES
        require(legal, role, found, f"s32 [blocks, {LANES}]")
        require_contiguous(role, buffer)
    blocks = lines.shape[0]
    require(
        scratch.shape[0] == blocks + 1,
        "lines of scratch",
        scratch.shape[0],
        f"{blocks + 1}, one more than blocks",
    )


class ReadCounterOp(Cce.Operation, name="read_counter"):
    """The counter of this block, from which it counts on; the scalar unit waits for it.

    A launch begins with the counters that the last one with the same lines left; all are equal.
    Comes once, before the first `sync_cores`: it fills the last line of `scratch`.

    C1 lines in GM, i32 [blocks, 8], contiguous.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous.
    """

    lines: Operand[Any]
    scratch: Operand[Any]
    result: ext.Result[ir.IntegerType[32]]

    @verifier
    def verify_invariants(self) -> None:
        check_lines(buffer_of(self.lines), buffer_of(self.scratch))


class SyncCoresOp(Cce.Operation, name="sync_cores"):
    """Waits until all blocks have come: what any of them stored to global memory before is what all
    load afterwards, and what was loaded before may be overwritten.

    On machines whose cores have flags for each other these are used, elsewhere each block stores
    `number` in its line and loads the lines until all have reached it.

    C1 lines in GM, i32 [blocks, 8], contiguous; one for each block of the launch.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous; that of `read_counter`.
    C3 number: i32, more than in the synchronisation before, the same in all blocks.
    """

    lines: Operand[Any]
    number: Operand[Any]
    scratch: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_meeting(self.lines, self.scratch, self.number)


class SyncAndCopyOp(Cce.Operation, name="sync_and_copy"):
    """As `sync_cores`, then `copy` of what the blocks have stored, which takes less time.

    Where blocks look at counters, each look copies too, behind the load of the counters and before
    the scalar unit has seen them; what a look copies in vain the next one overwrites.

    C1 lines in GM, i32 [blocks, 8], contiguous; one for each block of the launch.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous; that of `read_counter`.
    C3 number: i32, more than in the synchronisation before, the same in all blocks.
    C4 source in GM; it and the destination as those of `copy`, without `round_up`.
    """

    lines: Operand[Any]
    number: Operand[Any]
    scratch: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any]

    @verifier
    def verify_invariants(self) -> None:
        check_meeting(self.lines, self.scratch, self.number)
        src = buffer_of(self.src)
        require_space("source", src, "GM")
        check_copy(src, buffer_of(self.dst), round_up=False)


class SetCoreFlagOp(Cce.Operation, name="set_core_flag"):
    """Sets flag `flag` between a cube core and its vector cores once all earlier work of `pipe` is
    complete: that of a cube core counts on each of its vector cores, those of all its vector cores
    together count on the cube core.

    With `of_all`, the flag is one between the cores of the launch that are of the setter's kind: it
    counts on each of them once all of them have set it.

    C1 `pipe` is a pipe other than S. C2 `flag` is the number of a flag between cores.
    """

    ATTRIBUTES = {  # noqa: RUF012 - see CopyOp
        "pipe": one_of(*(p for p in PIPES if p != "S")),
        "flag": CORE_FLAG,
        "of_all": FLAG,
    }

    @verifier
    def verify_invariants(self) -> None:
        pass


class WaitCoreFlagOp(Cce.Operation, name="wait_core_flag"):
    """Holds the scalar unit, and all that comes behind, until the counter of flag `flag` is above
    zero, and counts it down.

    C1 `flag` is the number of a flag between cores.
    """

    ATTRIBUTES = {"flag": CORE_FLAG}  # noqa: RUF012

    @verifier
    def verify_invariants(self) -> None:
        pass

"""The operations of the cce dialect by which programs of a launch wait for each other.

All blocks of the launch run at the same time, each on a core of its own. Each has a line of 32
bytes in global memory whose counter only grows; a block that has come stores the next number and
waits until all lines have reached it, or those of some blocks. A block that others may be ahead of
by some numbers has a second line for them, whose counter is higher by as many.

Where a block is a cube core and its vector cores, with a program each, these hand tiles to each
other in global memory and count them by flags.

This module defines operations by annotations, so it must not postpone their evaluation.
"""

from typing import Any

from davinci.dialects.base import FLAG, attribute, integer, integers, one_of, verifier
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.checks import PIPES, check_copy, require_contiguous, require_space
from davinci.dialects.cce.ops import Cce as Cce  # complete only with the operations below
from davinci.errors import require
from davinci.isa import INSTRUCTIONS
from davinci.isa.counters import LINE_BYTES
from davinci.mlir import Op, ext, ir, type_text

Operand = ext.Operand

LANES = LINE_BYTES // 4
"""Numbers of a line; the first one is the counter."""

CORE_FLAG = integer(0, next(f.limit for f in INSTRUCTIONS["wait_flag_dev"].fields))
"""The number of a flag between a cube core and its vector cores."""


MOST_LINES = next(f.limit for f in INSTRUCTIONS["poll_counters"].fields if f.name == "count")

OF_SOME = {
    "own": integer(-MOST_LINES, MOST_LINES, required=False),
    "early": integers(2, -MOST_LINES, MOST_LINES, required=False),
    "seen": integers(2, 0, MOST_LINES, required=False),
    "again": integer(0, MOST_LINES, required=False),
    "group": integer(1, MOST_LINES, required=False),
}
"""Attributes by which blocks wait for some others only."""


def check_meeting(op: Op, number: ir.Value) -> None:
    """C1 to C7 of `sync_cores`."""
    check_lines(op, op.operands[0], op.operands[2])
    require(type_text(number.type) == "i32", "type of number", str(number.type), "i32")


def check_lines(op: Op, in_memory: ir.Value, room: ir.Value) -> None:
    """Lines in global memory, and room in UB for those that a block looks at and its own."""
    lines, scratch = buffer_of(in_memory), buffer_of(room)
    require_space("lines", lines, "GM")
    require_space("scratch", scratch, "UB")
    for role, buffer in (("lines", lines), ("scratch", scratch)):
        found = f"{buffer.dtype} {list(buffer.shape)}"
        legal = buffer.dtype == "s32" and len(buffer.shape) == 2 and buffer.shape[1] == LANES
        require(legal, role, found, f"s32 [blocks, {LANES}]")
        require_contiguous(role, buffer)
    total = lines.shape[0]
    group = attribute(op, "group", total)
    chosen = [name for name in ("own", "early", "seen") if attribute(op, name) is not None]
    if group < total:
        require(not chosen, "lines of a group", ", ".join(chosen), "those of its blocks")
    require(total % group == 0, "group", group, f"a divisor of {total} lines")
    first, count = attribute(op, "seen", (0, group))
    seen = f"{count} from {first} on"
    require(0 < count <= total - first, "lines seen", seen, f"1..{total} lines")
    own, (early, ahead) = attribute(op, "own", 0), attribute(op, "early", (None, 1))
    require(ahead > 0, "early counter", f"ahead by {ahead}", "1 or more")
    require(early is None or early < own, "early line", early, f"less than own, {own}")
    need = count + (1 if early is None else 2)
    require(
        scratch.shape[0] == need,
        "lines of scratch",
        scratch.shape[0],
        f"{need}, those seen and the block's own",
    )


class ReadCounterOp(Cce.Operation, name="read_counter"):
    """The counter of this block, from which it counts on; the scalar unit waits for it.

    A launch begins with the counters that the last one with the same lines left; all are equal.
    Comes once, before the first `sync_cores`, with the attributes of that: it fills the last line
    of `scratch`.

    C1 lines in GM, i32 [blocks, 8], contiguous.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous.
    """

    lines: Operand[Any]
    scratch: Operand[Any]
    result: ext.Result[ir.IntegerType[32]]

    ATTRIBUTES = OF_SOME

    @verifier
    def verify_invariants(self) -> None:
        check_lines(self, self.lines, self.scratch)


class SyncCoresOp(Cce.Operation, name="sync_cores"):
    """Waits until all blocks have come: what any of them stored to global memory before is what all
    load afterwards, and what was loaded before may be overwritten.

    On machines whose cores have flags for each other these are used, elsewhere each block stores
    `number` in its line and loads the lines until all have reached it.

    C1 lines in GM, i32 [blocks, 8], contiguous; one for each block of the launch.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous; that of `read_counter`.
    C3 number: i32, more than in the synchronisation before, the same in all blocks.

    Where blocks wait for some others only, there may be more lines, and numbers may differ:

    C4 `own`: the block's line lies so many behind the one of its number.
    C5 `early`, [line, ahead]: so does another one in front of that, whose counter is higher by
       `ahead`: who looks at it goes on when the block is as many behind.
    C6 `seen`, [first, count]: the lines whose counters must have reached `number`; scratch has room
       for them and the block's own.
    C7 `group`: so many blocks whose numbers follow each other meet, from block 0 on, of which there
       are whole groups; they have no lines of their own choice. Where cores have flags for each
       other, all blocks meet.
    """

    lines: Operand[Any]
    number: Operand[Any]
    scratch: Operand[Any]

    ATTRIBUTES = OF_SOME

    @verifier
    def verify_invariants(self) -> None:
        check_meeting(self, self.number)


class SyncAndCopyOp(Cce.Operation, name="sync_and_copy"):
    """As `sync_cores`, then `copy` of what the blocks have stored, which takes less time.

    Where blocks look at counters, each look copies too, behind the load of the counters and before
    the scalar unit has seen them; what a look copies in vain the next one overwrites.

    C1 lines in GM, i32 [blocks, 8], contiguous; one for each block of the launch.
    C2 scratch in UB, i32 [blocks + 1, 8], contiguous; that of `read_counter`.
    C3 number: i32, more than in the synchronisation before, the same in all blocks.
    C4 to C7 as of `sync_cores`.
    C8 source in GM; it and the destination as those of `copy`, without `round_up`.
    """

    lines: Operand[Any]
    number: Operand[Any]
    scratch: Operand[Any]
    src: Operand[Any]
    dst: Operand[Any]

    ATTRIBUTES = OF_SOME

    @verifier
    def verify_invariants(self) -> None:
        check_meeting(self, self.number)
        src = buffer_of(self.src)
        require_space("source", src, "GM")
        check_copy(src, buffer_of(self.dst))


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

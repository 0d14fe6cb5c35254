"""What each cce operation does to memory, and on which pipe: the facts insert-sync works from."""

from __future__ import annotations

from dataclasses import dataclass

from davinci.dialects.cce.buffers import space_name
from davinci.dialects.cce.instructions import COPIES, pipe_of
from davinci.isa.multiply_add import ACCUMULATING
from davinci.mlir import Op, ir

MEETINGS = ("cce.read_counter", "cce.sync_cores", "cce.sync_and_copy")
"""Operations by which blocks wait for each other: nothing is moved across them."""

SYNC_OPS = ("cce.set_flag", "cce.wait_flag", "cce.pipe_barrier")


@dataclass(frozen=True)
class Effects:
    """What an operation does to memory.

    Attributes:
        pipe: that does it.
        reads, writes: the memref values.
        whole: whether every element of what it writes gets a new value.
        adds: whether it adds to what it writes, indivisibly: two that do need no order.
        behind: pipes whose earlier work it waits for itself.
    """

    pipe: str
    reads: tuple[ir.Value, ...]
    writes: tuple[ir.Value, ...]
    whole: bool = True
    adds: bool = False
    behind: tuple[str, ...] = ()


def effects_of(op: Op) -> Effects | None:
    """Effects of an operation (an `ir.Operation`), None if it touches no memory."""
    name = op.name
    operands = list(op.operands)
    if name == "memref.load":
        return Effects("S", (operands[0],), ())
    if name == "memref.store":
        return Effects("S", (), (operands[1],))
    if name == "cce.sync_and_copy":
        # Inside it flags of its own order what is done to the scratch lines.
        *_, scratch, src, dst = operands
        pipe = COPIES[space_name(src.type), space_name(dst.type)].pipe.name
        return Effects(pipe, (scratch, src), (dst,), behind=("MTE3",))
    if name in MEETINGS:
        lines = (operands[-1],)
        return Effects("S", () if name == MEETINGS[0] else lines, lines, whole=False)
    if not name.startswith("cce.") or name in SYNC_OPS or not operands:
        return None
    name = name.removeprefix("cce.")
    if name == "copy_rows":
        src, dst, *_ = operands
        pipe = COPIES[space_name(src.type), space_name(dst.type)].pipe.name
        return Effects(pipe, (src,), (dst,), whole=False)
    if name in ("mad", "mad_l1"):
        a, b, c, init = operands
        return Effects(pipe_of(name), (a, b) if _is_true(init) else (a, b, c), (c,))
    if name == "copy":
        pipe = COPIES[space_name(operands[0].type), space_name(operands[1].type)].pipe.name
    else:
        pipe = pipe_of(name)
    reads = tuple(v for v in operands[:-1] if isinstance(v.type, ir.MemRefType))
    if name in ACCUMULATING:
        reads += (operands[-1],)
    fills_lanes = name == "vector_dup" and "lanes" in op.attributes
    adds = "adds" in op.attributes
    return Effects(pipe, reads, (operands[-1],), whole=not (fills_lanes or adds), adds=adds)


def _is_true(value: ir.Value) -> bool:
    """Whether an i1 value is the constant true."""
    owner = value.owner
    if not hasattr(owner, "name") or owner.name != "arith.constant":
        return False
    return bool(ir.IntegerAttr(owner.attributes["value"]).value)

"""Flags between the cores of a launch, and meetings of all its blocks, which are made of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from davinci.dialects.base import attribute
from davinci.mlir import Op, arith, ir, operations
from davinci.passes.analysis.kernels import kernel_around
from davinci.passes.analysis.meetings import FLAG_OF_ALL, storing_pipe
from davinci.passes.cce_to_hir.operations import build
from davinci.passes.hir_to_hivm.translator import TEMPLATE_EVENT

Transfer = Callable[[Sequence[ir.Value]], None]

FLAGGED = ("set_core_flag", "wait_core_flag", "sync_cores", "sync_and_copy")
"""Operations of cce that take flags between cores."""

OPERATIONS = ("read_counter", *FLAGGED)
"""Operations of cce that `replace` takes."""

SCALAR_PIPE = "#hir.pipe<PIPE_S>"


def replace(op: Op, operands: Sequence[ir.Value], copy: Transfer) -> None:
    """Builds what does the same in front of an operation on flags between cores.

    Args:
        copy: builds a copy.
    """
    name = op.name.removeprefix("cce.")
    if name == "set_core_flag":
        mode = "INTER" if "of_all" in op.attributes else "INTRA"
        set_flag(op, attribute(op, "pipe"), attribute(op, "flag"), mode)
    elif name == "wait_core_flag":
        wait_flag(op, attribute(op, "flag"))
    elif name == "read_counter":  # Flags count by themselves.
        i32 = ir.IntegerType.get_signless(32)
        zero = arith.ConstantOp(i32, ir.IntegerAttr.get(i32, 0)).result
        op.results[0].replace_all_uses_with(zero)
    else:
        stores = storing_pipe(op).name
        event = {
            "set_pipe": "#hir.pipe<PIPE_MTE2>",
            "wait_pipe": f"#hir.pipe<PIPE_{stores}>",
            "static_event_id": f"#hir.event<EVENT_ID{TEMPLATE_EVENT}>",
        }
        for each in ("set_flag", "wait_flag"):
            build(each, event, [])
        set_flag(op, stores, FLAG_OF_ALL, "INTER")
        wait_flag(op, FLAG_OF_ALL)
        if name == "sync_and_copy":
            copy(operands[3:])


def set_flag(op: Op, pipe: str, flag: int, mode: str) -> None:
    """A flag for the other kind of core of the group, or for all cores of the same kind."""
    attributes = marks(op, pipe, flag) | {
        "operandSegmentSizes": "array<i32: 0, 1>",
        "tsync_instr_mode": f"#hir.sync_block_instr_mode<{mode}_BLOCK_SYNCHRONIZATION>",
    }
    build("sync_block_set", attributes, [kernel_around(op).regions[0].blocks[0].arguments[0]])


def wait_flag(op: Op, flag: int) -> None:
    """The scalar unit, and all behind it, waits for a flag of other cores."""
    build("sync_block_wait", marks(op, "S", flag), [])


def marks(op: Op, pipe: str, flag: int) -> dict[str, str]:
    """The attributes that `sync_block_set` and `sync_block_wait` have in common."""
    kind = "CUBE" if core_of(op) == "aic" else "VECTOR"
    return {
        "pipe": SCALAR_PIPE,
        "static_flag_id": f"{flag} : i64",
        "tcore_type": f"#hir.tcore_type<{kind}>",
        "tpipe": f"#hir.pipe<PIPE_{pipe}>",
    }


def core_of(op: Op) -> str:
    """The kind of core that an operation is for."""
    return str(attribute(kernel_around(op), "ascend.core", ""))


def take_base(kernel: Op) -> None:
    """Gives a kernel whose cores have flags for each other a first argument, where those are."""
    if not operations(kernel, *(f"cce.{name}" for name in FLAGGED)):
        return
    (block,) = kernel.regions[0].blocks
    i64 = ir.IntegerType.get_signless(64, kernel.context)
    block.add_argument(i64, kernel.location)
    arguments = list(block.arguments)
    for before, after in reversed(list(pairwise(arguments))):
        after.set_type(before.type)
        before.replace_all_uses_with(after)
    arguments[0].set_type(i64)
    with ir.InsertionPoint.at_block_begin(block), kernel.location:
        build("set_ffts_base_addr", {}, [arguments[0]])

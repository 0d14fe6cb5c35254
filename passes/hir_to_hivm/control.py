"""Flags, barriers, numbers of blocks, and operations that leave no instruction."""

from __future__ import annotations

import re

from davinci.dialects.base import attribute
from davinci.dialects.hivm import ops as hivm
from davinci.isa import Pipe
from davinci.isa.cross_core import (
    ALL_OF_A_KIND,
    CUBE_AND_VECTOR_CORES,
    VECTOR_CORES_OF_A_GROUP,
)
from davinci.mlir import Op, arith, ir
from davinci.passes import builder
from davinci.passes.builder import IndexLike
from davinci.passes.cce_to_hivm.addresses import Shift, constant_i64
from davinci.passes.hir_to_hivm import lowering
from davinci.passes.hir_to_hivm.translator import Translator, Unsupported
from davinci.passes.hir_to_hivm.views import folded

INNER = re.compile(r"<(\w+)>$")
"""What an attribute of another compiler's dialect says, `PIPE_V` in `#hir.pipe<PIPE_V>`."""

SYNC_BLOCK_MODES = {
    "ALL_CUBE": ALL_OF_A_KIND,
    "ALL_VECTOR": ALL_OF_A_KIND,
    "ALL_SUB_VECTOR": VECTOR_CORES_OF_A_GROUP,
}

SYNC_BLOCK_SET_MODES = {
    "INTER_BLOCK_SYNCHRONIZATION": ALL_OF_A_KIND,
    "INTER_SUBBLOCK_SYNCHRONIZATION": VECTOR_CORES_OF_A_GROUP,
    "INTRA_BLOCK_SYNCHRONIZATION": CUBE_AND_VECTOR_CORES,
}
"""Which cores receive a flag, by `tsync_instr_mode`."""


def word(op: Op, name: str, default: str = "") -> str:
    """The word that an enumeration attribute holds, or `default` where it is absent."""
    found = attribute(op, name)
    if found is None:
        return default
    matched = INNER.search(str(found))
    return matched.group(1) if matched else str(found)


def pipe_of(op: Op, name: str) -> Pipe:
    """The pipe that an attribute names.

    Raises:
        Unsupported: one that the machine has not.
    """
    found = word(op, name).removeprefix("PIPE_")
    if found not in Pipe.__members__:
        raise Unsupported(f"pipe {word(op, name)}")
    return Pipe[found]


@lowering("set_mask_norm", "set_ffts_base_addr", "set_mask_count")
def lower_nothing(translator: Translator, op: Op) -> None:
    """Masks are set where instructions need them; flags between cores need no address here."""


@lowering("init_debug", "debug", "finish_debug")
def lower_print(translator: Translator, op: Op) -> None:
    """The device prints to a host that follows it; whoever launches the kernel is warned that it
    does not here (`davinci.triton.launch.made_of`)."""


@lowering("set_flag", "wait_flag")
def lower_flag(translator: Translator, op: Op) -> None:
    operands = list(op.operands)
    if operands:
        event = folded(operands[0])
    else:
        event = int(word(op, "static_event_id").removeprefix("EVENT_ID"))
    fields = {
        "src_pipe": int(pipe_of(op, "set_pipe")),
        "dst_pipe": int(pipe_of(op, "wait_pipe")),
        "event": event,
    }
    hivm.build(op.name.removeprefix("hir."), "", [], fields)


@lowering("pipe_barrier")
def lower_barrier(translator: Translator, op: Op) -> None:
    """A barrier of the vector unit in front of which nothing is issued since the last is kept."""
    translator.barrier(pipe_of(op, "pipe"))


@lowering("get_block_idx", "get_sub_block_idx", "get_block_num")
def lower_number(translator: Translator, op: Op) -> None:
    i64 = ir.IntegerType.get_signless(64)
    built = builder.op(op.name.replace("hir.", "hivm."), [], [i64])
    op.results[0].replace_all_uses_with(built.result)


@lowering("sync_block_set")
def lower_block_set(translator: Translator, op: Op) -> None:
    """Sets a flag of other cores: of the cube or vector cores of the same group, unless the mode
    says that all cores of the own kind receive it."""
    mode = word(op, "tsync_instr_mode", "INTRA_BLOCK_SYNCHRONIZATION")
    if mode not in SYNC_BLOCK_SET_MODES:
        raise Unsupported(f"sync_block_set {mode}")
    fields = {
        "pipe": int(pipe_of(op, "tpipe")),
        "mode": SYNC_BLOCK_SET_MODES[mode],
        "flag": flag_of(translator, op),
    }
    hivm.build("ffts_cross_core_sync", "", [], fields)


@lowering("sync_block_wait")
def lower_block_wait(translator: Translator, op: Op) -> None:
    hivm.build("wait_flag_dev", "", [], {"flag": flag_of(translator, op)})


def flag_of(translator: Translator, op: Op) -> IndexLike:
    """The number of a flag between cores: an attribute, or the first operand."""
    static = attribute(op, "static_flag_id")
    if static is not None:
        return int(static)
    return folded(next(iter(op.operands)))


@lowering("sync_block_lock")
def lower_lock(translator: Translator, op: Op) -> None:
    """A block waits until the lock holds its number: until the block in front has unlocked it."""
    hivm.build("await_turn", "", [], {"lock": lock_of(translator, op)})


@lowering("sync_block_unlock")
def lower_unlock(translator: Translator, op: Op) -> None:
    """Once all is complete the lock holds the number of the next block."""
    lock = lock_of(translator, op)
    translator.barrier(Pipe.ALL)
    i64 = ir.IntegerType.get_signless(64)
    block = builder.op("hivm.get_block_idx", [], [i64]).result
    following = arith.AddIOp(block, constant_i64(1)).result
    translator.store(translator.view(op, op.operands[0]), Shift(), following)
    hivm.build("pass_turn", "", [], {"pipe": int(Pipe.MTE3), "lock": lock})


def lock_of(translator: Translator, op: Op) -> int:
    """The number of a lock: which word of the locks of a launch it is.

    Raises:
        Unsupported: the program computes it.
    """
    view = translator.view(op, op.operands[0])
    shift = view.address.shift
    if shift.dynamic is not None:
        raise Unsupported("a lock that the program computes")
    return shift.constant // view.itemsize


@lowering("sync_block")
def lower_sync_block(translator: Translator, op: Op) -> None:
    """All cores of a kind meet: each sets a flag and waits for it."""
    mode = word(op, "sync_block_mode")
    if mode in ("BARRIER_CUBE", "BARRIER_VECTOR"):
        translator.barrier(Pipe.ALL)
        return
    if mode not in SYNC_BLOCK_MODES:
        raise Unsupported(f"sync_block {mode}")
    flag = attribute(op, "flag_id")
    pipe = "tcube_pipe" if mode == "ALL_CUBE" else "tvector_pipe"
    given = pipe_of(op, pipe) if pipe in op.attributes else Pipe.MTE3
    fields = {"pipe": int(given), "mode": SYNC_BLOCK_MODES[mode], "flag": flag}
    hivm.build("ffts_cross_core_sync", "", [], fields)
    hivm.build("wait_flag_dev", "", [], {"flag": flag})

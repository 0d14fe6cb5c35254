"""Blocks that wait for each other: `cce.read_counter`, `cce.sync_cores` and `cce.sync_and_copy`.

On a coupled machine, for 32 blocks:

    set_flag, wait_flag MTE2 -> MTE3         what was loaded may be overwritten
    st %number, scratch[32]                  the scalar unit raises the counter in the block's line
    set_flag, wait_flag S -> MTE3
    copy_ubuf_to_gm lines[block]             behind all stores of the block
    post_counter lines[block]
    set_flag, wait_flag MTE3 -> S            the line may be changed again, and is in memory
    scf.while {                              the look of the others
      poll_counters lines
      copy_gm_to_ubuf scratch[0..31]
      set_flag, wait_flag MTE2 -> V
      pipe_barrier MTE2, copy_gm_to_..       of `sync_and_copy`
      vmin scratch[0..15], scratch[16..31]   minima of halves, with barriers between
      set_flag, wait_flag V -> S
      ld scratch[0], scratch[1], ..          of as few as the scalar unit takes no longer for
      end_poll
    }

A block with two lines raises both counters in one copy. One that meets the same few others again
and again begins to look a barrier later: programs that do as much come some cycles apart, and those
that are early would look a second time in each step. The flags take the machine's last event id,
which `insert-sync` leaves free in such kernels between the pipes that meetings have flags between.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from davinci.dialects.base import attribute
from davinci.dialects.cce.buffers import buffer_of
from davinci.dialects.cce.effects import MEETINGS
from davinci.dialects.hivm import ops as hivm
from davinci.isa import INSTRUCTIONS, Pipe
from davinci.isa.counters import LINE_BYTES
from davinci.isa.cross_core import ALL_OF_A_KIND
from davinci.machine.legality import illegal_instruction
from davinci.mlir import Op, arith, ir, operations, scf
from davinci.passes import builder
from davinci.passes.analysis.meetings import FLAG_OF_ALL, FLAG_PAIRS, event_of, storing_pipe
from davinci.passes.cce_to_hivm import lowering
from davinci.passes.cce_to_hivm.addresses import Address, Shift, constant_i64
from davinci.passes.cce_to_hivm.copies import emit_copy
from davinci.passes.cce_to_hivm.emitter import Emitter
from davinci.schedule.meetings import lines_looked_at
from davinci.units import REPEAT_BLOCKS, ceil_div


@lowering("read_counter")
def lower_read_counter(emitter: Emitter, op: Op) -> None:
    i32 = ir.IntegerType.get_signless(32)
    if emitter.machine.cross_core is not None:
        zero = arith.ConstantOp(i32, ir.IntegerAttr.get(i32, 0)).result
        op.results[0].replace_all_uses_with(zero)
        return
    places = Places.of(emitter, op, *op.operands)
    bursts = INSTRUCTIONS["copy_gm_to_ubuf"]
    (first, line, _), (own, *_) = places.own[0], places.own[-1]
    emitter.instruction(bursts, [first, line], places.of_own(bursts.field_names, "src_gap"))
    send(emitter, op, Pipe.MTE2, Pipe.S)
    with ir.InsertionPoint(_before_use(op)):
        receive(emitter, op, Pipe.MTE2, Pipe.S)
        found = builder.op("hivm.ld", [own.pointer()], [i32])
    op.results[0].replace_all_uses_with(found.result)


def _before_use(op: Op) -> Op:
    """The operation of the block before which a counter is waited for that `op` begins to load:
    the first that uses it, or in which cores meet. What is between is issued meanwhile."""
    users = [use.owner for use in op.results[0].uses]
    block = ir.InsertionPoint(op).block.operations
    *_, last = following = list(itertools.dropwhile(lambda each: each != op, block))[1:]
    return next(
        (
            each
            for each in following
            if any(inner in users or inner.name in MEETINGS for inner in operations(each))
        ),
        last,
    )


@lowering("sync_cores", "sync_and_copy")
def lower_sync_cores(emitter: Emitter, op: Op) -> None:
    target, number, room, *copied = list(op.operands)

    def copy() -> None:
        if copied:
            emit_copy(emitter, op, *copied)

    if emitter.machine.cross_core is not None:
        meet_by_flags(emitter, op)
        copy()
        return
    places = Places.of(emitter, op, target, room)
    wanted = widened(number)
    flag(emitter, op, Pipe.MTE2, Pipe.MTE3)
    for own, _, ahead in places.own:
        builder.op("hivm.st", [own.pointer(), plus(number, ahead)])
    flag(emitter, op, Pipe.S, Pipe.MTE3)
    bursts = INSTRUCTIONS["copy_ubuf_to_gm"]
    first, line, _ = places.own[0]
    emitter.instruction(bursts, [line, first], places.of_own(bursts.field_names, "dst_gap"))
    for _, line, ahead in places.own:
        hivm.build("post_counter", "", [line.pointer()], {"value": widened(plus(number, ahead))})
    flag(emitter, op, Pipe.MTE3, Pipe.S)
    if "seen" in op.attributes:
        hivm.build("pipe_barrier", "", [], {"pipe": int(Pipe.MTE2)})
    with while_loop() as condition, emitter.block():
        emitter.forget()
        seen = look(emitter, op, places, wanted, copy if copied else None)
        condition(arith.CmpIOp(arith.CmpIPredicate.slt, seen, number).result)
        wide = widened(seen)
        hivm.build("end_poll", "", [], {"value": wide})
    emitter.forget()


@dataclass(frozen=True)
class Places:
    """Where the counters of a meeting lie.

    Attributes:
        seen: the first line that the block looks at, in global memory.
        scratch: where it looks at them, in UB.
        count: how many there are.
        own: of each line of the block in UB and in global memory, in order there, and by how much
            its counter is higher than the number of the meeting.
        apart: lines from the first one of the block's own to the last.
    """

    seen: Address
    scratch: Address
    count: int
    own: tuple[tuple[Address, Address, int], ...]
    apart: int

    @staticmethod
    def of(emitter: Emitter, op: Op, target: ir.Value, room: ir.Value) -> Places:
        lines, scratch = emitter.addresses.of(target), emitter.addresses.of(room)
        group = attribute(op, "group")
        first, count = attribute(op, "seen", (0, group or buffer_of(target).shape[0]))
        offset, early = attribute(op, "own", 0), attribute(op, "early")
        lines_of = [(offset, 0)] if early is None else [tuple(early), (offset, 0)]
        own = [
            (scratch.plus(Shift((count + i) * LINE_BYTES)), own_line(lines, place), ahead)
            for i, (place, ahead) in enumerate(lines_of)
        ]
        seen = lines.plus(Shift(first * LINE_BYTES, first_line(group) if group else None))
        return Places(seen, scratch, count, tuple(own), offset - lines_of[0][0])

    def of_own(self, names: Sequence[str], gap: str) -> dict[str, int]:
        """Fields of a copy of the block's own lines.

        Args:
            gap: the field of the distance between them in global memory.
        """
        fields = one_burst(names, 1)
        if len(self.own) > 1:
            fields |= {"n_burst": len(self.own), gap: self.apart - 1}
        return fields


def meet_by_flags(emitter: Emitter, op: Op) -> None:
    """All cores of the kernel's kind set a flag for each other, and wait for it."""
    stores = storing_pipe(op)
    flag(emitter, op, Pipe.MTE2, stores)
    fields = {"pipe": int(stores), "mode": ALL_OF_A_KIND, "flag": FLAG_OF_ALL}
    hivm.build("ffts_cross_core_sync", "", [], fields)
    hivm.build("wait_flag_dev", "", [], {"flag": FLAG_OF_ALL})


def look(
    emitter: Emitter,
    op: Op,
    places: Places,
    wanted: ir.Value,
    copy: Callable[[], None] | None,
) -> ir.Value:
    """Loads the lines that are looked at; returns the least counter, which the scalar unit has
    seen.

    Args:
        copy: issues what is copied when the lines have been loaded.
    """
    lines, scratch, blocks = places.seen, places.scratch, places.count
    i32 = ir.IntegerType.get_signless(32)
    minimum = INSTRUCTIONS["vmin.s32"]
    halving = not illegal_instruction(
        emitter.machine, next(iter(emitter.machine.core_types)), minimum
    )
    looks = lines_looked_at(emitter.machine, blocks) if halving else blocks
    fields: dict[str, int | ir.Value] = {"count": blocks, "looks": looks, "value": wanted}
    hivm.build("poll_counters", "", [lines.pointer(), scratch.pointer()], fields)
    copy_in(emitter, scratch, lines, blocks)
    seer = Pipe.V if looks < blocks else Pipe.S
    send(emitter, op, Pipe.MTE2, seer)
    if copy is not None:
        hivm.build("pipe_barrier", "", [], {"pipe": int(Pipe.MTE2)})
        copy()
    receive(emitter, op, Pipe.MTE2, seer)
    if looks < blocks:
        left = blocks
        while left > looks:
            half = ceil_div(left, 2)
            upper = scratch.plus(Shift(half * LINE_BYTES))
            lines_to_minima(emitter, scratch, upper, left - half)
            left = half
        flag(emitter, op, Pipe.V, Pipe.S)
    loads = looks + attribute(op, "again", 0)
    left_lines = [scratch.plus(Shift(i % looks * LINE_BYTES)) for i in range(loads)]
    seen = [builder.op("hivm.ld", [place.pointer()], [i32]).result for place in left_lines]
    least = seen[0]
    for other in seen[1:]:
        least = arith.MinSIOp(least, other).result
    return least


def lines_to_minima(emitter: Emitter, target: Address, other: Address, lines: int) -> None:
    """Lines become the minima of themselves and of as many others."""
    minimum = INSTRUCTIONS["vmin.s32"]
    strides = dict.fromkeys(minimum.field_names, 1)
    strides |= {name: REPEAT_BLOCKS for name in strides if name.endswith("rep_stride")}
    for first in range(0, lines, REPEAT_BLOCKS):
        count = min(REPEAT_BLOCKS, lines - first)
        emitter.set_mask((1 << count * LINE_BYTES // 4) - 1)
        places = [place.plus(Shift(first * LINE_BYTES)) for place in (target, target, other)]
        emitter.instruction(minimum, places, strides | {"repeat": 1})
    hivm.build("pipe_barrier", "", [], {"pipe": int(Pipe.V)})


def copy_in(emitter: Emitter, target: Address, source: Address, lines: int) -> None:
    """Loads lines that follow each other."""
    bursts = INSTRUCTIONS["copy_gm_to_ubuf"]
    emitter.instruction(bursts, [target, source], one_burst(bursts.field_names, lines))


def one_burst(names: Sequence[str], blocks: int) -> dict[str, int]:
    """Fields of a copy of so many blocks that follow each other."""
    return dict.fromkeys(names, 0) | {"n_burst": 1, "len_burst": blocks}


def widened(number: ir.Value) -> ir.Value:
    """An i32 as i64."""
    i64 = ir.IntegerType.get_signless(64)
    return builder.op("arith.extsi", [number], [i64]).result


def plus(number: ir.Value, more: int) -> ir.Value:
    """An i32 and a number."""
    if not more:
        return number
    other = arith.ConstantOp(number.type, ir.IntegerAttr.get(number.type, more)).result
    return arith.AddIOp(number, other).result


def own_line(lines: Address, behind: int) -> Address:
    """The line so many behind the one of this block's number."""
    start = arith.MulIOp(block_number(), constant_i64(LINE_BYTES)).result
    return lines.plus(Shift(behind * LINE_BYTES, start))


def first_line(group: int) -> ir.Value:
    """Bytes in front of the line of the first block of this block's group."""
    number = arith.DivUIOp(block_number(), constant_i64(group)).result
    return arith.MulIOp(number, constant_i64(group * LINE_BYTES)).result


def block_number() -> ir.Value:
    return builder.op("hivm.get_block_idx", [], [ir.IntegerType.get_signless(64)]).result


def flag(emitter: Emitter, op: Op, source: Pipe, target: Pipe) -> None:
    """A flag from one pipe to another, for which that one waits at once."""
    send(emitter, op, source, target)
    receive(emitter, op, source, target)


def send(emitter: Emitter, op: Op, source: Pipe, target: Pipe) -> None:
    """The first half of a flag."""
    _half_of_flag("set_flag", emitter, op, source, target)


def receive(emitter: Emitter, op: Op, source: Pipe, target: Pipe) -> None:
    """The second half of a flag."""
    _half_of_flag("wait_flag", emitter, op, source, target)


def _half_of_flag(name: str, emitter: Emitter, op: Op, source: Pipe, target: Pipe) -> None:
    assert (source, target) in FLAG_PAIRS, "insert-sync leaves their event id free"
    event = event_of(op, emitter.machine)
    hivm.build(name, "", [], {"src_pipe": int(source), "dst_pipe": int(target), "event": event})


@contextmanager
def while_loop() -> Iterator[Callable[[ir.Value], None]]:
    """Builds the body of a loop that runs again while the value given to the function is true."""
    loop = ir.Operation.create("scf.while", results=[], operands=[], regions=2)
    before, after = (region.blocks.append() for region in loop.regions)
    with ir.InsertionPoint(after):
        scf.YieldOp([])
    conditions: list[ir.Value] = []
    with ir.InsertionPoint(before):
        yield conditions.append
        builder.op("scf.condition", conditions)

"""Loops over tiles become copies of their body that take turns on several buffers.

`cce.unroll = N` on an `scf.for` asks for N copies, `cce.slots = n` on an allocation in its body for
n buffers, which move in front of the loop; copy j uses buffer j % n of each. What is left of a loop
whose trip count is static is written out; of any other, loops of half as many copies and so on run
once or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from davinci.dialects.cce.buffers import space_name
from davinci.mlir import Op, arith, ir, parent_of, scf
from davinci.passes import builder
from davinci.passes.analysis.affine import Forms

UNROLL = "cce.unroll"
SLOTS = "cce.slots"
ORDER = "cce.order"
"""Marks an operation whose blocks are to be ordered."""

Values = list[ir.Value]


def unroll(loop: Op) -> None:
    """Replaces a loop that has `cce.unroll`; marks what holds the copies with `cce.order`."""
    copies = int(loop.attributes[UNROLL].value)
    trips = Forms().enter_loop(loop).trips
    start, stop, step, *carried = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        if trips is None:
            results = _dynamic(_Body(loop, copies), start, stop, step, carried, copies)
        else:
            copies = min(copies, trips)
            results = _static(_Body(loop, copies), start, step, carried, copies, trips)
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()


def _static(
    body: _Body, start: ir.Value, step: ir.Value, carried: Values, copies: int, trips: int
) -> Values:
    """Unrolls a loop whose number of trips is known: wholly where it is at most `copies`, else a
    loop of `copies` trips each and the rest after it."""
    mark(parent_of(body.loop))
    done = 0
    if copies and trips >= 2 * copies:
        done = trips // copies * copies
        stop = builder.as_value(builder.add(start, builder.mul(step, done)))
        carried = _loop(body, start, stop, step, carried, copies)
    for trip in range(done, trips):
        place = builder.as_value(builder.add(start, builder.mul(step, trip)))
        carried = body.copy(place, (trip - done) % copies, carried)
    return carried


def _dynamic(
    body: _Body, start: ir.Value, stop: ir.Value, step: ir.Value, carried: Values, copies: int
) -> Values:
    """A loop of `copies`, one of half as many for what is left, and so on to one of one."""
    zero, one = builder.constant_index(0), builder.constant_index(1)
    length = arith.MaxSIOp(arith.SubIOp(stop, start).result, zero).result
    rounded = arith.AddIOp(length, arith.SubIOp(step, one).result).result
    count = arith.DivUIOp(rounded, step).result
    while copies > 1:
        rest = arith.RemUIOp(count, builder.constant_index(copies)).result
        whole = arith.SubIOp(count, rest).result
        end = arith.AddIOp(start, arith.MulIOp(whole, step).result).result
        carried = _loop(body, start, end, step, carried, copies)
        start, count, copies = end, rest, copies // 2
    return _loop(body, start, stop, step, carried, 1)


def _loop(
    body: _Body, start: ir.Value, stop: ir.Value, step: ir.Value, carried: Values, copies: int
) -> Values:
    """Builds a loop of which an iteration is `copies` of the old one."""
    wide = builder.as_value(builder.mul(step, copies))
    loop = scf.ForOp(start, stop, wide, carried)
    mark(loop.operation)
    values: Values = list(loop.inner_iter_args)
    with ir.InsertionPoint(loop.body):
        for number in range(copies):
            place = builder.as_value(
                builder.add(loop.induction_variable, builder.mul(step, number))
            )
            values = body.copy(place, number, values)
        scf.YieldOp(values)
    return list(loop.results)


def mark(op: Op) -> None:
    op.attributes[ORDER] = ir.UnitAttr.get()


class _Body:
    """The body of a loop, ready to be copied; its buffers are made in front of the loop."""

    def __init__(self, loop: Op, copies: int) -> None:
        self.loop = loop
        self._block = loop.regions[0].blocks[0]
        self._buffers: dict[ir.Value, Sequence[ir.Value]] = {}
        for op in (view.operation for view in self._block.operations):
            if op.name == "memref.alloc" and space_name(op.result.type) != "GM":
                self._buffers[op.result] = _buffers(op, loop, copies)

    def copy(self, place: ir.Value, number: int, carried: Values) -> Values:
        """Copies the body for the iteration at `place`; returns what it yields."""
        *ops, end = [view.operation for view in self._block.operations]
        now: dict[ir.Value, ir.Value] = dict(
            zip(self._block.arguments, [place, *carried], strict=True)
        )
        now |= {old: new[number % len(new)] for old, new in self._buffers.items()}
        for op in ops:
            if op.name == "memref.alloc" and op.result in self._buffers:
                continue
            twin = op.clone()
            builder.replace_operands(twin.operation, now)
            now |= dict(zip(op.results, twin.operation.results, strict=True))
        return [now.get(value, value) for value in end.operands]


def _buffers(alloc: Op, loop: Op, copies: int) -> list[ir.Value]:
    """As many buffers in front of the loop as the allocation has slots, none that nobody uses."""
    slots = int(alloc.attributes[SLOTS].value) if SLOTS in alloc.attributes else 1
    found: list[ir.Value] = []
    for _ in range(max(1, min(slots, copies))):
        twin = alloc.clone(ir.InsertionPoint(loop)).operation
        if SLOTS in twin.attributes:
            del twin.attributes[SLOTS]
        found.append(twin.result)
    return found

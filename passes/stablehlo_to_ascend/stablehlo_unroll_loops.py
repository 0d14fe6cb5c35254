"""stablehlo-unroll-loops: repeats the body of a loop whose number of iterations is known.

before:
    %r:2 = stablehlo.while(%i = %c0, %h = %h0) : tensor<i32>, tensor<2x8xf32>
     cond { %c = stablehlo.compare LT, %i, %c2 .. stablehlo.return %c : tensor<i1> }
     do { %n = stablehlo.add %i, %c1 ..  %g = .. %h ..  stablehlo.return %n, %g : .. }
after:
    %g = .. %h0 ..
    %g2 = .. %g ..

So the cube and the vector unit compute what the body holds; a loop that stays is one kernel of the
scalar unit. The loop counts: its condition compares a carried integer with a constant, and its body
adds a constant to that integer. This is what a scan or a loop over a range becomes in JAX. Loops
inside of an unrolled one are looked at once it is unrolled; those inside of one that stays, stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from davinci.elements import to_array
from davinci.mlir import Op, ir
from davinci.passes import builder
from davinci.passes.ascend.tensor_ops import defining_op
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.stablehlo_to_scf.elements import inline

CONSTANTS = ("stablehlo.constant", "arith.constant")
BRANCHES = ("stablehlo.case", "stablehlo.if")


@register_pass
@dataclass(frozen=True)
class StablehloUnrollLoopsPass(Pass):
    """Repeat the body of loops whose number of iterations is known."""

    NAME = "stablehlo-unroll-loops"
    ANCHOR = "func.func"

    limit: int = option(8192, "most operations that a loop may become; 0: loops stay")

    def run(self, op: Op) -> None:
        for block in op.regions[0]:
            unroll_block(block, self.limit)


def unroll_block(block: ir.Block, limit: int) -> None:
    """Unrolls the loops of a block, and those in branches; what a loop becomes is looked at too."""
    pending: list[Op] = [view.operation for view in block.operations]
    while pending:
        op = pending.pop()
        if op.name in BRANCHES:
            for region in op.regions:
                unroll_block(region.blocks[0], limit)
        if op.name != "stablehlo.while":
            continue
        counter = LoopCounter.of(op)
        if counter is None or counter.trips * count_operations(op.regions[1]) > limit:
            continue
        pending += unroll(op, counter)


def unroll(loop: Op, counter: LoopCounter) -> list[Op]:
    """Replaces a loop by copies of its body; returns the loops and branches in them."""
    body = loop.regions[1].blocks[0]
    values = list(loop.operands)
    made: list[Op] = []
    with loop.location, ir.InsertionPoint(loop):
        for trip in range(counter.trips):
            values[counter.number] = counter.constant(trip)
            values = inline(body, values, made)
        values[counter.number] = counter.constant(counter.trips)
    for old, new in zip(loop.results, values, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return [op for op in made if op.name in ("stablehlo.while", *BRANCHES)]


def count_operations(region: ir.Region) -> int:
    """Operations in a region, those in nested regions among them, but for its terminator."""
    found = -1

    def visit(_: Op) -> ir.WalkResult:
        nonlocal found
        found += 1
        return ir.WalkResult.ADVANCE

    for view in region.blocks[0].operations:
        view.operation.walk(visit)
    return max(1, found)


@dataclass(frozen=True)
class LoopCounter:
    """What a loop counts: carried value `number` is start, start + step, ... for `trips` times."""

    number: int
    start: int
    step: int
    trips: int
    type: ir.RankedTensorType

    @staticmethod
    def of(loop: Op) -> LoopCounter | None:
        """The counter of a loop; None if it has none."""
        condition, body = (region.blocks[0] for region in loop.regions)
        (result,) = list(condition.operations)[-1].operation.operands
        test = defining_op(result)
        if test is None or test.name != "stablehlo.compare" or test.parent != loop:
            return None
        found = condition_parts(test, condition)
        if found is None:
            return None
        number, predicate, bound = found
        returned = list(body.operations)[-1].operation.operands
        step = step_of(returned[number], body, number)
        start = constant_of(loop.operands[number])
        limit = constant_of(bound)
        if step is None or start is None or limit is None:
            return None
        trips = count_trips(start, step, limit, predicate)
        last = start + trips * step if trips is not None else 0
        kind = loop.operands[number].type
        if trips is None or not in_range(last, kind.element_type):
            return None
        return LoopCounter(number, start, step, trips, kind)

    def constant(self, trip: int) -> ir.Value:
        """The counter's value before the iteration `trip`, as a constant."""
        element = self.type.element_type
        number = ir.IntegerAttr.get(element, self.start + trip * self.step)
        value = ir.DenseElementsAttr.get_splat(self.type, number)
        return builder.op("stablehlo.constant", [], [self.type], value=value).result


MIRRORED = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE"}


def condition_parts(test: Op, condition: ir.Block) -> tuple[int, str, ir.Value] | None:
    """Number of the counted value, predicate and bound of a comparison, or None."""
    predicate = str(test.attributes["comparison_direction"]).split()[-1].rstrip(">")
    left, right = test.operands
    if not isinstance(left.type.element_type, ir.IntegerType) or predicate == "EQ":
        return None
    arguments = list(condition.arguments)
    if left in arguments:
        return arguments.index(left), predicate, right
    if right in arguments:
        return arguments.index(right), MIRRORED[predicate], left
    return None


def step_of(value: ir.Value, body: ir.Block, number: int) -> int | None:
    """What the body adds to its argument `number` to get `value`, or None."""
    op = defining_op(value)
    if op is None or op.name not in ("stablehlo.add", "stablehlo.subtract"):
        return None
    left, right = op.operands
    if op.name == "stablehlo.add" and right == body.arguments[number]:
        left, right = right, left
    step = constant_of(right)
    if left != body.arguments[number] or step is None:
        return None
    return step if op.name == "stablehlo.add" else -step


def count_trips(start: int, step: int, limit: int, predicate: str) -> int | None:
    """Iterations until the predicate fails; None if that takes an overflow."""
    if predicate in ("GT", "GE"):
        start, step, limit = -start, -step, -limit
    if predicate in ("LE", "GE"):
        limit += 1
    if predicate == "NE":
        apart = limit - start
        return apart // step if step and apart % step == 0 and apart // step >= 0 else None
    if start >= limit:
        return 0
    return -((start - limit) // step) if step > 0 else None


def in_range(number: int, element: ir.IntegerType) -> bool:
    bits: int = element.width - (not element.is_unsigned)
    return (0 if element.is_unsigned else -(1 << bits)) <= number < 1 << bits


def constant_of(value: ir.Value) -> int | None:
    """The integer of rank 0 that `value` is, or None."""
    op = defining_op(value)
    if op is None or op.name not in CONSTANTS or value.type.rank:
        return None
    return int(to_array(op.attributes["value"]).item())

"""stablehlo-outline-loops: makes functions of the steps of loops that may stay on a core.

before:
    %r:3 = stablehlo.while(%i = %c0, %h = %h0, %ys = %zeros) : ..
     cond { %i < 100 }
     do {
      %x = dynamic_slice %xs, %i        %g = dot_general %x, %w       %p = dot_general %h, %r
      %n = tanh (add %g, %p)            %ys' = dynamic_update_slice %ys, %n, %i
      return %i + 1, %n, %ys' }
after:
    %gs = dot_general %xs, %w : [100, ..]
    %r:2 = custom_call @ascend.loop(%h0, %gs, %r) {ascend.body = @loop_0, ascend.steps = 100}
    func.func @loop_0(%h, %g, %r) -> (%n, %n) attributes {ascend.loop, ascend.roles = ["state",
        "slice", "fixed"], ascend.outputs = ["slice"]} { .. tanh .. }

What a step does not need its states for is computed for all steps in front of the loop, so that a
product with the inputs is one product. The loop counts, and its states are matrices of f32;
arrays are read and written part by part along one dimension, all of it. `ascend-outline-loops`
makes a kernel of the function, or repeats it. Other loops are left to `stablehlo-unroll-loops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from davinci import machine as machines
from davinci.elements import to_array
from davinci.machine import Machine
from davinci.mlir import Op, func, ir, operations, stablehlo, symbols, unique
from davinci.passes import builder
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import FUSION, PRECISIONS
from davinci.passes.stablehlo_to_ascend import tensors
from davinci.passes.stablehlo_to_ascend.loop_body import (
    INSIDE,
    MOVES,
    Fact,
    Fixed,
    Inside,
    KnownInteger,
    Pending,
    StepBody,
    Stepped,
    Unsuitable,
    cloned,
    computed_numbers,
    is_number,
    of_one_dimension,
    order_of,
)
from davinci.passes.stablehlo_to_ascend.stablehlo_unroll_loops import CONSTANTS, LoopCounter

TARGET = "ascend.loop"
"""Name of the custom call."""

PENDING = MOVES | frozenset(CONSTANTS)


@register_pass
@dataclass(frozen=True)
class StablehloOutlineLoopsPass(Pass):
    """Make functions of the steps of loops that may stay on a core."""

    NAME = "stablehlo-outline-loops"

    machine: str = option("ascend910", "machine file that gives sizes and limits")
    precision: str = option("mixed", "the policy of ascend-legalize-precision", PRECISIONS)
    fusion: str = option("all", "which operators share a kernel", FUSION)

    def run(self, op: Op) -> None:
        if self.fusion == "none" or self.precision == "fp32":
            return  # products of the kernel are of f16
        machine, count = machines.load(self.machine), 0
        for loop in operations(op, "stablehlo.while"):
            around = loop.parent
            if around is not None and around.name == "func.func":
                count += outline(op, loop, machine)
        note(op, "loop-kernels", count)


def outline(root: Op, loop: Op, machine: Machine) -> bool:
    """Makes a call of a loop, if it is suited; whether it is."""
    counter = LoopCounter.of(loop)
    if counter is None or counter.trips < 2 or not is_plausible(loop, machine):
        return False
    name = unique("loop_0", dict(symbols(root)))
    with ir.InsertionPoint(root.regions[0].blocks[0]), loop.location:
        function = func.FuncOp(name, ([], []))
        function.attributes[TARGET] = ir.UnitAttr.get()
    function.add_entry_block()
    first = last_before(loop)
    try:
        results = _Outliner(loop, counter, function.operation).build(name)
    except Unsuitable:
        function.operation.erase()
        erase_between(first, loop)
        return False
    for old, new in zip(loop.results, results, strict=True):
        old.replace_all_uses_with(new)
    loop.erase()
    return True


def is_plausible(loop: Op, machine: Machine) -> bool:
    """Whether what a loop carries could lie on a core: matrices of f32, some integers."""
    body = loop.regions[1].blocks[0]
    returned = list(body.operations)[-1].operation.operands
    for argument, value in zip(body.arguments, returned, strict=True):
        kind = argument.type
        is_state = argument != value and not is_number(kind) and not is_update(value)
        if is_state and (str(kind.element_type) != "f32" or not 1 <= kind.rank <= 3):
            return False
    products = operations(body.owner, "stablehlo.dot_general")
    return all(of_f32(op) for op in products)


def is_splat(value: ir.Value) -> bool:
    """Whether a constant is the same number everywhere."""
    attr = value.owner.attributes["value"]
    return isinstance(attr, ir.DenseElementsAttr) and attr.is_splat


def is_update(value: ir.Value) -> bool:
    owner = value.owner
    return not isinstance(owner, ir.Block) and owner.name == "stablehlo.dynamic_update_slice"


def of_f32(op: Op) -> bool:
    return all(str(v.type.element_type) == "f32" for v in (*op.operands, *op.results))


def last_before(op: Op) -> Op | None:
    """The operation in front of another."""
    before = None
    for view in op.block:
        if view.operation == op:
            return before
        before = view.operation
    raise AssertionError("an operation that is not in its block")


def erase_between(first: Op | None, last: Op) -> None:
    """Erases what was built in vain."""
    ops: list[Op] = [view.operation for view in last.block]
    start = 0 if first is None else ops.index(first) + 1
    for op in reversed(ops[start : ops.index(last)]):
        op.erase()


@dataclass(frozen=True, eq=False)
class Update:
    """An output of a loop: parts along a dimension of an array."""

    part: Fact
    dim: int
    backwards: bool


class _Outliner:
    """Walks the body of one loop."""

    def __init__(self, loop: Op, counter: LoopCounter, function: Op) -> None:
        self.loop, self.counter = loop, counter
        self.body: ir.Block = loop.regions[1].blocks[0]
        self.step = StepBody(function, counter.trips, loop)
        self.returned = list(list(self.body.operations)[-1].operation.operands)
        self.facts: dict[ir.Value, Fact] = {}
        self.updates: dict[ir.Value, Update] = {}
        self.joined: dict[Fact, tuple[Op, Sequence[Fact]]] = {}
        """Values of the body that are joined, and of what."""

    def build(self, name: str) -> list[ir.Value]:
        """The values that stand for the loop's results.

        Raises:
            Unsuitable: the loop is none that could become a kernel.
        """
        states = [i for i in range(len(self.returned)) if self.is_state(i)]
        for number, argument in enumerate(self.body.arguments):
            self.facts[argument] = self.begun(number, number in states)
        *ops, _ = [view.operation for view in self.body.operations]
        for op in ops:
            self.visit(op)
        if not states:
            raise Unsuitable("a loop without states")
        following = [self.following(number) for number in states]
        written = [i for i, value in enumerate(self.returned) if value in self.updates]
        outputs = [self.updates[self.returned[i]] for i in written]
        call = self.call(name, following, outputs)
        results: list[ir.Value] = []
        for number, value in enumerate(self.returned):
            if number in states:
                results.append(call.results[states.index(number)])
            elif number in written:
                update = outputs[written.index(number)]
                made = call.results[len(states) + written.index(number)]
                results.append(self.array(made, update, value.type))
            elif number == self.counter.number:
                with self.loop.location, ir.InsertionPoint(self.loop):
                    results.append(self.counter.constant(self.counter.trips))
            else:
                results.append(self.loop.operands[number])
        return results

    def is_state(self, number: int) -> bool:
        """Whether a carried value is neither the counter, nor the same always, nor an output."""
        value = self.returned[number]
        return not (
            number == self.counter.number
            or value == self.body.arguments[number]
            or (is_update(value) and value.owner.operands[0] == self.body.arguments[number])
        )

    def begun(self, number: int, state: bool) -> Fact:
        """What the body's argument is."""
        if number == self.counter.number:
            start, step = self.counter.start, self.counter.step
            numbers = start + step * np.arange(self.counter.trips, dtype=np.int64)
            return KnownInteger(numbers, self.counter.type)
        value = self.loop.operands[number]
        return self.step.state(value) if state else self.fact_outside(value)

    def following(self, number: int) -> ir.Value:
        """A state after a step."""
        fact = self.facts.get(self.returned[number])
        if not isinstance(fact, Inside) or isinstance(fact.value, ir.BlockArgument):
            raise Unsuitable("a state that does not depend on states")
        return fact.value

    def fact(self, value: ir.Value) -> Fact:
        """A value of the body, or one from outside of the loop."""
        if value in self.updates:
            raise Unsuitable("an output that is read")
        if value not in self.facts:
            self.facts[value] = self.fact_outside(value)
        return self.facts[value]

    def fact_outside(self, value: ir.Value) -> Fact:
        """A value from outside of the loop; constants are there as good as inside."""
        op = value.owner
        if isinstance(op, ir.Block) or op.name not in CONSTANTS:
            return Fixed(value)
        return self.fact_of(op, []) if is_splat(value) else Fixed(value)

    def visit(self, op: Op) -> None:
        if op.name == "stablehlo.dynamic_update_slice":
            self.visit_update(op)
            return
        if len(op.results) != 1:
            raise Unsuitable(f"{op.name} with {len(op.results)} results")
        self.facts[op.results[0]] = self.fact_of(op, [self.fact(v) for v in op.operands])

    def fact_of(self, op: Op, facts: list[Fact]) -> Fact:
        (result,) = op.results
        if op.name in CONSTANTS and is_number(result.type):
            number = int(to_array(op.attributes["value"]).item())
            return KnownInteger(np.full(self.counter.trips, number, np.int64), result.type)
        known = computed_numbers(op, facts)
        if known is not None:
            return known
        if op.name == "stablehlo.dynamic_slice":
            return self.part(op, facts)
        if op.regions and op.name != "stablehlo.reduce":
            raise Unsuitable(f"{op.name} in a loop")
        moving = not any(isinstance(fact, Inside) for fact in facts)
        if moving and op.name in PENDING:
            return Pending(op, tuple(facts))
        if moving and all(self.step.outside(fact) is not None for fact in facts):
            outside = self.step.outside(Pending(op, tuple(facts)))
            assert outside is not None, "its operands are known there"
            return Fixed(outside)
        if self.step.goes_in_front(op, facts):
            return self.step.for_all_steps(op, facts)
        if op.name not in INSIDE:
            raise Unsuitable(f"{op.name} of states")
        if op.name == "stablehlo.dot_general" and facts[0] in self.joined:
            parts = self.by_parts(op, facts)
            if parts is not None:
                return parts
        made = self.inside(op, facts)
        if op.name == "stablehlo.concatenate":
            self.joined[made] = op, facts
        return made

    def inside(self, op: Op, facts: Sequence[Fact]) -> Inside:
        """An operation of the body."""
        operands = [self.step.inside(fact) for fact in facts]
        with ir.InsertionPoint(self.step.block), op.location:
            return Inside(cloned(op, operands))

    def by_parts(self, op: Op, facts: Sequence[Fact]) -> Inside | None:
        """The product of values side by side, as the sum of their products with rows of the right
        factor, so that what is no state is multiplied for all steps; None if it is another one."""
        join, parts = self.joined[facts[0]]
        weight = self.step.outside(facts[1])
        numbers = stablehlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
        left, right = (
            list(dims)
            for dims in (numbers.lhs_contracting_dimensions, numbers.rhs_contracting_dimensions)
        )
        dim = int(ir.IntegerAttr(join.attributes["dimension"]).value)
        if weight is None or left != [dim] or list(numbers.lhs_batching_dimensions):
            return None
        first = 0
        total: ir.Value | None = None
        for fact, operand in zip(parts, join.operands, strict=True):
            size = operand.type.shape[dim]
            rows = Fixed(self.cut(weight, right[0], first, first + size))
            first += size
            if self.step.goes_in_front(op, [fact, rows]):
                value = self.step.inside(self.step.for_all_steps(op, [fact, rows]))
            else:
                value = self.inside(op, [fact, rows]).value
            with ir.InsertionPoint(self.step.block), op.location:
                total = value if total is None else tensors.add(total, value)
        assert total is not None, "a concatenation has operands"
        return Inside(total)

    def cut(self, value: ir.Value, dim: int, first: int, last: int) -> ir.Value:
        """Part of a value, in front of the loop."""
        with ir.InsertionPoint(self.loop), self.loop.location:
            return tensors.cut(value, dim, first, last)

    def part(self, op: Op, facts: Sequence[Fact]) -> Stepped:
        """A part of an array that is read step by step."""
        source, *starts = facts
        if not isinstance(source, Fixed):
            raise Unsuitable("a part of what a step computes")
        (result,), shape = op.results, source.value.type.shape
        dim = of_one_dimension(starts, result.type.shape, shape)
        backwards = order_of(starts[dim], shape[dim])
        order = [dim, *(i for i in range(len(shape)) if i != dim)]
        kind = ir.RankedTensorType.get(
            [self.counter.trips, *result.type.shape], result.type.element_type
        )
        with self.loop.location, ir.InsertionPoint(self.loop):
            value = tensors.op("reshape", [tensors.transpose(source.value, order)], kind)
        return Stepped(value, backwards)

    def visit_update(self, op: Op) -> None:
        """An output: each step writes its part."""
        target, part, *starts = op.operands
        uses = list(target.uses)
        if not isinstance(target, ir.BlockArgument) or len(uses) != 1:
            raise Unsuitable("an array that is written and read")
        if op.results[0] != self.returned[target.arg_number] or len(list(op.results[0].uses)) != 1:
            raise Unsuitable("an array that is written twice")
        shape = target.type.shape
        facts = [self.fact(start) for start in starts]
        dim = of_one_dimension(facts, part.type.shape, shape)
        backwards = order_of(facts[dim], shape[dim])
        self.updates[op.results[0]] = Update(self.fact(part), dim, backwards)

    def call(self, name: str, following: list[ir.Value], outputs: list[Update]) -> ir.Operation:
        """Ends the function, and builds the call of it."""
        step = self.step
        parts = [step.inside(update.part) for update in outputs]
        function = step.function
        with ir.InsertionPoint(step.block), self.loop.location:
            func.ReturnOp([*following, *parts])
        given = [argument.type for argument in step.block.arguments]
        made = [value.type for value in (*following, *parts)]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(given, made))
        orders = ["backwards" if update.backwards else "slice" for update in outputs]
        function.attributes["ascend.steps"] = builder.as_attribute(step.steps)
        for key, texts in (("ascend.roles", step.roles), ("ascend.outputs", orders)):
            function.attributes[key] = ir.ArrayAttr.get([ir.StringAttr.get(t) for t in texts])
        whole = [
            ir.RankedTensorType.get([step.steps, *value.type.shape], value.type.element_type)
            for value in parts
        ]
        types = [*(value.type for value in following), *whole]
        with ir.InsertionPoint(self.loop), self.loop.location:
            call = builder.op(
                "stablehlo.custom_call", step.operands, types, call_target_name=TARGET
            )
        call.operation.attributes["ascend.body"] = ir.FlatSymbolRefAttr.get(name)
        return call

    def array(self, made: ir.Value, update: Update, kind: ir.RankedTensorType) -> ir.Value:
        """An output as the loop gives it: its parts along their dimension."""
        order = [update.dim, *(i for i in range(kind.rank) if i != update.dim)]
        front = ir.RankedTensorType.get([kind.shape[i] for i in order], kind.element_type)
        with ir.InsertionPoint(self.loop), self.loop.location:
            whole = tensors.op("reshape", [made], front)
            return tensors.transpose(whole, [order.index(i) for i in range(kind.rank)])

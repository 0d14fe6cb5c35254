"""Finds loops whose steps can compute what they read of rows: of another loop, or of an array.

before, of a layer of a recurrent network upon another:
    %r:2 = custom_call @ascend.loop(%h0, %gs, %u)                        [10, 1, 256] of states
    %x = reshape %r#1   %p = matmul %x, %w   %gs2 = add %p, %b           of all steps
    %s:2 = custom_call @ascend.loop(%h0, %gs2, %u2) {ascend.body = @loop_1}
after:
    %s:2 = custom_call @ascend.loop(%h0, %r#1, %u2, %w, %b) {ascend.body = @loop_2}
    func.func @loop_2(%h, %x, %u, %w, %b) { %p = matmul %x, %w   %g = add %p, %b   .. }

What is computed of the rows of one step only goes into the loop: elementwise operators, products
with a factor that is the same in all steps, reshapes that leave the rows of a step beside each
other. Both loops then are parts of one kernel, the second some steps behind the first.

The rows of an array that is there before a loop begins are multiplied in its step, too, where that
takes less time than a kernel in front: the cube has nothing else to do while cores meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import python_value
from davinci.mlir import Op, ir, root_of, symbol_name, symbols, unique
from davinci.operators import OPERATORS, Tensor
from davinci.operators.products import TRANSPOSE_A
from davinci.passes import builder
from davinci.passes.ascend.loop_outline import SLICES, LoopCall
from davinci.passes.ascend.tensor_ops import TensorOps, constant_array, defining_op, definition
from davinci.schedule.vector.space import NoSpace

LOOP = "stablehlo.custom_call"


class NotByRows(Exception):
    """A value of which a step needs more than what the loop in front computes in that step."""


@dataclass(frozen=True)
class Chained:
    """Loops of which each but the first takes rows of the one in front.

    Attributes:
        loops: with what leads from one to the next inside.
        before: the loops that they stand for.
    """

    loops: tuple[LoopCall, ...]
    before: tuple[LoopCall, ...]

    @property
    def several(self) -> bool:
        return len(self.loops) > 1

    def undo(self) -> None:
        """Has the loops as they were before."""
        for old, new in zip(self.before[:0:-1], self.loops[:0:-1], strict=True):
            _take_place(old.call, new.call)
            drop(new)

    def finish(self) -> None:
        """Erases what the loops stand for, and what nothing but that needed."""
        for old in self.before[:0:-1]:
            _erase_call(old)


def drop(loop: LoopCall) -> None:
    """Erases a loop whose results nobody uses, and what only it needed."""
    _erase_call(loop)
    loop.function.erase()


def _erase_call(loop: LoopCall) -> None:
    operands = list(loop.call.operands)
    loop.call.erase()
    erase_unused(operands)


def put_in_place(new: LoopCall, old: LoopCall) -> None:
    """Uses a loop instead of another, which is erased."""
    _take_place(new.call, old.call)
    _erase_call(old)


def chains_of(loops: Sequence[LoopCall]) -> list[list[LoopCall]]:
    """Loops in chains, in each of which each loop is computed of rows of the one in front."""
    chains: list[list[LoopCall]] = []
    for loop in loops:
        for chain in chains:
            if rows_of(loop, chain[-1]) is not None:
                chain.append(loop)
                break
        else:
            chains.append([loop])
    return chains


def chained(loops: Sequence[LoopCall]) -> Chained:
    """Has the loops of a chain take rows of each other.

    Raises:
        NoSpace: a step of one needs rows of others, or something else of a loop in front.
    """
    made = [loops[0]]
    for loop in loops[1:]:
        found = rows_of(loop, made[-1])
        new = None if found is None else with_rows_of(loop, found[0], made[-1], found[1])
        if new is not None:
            _take_place(new.call, loop.call)
            made.append(new)
        if new is None or _waits(new, made[:-1]):
            Chained(tuple(made), tuple(loops[: len(made)])).undo()
            raise NoSpace("a step that needs more of a loop in front than a row")
    return Chained(tuple(made), tuple(loops))


def _take_place(new: Op, old: Op) -> None:
    """Has the results of a call be used instead of those of another."""
    for result, other in zip(old.results, new.results, strict=True):
        result.replace_all_uses_with(other)


def _waits(loop: LoopCall, others: Sequence[LoopCall]) -> bool:
    """Whether a loop needs results of others besides the rows that are handed on to it."""
    known = {other.call: other for other in others}
    rest = [v for i, v in enumerate(loop.call.operands) if i != loop.handed]
    return any(_sources(value, known) for value in rest)


def erase_unused(values: Sequence[ir.Value]) -> None:
    """Erases operators that make values that nobody uses, and what only these needed."""
    waiting = list(values)
    while waiting:
        owner = defining_op(waiting.pop())
        if owner is None or not owner.name.startswith("ascend."):
            continue
        if all(not list(result.uses) for result in owner.results):
            again = list(owner.operands)
            gone = set(owner.results)
            waiting = [value for value in waiting if value not in gone]
            owner.operation.erase()
            waiting += again


def rows_of(loop: LoopCall, giver: LoopCall) -> tuple[int, int] | None:
    """The operand of a loop of which a step has what is computed of rows of another loop, and which
    of the results of that they are; None if there is none."""
    known = {giver.call: giver}
    for operand, role in enumerate(loop.roles):
        if role not in SLICES or giver.steps != loop.steps:
            continue
        for value in _sources(loop.call.operands[operand], known):
            result = ir.OpResult(value).result_number
            output = result - len(giver.states)
            if output >= 0 and giver.outputs[output] == role:
                return operand, result
    return None


def _sources(value: ir.Value, known: dict[Op, LoopCall]) -> list[ir.Value]:
    """The results of loops that a value is computed of."""
    waiting, seen, found = [value], set[ir.Value](), []
    while waiting:
        each = waiting.pop()
        owner = defining_op(each)
        if owner is None or each in seen:
            continue
        seen.add(each)
        if owner.operation in known:
            found.append(each)
        elif owner.name.startswith("ascend."):
            waiting.extend(owner.operands)
    return found


def with_rows_of(loop: LoopCall, operand: int, giver: LoopCall, result: int) -> LoopCall | None:
    """The loop with what leads from the rows of another to an operand in its step; None if a step
    needs rows of others.

    The new call stands in front of that of the loop, whose results stay as they are.
    """
    rows = giver.call.results[result]
    found = _with_rows(loop, operand, rows, rows)
    if found is None:
        return None
    new, place = found
    return replace(new, handed=place)


def with_rows_multiplied(loop: LoopCall) -> LoopCall | None:
    """The loop with a product of rows that gives an operand in its step, so that the rows are an
    operand; None if no product does, or its rows are what other loops compute.

    The new call stands in front of that of the loop, whose results stay as they are.
    """
    for operand, role in enumerate(loop.roles):
        if role not in SLICES:
            continue
        for product in _products(loop.call.operands[operand]):
            rows = product.operands[0]
            kind = tensor_of(rows.type)
            if kind.shape[0] % loop.steps or _of_loops(rows):
                continue
            with ir.InsertionPoint(loop.call), loop.call.location:
                shape = (loop.steps, kind.shape[0] // loop.steps, kind.shape[1])
                array = TensorOps().reshape(rows, shape)
            found = _with_rows(loop, operand, rows, array)
            if found is not None:
                return found[0]
            erase_unused([array])
    return None


def _products(value: ir.Value) -> list[ir.OpView]:
    """The products that a value is computed of by elementwise operators and reshapes alone."""
    waiting, found = [value], list[ir.OpView]()
    while waiting:
        op = defining_op(waiting.pop())
        name = "" if op is None else op.name.removeprefix("ascend.")
        if op is None or op in found:
            continue
        if name == "matmul":
            found.append(op)
        elif name == "reshape" or (name in OPERATORS and OPERATORS[name].elementwise):
            waiting.extend(op.operands)
    return found


def _of_loops(value: ir.Value) -> bool:
    """Whether a value depends on a result of a loop."""
    waiting, seen = [value], set[Op]()
    while waiting:
        op = defining_op(waiting.pop())
        if op is None or op.operation in seen:
            continue
        if op.name == LOOP:
            return True
        seen.add(op.operation)
        waiting.extend(op.operands)
    return False


def _with_rows(
    loop: LoopCall, operand: int, rows: ir.Value, array: ir.Value
) -> tuple[LoopCall, int] | None:
    """The loop with what leads from rows to an operand in its step, and the place of the operand
    that the rows are; None if a step needs rows of others.

    Args:
        array: the rows as [steps, ..].
    """
    root = root_of(loop.call)
    with ir.InsertionPoint(loop.function), loop.function.location:
        function = loop.function.clone()
    taken = dict(symbols(root))
    name = unique(symbol_name(loop.function), taken)
    function.attributes["sym_name"] = ir.StringAttr.get(name)
    block = function.regions[0].blocks[0]
    inside = _Inside(loop, block, rows, array, loop.roles[operand])
    try:
        old = block.arguments[operand]
        given = inside.row()
        with ir.InsertionPoint.at_block_begin(block), loop.call.location:
            made = inside.value(loop.call.operands[operand])
            made = inside.emit.reshape(made, tensor_of(old.type).shape)
        _replace(old, made)
    except NotByRows:
        function.erase()
        erase_unused(inside.operands)
        return None
    operands = [*loop.call.operands, *inside.operands]
    roles = [*loop.roles, *inside.roles]
    del operands[operand], roles[operand]
    block.erase_argument(operand)
    end = list(block.operations)[-1].operation
    kinds = [a.type for a in block.arguments], [v.type for v in end.operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*kinds))
    function.attributes["ascend.roles"] = builder.as_attribute(roles)
    with ir.InsertionPoint(loop.call), loop.call.location:
        types = [value.type for value in loop.call.results]
        call = builder.op(LOOP, operands, types, call_target_name="ascend.loop").operation
    call.attributes["ascend.body"] = ir.FlatSymbolRefAttr.get(name)
    place = given.arg_number
    return replace(loop, call=call, function=function, roles=tuple(roles)), place


def _replace(old: ir.Value, new: ir.Value) -> None:
    """Uses another value; reshapes of it to the shape that value had before are that value."""
    for use in list(old.uses):
        user = use.owner.operation
        origin = defining_op(new)
        if user.name != "ascend.reshape" or origin is None or origin.name != "ascend.reshape":
            continue
        before = origin.operands[0]
        if before.type == user.results[0].type:
            user.results[0].replace_all_uses_with(before)
            user.erase()
    old.replace_all_uses_with(new)
    owner = defining_op(new)
    if owner is not None and owner.name == "ascend.reshape" and not list(new.uses):
        owner.operation.erase()


@dataclass
class _Inside:
    """Builds in a step what a value outside has of the step.

    A value of all steps has `steps` times the rows of that of a step: of a matmul's left factor
    [steps * rows, k] a step has [rows, k].

    Attributes:
        rows: what all is computed of.
        array: the same as [steps, ..].
    """

    loop: LoopCall
    block: ir.Block
    rows: ir.Value
    array: ir.Value
    role: str
    operands: list[ir.Value] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    emit: TensorOps = field(default_factory=TensorOps)

    def __post_init__(self) -> None:
        self._made: dict[ir.Value, ir.Value] = {}
        self._arguments: dict[ir.Value, ir.BlockArgument] = {}

    def row(self) -> ir.BlockArgument:
        """The argument for the row of a step."""
        kind = tensor_of(self.array.type)
        return self._argument(self.array, Tensor(kind.shape[1:], kind.element), self.role)

    def value(self, value: ir.Value) -> ir.Value:
        """What a step has of a value: [rows of a step, ..]."""
        if value not in self._made:
            self._made[value] = self._value(value)
        return self._made[value]

    def _value(self, value: ir.Value) -> ir.Value:
        shape = self._of_step(tensor_of(value.type))
        if value == self.rows:
            return self.emit.reshape(self.row(), shape.shape)
        op = defining_op(value)
        if op is None or not self._depends(value):
            return self._from_outside(value, op, shape)
        name = op.name.removeprefix("ascend.")
        if name == "reshape":
            return self.emit.reshape(self.value(op.operands[0]), shape.shape)
        attributes = {
            key: python_value(op.attributes[key]) for key in op.attributes if "." not in key
        }
        if name == "matmul":
            left, right = op.operands
            if attributes.get(TRANSPOSE_A) or self._depends(right):
                raise NotByRows
            return self.emit.emit(name, [self.value(left), self._fixed(right)], shape, **attributes)
        if name not in OPERATORS or not OPERATORS[name].elementwise:
            raise NotByRows
        return self.emit.emit(name, [self.value(v) for v in op.operands], shape, **attributes)

    def _from_outside(self, value: ir.Value, op: ir.OpView | None, shape: Tensor) -> ir.Value:
        """A value that is there before the loops begin."""
        if op is not None and op.name == "ascend.full":
            return self.emit.full(shape.shape, shape.element, python_value(op.attributes["value"]))
        if op is not None and op.name == "ascend.broadcast":
            dims = list(call_of(op.opview).attributes["dims"])
            if 0 not in dims:
                return self.emit.broadcast(self._fixed(op.operands[0]), shape.shape, dims)
        found, steps = tensor_of(value.type), self.loop.steps
        known = definition(value)
        with ir.InsertionPoint(self.loop.call), self.loop.call.location:
            if known is not None:
                parts = constant_array(known).reshape(steps, *shape.shape)
                if (parts == parts[:1]).all():
                    return self._fixed(self.emit.constant(parts[0], found.element))
            whole = self.emit.reshape(value, (steps, *shape.shape))
        return self._argument(whole, shape, self.role)

    def _of_step(self, kind: Tensor) -> Tensor:
        """The part of an array of all steps that a step has."""
        if not kind.shape or kind.shape[0] % self.loop.steps:
            raise NotByRows
        return replace(kind, shape=(kind.shape[0] // self.loop.steps, *kind.shape[1:]))

    def _depends(self, value: ir.Value) -> bool:
        """Whether a value is computed of the rows."""
        waiting, seen = [value], set[ir.Value]()
        while waiting:
            each = waiting.pop()
            if each == self.rows:
                return True
            owner = defining_op(each)
            if owner is not None and each not in seen:
                seen.add(each)
                waiting.extend(owner.operands)
        return False

    def _fixed(self, value: ir.Value) -> ir.Value:
        return self._argument(value, tensor_of(value.type), "fixed")

    def _argument(self, value: ir.Value, kind: Tensor, role: str) -> ir.BlockArgument:
        if value not in self._arguments:
            self.operands.append(value)
            self.roles.append(role)
            self._arguments[value] = self.block.add_argument(
                tensor_type(kind), self.loop.call.location
            )
        return self._arguments[value]

"""Builds ascend operations on tensors, with the simplifications that need no analysis.

All of them build at the current insertion point and take the current location. Results of
operations on small constants are constants; reshapes and transposes that do nothing are not built.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from davinci import elements
from davinci.dialects.ascend_types import element_type, tensor_of, tensor_type
from davinci.dialects.base import python_value
from davinci.element_types import dtype_of
from davinci.elements import Array
from davinci.errors import InputError
from davinci.machine import Machine
from davinci.mlir import Op, ir, is_public, location_text
from davinci.operators import OPERATORS
from davinci.operators.fractals import from_nz, to_nz
from davinci.operators.layouts import is_reshape_view
from davinci.operators.parts import slice_shape
from davinci.operators.reduce import reduce_shape
from davinci.operators.tensors import ND, NZ, Tensor, lanes
from davinci.passes import builder
from davinci.passes.analysis.kernels import PRODUCTS as PRODUCTS
from davinci.passes.analysis.origins import fuse
from davinci.schedule.moves.piece_rules import RULES
from davinci.stand_ins import stand_in, stands_in

COMMUTATIVE = frozenset(f"ascend.{x}" for x in ("add", "mul", "max", "min", "and", "or", "xor"))
"""Operators of two operands in any order."""

CONVOLUTION = "ascend.conv"
ON_CUBE = (*PRODUCTS, CONVOLUTION)
"""What the cube computes, which is not folded."""

DEQUANTIZE, SCALE_SUMS = "ascend.dequantize", "ascend.scale_sums"
SCALED_ON_LEAVING = (DEQUANTIZE, SCALE_SUMS)
"""What is done to sums of bytes on their way out of L0C."""

POOL, RELAYOUT = "ascend.pool", "ascend.relayout"
OF_WINDOWS = (CONVOLUTION, POOL)
"""What takes and gives images, pixels by channels, in fractals."""

CARRIED = frozenset({"ascend.broadcast", "ascend.reshape"})
"""Operators that move nothing inside a kernel: they are done by the way."""

MOVES = frozenset({"ascend.concat", "ascend.reshape", "ascend.transpose", "ascend.slice"})
"""Operations that only move data, which is cheaper for narrow types."""

KEEPS_NUMBERS = frozenset({*RULES, "view"})
"""Operators that only move elements: of numbers that are all the same they make that number."""

REINTERPRET = "reinterpret"
"""The operator whose result is the bytes of its operand, as elements of another type."""

HALF = "f16"
"""Elements of what the cube multiplies."""

FOLD_BYTES = 1 << 20
"""Constants up to this size are computed with at once, larger ones by ascend-fold-constants."""

REPEATED_BYTES = 16 << 10
"""The same of what is only repeated: ascend-fold-constants leaves it to those kernels that read the
row again for nothing."""

PROBED_ELEMENTS = 64
"""Elements of a constant that are compared first, to see cheaply that it is no splat."""


class TensorOps:
    """A builder that remembers what it built, so that a conversion can be undone.

    Args:
        machine: for conversions that depend on one.
    """

    def __init__(self, machine: Machine | None = None) -> None:
        self.machine = machine
        self.built: list[Op] = []

    def emit(
        self, name: str, operands: Sequence[ir.Value], result: Tensor, **attributes: Any
    ) -> ir.Value:
        """Builds `ascend.<name>`, or the constant that it would compute."""
        attrs = {key: builder.as_attribute(value) for key, value in attributes.items()}
        number = number_made(name, operands, result, attrs)
        if number is not None:
            return self._filled(result, number[()])
        folded = self._fold(name, operands, result, attrs)
        if folded is not None:
            return self.constant(folded, result.element, result.layout)
        built = builder.op(f"ascend.{name}", operands, [tensor_type(result)], **attrs)
        self.built.append(built)
        return built.result

    def _fold(
        self, name: str, operands: Sequence[ir.Value], result: Tensor, attrs: dict[str, Any]
    ) -> Array | None:
        """The values of a result whose operands are all constants; None for others, for products,
        and where operands or result have too many bytes to be computed now."""
        if (not operands and name != "iota") or f"ascend.{name}" in ON_CUBE:
            return None
        most = REPEATED_BYTES if name == "broadcast" else FOLD_BYTES
        if size_bytes(result) > most:
            return None
        constants = [op for v in operands if (op := definition(v)) is not None]
        if len(constants) < len(operands) or any(size_bytes(op) > FOLD_BYTES for op in constants):
            return None
        arrays = [constant_array(op) for op in constants]
        return evaluate(name, arrays, result, {k: python_value(a) for k, a in attrs.items()})

    def constant(self, array: Array, element: str, layout: str = ND) -> ir.Value:
        """A constant; `full` if all elements are the same."""
        result = Tensor(array.shape, element, layout)
        if array.size and is_splat(array):
            return self._filled(result, array.flat[0])
        return self.array(array, result)

    def array(self, array: Array, result: Tensor) -> ir.Value:
        """A constant that is an array, even if all elements are the same."""
        kind = element_type(result.element)
        return self._constant(elements.to_attribute(stored_array(array, result), kind), result)

    def constant_attribute(self, attr: ir.Attribute) -> ir.Value:
        """A constant in rows from an elements attribute; `full` if it is a splat."""
        if isinstance(attr, ir.DenseElementsAttr) and attr.is_splat and len(attr) > 0:
            value = attr.get_splat_value()
            return self._full(tensor_of(attr.type), value)
        return self._constant(attr, tensor_of(attr.type))

    def _constant(self, attr: ir.Attribute, result: Tensor) -> ir.Value:
        built = builder.op("ascend.constant", [], [tensor_type(result)], value=attr)
        self.built.append(built)
        return built.result

    def full(self, shape: Sequence[int], element: str, value: object, layout: str = ND) -> ir.Value:
        return self._filled(Tensor(tuple(shape), element, layout), value)

    def _filled(self, result: Tensor, value: object) -> ir.Value:
        return self._full(result, elements.scalar_attribute(value, element_type(result.element)))

    def _full(self, result: Tensor, value: ir.Attribute) -> ir.Value:
        built = builder.op("ascend.full", [], [tensor_type(result)], value=value)
        self.built.append(built)
        return built.result

    def unary(self, name: str, operand: ir.Value) -> ir.Value:
        return self.emit(name, [operand], tensor_of(operand.type))

    def binary(self, name: str, a: ir.Value, b: ir.Value) -> ir.Value:
        return self.emit(name, [a, b], tensor_of(a.type))

    def cast(self, operand: ir.Value, element: str) -> ir.Value:
        found = tensor_of(operand.type)
        if found.element == element:
            return operand
        return self.emit("cast", [operand], replace(found, element=element))

    def reshape(self, operand: ir.Value, shape: Sequence[int]) -> ir.Value:
        """Row-major; a reshape of a reshape is one, and of a `full` a `full`."""
        found = tensor_of(operand.type)
        owner = defining_op(operand)
        while owner is not None and owner.name == "ascend.reshape":
            operand = owner.operands[0]
            owner = defining_op(operand)
        if tensor_of(operand.type).shape == tuple(shape):
            return operand
        result = replace(found, shape=tuple(shape))
        if owner is not None and owner.name == "ascend.full":
            return self._full(result, owner.attributes["value"])
        if owner is not None and owner.name == "ascend.constant" and size_bytes(found) > FOLD_BYTES:
            return self._plain_reshape(operand, result)
        return self.emit("reshape", [operand], result)

    def _plain_reshape(self, operand: ir.Value, result: Tensor) -> ir.Value:
        built = builder.op("ascend.reshape", [operand], [tensor_type(result)])
        self.built.append(built)
        return built.result

    def transpose(self, operand: ir.Value, permutation: Sequence[int]) -> ir.Value:
        """A transpose; a reshape where only dimensions of size 1 move."""
        found = tensor_of(operand.type)
        shape = tuple(found.shape[p] for p in permutation)
        moved = [p for p in permutation if found.shape[p] != 1]
        if moved == sorted(moved) or found.count == 0:
            return self.reshape(operand, shape)
        owner = defining_op(operand)
        result = Tensor(shape, found.element)
        if owner is not None and owner.name == "ascend.full":
            return self._full(result, owner.attributes["value"])
        return self.emit("transpose", [operand], result, permutation=list(permutation))

    def broadcast(self, operand: ir.Value, shape: Sequence[int], dims: Sequence[int]) -> ir.Value:
        """Operand dimension i becomes dimension dims[i]; a reshape where nothing repeats."""
        found = tensor_of(operand.type)
        owner = defining_op(operand)
        result = Tensor(tuple(shape), found.element)
        if owner is not None and owner.name == "ascend.full":
            return self._full(result, owner.attributes["value"])
        if result.count == found.count:
            order = np.argsort(dims, kind="stable")
            return self.reshape(self.transpose(operand, [int(i) for i in order]), shape)
        return self.emit("broadcast", [operand], result, dims=list(dims))

    def reduce(self, operand: ir.Value, kind: str, dims: Sequence[int]) -> ir.Value:
        found = tensor_of(operand.type)
        result = Tensor(reduce_shape(found.shape, dims), found.element)
        if result.count == found.count and found.count:
            return self.reshape(operand, result.shape)
        return self.emit("reduce", [operand], result, kind=kind, dims=sorted(dims))

    def concat(self, parts: Sequence[ir.Value], dim: int) -> ir.Value:
        """Parts behind each other, in pairs: many small ones are copied a few times only."""
        parts = list(parts)
        while len(parts) > 1:
            pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
            parts = [p[0] if len(p) == 1 else self._pair(p[0], p[1], dim) for p in pairs]
        return parts[0]

    def _pair(self, a: ir.Value, b: ir.Value, dim: int) -> ir.Value:
        found = tensor_of(a.type)
        shape = list(found.shape)
        shape[dim] += tensor_of(b.type).shape[dim]
        return self.emit("concat", [a, b], Tensor(tuple(shape), found.element), dim=dim)

    def padded(self, operand: ir.Value, shape: Sequence[int], fill: float = 0) -> ir.Value:
        """`operand` in a larger shape, with a number behind its elements along each dimension."""
        found = tensor_of(operand.type)
        if found.shape == tuple(shape):
            return operand
        high = [size - own for size, own in zip(shape, found.shape, strict=True)]
        number, none = self.full((), found.element, fill), [0] * found.rank
        result = replace(found, shape=tuple(shape))
        return self.emit("pad", [operand, number], result, low=none, high=high, interior=none)

    def cut(
        self,
        operand: ir.Value,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> ir.Value:
        """The elements from `starts` to `limits`, all or every `strides`th of them."""
        found = tensor_of(operand.type)
        strides = strides or [1] * found.rank
        shape = slice_shape(starts, limits, strides)
        if shape == found.shape:
            return operand
        bounds = {"starts": list(starts), "limits": list(limits), "strides": list(strides)}
        return self.emit("slice", [operand], replace(found, shape=shape), **bounds)

    def relayout(self, operand: ir.Value, layout: str) -> ir.Value:
        found = tensor_of(operand.type)
        result = replace(found, layout=layout)
        owner = defining_op(operand)
        if found.layout == layout:
            return operand
        if owner is not None and owner.name == "ascend.full":
            return self._full(result, owner.attributes["value"])
        if is_reshape_view(found, result):
            order = list(range(found.rank))
            return self.emit("view", [operand], result, shape=list(found.shape), permutation=order)
        return self.emit("relayout", [operand], result)


def evaluate(
    name: str, inputs: Sequence[Array], result: Tensor, attributes: dict[str, Any]
) -> Array:
    """The result of `ascend.<name>` on known operands; attributes are Python values."""
    return OPERATORS[name].values(inputs, result, attributes)


def number_made(
    name: str, operands: Sequence[ir.Value], result: Tensor, attributes: Mapping[str, Any]
) -> Array | None:
    """The number that `ascend.<name>` makes of numbers, as a rank-0 array: operands that are the
    same everywhere, of whatever size. None if it has others, or its result is no such number."""
    numbers = [number for value in operands if (number := full_value(value)) is not None]
    if not operands or len(numbers) != len(operands):
        return None
    if OPERATORS[name].elementwise or name == REINTERPRET:
        given = {key: python_value(value) for key, value in attributes.items()}
        return evaluate(name, numbers, Tensor((), result.element), given)
    alike = len({number.tobytes() for number in numbers}) == 1
    return numbers[0] if alike and name in KEEPS_NUMBERS else None


def is_elementwise(op: Op) -> bool:
    record = OPERATORS.get(op.name.removeprefix("ascend."))
    return record is not None and record.elementwise


def merged_reshape(op: Op, first: dict[tuple[ir.Value, ir.Type], Op]) -> Op:
    """The first of the reshapes that are equal to `op`; any other is replaced by it and erased.

    Args:
        first: reshapes that stay, by their operand and the type of their result.
    """
    kept = first.setdefault((op.operands[0], op.result.type), op)
    if kept is not op:
        op.result.replace_all_uses_with(kept.result)
        op.erase()
    return kept


def users_of(op: Op) -> list[Op]:
    """The operations that read the result of one."""
    return readers_of(op.results[0])


def readers_of(value: ir.Value) -> list[Op]:
    """The operations that read a value, once for each use."""
    return [use.owner.operation for use in value.uses]


def read_once(value: ir.Value) -> bool:
    """Whether one operation, and it once, reads a value."""
    return len(list(value.uses)) == 1


def is_f32(value: ir.Value) -> bool:
    return tensor_of(value.type).element == "f32"


def defining_op(value: ir.Value) -> ir.OpView | None:
    """The operation whose result `value` is, None for an argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner


def definitions(values: Sequence[ir.Value], name: str) -> list[ir.OpView]:
    """The operations called `name` that define the values; none unless each value has one."""
    found = [op for v in values if (op := defining_op(v)) is not None and op.name == name]
    return found if len(found) == len(values) else []


def definition(value: ir.Value) -> ir.OpView | None:
    """The `ascend.constant` or `ascend.full` that defines `value`, or None."""
    owner = defining_op(value)
    return owner if owner is not None and owner.name in CONSTANTS else None


def depends_on_constants(value: ir.Value, foldable: Collection[ir.Value]) -> bool:
    """Whether a value is a constant, or computed at compile time.

    Args:
        foldable: results that are (`ascend_fold_constants.mark_foldable`).
    """
    return value in foldable or definition(value) is not None


CONSTANT = "ascend.constant"
CONSTANTS = (CONSTANT, "ascend.full")


def constant_array(op: Op) -> Array:
    """The elements of an `ascend.constant` or `ascend.full`, in the shape of its result.

    A `full` takes no memory.

    Raises:
        InputError: the data of a resource is missing or of another size.
    """
    found = tensor_of(op.results[0].type)
    if op.name == CONSTANT:
        try:
            array = elements.to_array(op.attributes["value"])
        except InputError as error:
            raise error.at(location_text(op.location)) from None
        if stands_in(array):
            return stand_in(found.shape, array.dtype)
        return from_nz(array, found.shape) if found.layout == NZ else array
    value = elements.scalar_value(op.attributes["value"])
    return np.broadcast_to(np.asarray(value, dtype_of(found.element)), found.shape)


def stored_array(array: Array, tensor: Tensor) -> Array:
    """The array that a value with these elements takes in GM."""
    if stands_in(array):
        return stand_in(tensor.stored_shape, array.dtype)
    return to_nz(array, lanes(tensor.element)) if tensor.layout == NZ else array


def full_value(value: ir.Value) -> Array | None:
    """The number, as a rank-0 array, that `value` is everywhere; None if that is not known."""
    owner = defining_op(value)
    if owner is None or owner.name != "ascend.full":
        return None
    element = tensor_of(value.type).element
    number = elements.scalar_value(owner.attributes["value"])
    return np.asarray(number, dtype_of(element))


def size_bytes(tensor: Tensor | Op) -> int:
    """Bytes of a `Tensor`, or of the result of an operation; a `full` counts as nothing."""
    if not isinstance(tensor, Tensor):
        if tensor.name == "ascend.full":
            return 0
        tensor = tensor_of(tensor.results[0].type)
    try:
        return int(tensor.count * dtype_of(tensor.element).itemsize)
    except KeyError:
        return FOLD_BYTES + 1


def is_splat(array: Array) -> bool:
    """Whether all elements have the same bits."""
    if array.size and not any(array.strides):
        return True
    first = array.flat[0]
    # Nearly all other arrays differ early: looking there first spares going through large ones.
    if not ((array.flat[:PROBED_ELEMENTS] == first).all() and (array == first).all()):
        return False
    return bool(array.dtype.kind != "f" or first != 0 or np.ptp(np.signbit(array).view("u1")) == 0)


def erase_unused(block: ir.Block) -> None:
    """Erases ascend operations of `block` whose results nobody uses."""
    for operation in reversed(list(block.operations)):
        op = operation.operation
        unused = all(next(iter(r.uses), None) is None for r in op.results)
        if op.name.startswith("ascend.") and len(op.results) and unused:
            op.erase()


def tensor_functions(module: Op) -> list[Op]:
    """Public functions on tensors: not kernels, and not the functions of scalar calls."""
    found: list[Op] = []
    for operation in module.regions[0].blocks[0].operations:
        op = operation.operation
        if op.name != "func.func" or not is_public(op):
            continue
        if "ascend.kernel" not in op.attributes and "ascend.entry" not in op.attributes:
            found.append(op)
    return found


def fold_numbers(block: ir.Block) -> None:
    """Replaces operators of numbers only by the numbers that they make.

    before:
        %c = "ascend.full"() {value = 1.0 : f32} : () -> tensor<2048x2048xf32>
        %s = "ascend.slice"(%c) {..} : (tensor<2048x2048xf32>) -> tensor<2047x2048xf32>
    after:
        %s = "ascend.full"() {value = 1.0 : f32} : () -> tensor<2047x2048xf32>
    """
    for operation in list(block.operations):
        op = operation.operation
        if not op.name.startswith("ascend.") or len(op.results) != 1:
            continue
        name, result = op.name.removeprefix("ascend."), tensor_of(op.result.type)
        attributes = {key: op.attributes[key] for key in op.attributes if "." not in key}
        number = number_made(name, list(op.operands), result, attributes)
        if number is not None:
            with op.location, ir.InsertionPoint(op):
                made = TensorOps().full(result.shape, result.element, number[()], result.layout)
            op.result.replace_all_uses_with(made)
    erase_unused(block)


def merge_equal(block: ir.Block) -> int:
    """Replaces operations that compute the same by the first of them, and erases unused ones; how
    many operators were replaced, constants not counted."""
    seen: dict[Hashable, Op] = {}
    numbers: dict[ir.Value, int] = {}
    count = 0
    for operation in list(block.operations):
        op = operation.operation
        if not op.name.startswith("ascend.") or len(op.results) != 1:
            continue
        order = [numbers.setdefault(value, len(numbers)) for value in op.operands]
        operands = tuple(sorted(order) if op.name in COMMUTATIVE else order)
        attributes = tuple((key, op.attributes[key]) for key in op.attributes)
        first = seen.setdefault((op.name, operands, op.result.type, attributes), op)
        if first is not op:
            fuse(first, [op.location])
            op.result.replace_all_uses_with(first.result)
            count += bool(operands)
    erase_unused(block)
    return count

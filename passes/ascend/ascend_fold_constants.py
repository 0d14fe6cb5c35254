"""ascend-fold-constants: computes at compile time what depends on constants only.

before:
    %w = "ascend.constant"() {value = dense_resource<w> : tensor<768x768xf32>}
    %0 = "ascend.cast"(%w) : (tensor<768x768xf32>) -> tensor<768x768xf16>
    %1 = "ascend.relayout"(%0) : (tensor<768x768xf16>) -> tensor<768x768xf16, #ascend.layout<"nz">>
after:
    %1 = "ascend.constant"() {value = dense_resource<w_nz> : tensor<48x48x16x16xf16>}

Weights so get their type and layout before the program runs, and products of constants, such as
keys of positions that no input changes, are weights. Results that are much larger than the
constants they come from (a broadcast, a padding) are left to the device above a size, which is
small for rows that elementwise operators combine others with: kernels read these again for nothing.
Not so on machines whose cube cores have no vector unit: there a row that is repeated over fractals
with padding, which stays zero, would be a kernel of its own, and is folded. On machines with a bias
table a row that is added to the result of a product is left whatever its size, and a constant of
rows that are alike becomes one: mads begin with it. `ascend-fuse` folds what no product takes in.
What such a result leads to may be folded nevertheless: a weight divided by its norm is no larger
than the weight. A chain is computed in one go, and originals that nobody uses any more are dropped,
so that memory stays bounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from davinci import machine as machines
from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute, python_value
from davinci.element_types import DTYPES
from davinci.elements import Array
from davinci.isa.halves import is_limitless
from davinci.mlir import Op, ir, location_text, owner_of
from davinci.operators import OPERATORS, Tensor
from davinci.passes import builder
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.layout_support import spreads_row
from davinci.passes.ascend.tensor_ops import (
    CARRIED,
    CONSTANT,
    CONSTANTS,
    CONVOLUTION,
    ON_CUBE,
    PRODUCTS,
    REPEATED_BYTES,
    TensorOps,
    constant_array,
    defining_op,
    definition,
    erase_unused,
    evaluate,
    fold_numbers,
    full_value,
    is_elementwise,
    is_splat,
    size_bytes,
    tensor_functions,
    users_of,
)
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.stand_ins import has_stand_in, stand_in, stands_in

BROADCAST = "ascend.broadcast"
LostByPlace = dict[str, list[tuple[int, int, int]]]
"""Overflows, underflows and values of each conversion of a constant to f16, by its location."""

MOST_MACS = 1 << 28
"""Products of more multiplications, and convolutions, are left to the device."""

HALF_MAGNITUDE, HALF_INFINITY = np.uint16(0x7FFF), np.uint16(0x7C00)
"""Bits of an f16 without its sign, and those of infinity; of numbers they are less."""

GROWN_BYTES = 4 << 20
"""Results larger than the constants they come from are folded up to this size, and up to
`REPEATED_BYTES` what is repeated for elementwise operators."""

PASSED_BYTES = 128 << 20
"""Results larger than the constants they come from are up to this size on the way to others."""


@register_pass
@dataclass(frozen=True)
class AscendFoldConstantsPass(Pass):
    """Evaluate operations on constants at compile time."""

    NAME = "ascend-fold-constants"

    machine: str = option("ascend910", "machine file: have cube cores a vector unit, a bias table")

    def run(self, op: Op) -> None:
        lost: LostByPlace = {}
        count, chip = 0, machines.load(self.machine)
        begun = chip.buffers.BT is not None
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            numbers_of_splats(block)
            fold_numbers(block)
            count += fold(block, mark_foldable(block, begun, chip.split), lost)
            for operation in list(block.operations):
                select(operation.operation)
                if begun:
                    spread_row(operation.operation)
            erase_unused(block)
        note_lost(op, lost)
        note(op, "fold-constants", count)


def fold_padded_rows(root: Op, block: ir.Block) -> None:
    """Folds the broadcasts of constant rows that are left after layouts are chosen and whose
    fractals have padding: a kernel does not read such rows in place.

    Args:
        root: what is lost in roundings to f16 is noted on it.
    """
    lost: LostByPlace = {}
    if fold(block, mark_foldable(block, padded=True), lost):
        erase_unused(block)
        note_lost(root, lost)


def fold(block: ir.Block, foldable: set[ir.Value], lost: LostByPlace) -> int:
    """Replaces results that are foldable and needed at run time by constants; how many are
    foldable.

    Args:
        lost: where what conversions to f16 lose is noted.
    """
    for operation in list(block.operations):
        if is_final(operation.operation, foldable):
            replace(operation.operation, lost)
    return len(foldable)


def numbers_of_splats(block: ir.Block) -> None:
    """Replaces arrays of equal elements that only elementwise operators read by numbers."""
    for operation in list(block.operations):
        op = operation.operation
        if op.name != CONSTANT or not has_array(op.result) or not is_read_in_place(op):
            continue
        array, kind = constant_array(op), tensor_of(op.result.type)
        if array.size and is_splat(array):
            with op.location, ir.InsertionPoint(op):
                number = TensorOps().full(kind.shape, kind.element, array.flat[0], kind.layout)
            op.result.replace_all_uses_with(number)
    erase_unused(block)


def mark_foldable(block: ir.Block, begun: bool = False, padded: bool = False) -> set[ir.Value]:
    """Results of operations that are computed now, and with each all that it comes from: what is
    left to the device may be computed on the way as well.

    Args:
        begun, padded: as of `FoldedBlock`.
    """
    staying: set[ir.Value] = set()
    while True:
        known = FoldedBlock(staying, begun, padded)
        for operation in block.operations:
            known.add(operation.operation)
        found = known.at_run_time()
        if not found:
            return known.roots.keys() - staying
        staying |= found


class FoldedBlock:
    """What of a block depends on constants only.

    Attributes:
        roots: the constants that a value comes from, for each result that can be computed now.
        grown: those results that are much larger than their roots, in order.
    """

    def __init__(self, staying: set[ir.Value], begun: bool, padded: bool) -> None:
        """Knows nothing yet.

        Args:
            staying: results that are left to the device.
            begun: whether mads may begin with rows, so that those are left which are added to
                products.
            padded: whether rows repeated over fractals with padding are kernels of their own, so
                that they are computed now if that is no more than other results may be.
        """
        self.roots: dict[ir.Value, frozenset[ir.Value]] = {}
        self.grown: dict[ir.Value, None] = {}
        self._staying, self._begun, self._padded = staying, begun, padded

    def add(self, op: Op) -> None:
        """Takes the next operation of the block."""
        if not op.name.startswith("ascend.") or op.name in (*CONSTANTS, CONVOLUTION):
            return
        if len(op.results) != 1 or (not op.operands and op.name != "ascend.iota"):
            return
        if op.name in PRODUCTS and macs_of(op) > MOST_MACS:
            return
        sources = []
        for value in op.operands:
            if (source := self._roots_of(value)) is None:
                return
            sources.append(source)
        if not all(map(has_array, [*op.operands, op.result])):
            return
        if op.result in self._staying and size_bytes(tensor_of(op.result.type)) > PASSED_BYTES:
            return
        roots = frozenset[ir.Value]().union(*sources)
        if self._grows(op, roots):
            self.grown[op.result] = None
        self.roots[op.result] = roots

    def _roots_of(self, value: ir.Value) -> frozenset[ir.Value] | None:
        if value in self.roots:
            return self.roots[value]
        return None if definition(value) is None else frozenset([value])

    def _grows(self, op: Op, roots: frozenset[ir.Value]) -> bool:
        """Whether the result is large, and larger than the constants it comes from."""
        result = tensor_of(op.result.type)
        if self._begun and begins_products(op):
            return True
        padded = self._padded and result.count < math.prod(result.stored_shape)
        repeats = op.name == BROADCAST and is_read_in_place(op) and not padded
        again = repeats or any(v in self.grown for v in op.operands)
        if size_bytes(result) <= (REPEATED_BYTES if again else GROWN_BYTES):
            return False
        return bool(result.count > sum(map(element_count, roots)))

    def at_run_time(self) -> set[ir.Value]:
        """Grown results that others than foldable ones read, or that are too large to make."""
        found: set[ir.Value] = set()
        for value in reversed(self.grown):
            if value in self._staying:
                continue
            too_large = size_bytes(tensor_of(value.type)) > PASSED_BYTES
            if too_large or not all(
                len(user.results) == 1
                and user.result in self.roots
                and user.result not in found | self._staying
                for user in users_of(owner_of(value))
            ):
                found.add(value)
        return found


def spread_row(op: Op) -> None:
    """Replaces a constant whose rows are alike by its row, repeated, if it is added to products."""
    if op.name != CONSTANT or not is_added_to_products(op) or (row := alike_rows(op)) is None:
        return
    kind = tensor_of(op.result.type)
    with op.location, ir.InsertionPoint(op):
        made = TensorOps().array(row, Tensor(kind.shape[-1:], kind.element))
        dims = builder.as_attribute([kind.rank - 1])
        spread = builder.op(BROADCAST, [made], [op.result.type], dims=dims)
    op.result.replace_all_uses_with(spread.result)


def alike_rows(op: Op) -> Array | None:
    """The row of a constant of several rows that are alike, unless it is too large to look at."""
    if op.name != CONSTANT or not has_array(op.result):
        return None
    kind = tensor_of(op.result.type)
    if kind.rank < 2 or not kind.count or kind.shape[-1] == kind.count:
        return None
    if size_bytes(kind) > GROWN_BYTES:
        return None
    rows = constant_array(op).reshape(-1, kind.shape[-1])
    first: Array = rows[0]
    alike = np.broadcast_to(rows[:1], rows.shape).view(np.uint8)
    return first if np.array_equal(rows.view(np.uint8), alike) else None


def begins_products(op: Op) -> bool:
    """Whether an operator repeats a row that is added to results of products."""
    return op.name == BROADCAST and spreads_row(op) and is_added_to_products(op)


def is_added_to_products(op: Op) -> bool:
    """Whether every operator that reads the result of one adds it to the result of a product."""
    users = users_of(op)
    return bool(users) and all(map(adds_to_product, users))


def adds_to_product(op: Op) -> bool:
    """Whether an operator adds to the result of a product that nothing else reads."""
    owners = [defining_op(value) for value in op.operands]
    return op.name == "ascend.add" and any(
        owner is not None and owner.name in ON_CUBE and len(users_of(owner)) == 1
        for owner in owners
    )


def element_count(root: ir.Value) -> int:
    """How many elements of GM a constant takes; one that a kernel makes itself takes none."""
    return int(tensor_of(root.type).count) if owner_of(root).name == CONSTANT else 0


def macs_of(op: Op) -> int:
    """Multiplications of a product."""
    return OPERATORS[op.name.removeprefix("ascend.")].work(call_of(op)).macs


def has_array(value: ir.Value) -> bool:
    """Whether NumPy has the element type of `value`; bf16 for example is left to the device."""
    return tensor_of(value.type).element in DTYPES


def is_read_in_place(op: Op) -> bool:
    """Whether elementwise operators are all that reads a value, whatever its shape."""
    users = users_of(op)
    return bool(users) and all(
        is_read_in_place(user) if user.name in CARRIED else is_elementwise(user) for user in users
    )


def is_final(op: Op, foldable: set[ir.Value]) -> bool:
    """Whether the result of `op` is foldable and somebody needs it at run time."""
    if len(op.results) != 1 or op.result not in foldable:
        return False
    return not all(any(r in foldable for r in user.results) for user in users_of(op))


def replace(op: Op, lost: LostByPlace) -> None:
    array = value_of(op.result, lost)
    with op.location, ir.InsertionPoint(op):
        result = tensor_of(op.result.type)
        new = TensorOps().constant(array, result.element, result.layout)
    op.result.replace_all_uses_with(new)


def select(op: Op) -> None:
    """Replaces a selection by flags that are the same everywhere, however they are repeated."""
    if op.name != "ascend.select":
        return
    flags = op.operands[0]
    while (owner := defining_op(flags)) is not None and owner.name in CARRIED:
        flags = owner.operands[0]
    if (flag := full_value(flags)) is not None:
        op.results[0].replace_all_uses_with(op.operands[1 if flag[()] else 2])


def value_of(value: ir.Value, lost: LostByPlace | None = None) -> Array:
    """The elements of a value that is known, a constant among them.

    Args:
        lost: where what conversions to f16 lose is noted.
    """
    return _value_of(value, lost, {})


def _value_of(value: ir.Value, lost: LostByPlace | None, shared: dict[ir.Value, Array]) -> Array:
    owner = owner_of(value)
    if owner.name in CONSTANTS:
        return constant_array(owner)
    if value in shared:
        return shared[value]
    inputs = [_value_of(operand, lost, shared) for operand in owner.operands]
    kind = tensor_of(value.type)
    if any(map(stands_in, inputs)) and has_stand_in(kind.shape, DTYPES[kind.element]):
        return stand_in(kind.shape, DTYPES[kind.element])
    attributes = {key: python_value(owner.attributes[key]) for key in owner.attributes}
    name = owner.name.removeprefix("ascend.")
    result = evaluate(name, inputs, kind, attributes)
    if lost is not None and name == "cast":
        lost.setdefault(location_text(owner.location), []).append(losses(inputs[0], result))
    if len(users_of(owner)) > 1:
        shared[value] = result
    return result


def losses(source: Array, half: Array) -> tuple[int, int, int]:
    """How many finite values became infinite, and how many became zero, in a conversion to f16;
    numbers that stand for infinities lose nothing."""
    if source.dtype != np.float32 or half.dtype != np.float16:
        return 0, 0, 0
    magnitudes = half.view(np.uint16) & HALF_MAGNITUDE  # NumPy counts integers fast, halves not
    finite, nonzero = np.count_nonzero(magnitudes < HALF_INFINITY), np.count_nonzero(magnitudes)
    overflows = underflows = 0
    if finite < half.size:
        overflows = max(0, int(np.count_nonzero(~is_limitless(source)) - finite))
    if nonzero < half.size:
        underflows = int(np.count_nonzero(source != 0) - nonzero)
    return overflows, underflows, half.size


def note_lost(module: Op, lost: LostByPlace) -> None:
    """Adds what constants lost to `ascend.lost`: [place, overflows, underflows, values], ..."""
    rows = [[place, *map(sum, zip(*found, strict=True))] for place, found in lost.items()]
    if rows := [row for row in rows if any(row[1:3])]:
        with module.context:
            known = attribute(module, "ascend.lost", [])
            module.attributes["ascend.lost"] = builder.as_attribute([*known, *rows])


def lost_constants(module: Op) -> list[dict[str, Any]]:
    """What constants of `module`, at any level, lost at compile time, by place in the model."""
    keys = ("name", "overflows", "underflows", "converted")
    rows = attribute(module, "ascend.lost", [])
    return [dict(zip(keys, row, strict=True)) for row in rows]

"""ascend-merge-products: products of one matrix with several weights become one product.

before:
    %0 = "ascend.matmul"(%x, %wq) : (tensor<128x768xf16>, tensor<768x768xf16>) -> ..
    %1 = "ascend.add"(%0, %bq) : (..) -> tensor<128x768xf32>
    %2 = "ascend.matmul"(%x, %wk) : (tensor<128x768xf16>, tensor<768x768xf16>) -> ..
    %3 = "ascend.add"(%2, %bk) : (..) -> tensor<128x768xf32>
after:
    %w = "ascend.concat"(%wq, %wk) {dim = 1 : i64} : (..) -> tensor<768x1536xf16>
    %b = "ascend.concat"(%bq, %bk) {dim = 1 : i64} : (..) -> tensor<128x1536xf32>
    %p = "ascend.matmul"(%x, %w) : (..) -> tensor<128x1536xf32>
    %s = "ascend.add"(%p, %b) : (..) -> tensor<128x1536xf32>
    %1 = "ascend.slice"(%s) {starts = array<i64: 0, 0>, ..} : (..) -> tensor<128x768xf32>
    %3 = "ascend.slice"(%s) {starts = array<i64: 0, 768>, ..} : (..) -> tensor<128x768xf32>

The weights are constant, so are put together at compile time, and whole fractals wide, so that the
slices are views in nz. Operators behind the products join as long as they are the same for all and
their other operands can be put together as well. Merged is what takes less time so: one product
keeps more cores at work, and a launch is saved for each of the others, unless an operator behind it
is left alone with its slice.

On machines whose cube and vector cores have programs of their own, rows that meet one right factor
of a batch, as those of heads that share keys, are rows of one product, instead of a copy of that
factor for each of them (`repeated_factors`). Where one kernel holds attention it reads such factors
as they are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from davinci import machine as machines
from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.dialects.base import attribute
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.tensors import lanes
from davinci.passes import builder
from davinci.passes.analysis.origins import fuse
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.layout_costs import LayoutCosts
from davinci.passes.ascend.repeated_factors import join_rows
from davinci.passes.ascend.tensor_ops import (
    CONSTANTS,
    PRODUCTS,
    TensorOps,
    defining_op,
    definitions,
    erase_unused,
    full_value,
    is_elementwise,
    tensor_functions,
)
from davinci.passes.pipeline.base import Pass, option, register_pass


@register_pass
@dataclass(frozen=True)
class AscendMergeProductsPass(Pass):
    """Merge products of one matrix with constant weights."""

    NAME = "ascend-merge-products"

    machine: str = option("ascend910", "machine file that the costs come from")

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        costs, merged = LayoutCosts.of(machine), 0
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            if machine.split:
                merged += sum(join_rows(view.operation) for view in list(block.operations))
                erase_unused(block)
            known = mark_foldable(block)
            ops = [operation.operation for operation in block.operations]
            known |= {op.results[0] for op in ops if op.name in CONSTANTS}
            for products in candidates(block, known):
                merger = Merger(products, known)
                if merger.pays(costs):
                    merger.merge()
                    merged += len(products) - 1
            erase_unused(block)
        note(op, "merge-products", merged)


def candidates(block: ir.Block, known: set[ir.Value]) -> list[list[Op]]:
    """Products that differ in their constant right side only, at least two together."""
    found: dict[Hashable, list[Op]] = defaultdict(list)
    for operation in block.operations:
        op = operation.operation
        if op.name not in PRODUCTS or op.operands[1] not in known:
            continue
        result = tensor_of(op.results[0].type)
        if result.shape[-1] % lanes(result.element) == 0:
            right = tensor_of(op.operands[1].type)
            attributes = tuple((key, op.attributes[key]) for key in op.attributes)
            found[op.name, op.operands[0], right.element, result.element, attributes].append(op)
    return [products for products in found.values() if len(products) > 1]


@dataclass(frozen=True)
class MergedStep:
    """Operators, one behind each product, that become one.

    Attributes:
        ops: in the order of the products.
        place: of the operand that comes from the product.
    """

    ops: list[Op]
    place: int


class Merger:
    """One product in place of several, with the operators behind them that are the same for all."""

    def __init__(self, products: list[Op], known: set[ir.Value]) -> None:
        self._known = known
        self._steps = [MergedStep(products, 0)]
        while (step := self._next()) is not None:
            self._steps.append(step)

    @property
    def _ends(self) -> list[ir.Value]:
        """What leaves the last operators that join."""
        return [op.results[0] for op in self._steps[-1].ops]

    def pays(self, costs: LayoutCosts) -> bool:
        """Whether one product takes less time than several.

        An operator that would have been computed with its product and is now behind a slice costs
        a launch, and reads and writes what it computes.
        """
        products = self._steps[0].ops
        *batch, m, _ = tensor_of(products[0].results[0].type).shape
        columns = [tensor_of(op.results[0].type).shape[-1] for op in products]
        count = math.prod(batch)
        k = tensor_of(products[0].operands[0].type).count // max(1, count * m)
        apart = sum(costs.product(count, m, n, k) for n in columns)
        merged = costs.product(count, m, sum(columns), k)
        for value in self._ends:
            if any(is_elementwise(use.owner.operation) for use in value.uses):
                merged += costs.launch + costs.moved(2 * tensor_of(value.type).size_bytes)
        return merged < apart

    def merge(self) -> None:
        """Builds the product, what follows it, and the slices."""
        value: ir.Value | None = None
        for step in self._steps:
            value = self._emit(step, value)
        assert value is not None, "a merger begins with its products"
        place = 0
        with ir.InsertionPoint.after(value.owner):
            for end in self._ends:
                found = tensor_of(end.type)
                limit = place + found.shape[-1]
                zeros = [0] * (found.rank - 1)
                with end.owner.location:
                    part = TensorOps().emit(
                        "slice",
                        [value],
                        found,
                        starts=[*zeros, place],
                        limits=[*found.shape[:-1], limit],
                        strides=[1] * found.rank,
                    )
                end.replace_all_uses_with(part)
                place = limit

    def _emit(self, step: MergedStep, value: ir.Value | None) -> ir.Value:
        """The operator that takes the place of a step; `value` is that of the step before."""
        first = reduce(earlier, step.ops)
        model = tensor_of(first.results[0].type)
        width = sum(tensor_of(op.results[0].type).shape[-1] for op in step.ops)
        for op in step.ops:
            for i, operand in enumerate(op.operands):
                if i != step.place:
                    hoist(operand, first)
        with first.location, ir.InsertionPoint(first):
            ops = TensorOps()
            operands = [self._operand(step, i, value, ops) for i in range(len(first.operands))]
            attributes = {key: first.attributes[key] for key in first.attributes}
            result = tensor_type(replace(model, shape=(*model.shape[:-1], width)))
            made = builder.op(first.name, operands, [result], **attributes)
            fuse(made, [op.location for op in step.ops if op is not first])
        return made.result

    def _operand(
        self, step: MergedStep, number: int, value: ir.Value | None, ops: TensorOps
    ) -> ir.Value:
        """Operand `number` of the operator that takes the place of a step."""
        given = [op.operands[number] for op in step.ops]
        if step.ops[0].name not in PRODUCTS:
            return value if value is not None and number == step.place else joined(given, -1, ops)
        turned = TRANSPOSE_B in step.ops[0].attributes
        return given[0] if number == step.place else joined(given, -2 if turned else -1, ops)

    def _next(self) -> MergedStep | None:
        """The only users of what comes so far, if they are one operator on wider values."""
        users = []
        for value in self._ends:
            uses = list(value.uses)
            if len(uses) != 1:
                return None
            users.append((uses[0].owner.operation, uses[0].operand_number))
        step = MergedStep([op for op, _ in users], users[0][1])
        same_place = all(place == step.place for _, place in users)
        return step if same_place and self._is_one(step) else None

    def _is_one(self, step: MergedStep) -> bool:
        first = step.ops[0]
        given = [{key: op.attributes[key] for key in op.attributes} for op in step.ops]
        if not is_elementwise(first) and first.name != "ascend.reshape":
            return False
        if any(op.name != first.name for op in step.ops) or any(x != given[0] for x in given):
            return False
        values = [tensor_of(op.operands[step.place].type) for op in step.ops]
        results = [tensor_of(op.results[0].type) for op in step.ops]
        if any(not are_columns(x) for x in (values, results)):
            return False
        if first.name == "ascend.reshape":
            return [x.shape[-1] for x in values] == [x.shape[-1] for x in results]
        others = [i for i in range(len(first.operands)) if i != step.place]
        return all(can_be_joined([op.operands[i] for op in step.ops], self._known) for i in others)


def are_columns(values: Sequence[Tensor]) -> bool:
    """Whether values differ in their last dimension at most, and have one."""
    return len({(x.shape[:-1], x.rank, x.element) for x in values}) == 1 and values[0].rank > 0


def can_be_joined(values: Sequence[ir.Value], known: set[ir.Value]) -> bool:
    """Whether `joined` can put values together along their last dimension at compile time, or
    what they are broadcast from."""
    if all(value in known for value in values):
        return True
    owners = definitions(values, "ascend.broadcast")
    if not owners:
        return False
    dims = attribute(owners[0], "dims")
    if any(attribute(owner, "dims") != dims for owner in owners):
        return False
    if not repeats_columns(owners[0]):
        return all(not repeats_columns(owner) and owner.operands[0] in known for owner in owners)
    return all(owner.operands[0] == owners[0].operands[0] for owner in owners)


def repeats_columns(broadcast: Op) -> bool:
    """Whether all columns of the result are one."""
    dims = attribute(broadcast, "dims")
    operand, result = (tensor_of(v.type) for v in (broadcast.operands[0], broadcast.results[0]))
    return not dims or dims[-1] != result.rank - 1 or operand.shape[-1] == 1 != result.shape[-1]


def joined(values: Sequence[ir.Value], side: int, ops: TensorOps) -> ir.Value:
    """Values one behind the other along the dimension `side`, counted from the last."""
    first = tensor_of(values[0].type)
    dim = first.rank + side
    size = sum(tensor_of(value.type).shape[dim] for value in values)
    shape = (*first.shape[:dim], size, *first.shape[dim + 1 :])
    numbers = [full_value(value) for value in values]
    if all(number is not None and number == numbers[0] for number in numbers):
        return ops.full(shape, first.element, numbers[0])
    if owners := definitions(values, "ascend.broadcast"):
        sources = [owner.operands[0] for owner in owners]
        columns = [repeats_columns(owner) for owner in owners]
        dims = attribute(owners[0], "dims")
        if not any(columns):
            return ops.broadcast(joined(sources, -1, ops), shape, dims)
        if all(columns) and all(source == sources[0] for source in sources):
            return ops.broadcast(sources[0], shape, dims)
    whole = values[0]
    for value in values[1:]:
        width = tensor_of(whole.type).shape[dim] + tensor_of(value.type).shape[dim]
        result = replace(first, shape=(*first.shape[:dim], width, *first.shape[dim + 1 :]))
        whole = ops.emit("concat", [whole, value], result, dim=dim)
    return whole


def earlier(a: Op, b: Op) -> Op:
    """The first of two operations of a block."""
    return a if a.is_before_in_block(b) else b


def hoist(value: ir.Value, before: Op) -> None:
    """Moves what computes a value in front of an operation, if it is not there."""
    owner = defining_op(value)
    if owner is None or owner.is_before_in_block(before):
        return
    for operand in owner.operands:
        hoist(operand, before)
    owner.move_before(before)

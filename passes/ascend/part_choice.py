"""Which operators compute only the part of their result that is read: those where it pays.

A cheapest cut: operators on the source's side compute a part. An operator that does has readers
that all do, and costs the slices in front of it; one that does not costs the work that a part would
have saved. Prices are rough, but launches, which are most of them, are exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from davinci.dialects.ascend import call_of
from davinci.dialects.ascend_types import tensor_of
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators import OPERATORS, Call, Tensor
from davinci.passes.analysis.min_cut import NEVER, FlowNetwork
from davinci.passes.ascend import boxes
from davinci.passes.ascend.ascend_fold_constants import mark_foldable
from davinci.passes.ascend.boxes import Box
from davinci.passes.ascend.layout_costs import UNIT, LayoutCosts
from davinci.passes.ascend.tensor_ops import (
    PRODUCTS,
    definition,
    is_elementwise,
    readers_of,
    users_of,
)
from davinci.units import BLOCK_BYTES

if TYPE_CHECKING:
    from davinci.passes.ascend.ascend_hoist_slices import Demand

READ_IN_PART = frozenset(
    f"ascend.{name}" for name in ("reduce", "broadcast", "transpose", "slice", "concat", "pad")
)
"""Operators whose kernels read a part of an array like all of it, besides elementwise ones."""


def worth_it(found: Mapping[Op, Demand], machine: Machine, cores: int) -> dict[Op, Demand]:
    """Those of the demands that take least time together."""
    prices = PartPrices(found, machine, cores)
    network = FlowNetwork()
    nodes = {op: network.node() for op in found}
    producers: dict[ir.Value, Op] = {op.results[0]: op for op in found}
    slices: dict[tuple[ir.Value, Box], int] = {}
    for op, node in nodes.items():
        is_slice = op.name == "ascend.slice" and boxes.is_whole(found[op].box)
        network.edge(network.SOURCE, node, NEVER if is_slice else prices.saved(op))
        if not boxes.is_whole(found[op].box):
            for user in users_of(op):
                if user in nodes:
                    network.edge(node, nodes[user], NEVER)
        for value, box in zip(op.operands, found[op].part.operands, strict=True):
            if box is None or boxes.is_whole(box):
                continue
            if (value, box) not in slices:
                slices[value, box] = network.node()
                maker = producers.get(value)
                head = network.SINK
                if maker is not None and not boxes.is_whole(found[maker].box):
                    head = nodes[maker]
                network.edge(slices[value, box], head, prices.slice(value, box))
            network.edge(node, slices[value, box], NEVER)
    for a, b in prices.apart():
        network.edge(nodes[a], nodes.get(b, network.SINK), prices.costs.launch)
    kept = network.source_side()
    return {op: found[op] for op, node in nodes.items() if node in kept}


class PartPrices:
    """Prices of what computes parts, in `UNIT`s of a cycle."""

    def __init__(self, found: Mapping[Op, Demand], machine: Machine, cores: int) -> None:
        self.costs = LayoutCosts.of(machine)
        self._cores = cores
        self._found = found
        self._known = mark_foldable(next(iter(found)).block)

    def saved(self, op: Op) -> int:
        """The work of all of a result less that of a part."""
        call, demand = call_of(op), self._found[op]
        result = replace(call.outputs[0], shape=boxes.shape_of(demand.box))
        inputs = tuple(
            tensor if box is None else replace(tensor, shape=boxes.shape_of(box))
            for tensor, box in zip(call.inputs, demand.part.operands, strict=True)
        )
        return max(0, self._work(op, call) - self._work(op, replace(call, inputs=inputs), result))

    def _work(self, op: Op, call: Call, result: Tensor | None = None) -> int:
        """The work of an operator on values of these sizes."""
        whole = call.outputs[0]
        work = OPERATORS[op.name.removeprefix("ascend.")].work(call)
        share = 1.0 if result is None else result.count / whole.count
        macs = work.macs
        if op.name in PRODUCTS:
            macs = (
                OPERATORS[op.name.removeprefix("ascend.")]
                .work(call if result is None else replace(call, outputs=(result,)))
                .macs
            )
            share = 1.0
        cube = int(macs * share) * UNIT // (self.costs.macs_per_cycle * self._cores)
        vector = int(work.vector_repeats * share) * UNIT // self._cores
        free = is_elementwise(op) or op.name in ("ascend.broadcast", "ascend.reshape")
        moved = 0 if free else self.costs.moved(int(work.write_bytes * share))
        return max(cube, vector, moved) + 1

    def slice(self, value: ir.Value, box: Box) -> int:
        """What a slice of a value costs that has been computed as a whole."""
        if value in self._known or definition(value) is not None:
            return 0
        kind = tensor_of(value.type)
        offset_bytes = first_of(box) * kind.bytes_each
        if boxes.is_leading(box) and offset_bytes % BLOCK_BYTES == 0:
            return 1
        if all(self._reads_in_part(op, value, box) for op in readers_of(value)):
            return 1
        size_bytes = Tensor(boxes.shape_of(box), kind.element).size_bytes
        return self.costs.launch + self.costs.moved(2 * size_bytes)

    def _reads_in_part(self, op: Op, value: ir.Value, box: Box) -> bool:
        """Whether the kernel of a reader takes that part without a slice before it."""
        demand = self._found.get(op)
        if demand is None:
            return True  # it reads all of the value
        pairs = zip(op.operands, demand.part.operands, strict=True)
        if (value, box) not in pairs:
            return True  # it reads another part
        if op.name not in ("ascend.slice", "ascend.reshape"):
            return op.name in READ_IN_PART or is_elementwise(op)
        readers = users_of(op)
        return bool(readers) and all(x.name in READ_IN_PART or is_elementwise(x) for x in readers)

    def apart(self) -> set[tuple[Op, Op]]:
        """Products of a part of an operand, and others of it with which they could be one."""
        together: dict[ir.Value, list[Op]] = defaultdict(list)
        for op in self._found:
            if op.name in PRODUCTS and self._has_weights(op):
                together[op.operands[0]] = [
                    user
                    for user in readers_of(op.operands[0])
                    if user.name == op.name
                    and user.operands[0] == op.operands[0]
                    and self._has_weights(user)
                ]
        return {
            (a, b)
            for group in together.values()
            for a in group
            for b in group
            if a in self._found
            and (b not in self._found or self._rows(a) != self._rows(b))
            and a != b
        }

    def _rows(self, product: Op) -> Box | None:
        return self._found[product].part.operands[0]

    def _has_weights(self, product: Op) -> bool:
        weights = product.operands[1]
        return weights in self._known or definition(weights) is not None


def first_of(box: Box) -> int:
    """The place of the first element that is taken, in rows."""
    place = 0
    for dimension in box:
        for taken in dimension:
            place = place * taken.size + taken.at[0]
    return place

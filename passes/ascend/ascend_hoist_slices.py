"""ascend-hoist-slices: nothing is computed of which later only a part is read.

before:
    %0 = "ascend.matmul"(%x, %w) : (tensor<512x768xf32>, tensor<768x768xf32>) -> ..
    %1 = "ascend.gelu"(%0) : (tensor<512x768xf32>) -> tensor<512x768xf32>
    %2 = "ascend.slice"(%1) {starts = array<i64: 511, 0>, ..} : (..) -> tensor<1x768xf32>
after:
    %s = "ascend.slice"(%x) {starts = array<i64: 511, 0>, ..} : (..) -> tensor<1x768xf32>
    %0 = "ascend.matmul"(%s, %w) : (tensor<1x768xf32>, tensor<768x768xf32>) -> tensor<1x768xf32>
    %2 = "ascend.gelu"(%0) : (tensor<1x768xf32>) -> tensor<1x768xf32>

Networks compute all positions and take one: the class token of a vision transformer, the last token
of a language model, the last step of a recurrent network, a crop of an image. What is read of each
value follows from its users, from the last operator to the first: a box that holds all that they
read (`boxes`), through whatever operators lie between (`part_rules`): elementwise ones, broadcasts,
reductions of other dimensions, rows, columns and batches of products, windows of images with their
halo, reshapes, transposes, concatenations, paddings, gathers. So a slice passes a residual sum, a
layer normalisation and the rows of attention, and stops at keys and values, which are read whole.

An operator computes a part only if all its readers do with it, and where the work that is saved is
worth more than the slices it takes: one that needs a kernel of its own costs a launch, and so does
a product that would have been one with others of the same operand (`ascend-merge-products`). The
choice that is best for all of them together is a cheapest cut (`davinci.passes.analysis.min_cut`).

Rows of known indices that lie at equal distances are a slice, too, and elements at known places
runs of elements where that takes less time (`known_places`). Sums keep their order: numbers
are the same but where a kernel of another size adds them in other pieces.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from davinci import machine as machines
from davinci.mlir import Op, ir
from davinci.passes.analysis.rewrite_counts import note
from davinci.passes.ascend import boxes
from davinci.passes.ascend.boxes import Box
from davinci.passes.ascend.known_places import runs_of_gathers
from davinci.passes.ascend.part_choice import worth_it
from davinci.passes.ascend.part_rules import PartRule, part_of, rewrite_of, with_whole_blocks
from davinci.passes.ascend.slices_of_gathers import slices_of_gathers
from davinci.passes.ascend.tensor_ops import TensorOps, erase_unused, tensor_functions
from davinci.passes.pipeline.base import Pass, option, register_pass
from davinci.passes.pipeline.pipelines import REWRITES_HELP
from davinci.passes.pipeline.rewrites import REWRITES, chosen, expected


@register_pass
@dataclass(frozen=True)
class AscendHoistSlicesPass(Pass):
    """Compute no more of a value than is read of it."""

    NAME = "ascend-hoist-slices"

    machine: str = option("ascend910", "machine file that the costs come from")
    cores: int = option(0, "most blocks a kernel may use; 0: all cores of the machine")
    rewrites: str = option("all", REWRITES_HELP, expected=expected)

    def run(self, op: Op) -> None:
        machine = machines.load(self.machine)
        cores = self.cores or machine.cores
        names, counts = chosen(self.rewrites), Counter[str]()
        if not any(REWRITES[name].place == self.NAME for name in names):
            return
        for function in tensor_functions(op):
            block = function.regions[0].blocks[0]
            if "gather-to-slice" in names:
                counts["gather-to-slice"] += slices_of_gathers(block)
            if "gather-to-runs" in names:
                counts["gather-to-runs"] += runs_of_gathers(block, machine, cores)
            found = demands(block, names)
            if found:
                found = worth_it(found, machine, cores)
                counts.update(rewrite_of(op) for op in found if op.name != "ascend.slice")
            if any(op.name != "ascend.slice" for op in found):
                Narrowing(found).rebuild([operation.operation for operation in block.operations])
            erase_unused(block)
        for name, count in counts.items():
            note(op, name, count)


@dataclass(frozen=True)
class Demand:
    """A part of a result that is all that is read of it.

    Attributes:
        box: of the result.
        part: how it is computed.
    """

    box: Box
    part: PartRule


def demands(block: ir.Block, names: frozenset[str]) -> dict[Op, Demand]:
    """The operators of which only a part is read if all others compute no more than is read, in
    reverse order; and slices, which compute nothing."""
    read: dict[ir.Value, Box] = {}
    found: dict[Op, Demand] = {}
    for operation in reversed(list(block.operations)):
        op = operation.operation
        is_operator = op.name.startswith("ascend.") and len(op.results) == 1
        box = read.get(op.results[0]) if is_operator else None
        if is_operator and box is None:
            continue  # nobody reads the result
        part = None
        if box is not None:
            box = with_whole_blocks(op, box)
            is_slice = op.name == "ascend.slice"
            named = rewrite_of(op) in names or (is_slice and boxes.is_whole(box))
            if named and (is_slice or not boxes.is_whole(box)):
                part = part_of(op, box)
        if part is not None and box is not None:
            found[op] = Demand(box, part)
        needed: Sequence[Box | None]
        needed = part.operands if part is not None else [all_of(value) for value in op.operands]
        for value, wanted in zip(op.operands, needed, strict=True):
            if wanted is not None:
                known = read.get(value)
                read[value] = wanted if known is None else boxes.union(known, wanted)
    narrow = any(op.name != "ascend.slice" for op in found)
    return found if narrow else {}


def all_of(value: ir.Value) -> Box | None:
    """The box that holds all elements of a tensor; None for a value that is no ranked tensor."""
    return boxes.whole(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else None


class Narrowing:
    """Builds operators that compute parts, and the slices in front of them."""

    def __init__(self, found: dict[Op, Demand]) -> None:
        self._found = found
        self._parts: dict[ir.Value, tuple[Box, ir.Value]] = {}
        self._slices: dict[Hashable, ir.Value] = {}

    def rebuild(self, operations: Sequence[Op]) -> None:
        for op in operations:
            demand = self._found.get(op)
            if demand is None:
                continue
            with op.location, ir.InsertionPoint(op):
                ops = TensorOps()
                operands = [
                    None if box is None else self._part(value, box, ops)
                    for value, box in zip(op.operands, demand.part.operands, strict=True)
                ]
                made = demand.part.emit(operands, ops)
            if boxes.is_whole(demand.box):
                op.results[0].replace_all_uses_with(made)
            else:
                self._parts[op.results[0]] = demand.box, made

    def _part(self, value: ir.Value, box: Box, ops: TensorOps) -> ir.Value:
        """A part of a value, made once."""
        key = value, box
        if key not in self._slices:
            known, source = self._parts.get(value, (boxes.whole(value.type.shape), value))
            inner = boxes.within(box, known)
            assert inner is not None, f"{box} in {known}"
            self._slices[key] = boxes.cut(source, inner, ops)
        return self._slices[key]

"""Right factors of the products of loops: what they are multiplied by, what is added to them, and
their form in front of a loop."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from davinci.dialects.ascend_types import tensor_of, tensor_type
from davinci.mlir import Op, ir
from davinci.operators import Tensor
from davinci.operators.tensors import NZ
from davinci.passes.ascend import rescale
from davinci.passes.ascend.ascend_fold_constants import mark_foldable, value_of
from davinci.passes.ascend.loop_gates import GateForms
from davinci.passes.ascend.tensor_ops import TensorOps, definition
from davinci.schedule.loops.cut import CutStep
from davinci.units import FRACTAL_SIDE as SIDE
from davinci.units import round_up


@dataclass(frozen=True)
class FactorPart:
    """A part of a product's right factor: rows from `row`, columns from `column` on.

    Attributes:
        scale: by which it is multiplied.
        ones: whether a fractal of rows follows, for ones behind the left factor.
        added: what is multiplied by ones: a known operand, and its first element; None if zeros.
    """

    operand: int
    row: int
    rows: int
    column: int
    columns: int
    scale: float = 1.0
    ones: bool = False
    added: tuple[int, int] | None = None

    @property
    def depth(self) -> int:
        """Rows in fractals."""
        return round_up(self.rows, SIDE) + SIDE if self.ones else self.rows

    @property
    def type(self) -> ir.RankedTensorType:
        """The type of the tensor that holds the part in fractals."""
        return tensor_type(Tensor((self.columns, self.depth), "f16", NZ))

    def arranged(self, operands: Sequence[ir.Value]) -> ir.Value:
        """The part in fractals of f16, [k / 16][n / 16][n % 16][k % 16].

        Args:
            operands: of the loop.
        """
        emit = TensorOps()
        ends = (self.row + self.rows, self.column + self.columns)
        value = emit.cut(operands[self.operand], (self.row, self.column), ends)
        value = emit.cast(_times(value, self.scale, emit), "f16")
        tall, wide = round_up(self.rows, SIDE), round_up(self.columns, SIDE)
        value = emit.padded(value, (tall, wide))
        if self.ones:
            value = emit.concat([value, self._added_rows(operands, emit)], 0)
            tall += SIDE
        blocks = emit.reshape(value, (tall // SIDE, SIDE, wide // SIDE, SIDE))
        return emit.transpose(blocks, [0, 2, 3, 1])

    def _added_rows(self, operands: Sequence[ir.Value], emit: TensorOps) -> ir.Value:
        """The rows that ones are multiplied by: halves that add up to what is added, and zeros."""
        shape = (SIDE, round_up(self.columns, SIDE))
        if self.added is None:
            return emit.full(shape, "f16", 0.0)
        operand, first = self.added
        whole = operands[operand]
        row = emit.reshape(whole, (1, tensor_of(whole.type).count))
        row = _times(emit.cut(row, (0, first), (1, first + self.columns)), self.scale, emit)
        high = emit.cast(row, "f16")
        low = emit.cast(emit.binary("sub", row, emit.cast(high, "f32")), "f16")
        return emit.padded(emit.concat([high, low], 0), shape)


def _times(value: ir.Value, scale: float, emit: TensorOps) -> ir.Value:
    """A value times a number."""
    if scale == 1.0:
        return value
    found = tensor_of(value.type)
    return emit.binary("mul", value, emit.full(found.shape, found.element, scale))


class KnownOperands:
    """The operands of a loop that are known before it begins.

    Args:
        places: of the inputs of its step among the operands.
    """

    def __init__(self, call: Op, roles: Sequence[str], places: Sequence[int]) -> None:
        self.places = places
        self._operands, self._roles, self._block = list(call.operands), roles, call.block
        self._largest: dict[int, float] = {}

    @cached_property
    def _foldable(self) -> set[ir.Value]:
        return mark_foldable(self._block)

    def fits_halves(self, operand: int, scale: float) -> bool:
        """Whether an operand is known, and f16 holds all of its elements times a number."""
        value = self._operands[operand]
        if value not in self._foldable and definition(value) is None:
            return False
        if operand not in self._largest:
            self._largest[operand] = float(np.abs(value_of(value)).max(initial=0))
        return self._largest[operand] * abs(scale) < rescale.OVERFLOWS

    def row(self, step: CutStep, value: int, columns: int) -> tuple[int, int] | None:
        """The operand that is the same in all steps, and its first element, that a value of a step
        has one number of for each column; None if it is something else."""
        graph = step.graph
        made = {node.result: node for node in graph.nodes}
        while value in made and made[value].name in ("reshape", "broadcast"):
            node, array = made[value], graph.arrays[value]
            dims = list(node.attributes.get("dims", [array.rank - 1]))
            if array.shape[-1:] != (columns,) or dims[-1:] != [array.rank - 1]:
                return None
            (value,) = node.values
        array, window = graph.arrays[value], graph.windows.get(value)
        if value not in graph.inputs or array.shape[-1:] != (columns,) or array.count != columns:
            return None
        place = step.inputs[graph.inputs.index(value)]
        if place >= len(self.places) or (window is not None and window.strides[-1] != 1):
            return None
        operand = self.places[place]
        if self._roles[operand] != "fixed" or array.element != "f32":
            return None
        return operand, 0 if window is None else window.offset


Pieces = dict[int, list[tuple[int, FactorPart]]]
"""For each value that is a product: which left factors and which parts of the right one are cut out
of it."""


@dataclass(frozen=True)
class CubeGates:
    """A step whose gates the cube computes most of.

    Attributes:
        spared: operands of the loop that the step needs no more.
    """

    step: CutStep
    pieces: Pieces
    spared: set[int]


def gates_by_cube(
    step: CutStep, pieces: Pieces, of_rows: Set[int], known: KnownOperands
) -> CubeGates:
    """Has the cube compute most of the gates of a step, see `loop_gates`.

    Args:
        of_rows: products of rows that are nothing but left factors.
    """
    parts = {number: each[0][1] for number, each in pieces.items() if len(each) == 1}
    added: dict[int, tuple[int, int]] = {}

    def may_scale(product: int, scale: float) -> bool:
        return known.fits_halves(parts[product].operand, scale)

    def may_add(product: int, value: int, scale: float) -> bool:
        found = known.row(step, value, parts[product].columns)
        if found is None or not known.fits_halves(found[0], scale):
            return False
        added[product] = found
        return True

    graph = replace(step.graph, arrays=list(step.graph.arrays))
    forms = GateForms(graph, {number: number in of_rows for number in parts}, may_scale, may_add)
    forms.rewrite()
    if not forms.scales:
        return CubeGates(step, pieces, set())
    wide = {pieces[product][0][0] for product in added}
    scaled: Pieces = {}
    for number, each in pieces.items():
        scale = forms.scales.get(number, 1.0)
        scaled[number] = [
            (a, replace(part, scale=scale, ones=a in wide, added=added.get(number)))
            for a, part in each
        ]
    needed = {v for node in graph.nodes for v in node.values} | {*graph.outputs, *pieces}
    places = list(zip(graph.inputs, step.inputs, strict=True))
    kept = [(number, place) for number, place in places if number in needed]
    inputs = tuple(place for _, place in kept)
    given = len(known.places)
    spared = {known.places[place] for _, place in places if place < given}
    spared -= {known.places[place] for place in inputs if place < given}
    graph = replace(graph, inputs=[number for number, _ in kept])
    return CubeGates(replace(step, graph=graph, inputs=inputs), scaled, spared)

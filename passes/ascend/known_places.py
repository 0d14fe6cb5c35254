"""Gathers of elements at places that are known at compile time, as runs of the table.

    places [3, 4] of rows of 8     runs of 4, one a row       a function of column less row
        2  3  4  5                     2                          4  3  3  1
       10 11 12 13                    10                         14 12 11 11
       18 19 20 21                    18                         23 22 20 19

Places that go up by one are runs, which transfers move (`gather_blocks`). Relative positions, of
which attention gathers scores, are functions of the column less the row: the table with a column
for each difference, from the highest row to the highest column, has those of each row side by side,
one further to the left than those of the row above:

    columns 7 5 4 3 3 1 of each row     row 0 at column 2: 4 3 3 1
                                        row 1 at column 1: 5 4 3 3, numbers of the row added

Where the table is a product the columns are those of its second factor, so that the product has
them at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine, prices
from davinci.mlir import Op, ir
from davinci.operators.products import TRANSPOSE_B
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.known_arrays import evaluated
from davinci.passes.ascend.tensor_ops import PRODUCTS, TensorOps, defining_op, read_once
from davinci.schedule.moves.blocks import BlockMove, blocks_cycles
from davinci.schedule.moves.element_gathers import ELEMENTS, ElementGather, element_schedule
from davinci.stand_ins import stands_in
from davinci.units import BLOCK_BYTES, ceil_div

Places = npt.NDArray[np.int64]

MOST_STEPS = 64
"""Operators and constants that places are computed of: clamping and widening takes some thirty."""


@dataclass(frozen=True)
class Differences:
    """Places that depend on the column less the row.

    Attributes:
        columns: of the table, one for each difference from `1 - period`.
        period: rows after which rows are numbered from 0 again.
    """

    columns: Places
    period: int

    def firsts(self, rows: int) -> Places:
        """Where the run of each row begins, in its row of a table of `columns`."""
        return self.period - 1 - np.arange(rows) % self.period


def runs_of_gathers(block: ir.Block, machine: Machine, cores: int) -> int:
    """Replaces gathers of elements where that is estimated to take less time; how many."""
    count = 0
    for op in [operation.operation for operation in block.operations]:
        gather = KnownGather.of(op) if op.name == f"ascend.{ELEMENTS}" else None
        if gather is None:
            continue
        with op.location, ir.InsertionPoint(op):
            made = gather.cheapest(machine, cores)
        if made is not None:
            op.results[0].replace_all_uses_with(made)
            op.erase()
            count += 1
    return count


@dataclass(frozen=True)
class KnownGather:
    """A gather of elements of a table [rows, row] at known places [rows, n], counted from the first
    element of the table."""

    table: ir.Value
    places: Places

    @staticmethod
    def of(op: Op) -> KnownGather | None:
        """An operator as such a gather; None if its places are not known."""
        places = evaluated(op.operands[1], MOST_STEPS)
        if places is None or stands_in(places):
            return None
        return KnownGather(op.operands[0], places.astype(np.int64))

    @property
    def kind(self) -> Tensor:
        """Shape and element type of the table."""
        return tensor_of(self.table.type)

    def cheapest(self, machine: Machine, cores: int) -> ir.Value | None:
        """The result, by the runs of fewest estimated cycles; None where the gather takes less."""
        rows, row = self.kind.shape
        count = self.places.shape[1]
        gather = ElementGather(rows, row, count, self.kind.element)
        scheduled = element_schedule(gather, machine, cores)
        least = math.inf if scheduled is None else float(scheduled.cycles)
        stored = 0.0
        if product_of(self.table) is not None:  # which may have other columns instead
            stored = self._columns_cycles(row, machine, cores)
        direct = self._runs_cycles(self.places, machine, cores)
        found = differences(self.places - row * np.arange(rows)[:, None])
        if found is None:
            return self._runs(self.table, self.places) if direct < least else None
        columns = len(found.columns)
        firsts = found.firsts(rows) + columns * np.arange(rows)
        shifted = firsts[:, None] + np.arange(count)
        by_columns = self._columns_cycles(columns, machine, cores)
        by_columns += self._runs_cycles(shifted, machine, cores)
        if min(direct + stored, by_columns) >= least + stored:
            return None
        if direct + stored <= by_columns:
            return self._runs(self.table, self.places)
        return self._runs(columns_of(self.table, found.columns), shifted)

    def _runs_cycles(self, places: Places, machine: Machine, cores: int) -> float:
        """Estimated cycles in which runs at places are moved, which are a block or longer."""
        length = run_length(places)
        if length * self.kind.bytes_each < BLOCK_BYTES:
            return math.inf
        whole = Tensor((1, int(places.max()) + 1), self.kind.element)
        move = BlockMove(
            update=False,
            array=whole,
            block=(1, length),
            count=places.size // length,
            axes=(1,),
            starts=(0, 0),
            batch=(0, 0),
            wrap=(False,),
            skip=False,
        )
        return blocks_cycles(move, machine, cores)

    def _columns_cycles(self, columns: int, machine: Machine, cores: int) -> float:
        """Estimated cycles in which a table has its columns at other places: a product stores them
        there, anything else is turned, gathered by rows and turned back."""
        size = self.kind.shape[0] * columns * self.kind.bytes_each
        moved = prices.moving(machine, cores, False, ceil_div(size, cores))
        if product_of(self.table) is not None:
            return moved
        return 3 * (2 * moved + machine.queued_cycles(1))

    def _runs(self, table: ir.Value, places: Places) -> ir.Value:
        """Runs of a table at places, which lie in it one behind the other."""
        ops, kind, length = TensorOps(), tensor_of(table.type), run_length(places)
        begins = places.reshape(-1, length)[:, :1].astype(np.int32)
        indices = ops.array(begins, Tensor(begins.shape, "i32"))
        found = Tensor((len(begins), length), kind.element)
        given = {"axes": [0], "starts": [0], "batch": [0], "wrap": [0]}
        flat = ops.reshape(table, [kind.count])
        runs = ops.emit("gather_blocks", [flat, indices], found, **given)
        return ops.reshape(runs, places.shape)


def run_length(places: Places) -> int:
    """The most places, of which a row has a whole number, that always go up by one."""
    count = places.shape[1]
    breaks = np.flatnonzero((np.diff(places, axis=1) != 1).any(0)) + 1
    return math.gcd(count, *map(int, breaks))


def differences(places: Places) -> Differences | None:
    """Places, counted from the first element of their row, as what they are of the column less the
    row; None if they do not depend on these only."""
    rows = len(places)
    follows = (places[1:, 1:] == places[:-1, :-1]).all(1)
    breaks = np.flatnonzero(~follows) + 1
    for period in _periods(rows, breaks):
        parts = places.reshape(rows // period, *places[:period].shape)
        if (parts == parts[0]).all():
            columns = np.concatenate([parts[0, :0:-1, 0], parts[0, 0]])
            return Differences(columns, period)
    return None


def _periods(rows: int, breaks: npt.NDArray[np.intp]) -> Iterator[int]:
    """Rows after which places may begin again: the longest such part of all, and single rows."""
    longest = math.gcd(rows, *map(int, breaks))
    yield longest
    if longest > 1:
        yield 1


def product_of(table: ir.Value) -> Op | None:
    """The product that a table is, as it is or with its batches one behind the other, if nothing
    else needs it."""
    value = table
    while (owner := defining_op(value)) is not None and read_once(value):
        if owner.name in PRODUCTS and not attribute(owner, TRANSPOSE_B, 0):
            return owner.operation
        same_rows = owner.name == "ascend.reshape" and (
            tensor_of(owner.operands[0].type).shape[-1:] == tensor_of(value.type).shape[-1:]
        )
        if not same_rows:
            return None
        value = owner.operands[0]
    return None


def columns_of(table: ir.Value, columns: Places) -> ir.Value:
    """A table whose columns are some of another's, in another order, or several times."""
    ops, kind = TensorOps(), tensor_of(table.type)
    product = product_of(table)
    if product is None:
        return taken(table, columns, ops)
    left, right = product.operands
    other = taken(right, columns, ops)
    found = tensor_of(product.results[0].type)
    result = Tensor((*found.shape[:-1], len(columns)), found.element)
    name = product.name.removeprefix("ascend.")
    made = ops.emit(name, [left, other], result)
    return ops.reshape(made, [kind.shape[0], len(columns)])


def taken(x: ir.Value, columns: Places, ops: TensorOps) -> ir.Value:
    """Columns of an array [.., n]: those side by side are a slice, others rows while it is
    turned."""
    *front, size = tensor_of(x.type).shape
    steps = np.diff(columns)
    if (steps == 1).all():
        first = int(columns[0])
        ends = [*front, first + len(columns)]
        return x if len(columns) == size else ops.cut(x, [0] * len(front) + [first], ends)
    rank = len(front) + 1
    turned = ops.transpose(x, [rank - 1, *range(rank - 1)])
    indices = ops.array(columns.astype(np.int32), Tensor(columns.shape, "i32"))
    rows = Tensor((len(columns), *front), tensor_of(x.type).element)
    return ops.transpose(ops.emit("gather", [turned, indices], rows), [*range(1, rank), 0])

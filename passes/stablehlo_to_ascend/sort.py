"""Sorts become `ascend.sort` and `ascend.sort_pairs`.

    sort(x), sort(x, iota)               keys alone; keys with their places
    sort(x, iota), sliced to [0 : k]     the first k only
    sort(x, y, ..), one key              keys with their places, by which others are gathered
    sort(x, y, ..), several keys         by the last key, then all by the one before it, and so on;
                                         keys of 64 bits are two of 32

Of few keys of long rows parts are sorted, then the first of all parts, and so on, groups are looked
at, or one key is looked for after the other, whichever `schedule.sorts.first_keys` says: each key
with the number that it had in its row.

Which operands a comparator looks at, and how, says `comparators`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from davinci.dialects.ascend_types import tensor_of
from davinci.dialects.base import attribute
from davinci.machine import Machine
from davinci.mlir import Op, ir
from davinci.operators.sorting import LARGEST, NAN, SIGNED, TOTAL
from davinci.operators.tensors import Tensor
from davinci.passes.ascend.tensor_ops import (
    TensorOps,
    constant_array,
    defining_op,
    definition,
)
from davinci.passes.stablehlo_to_ascend import conversion
from davinci.passes.stablehlo_to_ascend.arg_reduce import compared, extreme, spread_along
from davinci.passes.stablehlo_to_ascend.comparators import Comparator, comparators_of
from davinci.passes.stablehlo_to_ascend.reduced_values import seen_as, shifted
from davinci.schedule.sorts.first_keys import (
    EXTREMES,
    GROUPS,
    ROWS,
    FirstKeys,
    numbers_below,
    way_of,
)
from davinci.schedule.sorts.keys import LEAST_RANK, Keys
from davinci.units import ceil_div

NARROW = {"f16": "f32", "i16": "i32", "i8": "i32", "ui8": "i32", "i1": "i32"}
"""Types whose keys are sorted as wider ones."""

WORD_BITS = 32


@conversion("sort")
def convert_sort(op: Op, ops: TensorOps) -> Sequence[ir.Value] | None:
    """A sort by operands of up to 64 bits; None of others, which the scalar unit does."""
    found, dim = tensor_of(op.operands[0].type), int(attribute(op, "dimension", -1))
    if not found.count or found.shape[dim] == 1:
        return list(op.operands)
    compared, machine = comparators_of(op.regions[0]), ops.machine
    if not compared or machine is None:
        return None
    kept = kept_of(op, dim)
    rows = SortedRows(ops, found.shape, dim, kept)
    words: list[KeyWord] = []
    for by in compared:
        keys = op.operands[by.operand]
        words += words_of(ops, rows.matrix(keys if by.unsigned else before_widening(keys)), by)
    if any(tensor_of(word.matrix.type).element not in ("f32", "i32") for word in words):
        return None
    numbered = len(op.operands) > 1 or words[0].back is None
    found_first = sorted_by(ops, words, machine, kept, numbered)
    if found_first is None:
        return None
    values, order = found_first
    first = words[0]
    results = []
    for number, operand in enumerate(op.operands):
        if number == first.by.operand and first.back is not None:
            made = rows.back(first.back(values))
            results.append(ops.cast(made, tensor_of(operand.type).element))
            continue
        assert order is not None, "what is sorted with others is numbered"
        if is_places(operand, dim):
            results.append(ops.cast(rows.back(order), tensor_of(operand.type).element))
        else:
            results.append(rows.back(gathered(ops, rows.matrix(operand), order)))
    return results


@dataclass(frozen=True)
class KeyWord:
    """A matrix of 32 bits each by which rows are sorted.

    Attributes:
        by: its order.
        back: makes the operand's elements of sorted ones or of their bits; None where others than
            these are gathered.
    """

    matrix: ir.Value
    by: Comparator
    back: Callable[[ir.Value], ir.Value] | None = None


def sorted_by(
    ops: TensorOps, words: Sequence[KeyWord], machine: Machine, kept: int, numbered: bool
) -> tuple[ir.Value, ir.Value | None] | None:
    """The first keys of each row by words of which those behind tell keys apart that are equal by
    the ones before: by the last word first, and so on. The first word's keys, and their places.

    Args:
        numbered: whether places are wanted of keys of one word.
    """
    length = tensor_of(words[0].matrix.type).shape[1]
    found = None
    for word in reversed(words):
        matrix = word.matrix
        order = None if found is None else found[1]
        if order is not None:
            matrix = gathered(ops, matrix, order)
        sorting = Sorting(ops, word.by, machine, numbered or len(words) > 1)
        found = sorting.first(matrix, kept if word is words[0] else length)
        if found is None:
            return None
        values, places = found
        if order is not None and places is not None:
            found = values, gathered(ops, order, places)
    return found


def words_of(ops: TensorOps, keys: ir.Value, by: Comparator) -> list[KeyWord]:
    """What a matrix of keys is sorted by: a matrix of words, or of 64 bits the upper and the lower
    ones. Words of the vector unit have signs: those without are lower by half of the range.
    """
    element = tensor_of(keys.type).element
    if element == "i64":
        upper = shifted(keys, "right", WORD_BITS, ops)
        low = words_of(ops, ops.cast(keys, "i32"), replace(by, unsigned=True))
        high = words_of(ops, ops.cast(upper, "i32"), by)
        return [replace(word, back=None) for word in (*high, *low)]
    wide = ops.cast(keys, NARROW.get(element, element))
    if by.unsigned:
        wide = ops.binary("add", wide, filled(ops, wide, LEAST_RANK))

    def back(found: ir.Value) -> ir.Value:
        found = seen_as(ops, found, tensor_of(wide.type).element)
        if by.unsigned:
            return ops.binary("add", found, filled(ops, found, LEAST_RANK))
        return ops.cast(found, element)

    return [KeyWord(wide, by, back)]


def filled(ops: TensorOps, like: ir.Value, number: int) -> ir.Value:
    """An array of one number, of the shape and type of another one."""
    found = tensor_of(like.type)
    return ops.full(found.shape, found.element, number)


def before_widening(keys: ir.Value) -> ir.Value:
    """The narrower integers that keys of 64 bits were made of, if they were: in the same order."""
    made = defining_op(keys)
    if made is None or made.name != "ascend.cast" or tensor_of(keys.type).element != "i64":
        return keys
    source: ir.Value = made.operands[0]
    return source if tensor_of(source.type).element in (*NARROW, "i32") else keys


@dataclass(frozen=True)
class SortedRows:
    """Arrays of a sort as matrices whose rows are sorted.

    Attributes:
        shape: of the operands.
        dim: along which they are sorted.
        kept: how many are wanted.
    """

    ops: TensorOps
    shape: tuple[int, ...]
    dim: int
    kept: int

    @property
    def order(self) -> list[int]:
        return [d for d in range(len(self.shape)) if d != self.dim] + [self.dim]

    def matrix(self, array: ir.Value) -> ir.Value:
        moved = self.ops.transpose(array, self.order)
        count = self.shape[self.dim]
        return self.ops.reshape(moved, [math.prod(self.shape) // count, count])

    def back(self, matrix: ir.Value) -> ir.Value:
        outer = [self.shape[d] for d in self.order[:-1]]
        grid = self.ops.reshape(matrix, [*outer, self.kept])
        return self.ops.transpose(grid, np.argsort(self.order).tolist())


def kept_of(op: Op, dim: int) -> int:
    """The number of first elements of the sorted dimension beyond which no reader of the results
    looks: the length of the longest slice from 0, or the whole length."""
    length = tensor_of(op.operands[0].type).shape[dim]
    most = 1
    for result in op.results:
        for use in result.uses:
            user = use.owner
            if user.name != "stablehlo.slice" or attribute(user, "start_indices")[dim]:
                return length
            most = max(most, int(attribute(user, "limit_indices")[dim]))
    return most


def is_places(value: ir.Value, dim: int) -> bool:
    """Whether a value counts along a dimension."""
    found = tensor_of(value.type)
    if found.element not in ("i32", "i64"):
        return False
    owner = definition(value)
    if owner is not None:
        line = [1] * found.rank
        line[dim] = found.shape[dim]
        wanted = np.arange(found.shape[dim]).reshape(line)
        return bool((constant_array(owner) == wanted).all())
    made = value.owner
    if isinstance(made, ir.Block):
        return False
    if made.name == "ascend.broadcast":
        dims, shape = list(attribute(made, "dims")), tensor_of(made.operands[0].type).shape
        place = dims.index(dim) if dim in dims else None
        whole = place is not None and shape[place] == found.shape[dim]
        return whole and is_places(made.operands[0], place or 0)
    if made.name == "ascend.iota":
        return int(attribute(made, "dim")) == dim
    return made.name == "ascend.cast" and is_places(made.operands[0], dim)


def gathered(ops: TensorOps, matrix: ir.Value, order: ir.Value) -> ir.Value:
    """The elements of each row at places [rows, kept]."""
    found = tensor_of(matrix.type)
    return rows_at(ops, ops.reshape(matrix, [found.count]), order, found.shape[1])


def rows_at(ops: TensorOps, table: ir.Value, places: ir.Value, apart: int) -> ir.Value:
    """Rows of a table at places [n, kept], those of each n counted from `apart` rows behind the
    last: [n, kept, ..]."""
    found, (rows, kept) = tensor_of(table.type), tensor_of(places.type).shape
    first = np.arange(rows, dtype=np.int32)[:, None] * apart
    begins = ops.constant(np.tile(first, (1, kept)), "i32")
    indices = ops.reshape(ops.binary("add", places, begins), [rows * kept])
    taken = Tensor((rows * kept, *found.shape[1:]), found.element)
    gathered = ops.emit("gather", [table, indices], taken, wrap=0)
    return ops.reshape(gathered, [rows, kept, *found.shape[1:]])


def ranks_of(ops: TensorOps, matrix: ir.Value, by: Comparator) -> ir.Value:
    """Integers in the order of a matrix of keys or bits."""
    found = tensor_of(matrix.type)

    def number(value: int) -> ir.Value:
        return ops.full(found.shape, "i32", value)

    bits = seen_as(ops, matrix, "i32")
    if by.order == SIGNED:
        return bits
    sign = ops.binary("max", ops.binary("min", bits, number(0)), number(-1))
    magnitude = ops.binary("sub", ops.binary("min", bits, number(-1)), number(LEAST_RANK))
    below = ops.binary("mul", magnitude, sign)
    if by.order == TOTAL:
        below = ops.binary("add", below, sign)
    rank = ops.binary("add", ops.binary("max", bits, number(0)), below)
    if by.order == TOTAL:
        return rank
    unknown = ops.emit("compare", [matrix, matrix], Tensor(found.shape, "i1"), predicate="NE")
    return ops.emit("select", [unknown, number(NAN), rank], Tensor(found.shape, "i32"))


@dataclass(frozen=True)
class Sorting:
    """Sorts the rows of matrices.

    Attributes:
        by: the order.
        numbered: whether keys have numbers, which are their places at first.
    """

    ops: TensorOps
    by: Comparator
    machine: Machine
    numbered: bool

    def first(self, matrix: ir.Value, kept: int) -> tuple[ir.Value, ir.Value | None] | None:
        """The first keys of each row, as bits if they are numbered, and their places; None if rows
        are too long."""
        return self._first(matrix, None, kept, numbers_below(tensor_of(matrix.type).shape[1]))

    def _first(
        self, matrix: ir.Value, numbers: ir.Value | None, kept: int, below: int
    ) -> tuple[ir.Value, ir.Value | None] | None:
        """The same of keys whose numbers are places, if there are none, and less than `below`."""
        ops = self.ops
        rows, length = tensor_of(matrix.type).shape
        placed = self.numbered and numbers is None
        keys = Keys(self.by.order, self.by.descending, below if self.numbered else None)
        way = way_of(FirstKeys(rows, length, kept, placed), keys, self.machine)
        if way is None:
            return None
        if way.name == GROUPS:
            return self._of_groups(matrix, way.size, kept, below)
        if way.name == EXTREMES:
            return self._extremes(matrix, numbers, kept, below)
        count = ceil_div(length, way.size)
        width = ceil_div(length, count)
        if self.numbered:
            numbers = self._parted(numbers, rows, count, width, below)
        if way.name == ROWS:
            return self._sorted(matrix, numbers, kept, length if placed else below)
        matrix = behind(ops, matrix, count * width, worst(ops, matrix, self.by))
        matrix = ops.reshape(matrix, [rows * count, width])
        kept_of_part = min(kept, width)
        found, numbers = self._sorted(matrix, numbers, kept_of_part, below)
        left = [rows, count * kept_of_part]
        numbers = None if numbers is None else ops.reshape(numbers, left)
        return self._first(ops.reshape(found, left), numbers, kept, below)

    def _of_groups(
        self, matrix: ir.Value, size: int, kept: int, below: int
    ) -> tuple[ir.Value, ir.Value | None] | None:
        """The first keys of those groups of neighbours whose best keys are the first."""
        ops = self.ops
        rows, length = tensor_of(matrix.type).shape
        count = ceil_div(length, size)
        matrix = behind(ops, matrix, count * size, worst(ops, matrix, self.by))
        ranks = ops.reshape(ranks_of(ops, matrix, self.by), [rows, count, size])
        best = ops.reduce(ranks, "max" if self.by.descending else "min", [2])
        by_rank = replace(self, by=self._by_rank)
        found = by_rank.first(best, kept)
        assert found is not None and found[1] is not None, "there was a way for the best keys"
        groups = found[1]
        table = ops.reshape(matrix, [rows * count, size])
        taken = rows_at(ops, table, groups, count)
        numbers = ops.binary("mul", groups, ops.full([rows, kept], "i32", size))
        numbers = ops.broadcast(numbers, [rows, kept, size], [0, 1])
        left = [rows, kept * size]
        within = np.tile(np.arange(size, dtype=np.int32), kept)
        places = ops.broadcast(ops.constant(within, "i32"), left, [1])
        numbers = ops.binary("add", ops.reshape(numbers, left), places)
        return self._first(ops.reshape(taken, left), numbers, kept, below)

    def _extremes(
        self, matrix: ir.Value, numbers: ir.Value | None, kept: int, below: int
    ) -> tuple[ir.Value, ir.Value]:
        """The first key of each row, then that of those left, and so on; of equal ones the one that
        has the least number. Those left are told by their numbers: taken ones have `below`. Zeros
        are equal: a key that is one may get the sign of another."""
        ops, kind = self.ops, "max" if self.by.descending else "min"
        as_is = self.by.order == SIGNED or (self.by.order, self.by.descending) == (LARGEST, True)
        matrix = matrix if self.by.order == SIGNED else seen_as(ops, matrix, "f32")
        picked = seen_as(ops, matrix, "i32") if self.by.order == TOTAL else matrix  # bits of NaN
        kind_of_key = tensor_of(picked.type)
        shape, words = kind_of_key.shape, replace(kind_of_key, element="i32")
        keys = matrix if as_is else ranks_of(ops, matrix, self.by)
        taken = ops.full(shape, "i32", below)
        least = -math.inf if kind_of_key.element == "f32" else LEAST_RANK
        lowest = ops.full(shape, kind_of_key.element, least)
        last = ops.broadcast(worst(ops, keys, self.by if as_is else self._by_rank), shape, [])
        if numbers is None:
            counted = ops.constant(np.arange(shape[1], dtype=np.int32), "i32")
            numbers = ops.broadcast(counted, shape, [1])
        values: list[ir.Value] = []
        places: list[ir.Value] = []
        for _ in range(kept):
            value, place = extreme(keys, numbers, below, 1, kind, ops)
            others = compared("NE", numbers, spread_along(place, 1, shape, ops), ops)
            if not as_is:
                alone = ops.emit("select", [others, lowest, picked], kind_of_key)
                value = ops.reduce(alone, "max", [1])
            keys = ops.emit("select", [others, keys, last], tensor_of(keys.type))
            numbers = ops.emit("select", [others, numbers, taken], words)
            values.append(ops.reshape(value, [shape[0], 1]))
            places.append(ops.reshape(place, [shape[0], 1]))
        return ops.concat(values, 1), ops.concat(places, 1)

    @property
    def _by_rank(self) -> Comparator:
        """The order of the ranks of keys."""
        return replace(self.by, order=SIGNED)

    def _parted(
        self, numbers: ir.Value | None, rows: int, count: int, width: int, below: int
    ) -> ir.Value:
        """Numbers of rows that are cut in parts; None are places in rows."""
        ops = self.ops
        if numbers is None:
            counted = np.arange(count * width, dtype=np.int32).reshape(count, width)
            return ops.array(counted, Tensor((count, width), "i32"))
        last = ops.array(np.array(below - 1, np.int32), Tensor((), "i32"))
        return ops.reshape(behind(ops, numbers, count * width, last), [rows * count, width])

    def _sorted(
        self, matrix: ir.Value, numbers: ir.Value | None, kept: int, below: int
    ) -> tuple[ir.Value, ir.Value | None]:
        """The first of the sorted keys of each row, and their numbers."""
        ops, found = self.ops, tensor_of(matrix.type)
        given = {"order": self.by.order, "descending": int(self.by.descending)}
        rows = found.shape[0]
        if numbers is None:
            result = Tensor((rows, kept), found.element)
            return ops.emit("sort", [matrix], result, **given), None
        result = Tensor((2, rows, kept), "i32")
        made = ops.emit("sort_pairs", [matrix, numbers], result, **given, below=below)
        halves = (ops.cut(made, [i, 0, 0], [i + 1, rows, kept]) for i in range(2))
        first, second = (ops.reshape(half, [rows, kept]) for half in halves)
        return first, second


def behind(ops: TensorOps, matrix: ir.Value, columns: int, value: ir.Value) -> ir.Value:
    """A matrix with a value behind each row."""
    found = tensor_of(matrix.type)
    more = columns - found.shape[1]
    if not more:
        return matrix
    result = Tensor((found.shape[0], columns), found.element)
    return ops.emit("pad", [matrix, value], result, low=[0, 0], high=[0, more], interior=[0, 0])


def worst(ops: TensorOps, matrix: ir.Value, by: Comparator) -> ir.Value:
    """A key behind which no other comes, of the element type of a matrix of keys or bits."""
    element = tensor_of(matrix.type).element
    bits = {
        (SIGNED, False): 0x7FFFFFFF,
        (SIGNED, True): 0x80000000,
        (TOTAL, False): 0x7FFFFFFF,
        (TOTAL, True): 0xFFFFFFFF,
        (LARGEST, False): 0xFF800001,
        (LARGEST, True): 0xFF800000,
    }[by.order, by.descending]
    array = np.array(bits, np.uint32).view(np.float32 if element == "f32" else np.int32)
    return ops.array(array, Tensor((), element))

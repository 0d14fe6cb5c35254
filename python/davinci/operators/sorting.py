"""Sorting along the last dimension of a matrix, of keys alone and of keys with numbers.

Keys are 32 bits wide, and `order` says what they are:

    signed     integers
    total      floats by their bits: NaN beyond infinity on the side of its sign, -0 before 0
    largest    floats with one NaN, which is beyond infinity, and one zero

Of sorted keys alone no two are equal but those of the same bits: zeros are in the order of "total",
and so are NaN, of "largest" those above all numbers first. With `descending` the largest key is the
first one.
"""

from __future__ import annotations

import numpy as np

from davinci.errors import require
from davinci.operators.call import Call
from davinci.operators.core import Array, operator
from davinci.operators.tensors import Tensor
from davinci.operators.windows import WindowDim, Windows, axes_of_result, whole
from davinci.operators.work import computed

SIGNED, TOTAL, LARGEST = "signed", "total", "largest"
ORDERS = (SIGNED, TOTAL, LARGEST)

MOST_NUMBER = (1 << 23) - 1
"""Numbers are less than that, so that twice of one is exact in f32."""

INFINITY, NAN = 0x7F800000, 0x7FC00000
"""The bits of both."""

KEYS = frozenset({"f32", "i32"})


def matrix_of_keys(call: Call) -> None:
    """The keys are [rows, n]."""
    keys = call.inputs[0]
    require(keys.rank == 2, "rank of the keys", keys.rank, 2)
    require(min(keys.shape) > 0, "shape of the keys", list(keys.shape), "a key in each row")


def order_of_keys(call: Call) -> None:
    """`order` is "signed" for integers, else "total" or "largest"; `descending` is 0 or 1."""
    order, element = call.choice("order", ORDERS), call.inputs[0].element
    if element != "i32":  # bits of floats may be i32 too
        require(order != SIGNED, f"order of {element}", order, f"{TOTAL} or {LARGEST}")
    found = call.integer("descending")
    require(found in (0, 1), "'descending'", found, "0 or 1")


def numbers_of_keys(call: Call) -> None:
    """The numbers are i32 [g, n], for a g that divides the rows; `below` is 1 to 2^23 - 1."""
    keys, numbers = call.inputs
    call.same_element("the numbers", numbers.element, "i32")
    legal = numbers.rank == 2 and numbers.shape[1] == keys.shape[1]
    legal = legal and numbers.shape[0] > 0 and keys.shape[0] % numbers.shape[0] == 0
    require(legal, "shape of the numbers", list(numbers.shape), f"[g, n] for keys {keys}")
    below = call.integer("below")
    require(1 <= below <= MOST_NUMBER, "'below'", below, f"1 to {MOST_NUMBER}")


def first_keys(call: Call) -> None:
    """The result has 1 to n of the keys of each row, and their element type."""
    keys, result = call.inputs[0], call.outputs[0]
    count = result.shape[-1] if result.rank == 2 else 0
    require(1 <= count <= keys.shape[1], "keys that are kept", count, f"1 to {keys.shape[1]}")
    call.expect_output((keys.shape[0], count), keys.element)


def first_pairs(call: Call) -> None:
    """The result is i32 [2, rows, 1 to n]: bits of keys, and their numbers."""
    keys, result = call.inputs[0], call.outputs[0]
    count = result.shape[-1] if result.rank == 3 else 0
    require(1 <= count <= keys.shape[1], "keys that are kept", count, f"1 to {keys.shape[1]}")
    call.expect_output((2, keys.shape[0], count), "i32")


def whole_rows(call: Call) -> Windows:
    """A row of the result may need all of that row."""
    rank = call.outputs[0].rank
    read: list[tuple[WindowDim, ...]] = [(WindowDim(rank - 2), whole(call.inputs[0].shape[1]))]
    read += [tuple(map(whole, x.shape)) for x in call.inputs[1:]]
    return Windows(axes_of_result(call), tuple(map(WindowDim, range(rank))), tuple(read))


def ranks(keys: Array, order: str) -> Array:
    """Integers in the order of the keys; equal keys have equal ones."""
    bits = np.ascontiguousarray(keys).view(np.int32).astype(np.int64)
    if order == SIGNED:
        return bits
    magnitude = bits & 0x7FFFFFFF
    if order == TOTAL:
        return np.where(bits < 0, -1 - magnitude, bits)
    found = np.where(bits < 0, -magnitude, bits)
    return np.where(magnitude > INFINITY, NAN, found)


def order_of(keys: Array, order: str, descending: int) -> Array:
    """Places of the keys of each row, sorted; of equal ones the first is first."""
    found = ranks(keys, order)
    return np.argsort(-found if descending else found, axis=-1, kind="stable")


def distinct_ranks(bits: Array, order: str) -> Array:
    """Integers in the order in which keys alone are sorted, of which no two have the same rank."""
    found = ranks(bits, SIGNED if order == SIGNED else TOTAL)
    beyond = (order == LARGEST) & (found < -1 - INFINITY)
    return np.where(beyond, found + (1 << 32), found)


@operator(
    windows=whole_rows,
    constraints=(matrix_of_keys, order_of_keys, first_keys),
    types=KEYS,
    work=computed,
)
def sort(keys: Array, *, order: str, descending: int, result: Tensor) -> Array:
    """The first of the sorted keys of each row."""
    found = distinct_ranks(keys, order)
    places = np.argsort(-found if descending else found, axis=-1, kind="stable")
    bits = np.ascontiguousarray(keys).view(np.int32)
    kept = np.take_along_axis(bits, places, -1)[:, : result.shape[-1]]
    return np.ascontiguousarray(kept).view(keys.dtype)


@operator(
    windows=whole_rows,
    constraints=(matrix_of_keys, order_of_keys, numbers_of_keys, first_pairs),
    types=KEYS,
    work=computed,
)
def sort_pairs(
    keys: Array,
    numbers: Array,
    *,
    order: str,
    descending: int,
    below: int,
    result: Tensor,
) -> Array:
    """The first of the sorted keys of each row, as bits, and their numbers. Row i has row i mod g
    of the numbers, which are 0 or more, less than `below`, and all different; of equal keys the one
    with the least number is the first. Of "largest" all NaN become the same."""
    rows, count = keys.shape[0], result.shape[-1]
    own = np.tile(numbers, (rows // len(numbers), 1))
    bits = np.ascontiguousarray(keys).view(np.int32)
    unknown = (order == LARGEST) & ((bits & 0x7FFFFFFF) > INFINITY)
    bits = np.where(unknown, NAN, bits).astype(np.int32)
    by_number = np.argsort(own, axis=-1, kind="stable")
    own, bits = (np.take_along_axis(x, by_number, -1) for x in (own, bits))
    found = order_of(bits, order, descending)[:, :count]
    return np.stack([np.take_along_axis(x, found, -1) for x in (bits, own)])

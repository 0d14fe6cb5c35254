"""Random scatters as StableHLO, and what NumPy makes of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from random_sorts import tensor

Array = npt.NDArray[Any]

TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "f64": np.float64,
    "i1": np.bool_,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
}

OFTEN = ("f32", "f32", "f16", "i32")
"""What half of the programs have."""

COMBINED: dict[str, Any] = {
    "add": np.add,
    "multiply": np.multiply,
    "minimum": np.minimum,
    "maximum": np.maximum,
}
"""What is done to a number and an update, by the operator of the region; else the update is set."""

SET = "set"


@dataclass(frozen=True)
class Scatter:
    """A program that scatters.

    Attributes:
        text: of StableHLO.
        inputs: the array, places unless the program has them, and updates.
        result: what it returns.
    """

    text: str
    inputs: tuple[Array, ...]
    result: Array


def random_scatter(seed: int, longest: int = 300) -> Scatter:
    """Elements, rows or boxes that are set, added, multiplied, or of which the least or largest
    stays.

    Places have duplicates and lie outside, arrays and lists of places may be empty. Numbers are
    such that sums and products are exact in any order, or infinite or NaN.
    """
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(OFTEN if rng.integers(2) else [*TYPES]))
    rank = int(rng.integers(1, 4))
    shape = [int(rng.choice([1, 2, 3, 8, 9, 17, 33])) for _ in range(rank)]
    shape[0] = int(rng.choice([0, 1, 2, 16, rng.integers(3, longest)]))
    indexed = int(rng.integers(1, rank + 1))
    boxes = bool(rng.integers(4) == 0) and shape[0] > 0
    window = [int(rng.integers(1, n + 1)) if boxes else n for n in shape]
    if not boxes:
        window = window[indexed:]
    count = int(rng.choice([0, 1, 2, 16, 17, rng.integers(3, longest)]))
    how = str(rng.choice([SET, "add", "add", *COMBINED]))
    outside = 2 if rng.integers(2) else 0
    places = np.stack(
        [rng.integers(-outside, max(1, n + outside), count) for n in shape[:indexed]], 1
    ).astype(rng.choice([np.int32, np.int64]))
    if rng.integers(3) == 0:
        places = np.unique(places, axis=0)
    sort = bool(rng.integers(3) == 0)
    if sort:
        places = places[np.lexsort(places.T[::-1])]
    unique = len(np.unique(places, axis=0)) == len(places) and not boxes
    array = numbers(rng, shape, kind, how)
    updates = numbers(rng, [len(places), *window], kind, how)
    known = len(places) < 3 and bool(rng.integers(2))
    marked = unique and bool(rng.integers(2))
    text = text_of(array, places, updates, kind, how, boxes, marked, sort, known)
    inputs = (array, updates) if known else (array, places, updates)
    return Scatter(text, inputs, scattered(array, places, updates, how, boxes))


def numbers(rng: np.random.Generator, shape: list[int], kind: str, how: str) -> Array:
    """Small whole numbers; of products 1, -1, and few 2; sometimes with infinities and NaN, of
    integers the ends of their range."""
    if kind == "i1":
        return np.asarray(rng.integers(0, 2, shape), np.bool_)
    if how == "multiply":
        found = rng.choice([1, -1, 1, -1, 1, 1, -1, 1, 1, 2], shape).astype(TYPES[kind])
    else:
        found = np.asarray(rng.integers(-4, 5, shape)).astype(TYPES[kind])
    if kind[0] != "f":
        ends = np.iinfo(TYPES[kind])
        odd = rng.choice(np.array([ends.min, ends.max, ends.max - 1, 0], TYPES[kind]), shape)
    else:
        found = found + 0  # no -0
        odd = rng.choice([np.inf, -np.inf, np.nan], shape).astype(TYPES[kind])
    return np.where(rng.random(shape) < rng.choice([0, 0, 0.1]), odd, found).astype(TYPES[kind])


def scattered(array: Array, places: Array, updates: Array, how: str, boxes: bool) -> Array:
    """One update after the other; of a box what lies outside is left out."""
    result, indexed = array.copy(), places.shape[1]
    for place, update in zip(places, updates, strict=True):
        starts = np.array([*place, *(0,) * (array.ndim - indexed)])
        box = update if boxes else update.reshape((1,) * indexed + update.shape)
        low = np.maximum(starts, 0)
        high = np.minimum(starts + box.shape, array.shape)
        if (low >= high).any():
            continue
        at = tuple(map(slice, low, high))
        new = box[tuple(map(slice, low - starts, high - starts))]
        with np.errstate(all="ignore"):
            result[at] = new if how == SET else COMBINED[how](result[at], new)
    return result


def text_of(
    array: Array,
    places: Array,
    updates: Array,
    kind: str,
    how: str,
    boxes: bool,
    unique: bool,
    in_order: bool,
    known: bool,
) -> str:
    """The program, whose places are an argument or known."""
    indexed, one = places.shape[1], tensor((), kind)
    types = (
        tensor(array.shape, kind),
        tensor(places.shape, f"i{places.itemsize * 8}"),
        tensor(updates.shape, kind),
    )
    inserted = [] if boxes else list(range(indexed))
    body = "" if how == SET else f"%s = stablehlo.{how} %old, %new : {one}\n"
    given, constant = f", %places: {types[1]}", ""
    if known:
        numbers = f"dense<{places.tolist() if places.size else ''}>"
        given, constant = "", f"%places = stablehlo.constant {numbers} : {types[1]}"
    return f"""
func.func @main(%x: {types[0]}{given}, %updates: {types[2]}) -> {types[0]} {{
  {constant}
  %r = "stablehlo.scatter"(%x, %places, %updates) ({{
  ^bb0(%old: {one}, %new: {one}):
    {body}stablehlo.return {"%new" if how == SET else "%s"} : {one}
  }}) {{
    scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = {list(range(1, updates.ndim))}, inserted_window_dims = {inserted},
      scatter_dims_to_operand_dims = {list(range(indexed))}, index_vector_dim = 1>,
    unique_indices = {str(unique).lower()}, indices_are_sorted = {str(in_order).lower()}
  }} : ({", ".join(types)}) -> {types[0]}
  return %r : {types[0]}
}}
"""

"""Random scatters as StableHLO, and what NumPy makes of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from random_sorts import tensor

Array = npt.NDArray[Any]

TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32}

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
        inputs: the array, places and updates.
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
    kind = str(rng.choice(["f32", "f32", "f16", "i32"]))
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
    ).astype(np.int32)
    if rng.integers(3) == 0:
        places = np.unique(places, axis=0)
    sort = bool(rng.integers(3) == 0)
    if sort:
        places = places[np.lexsort(places.T[::-1])]
    unique = len(np.unique(places, axis=0)) == len(places) and not boxes
    array = numbers(rng, shape, kind, how)
    updates = numbers(rng, [len(places), *window], kind, how)
    text = text_of(array, places, updates, kind, how, boxes, unique and bool(rng.integers(2)), sort)
    return Scatter(text, (array, places, updates), scattered(array, places, updates, how, boxes))


def numbers(rng: np.random.Generator, shape: list[int], kind: str, how: str) -> Array:
    """Small whole numbers; of products 1, -1, and few 2; sometimes with infinities and NaN."""
    if how == "multiply":
        found = rng.choice([1, -1, 1, -1, 1, 1, -1, 1, 1, 2], shape).astype(TYPES[kind])
    else:
        found = np.asarray(rng.integers(-4, 5, shape)).astype(TYPES[kind])
    if kind[0] == "i":
        ends = np.iinfo(np.int32)
        odd = rng.choice([ends.min, ends.max, -1, 0], shape).astype(np.int32)
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
) -> str:
    """The program."""
    indexed, one = places.shape[1], tensor((), kind)
    types = (tensor(array.shape, kind), tensor(places.shape, "i32"), tensor(updates.shape, kind))
    inserted = [] if boxes else list(range(indexed))
    body = "" if how == SET else f"%s = stablehlo.{how} %old, %new : {one}\n"
    return f"""
func.func @main(%x: {types[0]}, %places: {types[1]}, %updates: {types[2]}) -> {types[0]} {{
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

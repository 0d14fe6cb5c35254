"""Random gathers of elements and of few neighbours as StableHLO, and what NumPy makes of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.element_types import dtype_of
from random_sorts import tensor

Array = npt.NDArray[Any]

TYPES = ("f16", "f32", "i32", "i64", "i8", "ui8", "i16", "i1", "bf16", "ui16", "ui32", "f64")


@dataclass(frozen=True)
class Gather:
    """A program that gathers.

    Attributes:
        text: of StableHLO.
        inputs: the table and the indices.
        result: what it returns.
    """

    text: str
    inputs: tuple[Array, Array]
    result: Array


def random_gather(seed: int, longest: int = 300) -> Gather:
    """Elements of rows, along any axis of a table whose other dimensions are batch dimensions, or
    runs of few neighbours of a table that all share.

    Indices are duplicates, edges and outside, as i32 or i64 with numbers that i32 does not hold;
    there are none, one, or more than a row of the table has.
    """
    rng = np.random.default_rng(seed)
    element = str(rng.choice(TYPES))
    wide = bool(rng.integers(2))
    most = int(rng.choice([1, 2, 17, 40, longest, 40 * longest if seed % 4 == 0 else longest]))
    size = int(rng.integers(1, most + 1))
    count = int(rng.choice([0, 1, 2, 15, 16, 33, rng.integers(1, longest + 1)]))
    if rng.integers(4) == 0:
        return shared_gather(rng, element, wide, size, count)
    rank = int(rng.integers(1, 4))
    around = [int(rng.choice([1, 2, 3, 8, 17])) for _ in range(rank)]
    axis = int(rng.integers(rank + 1)) if size < longest else rank
    shape, wanted = [*around[:axis], size, *around[axis:]], [*around[:axis], count, *around[axis:]]
    table = bits(rng, shape, element)
    indices = places(rng, wanted, size, wide)
    batch = [d for d in range(rank + 1) if d != axis]
    numbers = f"""collapsed_slice_dims = [{axis}], operand_batching_dims = {batch},
      start_indices_batching_dims = {batch}, start_index_map = [{axis}],
      index_vector_dim = {rank + 1}"""
    text = text_of(shape, wanted, wanted, element, wide, numbers, [1] * (rank + 1))
    near = np.clip(indices, 0, size - 1)
    return Gather(text, (table, indices), np.take_along_axis(table, near, axis))


def shared_gather(
    rng: np.random.Generator, element: str, wide: bool, size: int, count: int
) -> Gather:
    """Runs of neighbours, or single elements, of a table [size, run]."""
    run = int(rng.choice([1, 2, 3, 8]))
    table, indices = bits(rng, [size, run], element), places(rng, [count], size, wide)
    numbers = """offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0],
      index_vector_dim = 1"""
    text = text_of([size, run], [count], [count, run], element, wide, numbers, [1, run])
    return Gather(text, (table, indices), table[np.clip(indices, 0, size - 1)])


def bits(rng: np.random.Generator, shape: list[int], element: str) -> Array:
    """Any numbers of a type, of floats without NaN, whose bits nothing compares."""
    kind = dtype_of(element)
    if element == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if kind.kind in "iu":
        ends = np.iinfo(kind)
        return rng.integers(ends.min, ends.max, shape, kind, endpoint=True)
    return rng.standard_normal(shape).astype(kind)


def places(rng: np.random.Generator, shape: list[int], size: int, wide: bool) -> Array:
    """Indices, most of them inside."""
    inside = rng.integers(0, size, shape)
    ends = np.iinfo(np.int64 if wide else np.int32)
    far = [-1, size, size - 1, 0, -size, 2 * size, ends.min, ends.max]
    if wide:
        far += [1 << 32, -(1 << 32), 1 << 31, (1 << 31) - 1, -(1 << 31) - 1, (1 << 33) + 1]
    outside = rng.choice(np.array(far, np.int64), shape)
    found = np.where(rng.random(shape) < rng.choice([0, 0.2]), outside, inside)
    return np.asarray(found).astype(np.int64 if wide else np.int32)


def text_of(
    shape: list[int],
    indices: list[int],
    result: list[int],
    element: str,
    wide: bool,
    numbers: str,
    sizes: list[int],
) -> str:
    """The program."""
    index = "i64" if wide else "i32"
    types = tensor(shape, element), tensor(indices, index), tensor(result, element)
    if numbers.startswith("collapsed"):
        given = tensor([*indices, 1], index)
        first = f"%i = stablehlo.reshape %places : ({types[1]}) -> {given}"
    else:
        given, first = types[1], ""
    name = "%i" if first else "%places"
    return f"""
func.func @main(%x: {types[0]}, %places: {types[1]}) -> {types[2]} {{
  {first}
  %r = "stablehlo.gather"(%x, {name}) {{
    dimension_numbers = #stablehlo.gather<{numbers}>,
    slice_sizes = array<i64: {", ".join(map(str, sizes))}>
  }} : ({types[0]}, {given}) -> {types[2]}
  return %r : {types[2]}
}}
"""

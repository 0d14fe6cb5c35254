"""Random programs that read or write blocks of an array at computed indices, and their values.

The values are computed here element by element, as StableHLO's specification says it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

KINDS = {
    "f32": np.float32,
    "f16": np.float16,
    "i8": np.int8,
    "i32": np.int32,
    "i64": np.int64,
    "i1": np.bool_,
}
FORMS = ("dynamic_slice", "dynamic_update_slice", "gather", "scatter", "combine")

COMBINATIONS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
"""What a scatter that combines makes of an element and its update, by StableHLO's name."""


@dataclass(frozen=True)
class Program:
    """StableHLO text, its inputs, and its result."""

    text: str
    inputs: list[Array]
    result: Array


def tensor(shape: Sequence[int], kind: str) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{kind}>"


def random_program(seed: int) -> Program:
    random = np.random.default_rng(seed)
    return _Random(random).program(FORMS[seed % len(FORMS)])


class _Random:
    def __init__(self, random: np.random.Generator) -> None:
        self.random = random
        self.kind = str(random.choice(list(KINDS)))
        self.index = str(random.choice(["i32", "i64"]))
        self.wraps = bool(random.integers(2))
        self.by = str(random.choice(list(COMBINATIONS)))

    def program(self, form: str) -> Program:
        sizes = [1, 2, 3, 5, 7, 8, 16, 17, 33, 64, 100]
        if form == "combine" and self.kind == "i1":
            self.kind = "f32"
        rank = int(self.random.integers(1, 5))
        shape = [int(self.random.choice(sizes)) for _ in range(rank)]
        while np.prod(shape) > 20000:
            shape[int(np.argmax(shape))] = 3
        if form.startswith("dynamic"):
            return self.slices(form, shape)
        return self.tuples(form, shape)

    def values(self, shape: Sequence[int]) -> Array:
        found = self.random.integers(-100, 100, tuple(shape))
        return found.astype(KINDS[self.kind]) if self.kind != "i1" else found > 0

    def indices(self, shape: Sequence[int], size: int) -> Array:
        """Most inside, some outside, and twice the same."""
        found = self.random.integers(-size - 2, size + 3, tuple(shape))
        inside = self.random.integers(0, size, tuple(shape))
        return np.where(self.random.random(tuple(shape)) < 0.7, inside, found)

    def wrapping(self, name: str, shape: Sequence[int], sizes: Array) -> str:
        """Statements that make %{name}w of %{name}, negative indices counted from the end."""
        kind = tensor(shape, self.index)
        if not self.wraps or 0 in shape:
            return f"%{name}w = stablehlo.reshape %{name} : ({kind}) -> {kind}\n"
        known = np.broadcast_to(sizes, tuple(shape)).tolist()
        truths = tensor(shape, "i1")
        return f"""%{name}z = stablehlo.constant dense<0> : {kind}
        %{name}s = stablehlo.constant dense<{known}> : {kind}
        %{name}n = stablehlo.compare LT, %{name}, %{name}z : ({kind}, {kind}) -> {truths}
        %{name}e = stablehlo.add %{name}, %{name}s : {kind}
        %{name}w = stablehlo.select %{name}n, %{name}e, %{name} : {truths}, {kind}
        """

    def wrapped(self, index: Any, size: Any) -> Any:
        return np.where((index < 0) & self.wraps, index + size, index)

    def slices(self, form: str, shape: list[int]) -> Program:
        block = [
            int(self.random.integers(1, n + 1)) if self.random.integers(2) else n for n in shape
        ]
        starts = [self.indices((), n).astype(np.int64) for n in shape]
        given = [bool(self.random.integers(3)) for _ in shape]
        integer = np.int32 if self.index == "i32" else np.int64
        text, names, inputs, arguments = "", [], [], []
        for d, (start, dynamic, size) in enumerate(zip(starts, given, shape, strict=True)):
            if dynamic:
                arguments.append(f"%i{d}: {tensor([], self.index)}")
                inputs.append(np.array(start, integer))
                text += self.wrapping(f"i{d}", [], np.array(size))
                names.append(f"%i{d}w")
            else:
                text += f"%i{d} = stablehlo.constant dense<{start}> : {tensor([], self.index)}\n"
                names.append(f"%i{d}")
        begins = [
            int(np.clip(self.wrapped(s, n) if g else s, 0, n - b))
            for s, n, b, g in zip(starts, shape, block, given, strict=True)
        ]
        place = tuple(slice(s, s + b) for s, b in zip(begins, block, strict=True))
        x, update = self.values(shape), self.values(block)
        whole, piece = tensor(shape, self.kind), tensor(block, self.kind)
        types = ", ".join([tensor([], self.index)] * len(shape))
        if form == "dynamic_slice":
            head, made, result = [f"%x: {whole}"], piece, x[place]
            inputs = [x, *inputs]
            text += (
                f"%r = stablehlo.dynamic_slice %x, {', '.join(names)}, sizes = {block} : "
                f"({whole}, {types}) -> {piece}"
            )
        else:
            head, made, result = [f"%x: {whole}", f"%u: {piece}"], whole, x.copy()
            result[place] = update
            inputs = [x, update, *inputs]
            text += (
                f"%r = stablehlo.dynamic_update_slice %x, %u, {', '.join(names)} : "
                f"({whole}, {piece}, {types}) -> {whole}"
            )
        return Program(function([*head, *arguments], text, made), inputs, result)

    def tuples(self, form: str, shape: list[int]) -> Program:
        """A gather or scatter with windows, batching dimensions, and tuples anywhere."""
        random, rank = self.random, len(shape)
        dims = [int(d) for d in random.permutation(rank)]
        columns = int(random.integers(1, min(rank, 3) + 1))
        axes, others = dims[:columns], dims[columns:]
        batching = others[: int(random.integers(0, 2))]
        scatter_dims = [int(n) for n in random.integers(1, 4, int(random.integers(0, 3)))]
        if form == "combine" and scatter_dims:
            scatter_dims[0] = int(random.choice([0, 1, 2, 3, 17, 50], p=[0.05, *[0.19] * 5]))
        outer = [*(shape[d] for d in batching), *scatter_dims]
        order = [int(d) for d in random.permutation(len(outer))]
        outer = [outer[d] for d in order]
        places = [order.index(n) for n in range(len(batching))]
        vector = int(random.integers(0, len(outer) + 1))
        places = [p + (p >= vector) for p in places]
        table_shape = [*outer[:vector], columns, *outer[vector:]]
        sizes = np.array([shape[a] for a in axes]).reshape(
            [-1 if d == vector else 1 for d in range(len(table_shape))]
        )
        lines = [self.indices(outer, shape[a]) for a in axes]
        integer = np.int32 if self.index == "i32" else np.int64
        table = np.stack(lines, vector).astype(integer)
        short = form != "gather"
        block = [
            1
            if d in batching or (d in axes and (short or random.integers(2)))
            else int(random.integers(1, n + 1))
            if random.integers(2)
            else n
            for d, n in enumerate(shape)
        ]
        dropped = sorted(d for d in axes if block[d] == 1 and random.integers(2))
        kept = [d for d in range(rank) if d not in (*dropped, *batching)]
        total = len(outer) + len(kept)
        offsets = sorted(int(d) for d in random.permutation(total)[: len(kept)])
        rest = [d for d in range(total) if d not in offsets]
        moved = [0] * total
        for d, size in zip([*rest, *offsets], [*outer, *(block[d] for d in kept)], strict=True):
            moved[d] = size
        x, updates = self.values(shape), self.values(moved)
        exact: Any = x.dtype
        if form == "combine" and self.kind in ("f32", "f16"):
            for values in (x, updates):
                values[random.random(values.shape) < 0.02] = np.nan
            exact = np.float32
        result = x.astype(exact) if short else np.zeros(moved, x.dtype)
        chosen = self.wrapped(table, sizes)
        for at in itertools.product(*map(range, moved)):
            where = [at[d] for d in rest]
            begin = [0] * rank
            for column, axis in enumerate(axes):
                begin[axis] = int(chosen[(*where[:vector], column, *where[vector:])])
            for d, place in zip(batching, places, strict=True):
                begin[d] = where[place - (place > vector)]
            if not short:
                begin = [min(max(b, 0), n - w) for b, n, w in zip(begin, shape, block, strict=True)]
            for d, offset in zip(kept, offsets, strict=True):
                begin[d] += at[offset]
            inside = all(0 <= b < n for b, n in zip(begin, shape, strict=True))
            if form == "combine" and inside:
                old, new = result[tuple(begin)], updates[at].astype(exact)
                with np.errstate(all="ignore"):
                    result[tuple(begin)] = COMBINATIONS[self.by](old, new)
            elif short and inside:
                result[tuple(begin)] = updates[at]
            elif not short:
                result[at] = x[tuple(begin)]
        whole, piece = tensor(shape, self.kind), tensor(moved, self.kind)
        index = tensor(table_shape, self.index)
        text = self.wrapping("i", table_shape, sizes)
        if form == "gather":
            text += f"""%r = "stablehlo.gather"(%x, %iw) {{
              dimension_numbers = #stablehlo.gather<offset_dims = {offsets},
                collapsed_slice_dims = {dropped}, operand_batching_dims = {batching},
                start_indices_batching_dims = {places}, start_index_map = {axes},
                index_vector_dim = {vector}>,
              slice_sizes = array<i64: {", ".join(map(str, block))}>}}
              : ({whole}, {index}) -> {piece}"""
            head = [f"%x: {whole}", f"%i: {index}"]
            return Program(function(head, text, piece), [x, table], result)
        result, number = result.astype(x.dtype), tensor([], self.kind)
        made = f"%c = stablehlo.{self.by} %a, %b : {number}" if form == "combine" else ""
        text += f"""%r = "stablehlo.scatter"(%x, %iw, %u) ({{
            ^bb0(%a: {number}, %b: {number}):
              {made}
              stablehlo.return %{"c" if made else "b"} : {number}
            }}) {{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = {offsets},
              inserted_window_dims = {dropped}, input_batching_dims = {batching},
              scatter_indices_batching_dims = {places}, scatter_dims_to_operand_dims = {axes},
              index_vector_dim = {vector}>}} : ({whole}, {index}, {piece}) -> {whole}"""
        head = [f"%x: {whole}", f"%i: {index}", f"%u: {piece}"]
        return Program(function(head, text, whole), [x, table, updates], result)


def function(arguments: Sequence[str], text: str, result: str) -> str:
    head = f"func.func @main({', '.join(arguments)}) -> {result} {{"
    return f"{head}\n{text}\nreturn %r : {result}\n}}"

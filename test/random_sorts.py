"""Random sorts as StableHLO, and what NumPy makes of their operands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

TYPES = {
    "f32": np.float32,
    "f16": np.float16,
    "i32": np.int32,
    "i8": np.int8,
    "i16": np.int16,
    "ui16": np.uint16,
    "i64": np.int64,
    "ui32": np.uint32,
    "ui64": np.uint64,
}
PLAIN, TOTAL, ALIKE = "plain", "total", "alike"
"""How a comparator compares floats: as they are, by their bits, with zeros and NaN made alike."""


@dataclass(frozen=True)
class Sort:
    """A program that sorts.

    Attributes:
        text: of StableHLO.
        inputs: its operands.
        results: what it returns.
    """

    text: str
    inputs: tuple[Array, ...]
    results: tuple[Array, ...]


def random_sort(seed: int, longest: int = 700) -> Sort:
    """Keys of any type, rank and comparator, alone, with places, with others, or with second keys
    where they are equal; all or the first.

    Keys have duplicates, zeros of both signs, infinities and NaN; arrays may be empty.
    """
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["f32", "f32", "f16", *list(TYPES)[2:]]))
    shape = [int(rng.choice([0, 1, 1, 2, 3, 7, 8, 9, 17])) for _ in range(rng.integers(0, 3))]
    dim = int(rng.integers(0, len(shape) + 1))
    length = int(rng.choice([0, 1, 2, 15, 16, 17, rng.integers(3, longest)]))
    shape.insert(dim, length)
    compares = str(rng.choice([PLAIN, TOTAL, ALIKE])) if kind[0] == "f" else PLAIN
    descending = bool(rng.integers(2))
    keys = random_keys(rng, shape, kind)
    if compares == PLAIN and kind[0] == "f":  # of which the comparator says nothing
        keys = np.where(np.isnan(keys), np.inf, keys).astype(keys.dtype)
    form = str(rng.choice(["alone", "places", "places", "others", "keys"]))
    kept = int(rng.integers(0, length + 1)) if rng.integers(3) == 0 else length
    return sort_of(keys, dim, compares, descending, form, kept, rng)


def random_keys(rng: np.random.Generator, shape: list[int], kind: str) -> Array:
    if kind[0] != "f":
        ends = np.iinfo(TYPES[kind])
        few = bool(rng.integers(2))
        low, high = (max(-3, ends.min), 3) if few else (ends.min, ends.max)
        return rng.integers(low, high, shape, TYPES[kind], endpoint=True)
    many = rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4)
    keys = np.array(np.rint(many) if rng.integers(2) else many, TYPES[kind])
    odd = rng.choice([0, -0.0, np.inf, -np.inf, np.nan, -np.nan], shape).astype(TYPES[kind])
    return np.where(rng.random(shape) < rng.choice([0, 0.3]), odd, keys)


def sort_of(
    keys: Array,
    dim: int,
    compares: str,
    descending: bool,
    form: str,
    kept: int,
    rng: np.random.Generator,
) -> Sort:
    """The program, operands and results of a sort."""
    kind = next(name for name, dtype in TYPES.items() if dtype == keys.dtype)
    others: list[Array] = []
    if form == "others":
        others = [rng.integers(-9, 9, keys.shape).astype(t) for t in (np.float32, np.int32)]
    elif form == "keys":
        others = [rng.integers(-2, 2, keys.shape, np.int32)]
    names = {np.dtype(dtype): name for name, dtype in TYPES.items()}
    types = [tensor(keys.shape, names[x.dtype]) for x in (keys, *others)]
    operands = [f"%{i}" for i in range(len(types))]
    lines, all_types = [], list(types)
    if form == "places":
        all_types.append(tensor(keys.shape, "i32"))
        operands.append("%places")
        lines.append(f"%places = stablehlo.iota dim = {dim} : {all_types[-1]}")
    count = len(operands)
    head = f'%r{f":{count}" if count > 1 else ""} = "stablehlo.sort"({", ".join(operands)}) ({{'
    lines += [head, region(all_types, kind, compares, descending, form == "keys")]
    listed = ", ".join(all_types)
    lines.append(f"}}) {{dimension = {dim} : i64, is_stable = true}} : ({listed}) -> ({listed})")
    limits = [kept if d == dim else n for d, n in enumerate(keys.shape)]
    returned, result_types = [], []
    for i, whole in enumerate(all_types):
        found, name = whole, f"%r#{i}" if count > 1 else "%r"
        if kept < keys.shape[dim]:
            found = tensor(tuple(limits), whole.split("x")[-1].rstrip(">").split("<")[-1])
            ranges = ", ".join(f"0:{n}" for n in limits)
            lines.append(f"%s{i} = stablehlo.slice {name} [{ranges}] : ({whole}) -> {found}")
            name = f"%s{i}"
        returned.append(name)
        result_types.append(found)
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(types))
    body = "\n".join(lines)
    text = (
        f"func.func @main({arguments}) -> ({', '.join(result_types)}) {{\n{body}\n"
        f"return {', '.join(returned)} : {', '.join(result_types)} }}"
    )
    second = others if form == "keys" else []
    order = np.take(order_of(keys, dim, compares, descending, second), range(kept), dim)
    results = [np.take_along_axis(x, order, dim) for x in (keys, *others)]
    if form == "places":
        results.append(order.astype(np.int32))
    return Sort(text, (keys, *others), tuple(results))


def tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}>"


def region(types: list[str], kind: str, compares: str, descending: bool, second: bool) -> str:
    """The comparator, of two keys if the operand behind the first is the second one."""
    arguments, lines = [], []
    for i, whole in enumerate(types):
        scalar = tensor((), whole.split("x")[-1].rstrip(">").split("<")[-1])
        arguments += [f"%a{i}: {scalar}", f"%b{i}: {scalar}"]
    one, names = tensor((), kind), ["%a0", "%b0"]
    if compares == ALIKE:
        lines += [
            f"%zero = stablehlo.constant dense<0.0> : {one}",
            f"%nan = stablehlo.constant dense<0x{'7FC00000' if kind == 'f32' else '7E00'}> : {one}",
        ]
        names = [alike(lines, x, one) for x in ("a", "b")]
    how = {"i": "SIGNED", "u": "UNSIGNED"}.get(kind[0]) or (
        "FLOAT" if compares == PLAIN else "TOTALORDER"
    )
    direction = "GT" if descending else "LT"
    lines.append(
        f"%c = stablehlo.compare {direction}, {', '.join(names)}, {how} : ({one}, {one}) "
        "-> tensor<i1>"
    )
    if second:
        number = "(tensor<i32>, tensor<i32>) -> tensor<i1>"
        lines += [
            f"%e = stablehlo.compare EQ, {', '.join(names)}, {how} : ({one}, {one}) -> tensor<i1>",
            f"%d = stablehlo.compare LT, %a1, %b1, SIGNED : {number}",
            "%f = stablehlo.and %e, %d : tensor<i1>",
            "%o = stablehlo.or %c, %f : tensor<i1>",
        ]
    lines.append(f"stablehlo.return %{'o' if second else 'c'} : tensor<i1>")
    body = "\n".join(lines)
    return f"^bb0({', '.join(arguments)}):\n{body}"


def alike(lines: list[str], x: str, one: str) -> str:
    """An argument with one zero and one NaN, as JAX writes it."""
    pair = f"({one}, {one}) -> tensor<i1>"
    lines += [
        f"%z{x} = stablehlo.compare EQ, %{x}0, %zero, FLOAT : {pair}",
        f"%y{x} = stablehlo.select %z{x}, %zero, %{x}0 : tensor<i1>, {one}",
        f"%n{x} = stablehlo.compare NE, %{x}0, %{x}0, FLOAT : {pair}",
        f"%x{x} = stablehlo.select %n{x}, %nan, %y{x} : tensor<i1>, {one}",
    ]
    return f"%x{x}"


def order_of(keys: Array, dim: int, compares: str, descending: bool, second: list[Array]) -> Array:
    """The places of sorted keys, of equal ones by a second key if there is one; of equal ones the
    first is first."""
    lines = np.moveaxis(keys, dim, -1)
    sign = -1 if descending else 1
    ranks = [lines]
    if keys.dtype.kind != "f":
        ranks = [~lines if descending else lines]
    elif compares == TOTAL:
        width = 8 * keys.dtype.itemsize
        bits = np.ascontiguousarray(lines).view(f"i{keys.dtype.itemsize}").astype(np.int64)
        ranks = [sign * np.where(bits < 0, -1 - (bits + (1 << (width - 1))), bits)]
    else:
        unknown = np.isnan(lines)
        ranks = [sign * unknown, sign * np.where(unknown, 0, lines)]
    ranks += [np.moveaxis(x, dim, -1) for x in second]
    return np.moveaxis(np.lexsort(ranks[::-1], -1), -1, dim)


def differs(sort: Sort, found: list[Array]) -> bool:
    """Whether results are others than NumPy's: numbers that are not equal, or NaN elsewhere."""
    pairs = zip(found, sort.results, strict=True)
    return not all(
        x.shape == y.shape and np.array_equal(x, y, equal_nan=y.dtype.kind == "f") for x, y in pairs
    )

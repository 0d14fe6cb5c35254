"""Operands for every operator that is folded at compile time.

A case is an operator on arrays; its kernel, run on the same arrays as arguments, is what a fold
must agree with. Values that hurt come first: zeros of both signs, infinities, NaN, ends of ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

ELEMENTS = {"float32": "f32", "float16": "f16", "int32": "i32", "int16": "i16", "int8": "i8"}


@dataclass(frozen=True)
class Case:
    """An operator with operands.

    Attributes:
        name: without the dialect.
        inputs: the operands.
        shape: of the result; that of the last operand if empty.
        result: element type of the result; that of the last operand if empty.
        attributes: Python values for `evaluate`.
        text: the attributes in MLIR.
        rtol: the kernel computes a series; 0: the same bits, NaN apart.
    """

    name: str
    inputs: tuple[Array, ...]
    shape: tuple[int, ...] | None = None
    result: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    rtol: float = 0.0

    def __str__(self) -> str:
        types = [element(x) for x in self.inputs] or [self.result]
        values = [str(v) for v in self.attributes.values() if isinstance(v, str)]
        return "-".join([self.name, *values, *types, self.result])


def element(array: Array) -> str:
    return "i1" if array.dtype == np.bool_ else ELEMENTS[str(array.dtype)]


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5]
F32 = np.array([*SPECIAL, 3.0, -7.25, 100.0, -100.0, 1e5, -1e5, 3e38, 1e-30, 2.0**23, 9.1], "f4")
F16 = np.array([*SPECIAL, 3.0, -7.25, 10.0, -10.0, 300.0, -300.0, 65504.0, 6e-8, 2048.0, 9.1], "f2")
I32 = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100, 2**31 - 1, -(2**31), 65536, 3], "i4")
I16 = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100, 2**15 - 1, -(2**15), 255, 3], "i2")
I1 = np.array([False, True, True, False, True], np.bool_)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value with every other."""
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


FLOATS = (F32, F16)
NUMBERS = (F32, F16, I32)
SERIES = {"float32": 4e-6, "float16": 2e-3}
"""Relative errors of functions: some ulp of f32, two of f16."""

UNARY = [
    *(Case(n, (x,)) for n in ("neg", "abs", "sign", "relu") for x in NUMBERS),
    *(Case(n, (x,)) for n in ("floor", "ceil", "round", "sqrt") for x in FLOATS),
    *(
        Case(n, (x,), rtol=SERIES[str(x.dtype)])
        for n in ("exp", "log", "rsqrt", "tanh", "erf", "logistic")
        for x in FLOATS
    ),
    *(Case("not", (x,)) for x in (I1, I16, I32)),
    Case("copy", (F32,)),
]
POWERS = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -2.0, 1.25, 4.0], np.float32)
BASES = np.array([0.0, -0.0, 0.5, 2.0, 3.0, -2.0, -3.0, 1.0, np.inf, -np.inf, np.nan], np.float32)
GRID = tuple(x.ravel() for x in np.meshgrid(BASES, POWERS))
BINARY = [
    *(Case(n, pairs(x)) for n in ("add", "sub", "mul", "max", "min") for x in NUMBERS),
    *(Case("div", pairs(x)) for x in FLOATS),
    *(Case(n, pairs(x)) for n in ("and", "or", "xor") for x in (I1, I16)),
    Case("pow", GRID, rtol=4e-5),
    Case("pow", tuple(x.astype(np.float16) for x in GRID), rtol=2e-3),
]
COMPARE = [
    Case("compare", pairs(x), None, "i1", {"predicate": p}, f'predicate = "{p}"')
    for p in ("EQ", "NE", "LT", "LE", "GT", "GE")
    for x in NUMBERS
]
CONDITION = np.arange(F32.size) % 3 == 1
CLAMPED = np.meshgrid(F32[:10], F32[:10], F32[:10])
CHOOSE = [
    *(Case("select", (CONDITION[: x.size], x, x[::-1].copy())) for x in NUMBERS),
    Case("clamp", (CLAMPED[0].ravel(), CLAMPED[1].ravel(), CLAMPED[2].ravel())),
    Case("clamp", tuple(c.ravel().astype(np.float16) for c in CLAMPED)),
]
BYTES = np.array([0, 1, -1, 127, -128, 5], np.int8)
SMALL = np.array([0, 1, -1, 127, -128, 5, 2**20], np.int32)
CAST = [
    Case("cast", (x,), None, kind)
    for x, kinds in (
        (F32, ("f16", "i32", "i8", "i1")),
        (F16, ("f32", "i32", "i8", "i1")),
        (SMALL, ("f32", "f16", "i8", "i1")),
        (BYTES, ("f32", "f16", "i32", "i1")),
        (I1, ("f32", "f16", "i32", "i8")),
    )
    for kind in kinds
]
PARTS = [
    Case("cube_scale", (np.abs(F32[np.isfinite(F32)]),)),
    *(Case("half_part", (F32,), None, "f16", {"part": p}, f"part = {p} : i64") for p in range(3)),
]
CUBE = np.arange(3 * 20 * 17, dtype=np.float32).reshape(3, 20, 17)
TALL = (np.arange(3 * 40 * 16).reshape(3, 40, 16) % 7 + 1).astype(np.float32)


def ints(**arrays: list[int]) -> tuple[dict[str, Any], str]:
    """Attributes that are arrays of integers, as Python values and in MLIR."""
    text = ", ".join(f"{k} = array<i64: {', '.join(map(str, v))}>" for k, v in arrays.items())
    return dict(arrays), text


def reduced(kind: str, x: Array, dims: list[int]) -> Case:
    attributes, text = ints(dims=dims)
    shape = tuple(n for i, n in enumerate(x.shape) if i not in dims)
    return Case("reduce", (x,), shape, "", {"kind": kind, **attributes}, f'kind = "{kind}", {text}')


REDUCE = [
    *(reduced(k, TALL[:, :3], [1]) for k in ("add", "mul")),
    *(reduced(k, TALL, [0, 2]) for k in ("max", "min")),
    *(reduced(k, np.stack([F32, F32[::-1]]), [0]) for k in ("add", "max", "min", "mul")),
    *(reduced(k, np.tile(I32, (2, 2)), [1]) for k in ("add", "max", "min", "mul")),
    reduced("add", np.ones((4096, 16), np.float16), [0]),
]
MOVE = [
    Case("broadcast", (CUBE[:, 0],), (17, 3, 2), "", *ints(dims=[1, 0])),
    Case("reshape", (CUBE,), (20, 51)),
    Case("view", (CUBE,), (20, 51), "", *ints(shape=[60, 17], permutation=[0, 1])),
    Case("transpose", (CUBE,), (17, 3, 20), "", *ints(permutation=[2, 0, 1])),
    Case(
        "slice",
        (CUBE,),
        (2, 7, 4),
        "",
        *ints(starts=[1, 2, 0], limits=[3, 9, 16], strides=[1, 1, 4]),
    ),
    Case("concat", (CUBE, CUBE[:, :5] + 1), (3, 25, 17), "", {"dim": 1}, "dim = 1 : i64"),
    Case(
        "pad",
        (CUBE[0], np.array(-1, np.float32)),
        (21, 40),
        "",
        *ints(low=[2, -1], high=[-1, 8], interior=[0, 1]),
    ),
    Case("iota", (), (5, 40), "i32", {"dim": 1}, "dim = 1 : i64"),
    Case("gather", (CUBE[0], np.array([3, -1, 19, 40, 0], np.int32)), (5, 17), "f32"),
    Case("relayout", (CUBE,)),
]
CASES = [*UNARY, *BINARY, *COMPARE, *CHOOSE, *CAST, *PARTS, *REDUCE, *MOVE]

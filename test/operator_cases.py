"""Operands for every operator: what its record, its kernel and StableHLO must agree on.

Values that hurt come first: zeros of both signs, infinities, NaN, ends of ranges.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from davinci.operators import Call, Tensor
from davinci.operators.conv import geometry, weight_rows
from davinci.operators.parts import pad_shape, slice_shape
from davinci.operators.quantize import words_of
from davinci.operators.reduce import reduce_shape

Array = npt.NDArray[Any]

ELEMENTS = {"bool": "i1", "float32": "f32", "float16": "f16"}
ELEMENTS |= {f"int{n}": f"i{n}" for n in (8, 16, 32, 64)}


def tensor_of(array: Array) -> Tensor:
    return Tensor(array.shape, ELEMENTS[str(array.dtype)])


@dataclass(frozen=True)
class Case:
    """An operator with operands.

    Attributes:
        name: without the dialect.
        inputs: the operands.
        result: shape and element type of the result.
        attributes: as Python values.
        rtol: the kernel computes a series; 0: the same bits, NaN apart.
        atol: beside `rtol`, what is added to it.
    """

    name: str
    inputs: tuple[Array, ...]
    result: Tensor
    attributes: dict[str, Any] = field(default_factory=dict)
    rtol: float = 0.0
    atol: float = 1e-7

    def __str__(self) -> str:
        types = [tensor_of(x).element for x in self.inputs]
        words = [str(v) for v in self.attributes.values() if isinstance(v, str)]
        shape = "x".join(map(str, self.result.shape))
        return "-".join([self.name, *words, *types, self.result.element, shape])

    @property
    def call(self) -> Call:
        inputs = tuple(map(tensor_of, self.inputs))
        return Call(inputs, (self.result,), self.attributes)


def case(
    name: str, *inputs: Array, rtol: float = 0.0, atol: float = 1e-7, **attributes: Any
) -> Case:
    """An elementwise case, whose result has the type of the last operand."""
    return Case(name, inputs, tensor_of(inputs[-1]), attributes, rtol, atol=atol)


def resized(given: Case, count: int) -> Case:
    """An elementwise case of `count` elements, which repeat."""
    inputs = tuple(np.resize(x, count) if count else x[:0] for x in given.inputs)
    return replace(given, inputs=inputs, result=replace(given.result, shape=(count,)))


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5]
F32 = np.array([*SPECIAL, 3.0, -7.25, 100.0, -100.0, 1e5, -1e5, 3e38, 1e-30, 2.0**23, 9.1], "f4")
F16 = np.array([*SPECIAL, 3.0, -7.25, 10.0, -10.0, 300.0, -300.0, 65504.0, 6e-8, 2048.0, 9.1], "f2")
I32 = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100, 2**31 - 1, -(2**31), 65536, 3], "i4")
BITS_ALONE = np.array([(1 << i) + d for i in range(31) for d in (-1, 0, 1)], "i4")
I16 = np.array([0, 1, -1, 2, -2, 7, -7, 100, -100, 2**15 - 1, -(2**15), 255, 3], "i2")
I1 = np.array([False, True, True, False, True], np.bool_)


def pairs(values: Array) -> tuple[Array, Array]:
    """Every value with every other."""
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


LONG = np.array([*I32, 2**32, 2**32 - 1, 2**32 + 1, -(2**32), -(2**32) - 1, 2**63 - 1], "i8")
# Of those beyond 2^31 conversions to f32 are exact.
I64 = np.array([0, 1, -1, 127, -128, 2**24 + 1, 2**31 - 1, -(2**31), 2**31, 2**40, -(2**63)], "i8")

DOUBLES = np.array(
    [
        *SPECIAL,
        *(5e-324, -3e-310, 2.0**-1022, 1.7e308, -1.7e308, 3.0, 1 / 3, 1 + 2**-52, 2.0**53 + 2),
        *(2.0**-149, 2.0**-150, 3 * 2.0**-150, 3.5e38, 16777217, 16777219, 2.0**63, 1e-160),
    ]
).view("i8")
"""Bits of f64."""

# Bits of bf16: zeros, subnormal, infinite and NaN; and f32 around halves of their last bit.
BRAIN_BITS = np.array([0, -(2**15), 1, 0x7F80, -128, 0x7FC0, 0x3F80, 0x7F7F, -64, 0x0080], "i2")
BRAIN_TIES = np.array(
    [0x3F808000, 0x3F818000, 0x3F817FFF, 0x3F808001, 0x7F7F8000, 0x00008000, 0], "i4"
)
BRAIN_TIES = np.concatenate([BRAIN_TIES.view("f4"), -BRAIN_TIES.view("f4"), F32])

# Counts of shifts, some beyond the bits of i32.
COUNTS = np.array([0, 1, 7, 8, 16, 19, 31, 32, 33, 1000, -1, -(2**31), 5], "i4")

FLOATS = (F32, F16)
NUMBERS = (F32, F16, I32)
ALL = (*NUMBERS, LONG)
SERIES = {"float32": 4e-6, "float16": 2e-3}
"""Relative errors of functions: some ulp of f32, two of f16."""

INVERSE = ("acos", "acosh", "asin", "asinh", "atanh", "cosh", "erf_inv", "sinh")
"""Functions of one number of which only CHLO has an operation."""

UNARY = [
    *(case(n, x) for n in ("neg", "abs", "sign") for x in ALL),
    *(case("relu", x) for x in NUMBERS),
    *(case(n, x) for n in ("floor", "ceil", "round", "round_away", "sqrt") for x in FLOATS),
    *(
        case(n, x, rtol=SERIES[str(x.dtype)])
        for n in ("exp", "log", "rsqrt", "tanh", "erf", "logistic")
        for x in FLOATS
    ),
    *(
        case(n, x, rtol=SERIES[str(x.dtype)])
        for n in ("sine", "cosine", "tan", "expm1", "log1p", "cbrt", *INVERSE)
        for x in FLOATS
    ),
    *(case("not", x) for x in (I1, I16, I32, LONG)),
    *(case(n, x) for n in ("popcnt", "count_leading_zeros") for x in (I32, LONG)),
    case("count_leading_zeros", BITS_ALONE),
    Case("from_bfloat", (BRAIN_BITS,), Tensor(BRAIN_BITS.shape, "f32")),
    Case("to_bfloat", (BRAIN_TIES,), Tensor(BRAIN_TIES.shape, "i16")),
    case("double_from_long", LONG),
    case("double_to_long", DOUBLES),
    *(case(f"double_{name}", DOUBLES) for name in ("sqrt", "floor", "round", "round_even")),
    Case("double_to_half", (DOUBLES,), Tensor(DOUBLES.shape, "f16")),
    Case("double_from_single", (F32,), Tensor(F32.shape, "i64")),
    Case("double_to_single", (DOUBLES,), Tensor(DOUBLES.shape, "f32")),
    *(
        Case("bitcast", (x,), Tensor(x.shape, kind))
        for x, kind in ((I32, "f32"), (F32, "i32"), (I16, "f16"), (F16, "i16"))
    ),
    *(case("hard_swish", x) for x in FLOATS),
    Case("quantize", (F32,), Tensor(F32.shape, "i8"), {"zero": -7}),
    Case("quantize", (F16,), Tensor(F16.shape, "ui8"), {"zero": 130}),
    case("gelu", F32, rtol=SERIES["float32"], atol=2e-6),
    case("gelu", F16, rtol=SERIES["float16"], atol=3e-4),
]
POWERS = np.array([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 3.0, -2.0, 1.25, 4.0], np.float32)
BASES = np.array([0.0, -0.0, 0.5, 2.0, 3.0, -2.0, -3.0, 1.0, np.inf, -np.inf, np.nan], np.float32)
GRID = tuple(x.ravel() for x in np.meshgrid(BASES, POWERS))
QUOTIENTS, LONG_QUOTIENTS = (tuple(x[pairs(a)[1] != 0] for x in pairs(a)) for a in (I32, LONG))
SHIFTED = tuple(x.ravel() for x in np.meshgrid(I32, COUNTS))
LONG_SHIFTED = tuple(x.ravel() for x in np.meshgrid(LONG, np.array([*COUNTS, 63, 64, 40], "i8")))
BINARY = [
    *(case(n, *pairs(x)) for n in ("add", "sub", "mul", "max", "min") for x in ALL),
    *(case("div", *pairs(x)) for x in FLOATS),
    *(case(n, *x) for n in ("div", "remainder") for x in (QUOTIENTS, LONG_QUOTIENTS)),
    *(case("remainder", *pairs(x)) for x in FLOATS),
    *(case(n, *pairs(x)) for n in ("and", "or", "xor") for x in (I1, I16, I32, LONG)),
    *(case(n, *SHIFTED) for n in ("shift_left", "shift_right", "shift_right_logical")),
    *(case(n, *LONG_SHIFTED) for n in ("shift_left", "shift_right", "shift_right_logical")),
    *(case(n, *pairs(DOUBLES)) for n in ("double_add", "double_mul", "double_div")),
    *(case("atan2", *pairs(x), rtol=SERIES[str(x.dtype)]) for x in FLOATS),
    case("pow", *GRID, rtol=4e-5),
    case("pow", *(x.astype(np.float16) for x in GRID), rtol=2e-3),
]
COMPARE = [
    Case("compare", pairs(x), Tensor((x.size**2,), "i1"), {"predicate": p})
    for p in ("EQ", "NE", "LT", "LE", "GT", "GE")
    for x in (*NUMBERS, LONG)
]
CONDITION = np.arange(F32.size) % 3 == 1
CLAMPED = [x.ravel() for x in np.meshgrid(F32[:10], F32[:10], F32[:10])]
CHOOSE = [
    *(case("select", CONDITION[: x.size], x, x[::-1].copy()) for x in (*NUMBERS, LONG)),
    case("clamp", *CLAMPED),
    case("clamp", *(x.ravel() for x in np.meshgrid(LONG[7:13], LONG[::2], LONG[:3]))),
    case("clamp", *(x.astype(np.float16) for x in CLAMPED)),
]
BYTES = np.array([0, 1, -1, 127, -128, 5], np.int8)
SMALL = np.array([0, 1, -1, 127, -128, 5, 2**20], np.int32)
WIDE = np.array([*F32, 2.0**31, -(2.0**31), 2.0**32 + 512, -(2.0**40), 2.0**63, -(2.0**63)], "f4")
CAST = [
    Case("cast", (x,), Tensor(x.shape, kind))
    for x, kinds in (
        (F32, ("f16", "i32", "i8", "i1")),
        (F16, ("f32", "i32", "i8", "i1")),
        (SMALL, ("f32", "f16", "i8", "i1")),
        (BYTES, ("f32", "f16", "i32", "i1")),
        (I1, ("f32", "f16", "i32", "i8", "i64")),
        (I64, ("f32", "f16", "i32", "i8", "i1")),
        (WIDE, ("i64",)),
        (F16, ("i64",)),
        (I32, ("i64",)),
        (BYTES, ("i64",)),
        (I16, ("f32", "f16", "i32", "i8", "i1", "i64")),
        *((x, ("i16",)) for x in (F32, F16, I32, I64, BYTES, I1)),
    )
    for kind in kinds
]
PARTS = [
    case("cube_scale", np.abs(F32[np.isfinite(F32)])),
    *(Case("half_part", (F32,), Tensor(F32.shape, "f16"), {"part": p}) for p in range(3)),
]
ELEMENTWISE = [*UNARY, *BINARY, *COMPARE, *CHOOSE, *CAST, *PARTS]

CUBE = np.arange(3 * 20 * 17, dtype=np.float32).reshape(3, 20, 17)
TALL = (np.arange(3 * 40 * 16).reshape(3, 40, 16) % 7 + 1).astype(np.float32)


def reduced(kind: str, x: Array, *dims: int) -> Case:
    result = Tensor(reduce_shape(x.shape, dims), tensor_of(x).element)
    return Case("reduce", (x,), result, {"kind": kind, "dims": list(dims)})


REDUCE = [
    *(reduced(k, TALL[:, :3], 1) for k in ("add", "mul")),
    *(reduced(k, TALL, 0, 2) for k in ("max", "min")),
    *(reduced(k, np.stack([F32, F32[::-1]]), 0) for k in ("add", "max", "min", "mul")),
    *(reduced(k, np.tile(I32, (2, 2)), 1) for k in ("add", "max", "min", "mul")),
    *(reduced("add", np.ones((n, 17), np.float16), 1) for n in (1, 15, 16, 17, 31)),
    reduced("add", np.ones((4096, 16), np.float16), 0),
    reduced("max", CUBE[:, :0], 0, 2),
]


def moved(name: str, size: tuple[int, ...], /, *inputs: Array, **attributes: Any) -> Case:
    """A case that only moves elements, of the type of the first operand."""
    return Case(name, inputs, Tensor(size, tensor_of(inputs[0]).element), attributes)


def part(x: Array, starts: list[int], limits: list[int], strides: list[int]) -> Case:
    shape = slice_shape(starts, limits, strides)
    return moved("slice", shape, x, starts=starts, limits=limits, strides=strides)


def padded(x: Array, low: list[int], high: list[int], interior: list[int]) -> Case:
    shape = pad_shape(x.shape, low, high, interior)
    value = np.array(-1, x.dtype)
    return moved("pad", shape, x, value, low=low, high=high, interior=interior)


def places(indices: Any, axes: list[int], **given: Any) -> tuple[Array, dict[str, Any]]:
    """Tuples of indices, and the attributes of an operator on blocks of a cube."""
    table = np.asarray(indices, np.int32)
    defaults = {"starts": [0] * 3, "batch": [0] * 3, "wrap": [0] * len(axes)}
    return table, {**defaults, "axes": axes, **given}


def blocks(block: tuple[int, ...], x: Array, indices: Any, **given: Any) -> Case:
    table, attributes = places(indices, **given)
    return moved("gather_blocks", (len(table), *block), x, table, **attributes)


def elements(x: Array, indices: Any) -> Case:
    """Elements of rows by their numbers in these."""
    firsts = x.shape[1] * np.arange(len(x), dtype=np.int32)[:, None]
    table = np.asarray(indices, np.int32) + firsts
    return moved("gather_elements", table.shape, x, table)


def updated(block: tuple[int, ...], x: Array, indices: Any, skip: int = 1, **given: Any) -> Case:
    table, attributes = places(indices, **given)
    shape = (len(table), *block)
    updates = -np.arange(np.prod(shape), dtype=x.dtype).reshape(shape)
    return moved("update_blocks", x.shape, x, updates, table, skip=skip, **attributes)


def ordered(name: str, kept: int, keys: Array, **attributes: Any) -> Case:
    """A sort; numbers of keys are their places."""
    given = {"order": "largest", "descending": 0, **attributes}
    if name == "sort":
        return moved(name, (len(keys), kept), keys, **given)
    numbers = np.arange(keys.shape[1], dtype=np.int32)[None]
    result = Tensor((2, len(keys), kept), "i32")
    return Case(name, (keys, numbers), result, {**given, "below": keys.shape[1]})


UNSORTED = np.random.default_rng(3).integers(-4, 4, (9, 19)).astype(np.float32)
UNSORTED[0, :6] = [-0.0, np.nan, np.inf, -np.inf, 0.0, -np.nan]


def combined(block: tuple[int, ...], x: Array, indices: Any, by: str, **given: Any) -> Case:
    table, attributes = places(indices, **given)
    shape = (len(table), *block)
    updates = (np.arange(np.prod(shape), dtype=x.dtype).reshape(shape) * 7) % 13 - 5
    return moved("combine_blocks", x.shape, x, updates, table, by=by, **attributes)


ROW = np.arange(1, 32, dtype=np.float32).reshape(31, 1)
MOVE = [
    moved("broadcast", (3, 17, 2), CUBE[:, 0], dims=[0, 1]),
    moved("broadcast", (31, 5), ROW, dims=[0, 1]),
    moved("broadcast", (1, 31, 16), ROW, dims=[1, 2]),
    *(moved("reshape", shape, CUBE) for shape in ((20, 51), (1020,), (3, 4, 5, 1, 17), (12, 85))),
    moved("reshape", (0, 7), CUBE[:, :0]),
    Case("reinterpret", (CUBE[0],), Tensor((20, 17), "i32")),
    moved("view", (20, 51), CUBE, shape=[60, 17], permutation=[0, 1]),
    moved("transpose", (17, 3, 20), CUBE, permutation=[2, 0, 1]),
    moved("transpose", (17, 1), ROW[:17].reshape(1, 17), permutation=[1, 0]),
    part(CUBE, [1, 2, 0], [3, 9, 16], [1, 1, 4]),
    part(CUBE, [0, 19, 3], [3, 20, 17], [2, 1, 1]),
    moved("concat", (3, 25, 17), CUBE, CUBE[:, :5] + 1, dim=1),
    moved("concat", (3, 20, 18), CUBE, CUBE[:, :, :1], dim=2),
    padded(CUBE[0], [2, -1], [-1, 8], [0, 1]),
    padded(CUBE[0], [0, 15], [3, -17], [0, 0]),
    Case("iota", (), Tensor((5, 40), "i32"), {"dim": 1}),
    moved("band", (3, 20, 17), CUBE, runs=[15, -3, 1, 5, 1, 5, 9, 0, 9, 0], fill=-2.0),
    moved("band", (3, 20, 17), CUBE, runs=[40, 0, 0, 0, 1], fill=-np.inf, each=2),
    moved("gather", (5, 17), CUBE[0], np.array([3, -1, 19, 40, 0], np.int32)),
    moved("gather", (1, 20, 17), CUBE, np.array([1], np.int64)),
    moved("gather", (4, 20, 17), CUBE, np.array([-1, 5, -3, -9], np.int32), wrap=1),
    elements(
        CUBE.reshape(-1, CUBE.shape[-1]), np.arange(CUBE.size).reshape(-1, CUBE.shape[-1]) % 3
    ),
    blocks((3, 20, 4), CUBE, [[-1, 2], [9, 99], [2, 13]], axes=[0, 2], wrap=[0, 1]),
    blocks((1, 4, 17), CUBE, [[7]], axes=[1], starts=[2, 0, 0]),
    blocks((1, 1, 1), CUBE, np.zeros((6, 1)), axes=[2], batch=[2, 0, 0]),
    updated((1, 20, 1), CUBE, [[2, -1], [0, 5], [3, 0], [2, 16]], axes=[0, 2], wrap=[0, 1]),
    updated((1, 7, 17), CUBE, [[-2]], axes=[1], starts=[2, 0, 0], skip=0),
    updated((1, 1, 17), CUBE, [[3], [19], [-1], [3], [20], [4]], axes=[1], batch=[2, 0, 0]),
    ordered("sort", 19, UNSORTED),
    ordered("sort", 3, UNSORTED, order="total", descending=1),
    ordered("sort", 19, UNSORTED.view(np.int32), order="signed"),
    ordered("sort_pairs", 19, UNSORTED, descending=1),
    ordered("sort_pairs", 5, UNSORTED, order="total"),
    combined((1, 20, 1), CUBE, [[2, -1], [0, 5], [2, 16]], "max", axes=[0, 2], wrap=[0, 1]),
    combined(
        (1, 1, 17), CUBE, [[3], [19], [-1], [3], [3], [20]], "add", axes=[1], starts=[2, 0, 0]
    ),
    combined((3, 1, 3), CUBE, [[3], [3], [3], [20], [4]], "add", axes=[1], starts=[0, 0, 14]),
    combined((1, 1, 1), CUBE, np.zeros((6, 1)), "mul", axes=[2], batch=[2, 0, 0]),
    moved("relayout", CUBE.shape, CUBE),
    moved("copy", CUBE.shape, CUBE),
]
FILL = [
    Case("full", (), Tensor((3, 5), "f32"), {"value": 2.5}),
    Case("constant", (), Tensor(ROW.shape, "f32"), {"value": ROW}),
]


def product(m: int, n: int, k: int, *turned: str, batch: int = 0, kind: str = "f16") -> Case:
    """A product of small whole numbers, which is exact, on tensors."""
    random = np.random.default_rng(m + 100 * n + 10000 * k)
    lead = (batch,) if batch else ()
    shapes = {"a": (k, m) if "a" in turned else (m, k), "b": (n, k) if "b" in turned else (k, n)}
    dtype = np.float16 if kind == "f16" else np.int8
    a, b = (random.integers(-4, 5, (*lead, *shape)).astype(dtype) for shape in shapes.values())
    result = Tensor((*lead, m, n), "f32" if kind == "f16" else "i32")
    name = "batch_matmul" if batch else "matmul"
    return Case(name, (a, b), result, {f"transpose_{side}": True for side in turned})


PRODUCTS = [
    product(1, 1, 1),
    product(17, 33, 15),
    product(16, 31, 48, "b"),
    product(17, 5, 33, "a"),
    product(3, 2, 16, "a", "b"),
    product(17, 5, 16, batch=3),
    product(16, 17, 15, "b", batch=2),
]
BYTE_PRODUCTS = [product(17, 33, 40, kind="i8")]
"""They have no kernel: what comes from StableHLO is made f16."""


def convolution(
    image: tuple[int, int],
    channels: int,
    outputs: int,
    kernel: tuple[int, int],
    batch: int = 1,
    groups: int = 1,
    **given: Any,
) -> Case:
    """A convolution of small whole numbers, which is exact; what pads the weights is zero."""
    attributes = {"image": list(image), "kernel": list(kernel), "strides": [1, 1]}
    attributes |= {"dilations": [1, 1], "pads": [0, 0, 0, 0], **given}
    lies = geometry(attributes)
    random = np.random.default_rng(channels + 100 * outputs)
    x = random.integers(-3, 4, (batch, image[0] * image[1], channels)).astype(np.float16)
    rows = weight_rows(-(-channels // groups), lies)
    columns = outputs if groups == 1 else -(-outputs // (16 * groups)) * 16
    w = random.integers(-3, 4, (groups, rows, columns)).astype(np.float16)
    w.reshape(groups, -1, lies.elements, 16, columns)[-1, -1, :, channels % 16 or 16 :] = 0
    w[-1, :, columns - (groups * columns - outputs) :] = 0
    result = Tensor((batch, lies.windows[0] * lies.windows[1], outputs), "f32")
    return Case("conv", (x, w), result, attributes)


CONVOLUTIONS = [
    convolution((5, 7), 3, 5, (3, 3), pads=[1, 1, 1, 1]),
    convolution((4, 4), 1, 1, (1, 1)),
    convolution((7, 5), 17, 33, (1, 1), batch=2),
    convolution((9, 8), 20, 17, (5, 1), batch=3, strides=[2, 3], pads=[2, 0, 0, 1]),
    convolution((8, 9), 16, 16, (2, 3), dilations=[2, 3], pads=[0, 1, 2, 3]),
    convolution((6, 6), 32, 48, (3, 3), batch=2, strides=[1, 2]),
    convolution((6, 6), 32, 64, (3, 3), batch=2, groups=2, pads=[1, 0, 0, 1]),
    convolution((6, 5), 40, 41, (3, 2), batch=2, groups=3, pads=[1, 0, 0, 1]),
]


def pooled(
    kind: str, image: tuple[int, int], channels: int, kernel: tuple[int, int], **given: Any
) -> Case:
    """A reduction over windows of images of small whole numbers; `batch` and `dtype` are given."""
    batch, dtype = given.pop("batch", 1), given.pop("dtype", np.float32)
    attributes = {"image": list(image), "kernel": list(kernel), "strides": [1, 1]}
    attributes |= {"dilations": [1, 1], "pads": [0, 0, 0, 0], "kind": kind, **given}
    rows, columns = geometry(attributes).windows
    random = np.random.default_rng(channels)
    x = random.integers(-9, 10, (batch, image[0] * image[1], channels)).astype(dtype)
    element = "f16" if dtype == np.float16 else "f32"
    return Case("pool", (x,), Tensor((batch, rows * columns, channels), element), attributes)


POOLS = [
    pooled("max", (5, 7), 16, (3, 3), pads=[1, 1, 1, 1]),
    pooled("max", (12, 9), 33, (3, 2), batch=2, strides=[2, 2], pads=[0, 1, 1, 0]),
    pooled("min", (4, 4), 5, (1, 1), strides=[3, 2], dtype=np.float16),
    pooled("add", (7, 5), 17, (2, 3), dilations=[2, 1], dtype=np.float16, pads=[1, 0, 0, 1]),
    pooled("add", (1, 40), 32, (1, 5), strides=[1, 3], batch=3),
    pooled("max", (17, 16), 160, (4, 4), strides=[4, 4], dtype=np.float16),
]


def dequantized(blocks: int) -> Case:
    """Sums of bytes whose columns have scales and numbers of their own."""
    rng = np.random.default_rng(blocks)
    sums = rng.integers(-(2**20), 2**20, (3, 40), np.int32)
    scales = rng.uniform(0.0001, 0.01, 40).astype("f2")
    digits = rng.integers(-128, 128, (40, 32 * blocks), np.int8)
    return Case("dequantize", (sums, scales, digits), Tensor(sums.shape, "f16"))


def scaled_sums(element: str, relu: bool) -> Case:
    """Sums of bytes whose columns have words of their own; some results are halves."""
    rng = np.random.default_rng(len(element) + relu)
    sums = rng.integers(-(2**12), 2**12, (3, 40), np.int32)
    scales = rng.choice([0.5, 0.0625, 3.0, 2.0**-7, 0.0131], 40)
    offsets = rng.integers(-128, 128, 40)
    pairs = zip(scales, offsets, strict=True)
    words = [words_of(np.array([scale]), int(offset)) for scale, offset in pairs]
    given = {"relu": True} if relu else {}
    return Case("scale_sums", (sums, np.concatenate(words)), Tensor(sums.shape, element), given)


DEQUANTIZED = [dequantized(1), dequantized(3)]
DEQUANTIZED += [scaled_sums(e, relu) for e in ("f16", "i8") for relu in (False, True)]
CASES = [*ELEMENTWISE, *REDUCE, *MOVE, *FILL, *PRODUCTS, *BYTE_PRODUCTS, *CONVOLUTIONS, *POOLS]
CASES += DEQUANTIZED

"""Kernels that the compiler makes for the 910B beside programs tuned by hand.

    python benchmarks/speed/tuned.py [row ...] [--check] [--write]

A row of the first table is one operator, or a few that become one kernel: cycles on all cores,
simulated without data and without the task's head, with the L2 empty ("cold") or as a run before
left it ("warm"), and the most that it may take, which is what a program written by hand for this
machine takes and a few per cent more. `row` is a regular expression that chooses names of rows.
--check runs each row's smaller size with data instead, compares it with NumPy, and fails where one
is wrong. The second table has published schedules, as `benchmarks/fidelity` rebuilds them, and what
their boards took, both with the task's head. --write writes both into docs/tuned.md.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import isqrt, pi, sqrt
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper

import davinci
from davinci import machine as machines
from davinci.files import write_atomically
from davinci.reference import check
from davinci.simulator.core.device import Device

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tuned.md"
MACHINE = "ascend910b"

Array = npt.NDArray[Any]
Sizes = tuple[int, ...]
Values = Callable[..., Array]


@dataclass(frozen=True)
class Operators:
    """A model of arrays, and what it computes.

    Attributes:
        inputs: names and shapes, for given sizes.
        nodes: of ONNX, the last of which makes `y`.
        values: the same in NumPy, of f32 arrays in the order of the inputs.
        weights: names of inputs that are constants of the model.
        result: shape of `y`, for given sizes; by default the sizes themselves.
        types: of inputs, and of `y`, that are not f16.
    """

    inputs: Callable[[Sizes], dict[str, Sizes]]
    nodes: tuple[onnx.NodeProto, ...]
    values: Values
    weights: tuple[str, ...] = ()
    result: Callable[[Sizes], Sizes] = lambda sizes: sizes
    types: Mapping[str, type[np.generic]] = field(default_factory=dict)

    def arrays(self, sizes: Sizes) -> dict[str, Array]:
        """Random arrays; those of constants are small, as weights of networks are, and bytes are
        all that there are."""
        random = np.random.default_rng(0)
        arrays: dict[str, Array] = {}
        for name, shape in self.inputs(sizes).items():
            kind = self.types.get(name, np.float16)
            if kind is np.int8:
                arrays[name] = random.integers(-128, 128, shape, np.int8)
            else:
                scale = 0.05 if name in self.weights else 1.0
                arrays[name] = (random.standard_normal(shape) * scale).astype(kind)
        return arrays

    def model(self, sizes: Sizes, arrays: Mapping[str, Array]) -> onnx.ModelProto:
        given = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in arrays.items()
            if name not in self.weights
        ]
        kept = [onnx.numpy_helper.from_array(arrays[name], name) for name in self.weights]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.types.get("y", np.float16)))
        output = helper.make_tensor_value_info("y", kind, self.result(sizes))
        graph = helper.make_graph(list(self.nodes), "tuned", given, [output], kept)
        opset = helper.make_opsetid("", 23)
        return helper.make_model(graph, opset_imports=[opset], ir_version=10)


@dataclass(frozen=True)
class Row:
    """One row of the table.

    Attributes:
        name: without the sizes.
        operators: what is computed.
        sizes: that are timed.
        small: that are computed and compared.
        state: of the L2, "cold" or "warm".
        most: cycles.
        kernel: only kernels whose name begins so count; "": all.
        precision: the policy.
    """

    name: str
    operators: Operators
    sizes: Sizes
    small: Sizes
    state: str
    most: int
    kernel: str = ""
    precision: str = "mixed"

    @property
    def title(self) -> str:
        return f"{self.name} {'x'.join(map(str, self.sizes))} {self.state}"


def softmax(x: Array) -> Array:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return np.asarray(powers / powers.sum(-1, keepdims=True))


def gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))))


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    apart = x - x.mean(-1, keepdims=True)
    return np.asarray(apart / np.sqrt((apart**2).mean(-1, keepdims=True) + 1e-5) * scale + bias)


def rms_norm(x: Array, scale: Array) -> Array:
    return np.asarray(x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * scale)


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1])
    return np.asarray(softmax(scores) @ v)


def causal_attention(q: Array, k: Array, v: Array) -> Array:
    scores = q @ k.swapaxes(-1, -2) / sqrt(q.shape[-1])
    seen = np.tril(np.ones(scores.shape[-2:], dtype=np.bool_))
    return np.asarray(softmax(np.where(seen, scores, -np.inf)) @ v)


def convolution(x: Array, w: Array) -> Array:
    """A convolution with filters of 3 x 3, its image padded with one zero on each side."""
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    parts = (
        np.einsum("nc,bchw->bnhw", w[:, :, i, j], padded[:, :, i : i + height, j : j + width])
        for i in range(3)
        for j in range(3)
    )
    return np.asarray(sum(parts))


def node(operator: str, inputs: str, result: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(operator, inputs.split(), [result], name=operator, **attributes)


def operands(sizes: Sizes) -> dict[str, Sizes]:
    m, k, n = sizes
    return {"a": (m, k), "b": (k, n)}


def outer(sizes: Sizes) -> Sizes:
    """The shape of a product."""
    return sizes[0], sizes[2]


def one_batch(sizes: Sizes) -> Sizes:
    return (1, *sizes)


def heads(sizes: Sizes) -> dict[str, Sizes]:
    return dict.fromkeys("qkv", (1, *sizes))


def filters(sizes: Sizes) -> dict[str, Sizes]:
    """Shapes of an image, given as batch, channels, height and width, and of its filters."""
    return {"x": sizes, "w": (sizes[1], sizes[1], 3, 3)}


PRODUCT = Operators(operands, (node("MatMul", "a b"),), lambda a, b: a @ b, result=outer)
BY_WEIGHTS = replace(PRODUCT, weights=("b",))
"""Products whose B is a constant, which the compiler lays out in fractals."""
FLOATS = replace(BY_WEIGHTS, types=dict.fromkeys("aby", np.float32))
BY_COLUMNS = Operators(
    lambda sizes: {"a": sizes[:2], "b": (sizes[2], sizes[1])},
    (node("Gemm", "a b", transB=1),),
    lambda a, b: a @ b.T,
    result=outer,
)
WITH_GELU = Operators(
    lambda sizes: {**operands(sizes), "bias": sizes[2:]},
    (
        node("MatMul", "a b", "c"),
        node("Add", "c bias", "d"),
        node("Gelu", "d", approximate="tanh"),
    ),
    lambda a, b, bias: gelu(a @ b + bias),
    ("b", "bias"),
    outer,
)
ATTENTION = Operators(heads, (node("Attention", "q k v"),), attention, result=one_batch)
SHORT = replace(
    ATTENTION,
    inputs=lambda sizes: {
        "q": (1, 1, sizes[0], sizes[2]),
        **dict.fromkeys("kv", (1, 1, *sizes[1:])),
    },
    result=lambda sizes: (1, 1, sizes[0], sizes[2]),
)
"""Attention of one head, given as queries, keys and elements."""
CAUSAL = Operators(
    heads, (node("Attention", "q k v", is_causal=1),), causal_attention, result=one_batch
)
LAYER_NORM = Operators(
    lambda sizes: {"x": sizes, "scale": sizes[1:], "bias": sizes[1:]},
    (node("LayerNormalization", "x scale bias", axis=-1),),
    layer_norm,
)
RMS_NORM = Operators(
    lambda sizes: {"x": sizes, "scale": sizes[1:]},
    (node("RMSNormalization", "x scale", axis=-1),),
    rms_norm,
)
ADDITION = Operators(
    lambda sizes: dict.fromkeys("ab", sizes), (node("Add", "a b"),), lambda a, b: a + b
)
SOFTMAX = Operators(lambda sizes: {"x": sizes}, (node("Softmax", "x", axis=-1),), softmax)
GELU = Operators(lambda sizes: {"x": sizes}, (node("Gelu", "x", approximate="tanh"),), gelu)
CONVOLUTION = Operators(
    filters,
    (node("Conv", "x w", pads=[1, 1, 1, 1]),),
    convolution,
    ("w",),
)


def scaled(a: Array, b: Array, columns: Array, rows: Array) -> Array:
    """A product of bytes times a number a column and one a row."""
    return np.asarray(a @ b * columns * rows)


def scaled_gelu(a: Array, b: Array, columns: Array, rows: Array) -> Array:
    """The same with GELU as x / (1 + exp(-1.702 x))."""
    x = scaled(a, b, columns, rows)
    return np.asarray(x / (1 + np.exp(-1.702 * x)))


def bytes_of(sizes: Sizes) -> dict[str, Sizes]:
    *batch, m, k, n = sizes
    return {"a": (*batch, m, k), "b": (*batch, k, n), "q": (*batch, 1, n), "r": (*batch, m, 1)}


SCALED = Operators(
    bytes_of,
    (
        node("MatMulInteger", "a b", "sums"),
        node("Cast", "sums", "floats", to=TensorProto.FLOAT),
        node("Mul", "floats q", "scaled"),
        node("Mul", "scaled r", "x"),
        node("Cast", "x", to=TensorProto.FLOAT16),
    ),
    scaled,
    ("b", "q"),
    lambda sizes: (*sizes[:-2], sizes[-1]),
    {"a": np.int8, "b": np.int8, "q": np.float32, "r": np.float32},
)
SCALED_GELU = replace(
    SCALED,
    nodes=(
        *SCALED.nodes[:-1],
        node("Constant", "", "slope", value_float=1.702),
        node("Mul", "x slope", "z"),
        node("Sigmoid", "z", "s"),
        node("Mul", "x s", "g"),
        node("Cast", "g", to=TensorProto.FLOAT16),
    ),
    values=scaled_gelu,
)

WIDE_CONVOLUTION = replace(
    CONVOLUTION,
    inputs=lambda sizes: {"x": sizes, "w": (12 * sizes[1], sizes[1], 3, 3)},
    result=lambda sizes: (sizes[0], 12 * sizes[1], *sizes[2:]),
)
"""With twelve times as many filters as channels."""

ROWS = (
    Row("product", PRODUCT, (4096, 4096, 4096), (512, 1024, 1536), "cold", 770_000),
    Row("product", PRODUCT, (8192, 8192, 8192), (768, 1024, 1024), "cold", 6_050_000),
    Row("product", PRODUCT, (1024, 1024, 1024), (384, 512, 768), "warm", 19_500),
    Row("product", PRODUCT, (128, 3072, 768), (128, 1024, 256), "warm", 10_500),
    Row("product", PRODUCT, (1, 4096, 4096), (1, 512, 1024), "cold", 45_500),
    Row("product", PRODUCT, (16, 4096, 11008), (16, 512, 1376), "cold", 121_000),
    Row("gelu(product + bias)", WITH_GELU, (4096, 4096, 4096), (512, 512, 768), "cold", 775_000),
    Row("gelu(product + bias)", WITH_GELU, (512, 768, 3072), (256, 384, 768), "cold", 25_500),
    Row("attention", ATTENTION, (32, 4096, 128), (4, 512, 128), "cold", 1_950_000),
    Row("causal attention", CAUSAL, (32, 4096, 128), (4, 512, 128), "cold", 1_120_000),
    Row("attention", ATTENTION, (1, 8192, 128), (1, 1024, 128), "warm", 365_000),
    Row("attention", ATTENTION, (12, 512, 64), (3, 512, 64), "warm", 16_000),
    Row("layer norm", LAYER_NORM, (512, 768), (64, 768), "warm", 5_200),
    Row("softmax", SOFTMAX, (6144, 512), (192, 512), "warm", 9_700),
    Row("gelu", GELU, (512, 3072), (64, 3072), "warm", 10_000),
    Row("RMS norm", RMS_NORM, (4096, 4096), (96, 4096), "cold", 54_000),
    Row("convolution 3x3", CONVOLUTION, (16, 64, 56, 56), (2, 64, 28, 28), "warm", 25_500, "conv"),
)


def compiled(row: Row, sizes: Sizes, timing_only: bool) -> tuple[davinci.Executable, Any]:
    """The executable for all cores, and its arrays by name."""
    arrays = row.operators.arrays(sizes)
    model = row.operators.model(sizes, arrays)
    options = {"machine": MACHINE, "precision": row.precision, "core_choice": "all"}
    return davinci.compile(model, timing_only=timing_only, **options), arrays


def cycles(row: Row) -> int:
    """Simulated cycles of a row, without heads of tasks."""
    executable, _ = compiled(row, row.sizes, timing_only=True)
    # Between runs the L2 is left with lines that runs before wrote. Here it begins empty, and stays
    # as the first run leaves it.
    with mock.patch.object(Device, "flush"):
        for _ in range(2 if row.state == "warm" else 1):
            executable.run()
    kernels = executable.profile["kernels"]
    return sum(int(x["cycles"]) for x in kernels if x["name"].startswith(row.kernel))


def compared(row: Row) -> dict[str, float]:
    """Errors of the smaller size against NumPy.

    Raises:
        CheckError: they are too large.
    """
    executable, arrays = compiled(row, row.small, timing_only=False)
    given = {name: x for name, x in arrays.items() if name not in row.operators.weights}
    found = executable.run(given)
    wanted = row.operators.values(*(x.astype(np.float32) for x in arrays.values()))
    errors = check.compare(found, {"y": wanted})
    check.require(errors, row.precision)
    return errors


def lines(rows: tuple[Row, ...]) -> Iterator[str]:
    """The first table."""
    yield "| row | cycles | at most | of it |"
    yield "|---|---:|---:|---:|"
    for row in rows:
        taken = cycles(row)
        yield f"| {row.title} | {taken:,} | {row.most:,} | {taken / row.most:.2f} |"


CATLASS = (
    "1024 x 576 x 6144 f16",
    "256 x 512 x 1024 f16",
    "160 x 6144 x 2048 f16, B in fractals",
    "20 x 6144 x 16384 f16, B in fractals",
    "20 x 6144 x 16384 f16, B in rows",
)
"""Products of f16 of its guides, each in several tilings (`published_tiles`)."""


def published() -> Iterator[tuple[str, Row, float, float]]:
    """Names, the same work for the compiler, and microseconds of tasks: as simulated with the
    published schedule, and of boards."""
    sys.path.insert(0, str(ROOT / "benchmarks" / "fidelity"))
    import published_attention as rows_of_attention
    import published_convolution as convolutions
    import published_grouped as grouped
    import published_memory as memory
    import published_products as products
    import published_split as splits
    import published_tiles as templates

    def product(*sizes: int, state: str = "cold") -> Row:
        return Row("product", PRODUCT, sizes, sizes, state, 0)

    name, how, columns, measured = products.PRODUCTS[8]
    yield name, product(8192, 8192, 8192), products.product(how, columns).task, measured[-1]
    size = products.PTO_SIZE
    *_, task = products.pto_product()
    yield "PTO's product", product(size, size, size), task.simulated, task.measured
    name, tiled, times = products.TUNING[3]
    simulated = products.product(tiled).task
    yield name, product(4096, 4096, 5120), simulated, times.get("task", 0.0)
    for found, (keys, board) in zip(
        rows_of_attention.pto_attention(), rows_of_attention.LENGTHS, strict=True
    ):
        row = Row("attention", ATTENTION, (1, keys, 128), (1, 128, 128), "warm", 0)
        yield "PTO's attention", row, found.simulated, board
    for queries, times in rows_of_attention.GRID.items():
        for keys, board in zip(rows_of_attention.GRID_KEYS, times, strict=True):
            row = Row("attention", SHORT, (queries, keys, 128), (64, 256, 128), "warm", 0)
            yield "PTO's grid", row, rows_of_attention.attention(queries, keys), board
    how = convolutions.IMAGES
    sizes = how.batch, how.blocks * convolutions.BLOCK, how.height, how.width
    *_, simulated = convolutions.convolution(how)
    row = Row("convolution 3x3", WIDE_CONVOLUTION, sizes, sizes, "warm", 0, "conv")
    yield "PTO's convolution", row, simulated, convolutions.SHARES[0]
    layouts = {"columns": BY_COLUMNS, "rows": PRODUCT, "fractals": BY_WEIGHTS}
    for problem in CATLASS:
        tiles = [replace(how, machine=templates.MACHINE) for _, how, _ in templates.TILES[problem]]
        (m, n, k), b = tiles[0].size, tiles[0].b
        row = Row(f"product, B in {b},", layouts[b], (m, k, n), (m, k, n), "cold", 0)
        yield "catlass", row, min(map(templates.simulated, tiles)), 0.0
    side = isqrt(memory.ELEMENTS)
    past = memory.addition(
        memory.VECTOR_CORES, memory.PUBLISHED_SIZE, memory.APART, bypass=memory.BYPASS
    )
    yield "no conflicts", Row("addition", ADDITION, (side, side), (64, 512), "warm", 0), past, 184.5
    m, n, k = templates.FLOATS.size
    versions = [how for _, how, _ in templates.TILES[f"{m} x {n} x {k} f32"]]
    row = Row("product of f32", FLOATS, (m, k, n), (m, k, n), "cold", 0, precision="fp32")
    yield "catlass", row, min(map(templates.simulated, versions)), 0.0
    for how, _ in splits.MEASURED:
        sizes = how.rows, how.depth, how.columns
        row = Row("product of bytes, scaled,", SCALED, sizes, sizes, "cold", 0)
        yield "catlass, k split", row, splits.task(replace(how, machine=templates.MACHINE)), 0.0
    rows = grouped.ROWS // grouped.GROUPS
    sizes = grouped.GROUPS, rows, grouped.DEPTH, grouped.COLUMNS
    row = Row("gelu(grouped product of bytes, scaled)", SCALED_GELU, sizes, sizes, "cold", 0)
    simulated, *_ = grouped.times(grouped.VERSIONS[-1][1])
    yield "grouped product", row, simulated, grouped.VERSIONS[-1][-1][0]


def published_lines() -> Iterator[str]:
    """The second table."""
    machine = machines.load(MACHINE)
    launch = machine.launch
    head_us = launch.head_us + launch.head_of_all_cores_us
    yield "| schedule | work | compiled, us | schedule, us | board, us | compiled / schedule |"
    yield "|---|---|---:|---:|---:|---:|"
    for name, row, schedule, board in published():
        ours = cycles(row) / machine.clock_mhz + head_us
        measured = f"{board:,.1f}" if board else ""
        yield (
            f"| {name} | {row.title} | {ours:,.1f} | {schedule:,.1f} | {measured} "
            f"| {ours / schedule:.2f} |"
        )


PAGE_TEXT = """# Compiled kernels beside tuned ones

Made by `python benchmarks/speed/tuned.py --write`; do not edit. All on the simulated
`{machine}`, all cores; arrays of f16 and precision `mixed` where nothing else is said.

## Programs by hand

Cycles of the compiler's kernels, and the most that they should take: what a program written by hand
for the row takes, and a few per cent. Below one in the last column is as wanted. Heads of tasks are
not counted; *cold*: nothing is in the L2; *warm*: what a run before left. Smaller sizes of each row
are computed and compared with NumPy by `--check`.

{first}

## Published schedules

Microseconds of tasks, their heads among them: of the compiler's kernel, of the published schedule
as a program on the same simulated machine (`benchmarks/fidelity`), and of the board, where its time
was published. C8 and 4096x4096x5120 have other layouts than the compiler's kernel has: B of C8 has
k along its rows. Of catlass's tilings of a product the fastest on all cores of this machine counts;
its boards have fewer.

{second}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("rows", nargs="*", metavar="row", help="default: all")
    parser.add_argument("--check", action="store_true", help="compute smaller sizes and compare")
    parser.add_argument("--write", action="store_true", help="write docs/tuned.md")
    options = parser.parse_args()
    chosen = re.compile("|".join(options.rows))
    rows = tuple(row for row in ROWS if chosen.search(row.title))
    if options.check:
        for row in rows:
            errors = compared(row)
            print(f"{row.name} {row.small}: cosine {errors['cosine']:.7f}", flush=True)
        return 0
    tables: list[list[str]] = []
    for table in (lines(rows), () if options.rows else published_lines()):
        tables.append([])
        for line in table:
            print(line, flush=True)
            tables[-1].append(line)
    if options.write:
        first, second = ("\n".join(table) for table in tables)
        text = PAGE_TEXT.format(machine=MACHINE, first=first, second=second)
        write_atomically(PAGE, text.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())

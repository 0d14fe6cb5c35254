"""Operators that once fell off a cliff: their cycles, and the most that they may take.

    python benchmarks/speed/cliffs.py [--machine NAME] [--cores N] [--only TEXT]

Each case is a function of JAX, with integers of 64 bits where it does not say otherwise, compiled
alone and simulated without data, on all cores unless `--cores` says otherwise. A line shows the
cycles, how many are allowed (of a case that is held against another one, a multiple of that one's),
the cycles spent in kernels of the scalar unit, and the machine's bound. Exits with 1 if a case
takes more than allowed. Needs jax.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from timed import timed

from davinci.errors import DavinciError

ROWS = (32, 257)
PLANES = (16, 128)
SCORES = (8, 12, 512, 512)
VOCABULARY = (8, 128256)


@dataclass(frozen=True)
class Case:
    """One row of the table.

    Attributes:
        name: what is printed.
        model: the JAX function that is compiled.
        inputs: shapes and element types of its arguments.
        most: cycles that are allowed; 0 if they are `times` those of another.
        times: cycles allowed as a multiple of `against`.
        against: name of the case that this one is held against, or "bound".
    """

    name: str
    model: Callable[..., Any]
    inputs: tuple[tuple[tuple[int, ...], str], ...]
    most: int = 0
    times: float = 0.0
    against: str = ""


def embedding_gradient(table: Any, rows: Any, gradient: Any) -> Any:
    """The gradient of what a lookup of `rows` in a table gives."""
    _, pull = jax.vjp(lambda t: t[rows], table)
    return pull(gradient)[0]


def segment_sum(x: Any, rows: Any) -> Any:
    return jax.ops.segment_sum(x, rows, num_segments=50)


def depthwise(x: Any, weights: Any) -> Any:
    return lax.conv_general_dilated(
        x, weights, (1, 1), "SAME", feature_group_count=weights.shape[0]
    )


def depthwise_gradient(x: Any, weights: Any, gradient: Any) -> Any:
    _, pull = jax.vjp(lambda w: depthwise(x, w), weights)
    return pull(gradient)[0]


def pooling_gradient(x: Any, gradient: Any) -> Any:
    def pooled(image: Any) -> Any:
        window, steps = (1, 2, 2, 1), (1, 2, 2, 1)
        return lax.reduce_window(image, -jnp.inf, lax.max, window, steps, "VALID")

    return jax.vjp(pooled, x)[1](gradient)[0]


def convolution(kernel: int, stride: int = 1, dilation: int = 1) -> Callable[..., Any]:
    """A convolution of one dimension."""

    def along(x: Any, weights: Any) -> Any:
        return lax.conv_general_dilated(x, weights, (stride,), "VALID", rhs_dilation=(dilation,))

    along.__name__ = f"convolution_{kernel}_{stride}_{dilation}"
    return along


def one_hot(x: Any) -> Any:
    return jax.nn.one_hot(x, 19, dtype=jnp.float32)


def reflect(x: Any) -> Any:
    return jnp.pad(x, ((0, 0), (0, 0), (3, 3), (3, 3)), mode="reflect")


def scatter_elements(data: Any, rows: Any, updates: Any) -> Any:
    return data.at[rows].add(updates)


def ints(shape: tuple[int, ...], kind: str = "int64") -> tuple[tuple[int, ...], str]:
    return shape, kind


def floats(shape: tuple[int, ...]) -> tuple[tuple[int, ...], str]:
    return shape, "float32"


def two_of(kind: str, shape: tuple[int, ...] = ROWS) -> tuple[Any, ...]:
    return ((shape, kind), (shape, kind))


CASES: tuple[Case, ...] = (
    Case(
        "scatter of rows into a cache",
        lambda cache, at, rows: cache.at[at].set(rows),
        (floats((24, 2, 2, 16)), ints((2,), "int32"), floats((2, 2, 2, 16))),
        4000,
    ),
    Case(
        "dynamic_update_slice 1x4x64x32",
        lambda cache, rows, at: lax.dynamic_update_slice(cache, rows, (at * 0, at * 0, at, at * 0)),
        (floats((1, 4, 64, 32)), floats((1, 4, 1, 32)), ints((), "int32")),
        4000,
    ),
    Case(
        "scatter-add of 1,600 elements",
        scatter_elements,
        (floats((2000,)), ints((1600,), "int32"), floats((1600,))),
        12000,
    ),
    Case(
        "segment_sum of 200 rows of 32",
        segment_sum,
        (floats((200, 32)), ints((200,), "int32")),
        12000,
    ),
    Case(
        "gradient of an embedding 50x32",
        embedding_gradient,
        (floats((50, 32)), ints((4, 50), "int32"), floats((4, 50, 32))),
        12000,
    ),
    Case("top-k 1x8400, k = 300", lambda x: lax.top_k(x, 300), (floats((1, 8400)),), 150000),
    Case("top-k 8x128256, k = 50", lambda x: lax.top_k(x, 50), (floats(VOCABULARY),), 150000),
    Case("sort 16x256", lambda x: lax.sort(x), (floats((16, 256)),), 25000),
    Case("argsort 16x256", lambda x: jnp.argsort(x), (floats((16, 256)),), 25000),
    Case("sort 8x100", lambda x: lax.sort(x), (floats((8, 100)),), 12000),
    Case(
        "select_and_scatter 4x14x14x16",
        pooling_gradient,
        (floats((4, 14, 14, 16)), floats((4, 7, 7, 16))),
        20000,
    ),
    Case(
        "STFT: convolution 1x1x1600 * 402x1x400",
        convolution(400, 160),
        (floats((1, 1, 1600)), floats((402, 1, 400))),
        60000,
    ),
    Case(
        "gradient of a depthwise convolution",
        depthwise_gradient,
        (floats((2, 32, 28, 28)), floats((32, 1, 3, 3)), floats((2, 32, 28, 28))),
        60000,
    ),
    Case("i64 add", lambda x, y: x + y, two_of("int64"), 6000),
    Case("i64 multiply", lambda x, y: x * y, two_of("int64"), 6000),
    Case("i64 maximum", jnp.maximum, two_of("int64"), 6000),
    Case("i64 sum", lambda x: jnp.sum(x, 1), (ints(ROWS),), 6000),
    Case("i32 division", lax.div, two_of("int32"), 6000),
    Case("i32 remainder", lax.rem, two_of("int32"), 6000),
    Case("u32 add", lambda x, y: x + y, two_of("uint32", (16, 32)), 6000),
    Case("u32 xor", lambda x, y: x ^ y, two_of("uint32", (16, 32)), 6000),
    Case("u32 or", lambda x, y: x | y, two_of("uint32", (16, 32)), 6000),
    Case("u32 shift left by 13", lambda x: x << np.uint32(13), (((16, 32), "uint32"),), 6000),
    Case("u32 shift right by 19", lambda x: x >> np.uint32(19), (((16, 32), "uint32"),), 6000),
    Case(
        "random numbers 16x32",
        lambda key: jax.random.uniform(jax.random.wrap_key_data(key), (16, 32), jnp.float32),
        (((2,), "uint32"),),
        60000,
    ),
    Case("sine 32x257", jnp.sin, (floats(ROWS),), 5000),
    Case("cosine 32x257", jnp.cos, (floats(ROWS),), 5000),
    Case("tangent 32x257", jnp.tan, (floats(ROWS),), 5000),
    Case("arc tangent 32x257", jnp.arctan, (floats(ROWS),), 5000),
    Case("mod 32x257", jnp.mod, (floats(ROWS), floats(ROWS)), 5000),
    Case("remainder 32x257", lax.rem, (floats(ROWS), floats(ROWS)), 5000),
    *(
        Case(
            f"convolution, kernel {k}, stride {s}, dilation {d}",
            convolution(k, s, d),
            (floats((1, 16, 2600)), floats((32, 16, k))),
            0,
            3.0 if against else 0.0,
            against,
        )
        for k, s, d, against in (
            (255, 1, 1, ""),
            (256, 1, 1, "convolution, kernel 255, stride 1, dilation 1"),
            (400, 1, 1, "convolution, kernel 255, stride 1, dilation 1"),
            (3, 63, 1, ""),
            (3, 64, 1, "convolution, kernel 3, stride 63, dilation 1"),
            (3, 160, 1, "convolution, kernel 3, stride 63, dilation 1"),
            (3, 1, 255, ""),
            (3, 1, 256, "convolution, kernel 3, stride 1, dilation 255"),
            (3, 1, 512, "convolution, kernel 3, stride 1, dilation 255"),
        )
    ),
    Case("reverse 3x64x64", lambda x: lax.rev(x, (2,)), (floats((3, 64, 64)),), 10000),
    Case("pad by reflection 1x3x64x64", reflect, (floats((1, 3, 64, 64)),), 10000),
    Case("one-hot 128x128x19", one_hot, (ints((128, 128), "int32"),), 60000),
    Case("sum of booleans 32x257", lambda x: jnp.sum(x, 1), ((ROWS, "bool"),), 6000),
    Case("any of booleans 32x257", lambda x: jnp.any(x, 1), ((ROWS, "bool"),), 6000),
    Case(
        "argmax 8x128256",
        lambda x: lax.argmax(x, 1, np.int32),
        (floats(VOCABULARY),),
        0,
        5.0,
        "bound",
    ),
    # 5 x 4,008, the bound of one pass: that of the launch counts what its phases hand over.
    Case("softmax 8x128256", jax.nn.softmax, (floats(VOCABULARY),), 20_040),
    Case(
        "where(isnan) 8x12x512x512",
        lambda x: jnp.where(jnp.isnan(x), 0.0, x),
        (floats(SCORES),),
        0,
        5.0,
        "bound",
    ),
    Case("cumlogsumexp 8x65", lambda x: lax.cumlogsumexp(x, 1), (floats((8, 65)),), 20000),
    Case("cumsum 8x65", lambda x: jnp.cumsum(x, 1), (floats((8, 65)),), 20000),
    Case("cummax 8x65", lambda x: lax.cummax(x, 1), (floats((8, 65)),), 20000),
    Case(
        "products 4096x1x1x1",
        lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
        (floats((4096, 1, 1)), floats((4096, 1, 1))),
        20000,
    ),
    Case(
        "products 4096x9x9x9",
        lambda a, b: jnp.einsum("bij,bjk->bik", a, b),
        (floats((4096, 9, 9)), floats((4096, 9, 9))),
        60000,
    ),
)


def measured(case: Case, machine: str, cores: int) -> dict[str, Any]:
    """The profile of a case."""
    arguments = tuple(jax.ShapeDtypeStruct(shape, kind) for shape, kind in case.inputs)
    text = jax.jit(case.model).lower(*arguments).as_text()
    profile: dict[str, Any] = timed(text, launches="auto", machine=machine, cores=cores).profile
    return profile


def scalar_cycles(profile: dict[str, Any]) -> int:
    return sum(k["cycles"] for k in profile["kernels"] if k["unit"] == "scalar")


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n\n")[0])
    parser.add_argument("--machine", default="ascend910")
    parser.add_argument("--cores", type=int, default=0, help="0: all of the machine")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    line = "{:<50} {:>13} {:>10} {:>13} {:>9} {}"
    print(line.format("case", "cycles", "allowed", "scalar unit", "bound", ""))
    cycles: dict[str, int] = {}
    over = 0
    for case in CASES:
        if options.only not in case.name:
            continue
        try:
            profile = measured(case, options.machine, options.cores)
        except DavinciError as error:
            over += 1
            print(f"{case.name:<50} {error}", flush=True)
            continue
        found = cycles[case.name] = profile["total_cycles"]
        bound = profile["bound_cycles"]
        base = bound if case.against == "bound" else cycles.get(case.against, 0)
        most = case.most or int(case.times * base)
        late = 0 < most < found
        over += late
        cells = (f"{n:,}" for n in (found, most, scalar_cycles(profile), bound))
        print(line.format(case.name, *cells, "over" if late else ""), flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())

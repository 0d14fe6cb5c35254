"""Elementwise vector instructions with one or two sources."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from davinci.isa.core import Array
from davinci.isa.halves import converted, of_type
from davinci.isa.vector_regions import FLOATS, define_lanewise, elementwise, lanewise

ARITHMETIC = (*FLOATS, "s32")
BITS = ("s16",)
SOURCE = "docs/hardware.md a1 (types), b2 (time), c (strides, repeat, mask)"

BINARY: list[tuple[str, Callable[..., Array], tuple[str, ...], str]] = [
    ("vadd", np.add, ARITHMETIC, "dst = src0 + src1"),
    ("vsub", np.subtract, ARITHMETIC, "dst = src0 - src1"),
    ("vmul", np.multiply, ARITHMETIC, "dst = src0 * src1"),
    ("vmax", np.maximum, ARITHMETIC, "dst = the larger of src0 and src1"),
    ("vmin", np.minimum, ARITHMETIC, "dst = the smaller of src0 and src1"),
    ("vdiv", np.divide, FLOATS, "dst = src0 / src1"),
    ("vand", np.bitwise_and, BITS, "dst = src0 & src1, on 16-bit words"),
    ("vor", np.bitwise_or, BITS, "dst = src0 | src1, on 16-bit words"),
]


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x), rounded once for half precision."""
    single = x if x.dtype == np.float32 else converted(x, np.float32)
    return converted(np.reciprocal(np.sqrt(single)), x.dtype)


def relu(x: Array) -> Array:
    """max(x, 0)."""
    zero: Array = np.zeros((), dtype=x.dtype)
    larger = of_type(np.maximum, "f16") if x.dtype == np.float16 else np.maximum
    return larger(x, zero)


UNARY: list[tuple[str, Callable[..., Array], tuple[str, ...], str]] = [
    ("vexp", np.exp, FLOATS, "dst = e ** src"),
    ("vln", np.log, FLOATS, "dst = natural logarithm of src"),
    ("vsqrt", np.sqrt, FLOATS, "dst = square root of src"),
    ("vrsqrt", rsqrt, FLOATS, "dst = 1 / square root of src"),
    ("vrec", np.reciprocal, FLOATS, "dst = 1 / src"),
    ("vabs", np.abs, FLOATS, "dst = |src|"),
    ("vrelu", relu, ARITHMETIC, "dst = max(src, 0); assumed to exist for s32"),
    ("vnot", np.invert, BITS, "dst = ~src, on 16-bit words"),
]

for name, function, dtypes, doc in BINARY:
    for dtype in dtypes:
        compute = lanewise(of_type(function, dtype), dtype)
        lanes = elementwise(dst=dtype, src0=dtype, src1=dtype)
        define_lanewise(name, dtype, lanes, compute, f"{doc}.", SOURCE)

for name, function, dtypes, doc in UNARY:
    for dtype in dtypes:
        compute = lanewise(of_type(function, dtype), dtype)
        define_lanewise(name, dtype, elementwise(dst=dtype, src=dtype), compute, f"{doc}.", SOURCE)

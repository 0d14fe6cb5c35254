"""Native arithmetic of halves against NumPy's, for numbers of all kinds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from davinci.isa import halves
from davinci.isa.vector import relu, rsqrt

SPECIAL = np.array([0, 1, 0x3FF, 0x400, 0x3C00, 0x7BFF, 0x7C00, 0x7E00], np.uint16)
BOTH_SIGNS = np.concatenate([SPECIAL, SPECIAL | 0x8000])


def operands(count):
    """Random halves, and special ones in all combinations."""
    rng = np.random.default_rng(count)
    special = np.array(list(itertools.product(BOTH_SIGNS, repeat=count)), np.uint16).T
    some = rng.integers(0, 1 << 16, (count, 20_000)).astype(np.uint16)
    return np.concatenate([some, special], axis=1).view(np.float16)


def assert_same(found, wanted):
    """Bit by bit, but for what is a NaN in both."""
    bits = f"u{wanted.itemsize}"
    assert found.dtype == wanted.dtype
    both = np.isnan(found) & np.isnan(wanted)
    assert ((found.view(bits) == wanted.view(bits)) | both).all()


@pytest.mark.parametrize("function", [*halves.NATIVE, rsqrt, relu], ids=lambda f: f.__name__)
def test_functions(function):
    native = halves.of_type(function, "f16")
    plain = {
        rsqrt: lambda x: (1 / np.sqrt(x.astype(np.float32))).astype(np.float16),
        relu: lambda x: np.maximum(x, np.float16(0)),
    }.get(function, function)
    arrays = operands(getattr(function, "nin", 1))
    with np.errstate(all="ignore"):
        assert_same(native(*arrays), plain(*arrays))
        if len(arrays) == 2:
            one = arrays[1][:1]
            assert_same(native(arrays[0][::2], one), plain(arrays[0][::2], one))


def test_conversions():
    (numbers,) = operands(1)
    rng = np.random.default_rng(0)
    singles = rng.integers(0, 1 << 32, 20_000).astype(np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        near = (numbers.astype(np.float32) + numbers[::-1].astype(np.float32)) / 2
        for each in (numbers, numbers.reshape(2, -1).T):
            assert_same(halves.converted(each, np.float32), each.astype(np.float32))
        for each in (singles, near):
            assert_same(halves.converted(each, np.float16), each.astype(np.float16))
            assert_same(halves.converted(each, np.float64), each.astype(np.float64))

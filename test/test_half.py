"""The conversions of half precision against NumPy's, for every half and many other numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from davinci.mlir import execution_engine, ir, make_context, passmanager
from davinci.native import half
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import UPSTREAM

# A loop calls each conversion, because a call from Python takes longer than the conversion.
LOOPS = """
llvm.func @{loop}(%src: !llvm.ptr, %dst: !llvm.ptr, %n: i64) {{
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  scf.for %i = %c0 to %n step %c1 : i64 {{
    %p = llvm.getelementptr %src[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {source}
    %q = llvm.getelementptr %dst[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {result}
    %x = llvm.load %p : !llvm.ptr -> {source}
    %y = llvm.call @{name}(%x) : ({source}) -> {result}
    llvm.store %y, %q : {result}, !llvm.ptr
  }}
  llvm.return
}}
"""
TYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def convert(name: str, source: str, result: str, values: Any) -> Any:
    """Converts an array by the function `name` of the definitions."""
    loop = LOOPS.format(loop="loop", name=name, source=source, result=result)
    found = np.zeros(values.shape, TYPES[result])
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(half.DEFINITIONS + loop)
        passmanager.PassManager.parse(UPSTREAM).run(module.operation)
        engine = execution_engine.ExecutionEngine(module, opt_level=1)
        words = (ctypes.c_uint64 * 3)(values.ctypes.data, found.ctypes.data, values.size)
        base = ctypes.addressof(words)
        packed = (ctypes.c_void_p * 3)(*(base + 8 * i for i in range(3)))
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(engine.raw_lookup("loop"))
        function(ctypes.addressof(packed))
    return found


def numbers(dtype: Any) -> Any:
    """Random numbers of all magnitudes, halfway cases, and special values."""
    rng = np.random.default_rng(0)
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    with np.errstate(all="ignore"):
        exact = halves[np.isfinite(halves)].astype(np.float64)
        exact.sort()
        middle = (exact[1:] + exact[:-1]) / 2
        near = np.concatenate([middle * (1 + e) for e in (-1e-9, 0, 1e-9)])
        spread = rng.standard_normal(20000) * 2.0 ** rng.integers(-40, 20, 20000)
        special = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 65519.9, 65520.0, 1e30, 1e-30])
        return np.concatenate([exact, near, spread, special]).astype(dtype)


def test_extend() -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    found = convert("__extendhfsf2", "f16", "f32", halves)
    np.testing.assert_array_equal(found, halves.astype(np.float32))
    assert (np.signbit(found) == np.signbit(halves)).all()


@pytest.mark.parametrize(("name", "source"), [("__truncsfhf2", "f32"), ("__truncdfhf2", "f64")])
def test_truncate(name: str, source: str) -> None:
    values = numbers(TYPES[source])
    found = convert(name, source, "f16", values)
    with np.errstate(all="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(found, expected)
    ordered = ~np.isnan(expected)
    assert (np.signbit(found) == np.signbit(expected))[ordered].all()

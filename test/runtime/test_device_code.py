"""What a kernel may not hold: it would be native code of this process."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine
from davinci.errors import CompileError, DeviceFault
from davinci.mlir import ir, make_context
from davinci.runtime.jit import KernelLibrary
from davinci.simulator import Device

ONE = "%one = llvm.mlir.constant(1 : i64) : i64\n"
STACK = """\
%a = llvm.alloca %one x f32 : (i64) -> !llvm.ptr
%v = llvm.load volatile %a : !llvm.ptr -> f32"""
HOST = "%p = llvm.mlir.zero : !llvm.ptr\n"
BARRIER = "llvm.func @hivm.pipe_barrier"
CYCLE = """\
llvm.func @f() { llvm.call @g() : () -> ()
llvm.return }
llvm.func @g() { llvm.call @f() : () -> ()
llvm.return }"""


def library(body: str, functions: str = "", kernel: str = "(%x: !llvm.ptr<1>)") -> KernelLibrary:
    text = f"llvm.func @k{kernel} attributes {{ascend.kernel}} {{\n{body}\nllvm.return\n}}\n"
    with make_context():
        return KernelLibrary(ir.Module.parse(text + functions).operation)


@pytest.mark.parametrize(
    ("body", "functions", "message"),
    [
        ("%v = llvm.load volatile %x : !llvm.ptr<1> -> f32", "", "'llvm.load' op is no operation"),
        (HOST + "llvm.store volatile %p, %p : !llvm.ptr, !llvm.ptr", "", "'llvm.store' op is no"),
        (ONE + STACK, "", "'llvm.alloca' op is no operation of the scalar unit"),
        ('llvm.inline_asm has_side_effects "ud2", "" : () -> ()', "", "'llvm.inline_asm' op is"),
        ('"llvm.intr.trap"() : () -> ()', "", "'llvm.intr.trap' op is no operation"),
        (HOST + "llvm.call %p() : !llvm.ptr, () -> ()", "", "'llvm.call' op calls an address"),
        ("llvm.call @abort() : () -> ()", "llvm.func @abort()", "function of the host; found @abo"),
        ("llvm.call @f() : () -> ()", CYCLE, "calls itself; expected calls without a cycle"),
        (
            "%v = llvm.mlir.constant(1.0 : f32) : f32\n%e = llvm.call @exp(%v) : (f32) -> f32",
            "llvm.func @exp(f32) -> f32",
            "declares @exp wrongly; found !llvm.func<f32 (f32)>; expected !llvm.func<f64 (f64)>",
        ),
        (
            "%r = llvm.call @f() : () -> i128",
            "llvm.func @f() -> i128 { %c = llvm.mlir.constant(1 : i128) : i128\nllvm.return %c : "
            "i128 }",
            "has a type the scalar unit has not; found i128",
        ),
        ("", "llvm.func @davinci.flush() { llvm.return }", "reserved name; found @davinci.flush"),
        ("", f"{BARRIER}()", "@hivm.pipe_barrier has another type; found !llvm.func<void ()>; exp"),
        ("", f"{BARRIER}(%a: i64, %b: i64) {{ llvm.return }}", "defines the intrinsic"),
        ("", "llvm.func @hivm.frob(i64)", "no such intrinsic; found @hivm.frob"),
        ("", "llvm.func @hivm.ld.f128(!llvm.ptr<1>, i64) -> f128", "no such intrinsic"),
        ("", "llvm.func @hivm.ld.f32(!llvm.ptr<1>, i64) -> i32", "expected !llvm.func<f32 (ptr<1>"),
        ("", "llvm.func @__truncsfhf2(f32) -> f16", "reserved name; found @__truncsfhf2"),
    ],
)
def test_refused(body: str, functions: str, message: str) -> None:
    with pytest.raises(CompileError) as error:
        library(body, functions)
    assert message in str(error.value)


@pytest.mark.parametrize("kernel", ["(%x: i32)", "(%x: !llvm.ptr)", "(%x: !llvm.array<9 x i64>)"])
def test_arguments_are_addresses_or_words(kernel: str) -> None:
    with pytest.raises(CompileError, match="kernel @k has a wrong type"):
        library("", kernel=kernel)


def test_kernels_have_a_body() -> None:
    with make_context(), pytest.raises(CompileError, match="declares kernel @k; expected a body"):
        text = "llvm.func @k(!llvm.ptr<1>) attributes {ascend.kernel}"
        KernelLibrary(ir.Module.parse(text).operation)


DIVIDE = """\
%zero = llvm.mlir.constant(0 : i64) : i64
%a = llvm.call @hivm.ld.TYPE(%x, %zero) : (!llvm.ptr<1>, i64) -> TYPE
%y = llvm.getelementptr %x[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, TYPE
%b = llvm.call @hivm.ld.TYPE(%y, %zero) : (!llvm.ptr<1>, i64) -> TYPE
%q = llvm.OP %a, %b : TYPE
llvm.call @hivm.st.TYPE(%x, %q, %zero) : (!llvm.ptr<1>, TYPE, i64) -> ()
"""
LOADS = """\
llvm.func @hivm.ld.TYPE(!llvm.ptr<1>, i64) -> TYPE
llvm.func @hivm.st.TYPE(!llvm.ptr<1>, TYPE, i64)
"""


@pytest.mark.parametrize("operation", ["sdiv", "udiv", "srem", "urem"])
@pytest.mark.parametrize("bits", [8, 32, 64])
def test_divisions_cannot_trap(operation: str, bits: int) -> None:
    """Zero is a fault of the device, and the lowest number over -1 wraps around."""
    kind = f"i{bits}"
    body = DIVIDE.replace("TYPE", kind).replace("OP", operation)
    divide = library(body, LOADS.replace("TYPE", kind)).programs["k"]
    device = Device(machine.load("ascend910"), 1 << 12)
    dtype = np.dtype(f"{'i' if operation[0] == 's' else 'u'}{bits // 8}")
    address = device.allocate(2 * dtype.itemsize)
    info = np.iinfo(dtype)
    for a, b in [(info.min, -1 if info.min else 1), (info.max, 7), (info.min, 3), (100, 100)]:
        device.write(address, np.array([a, b], dtype))
        device.launch("k", divide, [address])
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        exact = quotient if operation.endswith("div") else a - quotient * b
        wrapped = exact - (1 << bits if exact > info.max else 0)
        assert device.read(address, dtype, (1,))[0] == wrapped
    device.write(address, np.array([5, 0], dtype))
    with pytest.raises(DeviceFault, match="k: integer division by zero in the scalar program"):
        device.launch("k", divide, [address])


LOADED = """
%z = llvm.mlir.constant(0 : i64) : i64
%p = llvm.getelementptr %x[%z] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
llvm.br ^next(%p : !llvm.ptr<1>)
^next(%q: !llvm.ptr<1>):
%v = llvm.call @hivm.ld.f32(%q, %z) : (!llvm.ptr<1>, i64) -> f32
llvm.call @hivm.st.f32(%y, %v, %z) : (!llvm.ptr<1>, f32, i64) -> ()
"""
LOAD_ONE = "llvm.func @hivm.ld.f32(!llvm.ptr<1>, i64) -> f32\n"
STORE_ONE = "llvm.func @hivm.st.f32(!llvm.ptr<1>, f32, i64)\n"
PASSED_ON = "llvm.call @f(%y) : (!llvm.ptr<1>) -> ()"
FUNCTION = "llvm.func @f(%a: !llvm.ptr<1>) { llvm.return }"


@pytest.mark.parametrize(
    ("body", "functions", "expected"),
    [
        ("", "", set()),
        (LOADED, LOAD_ONE + STORE_ONE, {0}),
        (
            LOADED.replace("(%y, %v", "(%x, %v").replace("%x[%z]", "%y[%z]"),
            LOAD_ONE + STORE_ONE,
            {1},
        ),
        (PASSED_ON, FUNCTION, {1}),
    ],
    ids=["none", "through a block", "stores alone", "a function"],
)
def test_arguments_that_are_loaded_from(body: str, functions: str, expected: set[int]) -> None:
    """Only their constants are made without data; what cannot be followed counts as loaded from."""
    found = library(body, functions, "(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)")
    assert found.programs["k"].loads == expected

"""The scalar unit: loads, stores, their order with instructions, arithmetic, faults, blocks."""

from __future__ import annotations

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import CompileError, DeviceFault
from davinci.runtime.jit import CAPACITY
from davinci.simulator import Device
from runtime.kernel_harness import BARRIER, compile_text, run

UB = '#cce.space<"UB">'


def loop(body: str, count: int, arguments: str) -> str:
    return f"""
    func.func @k({arguments}) attributes {{ascend.kernel}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {count} : index
      scf.for %i = %c0 to %n step %c1 {{
        {body}
      }}
      return
    }}"""


@pytest.mark.parametrize(
    ("op", "function"),
    [
        ("math.exp", np.exp),
        ("math.tanh", np.tanh),
        ("math.sqrt", np.sqrt),
        ("math.log", np.log),
        ("math.floor", np.floor),
        ("math.sin", np.sin),
        ("math.rsqrt", lambda x: 1 / np.sqrt(x)),
    ],
)
@pytest.mark.parametrize("kind", ["f16", "f32"])
def test_math(op: str, function: object, kind: str) -> None:
    text = loop(
        f"%x = memref.load %a[%i] : memref<50x{kind}>\n"
        f"%y = {op} %x : {kind}\n"
        f"memref.store %y, %o[%i] : memref<50x{kind}>",
        50,
        f"%a: memref<50x{kind}>, %o: memref<50x{kind}>",
    )
    dtype = np.float16 if kind == "f16" else np.float32
    x = np.random.default_rng(0).uniform(0.1, 4, 50).astype(dtype)
    found = run(text, [x, np.zeros(50, dtype)])[1]
    expected = function(x.astype(np.float32)).astype(dtype)  # type: ignore[operator]
    np.testing.assert_allclose(found, expected, rtol=2e-3 if kind == "f16" else 1e-6)


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_conversion_to_half(kind: str) -> None:
    text = loop(
        f"%x = memref.load %a[%i] : memref<64x{kind}>\n"
        f"%y = arith.truncf %x : {kind} to f16\n"
        "memref.store %y, %o[%i] : memref<64xf16>",
        64,
        f"%a: memref<64x{kind}>, %o: memref<64xf16>",
    )
    x = np.random.default_rng(0).standard_normal(64).astype(kind.replace("f", "float"))
    np.testing.assert_array_equal(run(text, [x, np.zeros(64, np.float16)])[1], x.astype(np.float16))


def test_loads_see_pending_instructions() -> None:
    """A value goes GM -> UB -> GM by copies, then to GM by the scalar unit, then back to UB."""
    text = f"""
    func.func @k(%a: memref<8xf32>, %o: memref<8xf32>) attributes {{ascend.kernel}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<8xf32, {UB}>
      %c0 = arith.constant 0 : index
      %c7 = arith.constant 7 : index
      "cce.copy"(%a, %u) : (memref<8xf32>, memref<8xf32, {UB}>) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) : (memref<8xf32, {UB}>, memref<8xf32>) -> ()
      "cce.set_flag"() {{src = "MTE3", dst = "S", event = 0 : i64}} : () -> ()
      "cce.wait_flag"() {{src = "MTE3", dst = "S", event = 0 : i64}} : () -> ()
      %x = memref.load %o[%c7] : memref<8xf32>
      %y = memref.load %u[%c0] : memref<8xf32, {UB}>
      memref.store %x, %o[%c0] : memref<8xf32>
      memref.store %y, %u[%c7] : memref<8xf32, {UB}>
      "cce.set_flag"() {{src = "S", dst = "V", event = 0 : i64}} : () -> ()
      "cce.wait_flag"() {{src = "S", dst = "V", event = 0 : i64}} : () -> ()
      "cce.vadd"(%u, %u, %u) : (memref<8xf32, {UB}>, memref<8xf32, {UB}>, memref<8xf32, {UB}>) -> ()
      {BARRIER}
      "cce.copy"(%u, %a) : (memref<8xf32, {UB}>, memref<8xf32>) -> ()
      return
    }}"""
    x = np.arange(1, 9, dtype=np.float32)
    a, o = run(text, [x, np.zeros(8, np.float32)])
    expected = x.copy()
    expected[7] = x[0]
    np.testing.assert_array_equal(a, 2 * expected)
    np.testing.assert_array_equal(o, [8, *x[1:]])


def test_block_number_and_dynamic_offsets() -> None:
    """Each block scales its row by its number."""
    text = f"""
    func.func @k(%a: memref<4x64xf32>) attributes {{ascend.kernel}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
      %b = "cce.get_block_idx"() : () -> index
      %row = memref.subview %a[%b, 0] [1, 64] [1, 1]
        : memref<4x64xf32> to memref<64xf32, strided<[1], offset: ?>>
      %i = arith.index_cast %b : index to i32
      %f = arith.sitofp %i : i32 to f32
      "cce.copy"(%row, %u) : (memref<64xf32, strided<[1], offset: ?>>, memref<64xf32, {UB}>) -> ()
      {BARRIER}
      "cce.vmuls"(%u, %f, %u) : (memref<64xf32, {UB}>, f32, memref<64xf32, {UB}>) -> ()
      {BARRIER}
      "cce.copy"(%u, %row) : (memref<64xf32, {UB}>, memref<64xf32, strided<[1], offset: ?>>) -> ()
      return
    }}"""
    x = np.random.default_rng(0).standard_normal((4, 64)).astype(np.float32)
    found = run(text, [x], blocks=4)[0]
    np.testing.assert_array_equal(found, x * np.arange(4, dtype=np.float32)[:, None])


def test_more_instructions_than_the_buffer_holds() -> None:
    count = 2 * CAPACITY + 100
    text = f"""
    func.func @k(%a: memref<64xf32>) attributes {{ascend.kernel}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = arith.constant {count} : index
      %one = arith.constant 1.0 : f32
      "cce.copy"(%a, %u) : (memref<64xf32>, memref<64xf32, {UB}>) -> ()
      {BARRIER}
      scf.for %i = %c0 to %n step %c1 {{
        "cce.vadds"(%u, %one, %u) : (memref<64xf32, {UB}>, f32, memref<64xf32, {UB}>) -> ()
        "cce.pipe_barrier"() {{pipe = "V"}} : () -> ()
      }}
      {BARRIER}
      "cce.copy"(%u, %a) : (memref<64xf32, {UB}>, memref<64xf32>) -> ()
      return
    }}"""
    found = run(text, [np.zeros(64, np.float32)])[0]
    np.testing.assert_array_equal(found, np.full(64, count))


def test_operations_of_long_scalar_programs_are_counted() -> None:
    text = loop(
        "%x = memref.load %a[%c0] : memref<8xf32>\nmemref.store %x, %a[%c0] : memref<8xf32>",
        100_000,
        "%a: memref<8xf32>",
    )
    library = compile_text(text)
    device = Device(machines.load("ascend910"), 1 << 16)
    address = device.allocate(32)
    device.write(address, np.ones(8, np.float32))
    profile = device.launch("k", library.programs["k"], [address])
    assert profile.scalar_accesses == 200_000
    assert profile.cycles > 200_000


def fault(text: str, written: int) -> str:
    """The message of launching `text` with one argument of which `written` bytes are set."""
    library = compile_text(text)
    device = Device(machines.load("ascend910"), 1 << 16)
    address = device.allocate(256)
    device.write(address, np.zeros(written, np.uint8))
    with pytest.raises(DeviceFault) as error:
        device.launch("k", library.programs["k"], [address], locations=library.locations)
    return str(error.value)


def test_scalar_load_out_of_bounds() -> None:
    body = "%x = memref.load %a[%i] : memref<64xf32>\nmemref.store %x, %a[%i] : memref<64xf32>"
    message = fault(loop(body, 1 << 20, "%a: memref<64xf32>"), 256)
    assert "nobody wrote" in message or "out of bounds" in message
    assert "k" in message


def test_scalar_store_out_of_bounds() -> None:
    body = "%x = arith.constant 0.0 : f32\nmemref.store %x, %a[%i] : memref<64xf32>"
    message = fault(loop(body, 1 << 20, "%a: memref<64xf32>"), 256)
    assert "out of bounds" in message and "GM [0x10000, 0x10004)" in message


def test_scalar_load_of_unwritten_bytes() -> None:
    body = "%x = memref.load %a[%i] : memref<64xf32>\nmemref.store %x, %a[%c0] : memref<64xf32>"
    message = fault(loop(body, 64, "%a: memref<64xf32>"), 128)
    assert "nobody wrote" in message and "GM [0x280, 0x284)" in message


def test_faults_of_the_device_pass_through() -> None:
    """Reads UB before anything was written there."""
    text = f"""
    func.func @k(%a: memref<64xf32>) attributes {{ascend.kernel}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
      "cce.copy"(%u, %a) : (memref<64xf32, {UB}>, memref<64xf32>) -> ()
      return
    }}"""
    assert "copy_ubuf_to_gm" in fault(text, 256)


def test_wrong_number_of_arguments() -> None:
    library = compile_text(loop("", 1, "%a: memref<8xf32>"))
    device = Device(machines.load("ascend910"), 1 << 16)
    with pytest.raises(ValueError, match="found 2 arguments, expected 1"):
        device.launch("k", library.programs["k"], [0, 0])


def test_buffer_without_address() -> None:
    text = f"""
    func.func @k(%a: memref<64xf32>) attributes {{ascend.kernel}} {{
      %u = memref.alloc() : memref<64xf32, {UB}>
      "cce.copy"(%u, %a) : (memref<64xf32, {UB}>, memref<64xf32>) -> ()
      return
    }}"""
    with pytest.raises(CompileError, match="run plan-memory first"):
        compile_text(text)

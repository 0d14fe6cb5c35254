"""Records that are known before a kernel runs: the same stream as from a call for each."""

from __future__ import annotations

from typing import Any

import pytest

from davinci.isa import BY_OPCODE
from davinci.mlir import execution_engine, symbols
from davinci.native.half import NAMES
from davinci.runtime import jit
from davinci.runtime.jit import CAPACITY
from davinci.runtime.known_records import KnownRecords
from davinci.runtime.listing import ListingCore, record_stream
from runtime.kernel_harness import compile_text

UB = '#cce.space<"UB">'
VADDS = f'"cce.vadds"(%u, %one, %u) : (memref<64xf32, {UB}>, f32, memref<64xf32, {UB}>) -> ()'
BARRIER = '"cce.pipe_barrier"() {pipe = "V"} : () -> ()'
KERNEL = f"""
func.func @k(%a: memref<64xf32>) attributes {{ascend.kernel}} {{
  %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant {CAPACITY} : index
  %one = arith.constant 1.0 : f32
  {VADDS}
  "cce.copy"(%a, %u) : (memref<64xf32>, memref<64xf32, {UB}>) -> ()
  {BARRIER}
  {VADDS}
  %x = memref.load %u[%c0] : memref<64xf32, {UB}>
  {VADDS}
  "cce.vadds"(%u, %x, %u) : (memref<64xf32, {UB}>, f32, memref<64xf32, {UB}>) -> ()
  scf.for %i = %c0 to %n step %c1 {{
    {VADDS}
    {BARRIER}
  }}
  return
}}"""


def stream() -> list[list[int]]:
    """The words that the instructions have; what lies behind them in a record means nothing."""
    records = record_stream(compile_text(KERNEL).programs["k"], ListingCore())
    found = []
    for row in records.tolist():
        record = BY_OPCODE[row[0] & 0xFFFF]
        found.append(row[: 1 + len(record.operands) + record.words])
    return found


def test_stream_is_that_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    known = stream()
    assert len(known) > 2 * CAPACITY
    monkeypatch.setattr(KnownRecords, "take", lambda self, function: None)
    assert known == stream()


def test_known_calls_become_rows() -> None:
    """All but the transfer from GM and what needs the number that is loaded."""
    library = compile_text(KERNEL)
    assert len(library.rows) == 8  # 4 vadds, 2 barriers, 2 masks


def test_only_what_is_called_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Barriers and masks are rows only; no number of half precision is converted."""
    defined: list[str] = []

    class Engine(execution_engine.ExecutionEngine):
        def __init__(self, module: Any, **options: Any) -> None:
            defined.extend(name for name, _ in symbols(module.operation))
            super().__init__(module, **options)

    monkeypatch.setattr(jit.execution_engine, "ExecutionEngine", Engine)
    half = KERNEL.replace("f32", "f16")
    for text, conversions in ((KERNEL, set()), (half, set(NAMES))):
        defined.clear()
        compile_text(text)
        assert {"hivm.copy_gm_to_ubuf", "davinci.rows"} <= set(defined)
        assert not {"hivm.pipe_barrier", "hivm.set_vector_mask"} & set(defined)
        assert {name for name in defined if name.startswith("__")} == conversions

"""Executables without data: scalar programs see their constants, others are not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.elements import to_array
from davinci.mlir import ir, make_context
from davinci.passes.cce_to_hivm.convert_cce_to_hivm import ConvertCceToHivmPass
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import ConvertHivmToLlvmPass
from davinci.runtime import host
from davinci.runtime.executable import Executable
from runtime.kernel_harness import BARRIER

UB = '#cce.space<"UB">'
SIZE = "memref<64xf32>"

# @repeat copies as often as its constant says, @copy moves a constant that it does not look at.
TEXT = f"""
module {{
  func.func @main(%y: {SIZE} {{ascend.output}}, %z: {SIZE} {{ascend.output}})
      attributes {{ascend.entry}} {{
    %w = memref.get_global @w : {SIZE}
    %n = memref.get_global @n : memref<16xi8>
    %c8 = arith.constant 8 : index
    %times = memref.view %n[%c8][] : memref<16xi8> to memref<1xi64>
    call @copy(%w, %y) : ({SIZE}, {SIZE}) -> ()
    call @repeat(%times, %y, %z) : (memref<1xi64>, {SIZE}, {SIZE}) -> ()
    return
  }}
  func.func private @copy({SIZE}, {SIZE}) attributes {{ascend.launch = @kernels::@copy}}
  func.func private @repeat(memref<1xi64>, {SIZE}, {SIZE})
    attributes {{ascend.launch = @kernels::@repeat}}
  memref.global "private" constant @w : {SIZE} = dense<3.0>
  memref.global "private" constant @n : memref<16xi8>
    = dense<[0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0]>
  module @kernels {{
    func.func @copy(%a: {SIZE}, %o: {SIZE})
        attributes {{ascend.kernel, ascend.op = "copy", ascend.unit = "vector"}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
      "cce.copy"(%a, %u) : ({SIZE}, memref<64xf32, {UB}>) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) : (memref<64xf32, {UB}>, {SIZE}) -> ()
      return
    }}
    func.func @repeat(%n: memref<1xi64>, %a: {SIZE}, %o: {SIZE})
        attributes {{ascend.kernel, ascend.op = "copy", ascend.unit = "vector"}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<64xf32, {UB}>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %number = memref.load %n[%c0] : memref<1xi64>
      %times = arith.index_cast %number : i64 to index
      scf.for %i = %c0 to %times step %c1 {{
        "cce.copy"(%a, %u) : ({SIZE}, memref<64xf32, {UB}>) -> ()
        {BARRIER}
      }}
      "cce.copy"(%u, %o) : (memref<64xf32, {UB}>, {SIZE}) -> ()
      return
    }}
  }}
}}"""


def compiled(data: bool) -> Executable:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(TEXT)
        ConvertCceToHivmPass().run(module.operation)
        ConvertHivmToLlvmPass().run(module.operation)
        return Executable(module, machines.load("ascend910"), data=data)


def test_times_are_those_with_data() -> None:
    with_data, without = compiled(True), compiled(False)
    outputs = with_data.run({})
    assert [list(array) for array in outputs.values()] == [[3.0] * 64] * 2
    assert without.run({}) == {}
    assert without.launches == with_data.launches
    assert without.launches[1].instructions["copy_gm_to_ubuf"] == 5


@pytest.mark.parametrize(("data", "copied"), [(True, 2), (False, 1)])
def test_constants_that_are_copied(
    data: bool, copied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays: list[Any] = []

    def noted(attr: Any) -> Any:
        arrays.append(to_array(attr))
        return arrays[-1]

    monkeypatch.setattr(host, "to_array", noted)
    compiled(data)
    assert len(arrays) == copied
    assert np.any(arrays[-1] == 5)

"""The host's launch list: placement, inputs and outputs, repeated runs, the profile, listings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci import machine as machines
from davinci.errors import CompileError, InputError
from davinci.mlir import ir, make_context
from davinci.passes.cce_to_hivm.convert_cce_to_hivm import ConvertCceToHivmPass
from davinci.passes.hivm_to_llvm.convert_hivm_to_llvm import ConvertHivmToLlvmPass
from davinci.runtime.executable import Executable
from davinci.runtime.listing import list_module
from runtime.kernel_harness import BARRIER

UB = '#cce.space<"UB">'

# y = (x * 2) * 2 by two launches of one kernel, over the arena. 300 floats are not whole blocks.
HOST = f"""
module {{
  func.func @main(%x: memref<300xf32> {{ascend.name = "x"}},
                  %m: memref<4xi8> {{ascend.name = "m", ascend.boolean}},
                  %y: memref<300xf32> {{ascend.name = "y", ascend.output}},
                  %n: memref<4xi8> {{ascend.boolean, ascend.output}})
      attributes {{ascend.entry, ascend.arena_bytes = 1216 : i64}} {{
    %arena = memref.alloc() {{alignment = 512 : i64}} : memref<1216xi8>
    %w = memref.get_global @w : memref<2xf32>
    %c0 = arith.constant 0 : index
    %t = memref.view %arena[%c0][] : memref<1216xi8> to memref<300xf32>
    call @scale(%x, %w, %t) {{ascend.blocks = 1 : i64}}
      : (memref<300xf32>, memref<2xf32>, memref<300xf32>) -> ()
    call @scale(%t, %w, %y) {{ascend.blocks = 1 : i64}}
      : (memref<300xf32>, memref<2xf32>, memref<300xf32>) -> ()
    call @flip(%m, %n) {{ascend.blocks = 1 : i64}} : (memref<4xi8>, memref<4xi8>) -> ()
    return
  }}
  func.func private @scale(memref<300xf32>, memref<2xf32>, memref<300xf32>)
    attributes {{ascend.launch = @kernels::@scale}}
  func.func private @flip(memref<4xi8>, memref<4xi8>) attributes {{ascend.launch = @kernels::@flip}}
  memref.global "private" constant @w : memref<2xf32> = dense<[1.0, 2.0]>
  module @kernels {{
    func.func @scale(%a: memref<300xf32>, %w: memref<2xf32>, %o: memref<300xf32>)
        attributes {{ascend.kernel, ascend.op = "mul", ascend.unit = "vector"}} {{
      %u = memref.alloc() {{cce.address = 0 : i64}} : memref<300xf32, {UB}>
      %c1 = arith.constant 1 : index
      %s = memref.load %w[%c1] : memref<2xf32>
      "cce.copy"(%a, %u) {{round_up}} : (memref<300xf32>, memref<300xf32, {UB}>) -> ()
      {BARRIER}
      "cce.vmuls"(%u, %s, %u) : (memref<300xf32, {UB}>, f32, memref<300xf32, {UB}>) -> ()
      {BARRIER}
      "cce.copy"(%u, %o) {{round_up}} : (memref<300xf32, {UB}>, memref<300xf32>) -> ()
      return
    }}
    func.func @flip(%a: memref<4xi8>, %o: memref<4xi8>)
        attributes {{ascend.kernel, ascend.op = "not", ascend.unit = "scalar"}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %one = arith.constant 1 : i8
      scf.for %i = %c0 to %c4 step %c1 {{
        %x = memref.load %a[%i] : memref<4xi8>
        %y = arith.xori %x, %one : i8
        memref.store %y, %o[%i] : memref<4xi8>
      }}
      return
    }}
  }}
}}"""


def lowered(text: str) -> Any:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        ConvertCceToHivmPass().run(module.operation)
        ConvertHivmToLlvmPass().run(module.operation)
        module.operation.verify()
        return module


@pytest.fixture(scope="module")
def executable() -> Executable:
    return Executable(lowered(HOST), machines.load("ascend910"))


def inputs(seed: int = 0) -> dict[str, Any]:
    x = np.random.default_rng(seed).standard_normal(300).astype(np.float32)
    return {"x": x, "m": np.array([True, False, False, True])}


def test_specifications(executable: Executable) -> None:
    assert executable.input_names == ["x", "m"]
    assert executable.output_names == ["y", "out1"]
    assert [str(spec) for spec in executable.inputs] == ["float32[300]", "bool[4]"]
    assert [str(spec) for spec in executable.outputs] == ["float32[300]", "bool[4]"]


def test_repeated_runs(executable: Executable) -> None:
    for seed in (1, 2):
        given = inputs(seed)
        found = executable.run(given)
        np.testing.assert_array_equal(found["y"], given["x"] * 4)
        np.testing.assert_array_equal(found["out1"], ~given["m"])


def test_profile(executable: Executable) -> None:
    executable.run(inputs())
    profile = executable.profile
    assert profile["ops"] == {"total": 3, "cube": 0, "vector": 2, "scalar": 1}
    rows = {row["name"]: row for row in profile["kernels"]}
    assert rows["scale"]["launches"] == 2
    assert rows["scale"]["gm_read_bytes"] == 2 * 1216
    assert rows["flip"]["scalar_accesses"] == 8
    assert profile["memory"]["weights_bytes"] == 8
    assert profile["memory"]["arena_bytes"] == 1216
    assert profile["total_cycles"] == sum(row["cycles"] for row in rows.values())
    assert profile["simulate_seconds"] > 0


def test_timeline(executable: Executable) -> None:
    executable.run(inputs(), timeline="all")
    assert all(launch.rows for launch in executable.launches)
    executable.run(inputs(), timeline="first")
    names = [launch.name for launch in executable.launches]
    for i, launch in enumerate(executable.launches):
        assert bool(launch.rows) == (names.index(launch.name) == i)
        assert {row.block for row in launch.rows} <= {0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"z": np.zeros(1)}, "wrong input names; found x, m, z; expected x: float32[300], m: bool"),
        ({"x": np.zeros(300)}, "input 'x': wrong shape or element type; found float64[300]"),
        ({"x": np.zeros(299, np.float32)}, "found float32[299]; expected float32[300]"),
        ({"m": np.zeros(4, np.int8)}, "found int8[4]; expected bool[4]"),
    ],
)
def test_wrong_inputs(executable: Executable, change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        executable.run({**inputs(), **change})
    assert message in str(error.value)


def test_missing_input(executable: Executable) -> None:
    with pytest.raises(InputError, match="wrong input names; found x;"):
        executable.run({"x": np.zeros(300, np.float32)})


def test_module_without_host() -> None:
    with pytest.raises(CompileError, match="no host function"):
        Executable(lowered("module {}"), machines.load("ascend910"))


def test_kernels_must_be_lowered() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(HOST)
        with pytest.raises(CompileError, match="run convert-hivm-to-llvm first"):
            Executable(module, machines.load("ascend910"))


def test_listing() -> None:
    lines = list_module(lowered(HOST)).splitlines()
    assert lines[0] == "scale:  ; block 0 of 1"
    assert "copy_gm_to_ubuf" in lines[2] and "dst=UB[0x0]" in lines[2]
    assert any("vmuls.f32" in line for line in lines)
    assert "flip:  ; block 0 of 1" in lines


def test_lowering_twice_changes_nothing() -> None:
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(HOST)
        for step in (ConvertCceToHivmPass(), ConvertHivmToLlvmPass()):
            step.run(module.operation)
            once = str(module)
            step.run(module.operation)
            assert str(module) == once
            ConvertCceToHivmPass().run(module.operation)
            assert str(module) == once
        # The host part is what it was.
        before = str(ir.Module.parse(HOST)).partition("module @kernels")[0]
        assert str(module).partition("module @kernels")[0] == before

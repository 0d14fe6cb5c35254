"""Text of AscendNPU-IR: what is read, how kernels are launched, and what is found in them."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.errors import DeviceFault, InputError
from davinci.frontends.hivm import Given, is_hivm, kernels_of, launch, parse
from davinci.frontends.hivm.text import normalized
from davinci.mlir import make_context
from hivm_support import BARRIER, KernelText, compiled, run, segments

TAILS = """
// -----// IR Dump Before ConvertHIVMToStandard (convert-hivm-to-std) //----- //
#map = affine_map<()[s0, s1] -> (s0 - s1, 64)>
"builtin.module"() ({
  "func.func"() <{arg_attrs = [{hacc.arg_type = #hacc.arg_type<ffts_base_address>},
      {hacc.arg_type = #hacc.arg_type<workspace>}, {tt.tensor_kind = 0 : i32},
      {tt.tensor_kind = 1 : i32}, {}, {}, {}, {}, {}],
      function_type = (i64, memref<?xi8, #hivm.address_space<gm>>,
      memref<?xf32, #hivm.address_space<gm>>, memref<?xf32, #hivm.address_space<gm>>, i32, f32,
      i32, i32, i32) -> (), sym_name = "scale"}> ({
  ^bb0(%ffts: i64, %work: memref<?xi8, #hivm.address_space<gm>>,
      %x: memref<?xf32, #hivm.address_space<gm>>, %out: memref<?xf32, #hivm.address_space<gm>>,
      %n: i32, %factor: f32, %gx: i32, %gy: i32, %gz: i32):
    %c0 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %c64 = "arith.constant"() <{value = 64 : i32}> : () -> i32
    %block = "hivm.hir.get_block_idx"() : () -> i64
    %first = "arith.trunci"(%block) : (i64) -> i32
    %begin = "arith.muli"(%first, %c64) <{overflowFlags = #arith.overflow<none>}>
        : (i32, i32) -> i32
    %at = "arith.index_cast"(%begin) : (i32) -> index
    %all = "arith.index_cast"(%n) : (i32) -> index
    %count = "affine.min"(%all, %at) <{map = #map}> : (index, index) -> index
    %ub = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}>
        : (i64) -> memref<64xf32, #hivm.address_space<ub>>
    %tile = "memref.subview"(%ub, %count) <{operandSegmentSizes = array<i32: 1, 0, 1, 0>,
        static_offsets = array<i64: 0>, static_sizes = array<i64: -9223372036854775808>,
        static_strides = array<i64: 1>}> : (memref<64xf32, #hivm.address_space<ub>>, index)
        -> memref<?xf32, strided<[1]>, #hivm.address_space<ub>>
    %from = "memref.reinterpret_cast"(%x, %at, %count) <{operandSegmentSizes =
        array<i32: 1, 1, 1, 0>, static_offsets = array<i64: -9223372036854775808>,
        static_sizes = array<i64: -9223372036854775808>, static_strides = array<i64: 1>}>
        : (memref<?xf32, #hivm.address_space<gm>>, index, index)
        -> memref<?xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>
    %to = "memref.reinterpret_cast"(%out, %at, %count) <{operandSegmentSizes =
        array<i32: 1, 1, 1, 0>, static_offsets = array<i64: -9223372036854775808>,
        static_sizes = array<i64: -9223372036854775808>, static_strides = array<i64: 1>}>
        : (memref<?xf32, #hivm.address_space<gm>>, index, index)
        -> memref<?xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>
    "hivm.hir.load"(%from, %tile) <{init_out_buffer = false,
        may_implicit_transpose_with_last_axis = false,
        operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}>
        : (memref<?xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>,
        memref<?xf32, strided<[1]>, #hivm.address_space<ub>>) -> ()
    "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE2>, wait_pipe = #hivm.pipe<PIPE_V>,
        static_event_id = #hivm.event<EVENT_ID0>}> : () -> ()
    "hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE2>, wait_pipe = #hivm.pipe<PIPE_V>,
        static_event_id = #hivm.event<EVENT_ID0>}> : () -> ()
    "hivm.hir.vmul"(%tile, %factor, %tile) <{broadcast = array<i64>,
        operandSegmentSizes = array<i32: 2, 1, 0>, transpose = array<i64>}>
        : (memref<?xf32, strided<[1]>, #hivm.address_space<ub>>, f32,
        memref<?xf32, strided<[1]>, #hivm.address_space<ub>>) -> ()
    "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_V>, wait_pipe = #hivm.pipe<PIPE_MTE3>,
        static_event_id = #hivm.event<EVENT_ID0>}> : () -> ()
    "hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_V>, wait_pipe = #hivm.pipe<PIPE_MTE3>,
        static_event_id = #hivm.event<EVENT_ID0>}> : () -> ()
    "hivm.hir.store"(%tile, %to) <{may_implicit_transpose_with_last_axis = false}>
        : (memref<?xf32, strided<[1]>, #hivm.address_space<ub>>,
        memref<?xf32, strided<[1], offset: ?>, #hivm.address_space<gm>>) -> ()
    "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIV>} : () -> ()
}) {dlti.target_system_spec = #dlti.target_system_spec<"NPU" : #hacc.target_device_spec<
    #dlti.dl_entry<"UB_SIZE", 1572864 : i32>>>} : () -> ()

[ERROR] Cannot find hivmc under $PATH
loc("k.py":3:0): error: External hivmc run fails, returning module before running external compiler
"""


def given(n: int, size: int) -> list[Given]:
    return [
        Given("x", (size,), "f32"),
        Given("out", (size,), "f32"),
        Given("n", None, "i32"),
        Given("factor", None, "f32"),
    ]


def scaled(text: str, n: int, blocks: int, factor: float = 2.5) -> np.ndarray:
    x = np.arange(n, dtype=np.float32)
    executable = davinci.compile(launch(text, [blocks], given(n, n)), machine="ascend910b")
    scalars = {"n": np.int32(n), "factor": np.float32(factor)}
    return executable.run({"x": x, "out": np.full(n, -1, np.float32), **scalars})["out"]


@pytest.mark.parametrize("n", [1, 15, 64, 65, 200])
def test_sizes_are_scalars_of_the_running_program(n: int) -> None:
    np.testing.assert_array_equal(scaled(TAILS, n, -(-n // 64)), 2.5 * np.arange(n))


def test_one_executable_runs_with_other_scalars() -> None:
    executable = davinci.compile(launch(TAILS, [4], given(200, 200)), machine="ascend910b")
    x, out = np.arange(200, dtype=np.float32), np.full(200, -1, np.float32)
    for n, factor in ((200, 2.0), (193, -0.5)):
        arrays = {"x": x, "out": out, "n": np.int32(n), "factor": np.float32(factor)}
        found = executable.run(arrays)["out"]
        np.testing.assert_array_equal(found[:n], x[:n] * np.float32(factor))
        np.testing.assert_array_equal(found[n:], -1)


@pytest.mark.parametrize("pair", [("MTE2", "V"), ("V", "MTE3")])
def test_a_lost_flag_is_a_race(pair: tuple[str, str]) -> None:
    source, target = (f"#hivm.pipe<PIPE_{name}>" for name in pair)
    pieces = TAILS.split('"hivm.hir.')
    kept = [
        piece
        for piece in pieces
        if not (f"set_pipe = {source}" in piece and f"wait_pipe = {target}" in piece)
    ]
    assert len(kept) == len(pieces) - 2
    with pytest.raises(DeviceFault, match="race"):
        scaled('"hivm.hir.'.join(kept), 64, 1)


def test_a_wait_that_nothing_answers_is_a_deadlock() -> None:
    begin = TAILS.index('"hivm.hir.set_flag"')
    end = TAILS.index('"hivm.hir.wait_flag"')
    with pytest.raises(DeviceFault, match=r"(?i)deadlock|set_flag"):
        scaled(TAILS[:begin] + TAILS[end:], 64, 1)


def test_a_kernel_that_reaches_beyond_its_array_is_a_fault() -> None:
    executable = davinci.compile(launch(TAILS, [4], given(200, 200)), machine="ascend910b")
    x = np.zeros(200, np.float32)
    with pytest.raises(DeviceFault):
        executable.run({"x": x, "out": x, "n": np.int32(100000), "factor": np.float32(1)})


def test_bytes_that_nobody_wrote() -> None:
    made = KernelText()
    made.store(made.buffer((64,), "f32"), (64,), "f32")
    with pytest.raises(DeviceFault, match="nobody wrote"):
        run(made.text(), np.zeros(64, np.float32))


def test_flags_may_be_set_again_before_the_wait_for_them_is_over() -> None:
    flag = (
        '"hivm.hir.{}_flag"() <{{set_pipe = #hivm.pipe<PIPE_V>, wait_pipe = #hivm.pipe<PIPE_MTE3>, '
        "static_event_id = #hivm.event<EVENT_ID0>}}> : () -> ()"
    )
    made = KernelText()
    a = made.load((64,), "f32")
    for _ in range(2):
        made.op("vexp", [a, a], segments(1, 1, 0))
        assert made.lines.pop() == BARRIER
        made.lines += [BARRIER.replace("ALL", "V"), flag.format("set"), flag.format("wait")]
    made.store(a, (64,), "f32")
    x = np.zeros(64, np.float32)
    np.testing.assert_allclose(run(made.text(), x, np.zeros_like(x)), np.exp(1), rtol=1e-6)


def test_what_a_kernel_takes() -> None:
    kernel = kernels_of(parse(TAILS, make_context()))[0]
    assert kernel.name == "scale"
    assert [a.role for a in kernel.arguments[:2]] == ["ffts_base_address", "workspace"]
    assert [(a.element, a.buffer, a.written) for a in kernel.given[:4]] == [
        ("f32", True, False),
        ("f32", True, True),
        ("i32", False, False),
        ("f32", False, False),
    ]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(InputError, match=r"wrong number of arguments.*found 2; expected 4 or 7"):
        launch(TAILS, [1], given(64, 64)[:2])
    with pytest.raises(InputError, match=r"argument 2 \(n\).*scalar of type i64"):
        launch(TAILS, [1], [*given(64, 64)[:2], Given("n", None, "i64"), given(64, 64)[3]])
    with pytest.raises(InputError, match="bad grid"):
        launch(TAILS, [0], given(64, 64))
    with pytest.raises(InputError, match=r"no such kernel.*found add; expected scale"):
        launch(TAILS, [1], given(64, 64), name="add")


def test_a_module_without_kernels() -> None:
    text = '"builtin.module"() ({\n^bb0:\n}) {hacc.a = "hivm.hir."} : () -> ()'
    assert is_hivm(text)
    with pytest.raises(InputError, match="no kernel"):
        launch(text, [1], [])


def test_the_pretty_form_is_refused() -> None:
    text = "func.func @k() {\n  hivm.hir.pipe_barrier[<PIPE_ALL>]\n  return\n}"
    with pytest.raises(InputError, match="not in generic form"):
        normalized(text)


def test_faults_name_the_line_of_the_caller() -> None:
    text = """
#loc1 = loc("lib.py":1:1)
#loc2 = loc("k.py":7:3)
"hivm.hir.x"() : () -> () loc(#loc3)
#loc3 = loc(callsite(#loc1 at #loc2))
"""
    made = normalized(text)
    assert '"hir.x"() : () -> () loc(#loc2)' in made
    assert "callsite" not in made


def test_two_arguments_may_be_one_array() -> None:
    made = KernelText()
    a = made.load((64,), "f32")
    made.op("vadd", [a, a, a], segments(2, 1, 0))
    made.store(a, (64,), "f32")
    arguments = [Given("x", (64,), "f32"), Given("y", (64,), "f32", same=0)]
    executable = davinci.compile(launch(made.text(), [1], arguments), machine="ascend910b")
    x = np.arange(64, dtype=np.float32)
    np.testing.assert_array_equal(executable.run({"x": x})["x"], 2 * x)


def test_times_come_from_the_stream() -> None:
    made = KernelText()
    a = made.load((1024,), "f32")
    for _ in range(4):
        made.op("vexp", [a, a], segments(1, 1, 0))
    made.store(a, (1024,), "f32")
    x = np.zeros(1024, np.float32)
    executable = compiled(made.text(), [x, x])
    executable.run({"x0": x, "x1": x})
    profile = executable.profile
    assert profile["kernels"][0]["instructions"] > 8
    assert profile["total_cycles"] > 4 * 2 * 16

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm,convert-hir-to-hivm)' | FileCheck %s

// A load, its flag, an addition of whole repeats and a rest, and a store.
// CHECK: func.func @add
// CHECK-SAME: (%arg0: !llvm.ptr<1>, %arg1: !llvm.ptr<1>)
// CHECK: "hivm.copy_gm_to_ubuf_align"([[U:%.+]], %arg0) {dst_gap = 0 : i64, len_burst = 400 : i64, n_burst = 1 : i64
// CHECK-NEXT: "hivm.set_flag"() {dst_pipe = 1 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.wait_flag"() {dst_pipe = 1 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.set_vector_mask"() {high = -1 : i64, low = -1 : i64}
// CHECK-NEXT: "hivm.vadd"([[U]], [[U]], [[U]]) {{{.*}}repeat = 1 : i64{{.*}}type = "f32"}
// CHECK-NEXT: "hivm.set_vector_mask"() {high = 0 : i64, low = 68719476735 : i64}
// CHECK: "hivm.vadd"
// CHECK-NEXT: "hivm.pipe_barrier"() {pipe = 6 : i64}
// CHECK-NEXT: "hivm.copy_ubuf_to_gm_align"(%arg1, [[U]])
"builtin.module"() ({
  "func.func"() <{function_type = (memref<?xf32, #hivm.address_space<gm>>, memref<?xf32, #hivm.address_space<gm>>) -> (), sym_name = "add"}> ({
  ^bb0(%x: memref<?xf32, #hivm.address_space<gm>>, %y: memref<?xf32, #hivm.address_space<gm>>):
    %c0 = "arith.constant"() <{value = 512 : i64}> : () -> i64
    %from = "memref.reinterpret_cast"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 100>, static_strides = array<i64: 1>}> : (memref<?xf32, #hivm.address_space<gm>>) -> memref<100xf32, #hivm.address_space<gm>>
    %to = "memref.reinterpret_cast"(%y) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 100>, static_strides = array<i64: 1>}> : (memref<?xf32, #hivm.address_space<gm>>) -> memref<100xf32, #hivm.address_space<gm>>
    %u = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<100xf32, #hivm.address_space<ub>>
    "hivm.hir.load"(%from, %u) <{init_out_buffer = false, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (memref<100xf32, #hivm.address_space<gm>>, memref<100xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.set_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE2>, static_event_id = #hivm.event<EVENT_ID3>, wait_pipe = #hivm.pipe<PIPE_V>}> : () -> ()
    "hivm.hir.wait_flag"() <{set_pipe = #hivm.pipe<PIPE_MTE2>, static_event_id = #hivm.event<EVENT_ID3>, wait_pipe = #hivm.pipe<PIPE_V>}> : () -> ()
    "hivm.hir.vadd"(%u, %u, %u) <{broadcast = array<i64>, operandSegmentSizes = array<i32: 2, 1, 0>, transpose = array<i64>}> : (memref<100xf32, #hivm.address_space<ub>>, memref<100xf32, #hivm.address_space<ub>>, memref<100xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.pipe_barrier"() <{pipe = #hivm.pipe<PIPE_ALL>}> : () -> ()
    "hivm.hir.store"(%u, %to) <{may_implicit_transpose_with_last_axis = false}> : (memref<100xf32, #hivm.address_space<ub>>, memref<100xf32, #hivm.address_space<gm>>) -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIV>} : () -> ()
}) : () -> ()

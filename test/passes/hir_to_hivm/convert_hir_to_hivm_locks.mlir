// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm)' | FileCheck %s

// A lock: the block waits for its turn; behind everything it stores the number of the next one, and
// a store inside leaves the larger numbers.
// CHECK-LABEL: func.func @lock
// CHECK: "hivm.await_turn"() {lock = 1 : i64}
// CHECK-NEXT: "hivm.pipe_barrier"() {pipe = 5 : i64}
// CHECK-NEXT: "hivm.set_atomic_max_f32"()
// CHECK: "hivm.copy_ubuf_to_gm_align"
// CHECK-NEXT: "hivm.set_atomic_none"()
// CHECK: "hivm.pipe_barrier"() {pipe = 6 : i64}
// CHECK-NEXT: [[B:%.+]] = "hivm.get_block_idx"
// CHECK: "hivm.st"
// CHECK-NEXT: "hivm.pass_turn"() {lock = 1 : i64, pipe = 5 : i64}
"builtin.module"() ({
  "func.func"() <{function_type = (memref<?xi8, #hivm.address_space<gm>>, memref<?xf32, #hivm.address_space<gm>>) -> (), sym_name = "lock"}> ({
  ^bb0(%locks: memref<?xi8, #hivm.address_space<gm>>, %y: memref<?xf32, #hivm.address_space<gm>>):
    %c0 = "arith.constant"() <{value = 512 : i64}> : () -> i64
    %eight = "arith.constant"() <{value = 8 : index}> : () -> index
    %to = "memref.reinterpret_cast"(%y) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 100>, static_strides = array<i64: 1>}> : (memref<?xf32, #hivm.address_space<gm>>) -> memref<100xf32, #hivm.address_space<gm>>
    %u = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<100xf32, #hivm.address_space<ub>>
    %l = "memref.view"(%locks, %eight) : (memref<?xi8, #hivm.address_space<gm>>, index) -> memref<1xi64, #hivm.address_space<gm>>
    "hivm.hir.sync_block_lock"(%l) : (memref<1xi64, #hivm.address_space<gm>>) -> ()
    "hivm.hir.store"(%u, %to) <{atomic_kind = #hivm.atomic_kind<max>, may_implicit_transpose_with_last_axis = false}> : (memref<100xf32, #hivm.address_space<ub>>, memref<100xf32, #hivm.address_space<gm>>) -> ()
    "hivm.hir.sync_block_unlock"(%l) : (memref<1xi64, #hivm.address_space<gm>>) -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIV>} : () -> ()
}) : () -> ()

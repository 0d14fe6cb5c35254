// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(convert-cce-to-hir)' | FileCheck %s
// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(convert-cce-to-hir,convert-cce-to-hir)' | FileCheck %s

// Buffers at their addresses, copies by the memories between which they are, numbers as operands,
// a fill of some lanes, a copy of whole blocks, and a barrier at the end.
// CHECK: func.func @k(%arg0: memref<100xf32, "gm">, %arg1: memref<17xf32, "gm">)
// CHECK: [[B:%.+]] = "hir.get_block_idx"() : () -> i64
// CHECK-NEXT: arith.index_cast [[B]] : i64 to index
// CHECK: [[C:%.+]] = arith.constant 512 : i64
// CHECK-NEXT: [[U:%.+]] = "hir.pointer_cast"([[C]]) {operandSegmentSizes = array<i32: 1, 0>} : (i64) -> memref<4x64xf32, "ub">
// CHECK: "hir.load"({{.*}}) {init_out_buffer = false{{.*}}} : (memref<4x16xf32, strided<[16, 1]>, "gm">, memref<4x16xf32, strided<[64, 1]>, "ub">) -> ()
// CHECK-NEXT: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, static_event_id = #hir.event<EVENT_ID3>, wait_pipe = #hir.pipe<PIPE_V>}
// CHECK: memref.subview [[U]][0, 8] [4, 16] [1, 1]
// CHECK-NEXT: "hir.vbrc"({{.*}}) {broadcast_dims = array<i64>} : (f32, memref<4x16xf32
// CHECK-NEXT: "hir.vadd"({{.*}}, %cst, {{.*}}) {broadcast = array<i64>, operandSegmentSizes = array<i32: 2, 1, 0>, transpose = array<i64>}
// CHECK-NEXT: "hir.vcast"({{.*}}) {{{.*}}round_mode = #hir.round_mode<rint>
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK: "hir.store"({{.*}}) {{{.*}}} : (memref<24xf32, strided<[1]>, "ub">, memref<24xf32, strided<[1]>, "gm">) -> ()
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_ALL>}
// CHECK-NEXT: return
func.func @k(%x: memref<100xf32>, %y: memref<17xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %cst = arith.constant 2.0 : f32
  %b = "cce.get_block_idx"() : () -> index
  %u = memref.alloc() {cce.address = 512 : i64} : memref<4x64xf32, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 4096 : i64} : memref<24xf32, #cce.space<"UB">>
  %h = memref.alloc() {cce.address = 8192 : i64} : memref<24xf16, #cce.space<"UB">>
  %from = memref.reinterpret_cast %x to offset: [0], sizes: [4, 16], strides: [16, 1] : memref<100xf32> to memref<4x16xf32, strided<[16, 1]>>
  %part = memref.subview %u[0, 0] [4, 16] [1, 1] : memref<4x64xf32, #cce.space<"UB">> to memref<4x16xf32, strided<[64, 1]>, #cce.space<"UB">>
  "cce.copy"(%from, %part) : (memref<4x16xf32, strided<[16, 1]>>, memref<4x16xf32, strided<[64, 1]>, #cce.space<"UB">>) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 3 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 3 : i64} : () -> ()
  "cce.vector_dup"(%cst, %u) {first_lane = 8 : i64, lanes = 16 : i64} : (f32, memref<4x64xf32, #cce.space<"UB">>) -> ()
  "cce.vadds"(%v, %cst, %v) : (memref<24xf32, #cce.space<"UB">>, f32, memref<24xf32, #cce.space<"UB">>) -> ()
  "cce.vconv"(%v, %h) : (memref<24xf32, #cce.space<"UB">>, memref<24xf16, #cce.space<"UB">>) -> ()
  "cce.pipe_barrier"() {pipe = "V"} : () -> ()
  %some = memref.subview %v[0] [17] [1] : memref<24xf32, #cce.space<"UB">> to memref<17xf32, strided<[1]>, #cce.space<"UB">>
  %to = memref.reinterpret_cast %y to offset: [0], sizes: [17], strides: [1] : memref<17xf32> to memref<17xf32, strided<[1]>>
  "cce.copy"(%some, %to) {round_up} : (memref<17xf32, strided<[1]>, #cce.space<"UB">>, memref<17xf32, strided<[1]>>) -> ()
  return
}

// A kernel without operations of cce stays as it is.
// CHECK: func.func @empty(%arg0: memref<100xf32>)
func.func @empty(%x: memref<100xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  return
}

// A multiply-add is a product behind all buffers and a sum, or both in the place of the result; bits
// of two types are those of one.
// CHECK: func.func @adds()
// CHECK: [[A:%.+]] = "hir.pointer_cast"
// CHECK: [[M:%.+]] = "hir.pointer_cast"{{.*}} -> memref<64xi32, "ub">
// CHECK: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK: [[END:%.+]] = arith.constant 1280 : i64
// CHECK-NEXT: [[T:%.+]] = "hir.pointer_cast"([[END]])
// CHECK-NEXT: "hir.vmul"([[A]], [[A]], [[T]])
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK-NEXT: "hir.vadd"([[T]], [[A]], [[A]])
// CHECK: "hir.vmul"([[A]], [[A]], [[A]])
// CHECK-NEXT: "hir.pipe_barrier"
// CHECK-NEXT: "hir.vadd"([[A]], [[A]], [[A]])
// CHECK: [[F:%.+]] = "hir.pointer_cast"{{.*}} -> memref<64xf32, "ub">
// CHECK-NEXT: "hir.vand"([[A]], [[F]], [[A]])
func.func @adds() attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<64xf32, #cce.space<"UB">>
  %m = memref.alloc() {cce.address = 1024 : i64} : memref<64xi32, #cce.space<"UB">>
  "cce.vmla"(%a, %a, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vmadd"(%a, %a, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vand"(%a, %m, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xi32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  return
}

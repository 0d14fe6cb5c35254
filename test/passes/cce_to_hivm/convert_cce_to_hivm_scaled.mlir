// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm{machine=ascend910b})' | FileCheck %s

// Sums of bytes are scaled on their way out: words of columns come to FB, where FPC says that they
// begin; that of all columns lies in a register. Bytes lie in fractals of 32 columns.
// CHECK-LABEL: func.func @scaled
// CHECK: "hivm.copy_cbuf_to_fbuf"{{.*}} {dst_gap = 0 : i64, len_burst = 4 : i64, n_burst = 1 : i64
// CHECK: "hivm.set_fpc"() {bits = 512 : i64
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 70 : i64, m_size = 30 : i64, n_size = 50 : i64, nz2nd = 1 : i64, relu = 1 : i64, src_stride = 32 : i64, type = "s322f16v"}
// CHECK-NOT: set_fpc
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 96 : i64, m_size = 32 : i64, n_size = 64 : i64, nz2nd = 0 : i64, relu = 0 : i64, src_stride = 32 : i64, type = "s322b8v"}
// CHECK: "hivm.set_quant_pre"() {bits = 71469662994432 : i64
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 30 : i64, m_size = 30 : i64, n_size = 64 : i64, nz2nd = 0 : i64, relu = 0 : i64, src_stride = 32 : i64, type = "s322b8"}
// CHECK: "hivm.set_quant_pre"(%{{.*}})
// CHECK: "hivm.fixpipe"{{.*}} type = "s322b8"}
// CHECK: "hivm.set_fpc"(%{{.*}})
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 0 : i64, {{.*}} n_size = 32 : i64, {{.*}} type = "s322b8v"}
func.func @scaled(%y: memref<30x50xf16, strided<[70, 1]>>, %z: memref<2x2x16x32xi8, strided<[3072, 512, 32, 1]>>, %first: memref<2x30x32xui8>, %one: memref<1x2x16x32xi8>, %more: i64, %at: index) attributes {ascend.kernel} {
  %c = memref.alloc() {cce.address = 0 : i64} : memref<4x2x16x16xi32, #cce.space<"L0C">>
  %l = memref.alloc() {cce.address = 0 : i64} : memref<4x16xi64, #cce.space<"L1">>
  %w = memref.alloc() {cce.address = 256 : i64} : memref<4x16xi64, #cce.space<"FB">>
  %word = arith.constant 71469662994432 : i64
  "cce.copy"(%l, %w) : (memref<4x16xi64, #cce.space<"L1">>, memref<4x16xi64, #cce.space<"FB">>) -> ()
  "cce.fixpipe_scaled"(%c, %w, %y) {relu} : (memref<4x2x16x16xi32, #cce.space<"L0C">>, memref<4x16xi64, #cce.space<"FB">>, memref<30x50xf16, strided<[70, 1]>>) -> ()
  "cce.fixpipe_scaled"(%c, %w, %z) : (memref<4x2x16x16xi32, #cce.space<"L0C">>, memref<4x16xi64, #cce.space<"FB">>, memref<2x2x16x32xi8, strided<[3072, 512, 32, 1]>>) -> ()
  "cce.fixpipe_scaled"(%c, %word, %first) : (memref<4x2x16x16xi32, #cce.space<"L0C">>, i64, memref<2x30x32xui8>) -> ()
  "cce.fixpipe_scaled"(%c, %more, %first) : (memref<4x2x16x16xi32, #cce.space<"L0C">>, i64, memref<2x30x32xui8>) -> ()
  %some = memref.subview %w[%at, 0] [2, 16] [1, 1] : memref<4x16xi64, #cce.space<"FB">> to memref<2x16xi64, strided<[16, 1], offset: ?>, #cce.space<"FB">>
  %left = memref.subview %c[0, 0, 0, 0] [2, 2, 16, 16] [1, 1, 1, 1] : memref<4x2x16x16xi32, #cce.space<"L0C">> to memref<2x2x16x16xi32, strided<[512, 256, 16, 1]>, #cce.space<"L0C">>
  "cce.fixpipe_scaled"(%left, %some, %one) : (memref<2x2x16x16xi32, strided<[512, 256, 16, 1]>, #cce.space<"L0C">>, memref<2x16xi64, strided<[16, 1], offset: ?>, #cce.space<"FB">>, memref<1x2x16x32xi8>) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm{machine=ascend910b})' | FileCheck %s

// Products that begin with a bias have its address behind those of their factors.
// CHECK-LABEL: func.func @bias
// CHECK: [[T:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<10>
// CHECK: "hivm.copy_cbuf_to_bt"([[T]], {{.*}} {dst_gap = 0 : i64, len_burst = 4 : i64, n_burst = 1 : i64, src_gap = 0 : i64
// CHECK: [[C:%.+]] = llvm.inttoptr {{.*}} to !llvm.ptr<5>
// CHECK: "hivm.mad_bias"([[C]], {{.*}}, [[T]]) {k = 48 : i64, m = 32 : i64, n = 64 : i64, type = "f162f32"}
func.func @bias() attributes {ascend.kernel} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<4x16xf32, #cce.space<"L1">>
  %t = memref.alloc() {cce.address = 64 : i64} : memref<4x16xf32, #cce.space<"BT">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x3x16x16xf16, #cce.space<"L0A">>
  %b = memref.alloc() {cce.address = 0 : i64} : memref<3x4x16x16xf16, #cce.space<"L0B">>
  %c = memref.alloc() {cce.address = 0 : i64} : memref<4x2x16x16xf32, #cce.space<"L0C">>
  "cce.copy"(%l, %t) : (memref<4x16xf32, #cce.space<"L1">>, memref<4x16xf32, #cce.space<"BT">>) -> ()
  "cce.mad_bias"(%a, %b, %t, %c) : (memref<2x3x16x16xf16, #cce.space<"L0A">>, memref<3x4x16x16xf16, #cce.space<"L0B">>, memref<4x16xf32, #cce.space<"BT">>, memref<4x2x16x16xf32, #cce.space<"L0C">>) -> ()
  return
}

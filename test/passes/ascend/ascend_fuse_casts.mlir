// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse,ascend-fuse)' | FileCheck %s

// A statistic of f16 is converted before it is repeated, so that one kernel holds all.
// CHECK-LABEL: func.func @main
// CHECK: call @reduce_sub_f32_64x128(%arg0) : (tensor<64x128xf16>) -> tensor<64x128xf32>
// CHECK-NEXT: return
func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<64x128xf16>) -> tensor<64xf16>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<64xf16>) -> tensor<64x128xf16>
  %w = "ascend.cast"(%x) : (tensor<64x128xf16>) -> tensor<64x128xf32>
  %c = "ascend.cast"(%b) : (tensor<64x128xf16>) -> tensor<64x128xf32>
  %s = "ascend.sub"(%w, %c) : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return %s : tensor<64x128xf32>
}
// Fractals stay fractals.
// CHECK-LABEL: func.func @fractals
// CHECK: call @{{.*}}(%arg0) : (tensor<32xf32>) -> tensor<16x32xf16, #ascend.layout<"nz">>
func.func @fractals(%x: tensor<32xf32>) -> tensor<16x32xf16, #ascend.layout<"nz">> {
  %e = "ascend.exp"(%x) : (tensor<32xf32>) -> tensor<32xf32>
  %b = "ascend.broadcast"(%e) {dims = array<i64: 1>} : (tensor<32xf32>) -> tensor<16x32xf32, #ascend.layout<"nz">>
  %c = "ascend.cast"(%b) : (tensor<16x32xf32, #ascend.layout<"nz">>) -> tensor<16x32xf16, #ascend.layout<"nz">>
  return %c : tensor<16x32xf16, #ascend.layout<"nz">>
}

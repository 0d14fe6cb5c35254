// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse,ascend-fuse)' | FileCheck %s

// What is stored narrow anyway is made wider by the kernel that reads it: nothing of f32 crosses GM.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = call @matmul_exp_f16_64x64(%arg0, %arg1) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
// CHECK: call @matmul_add_f16_64x64(%[[Y]], %arg1) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf16>
func.func @main(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %p = "ascend.matmul"(%a, %b) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
  %y = "ascend.exp"(%p) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %n = "ascend.cast"(%y) : (tensor<64x64xf32>) -> tensor<64x64xf16>
  %w = "ascend.cast"(%n) : (tensor<64x64xf16>) -> tensor<64x64xf32>
  %q = "ascend.matmul"(%n, %b) : (tensor<64x64xf16>, tensor<64x64xf16>) -> tensor<64x64xf32>
  %s = "ascend.add"(%q, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %z = "ascend.cast"(%s) : (tensor<64x64xf32>) -> tensor<64x64xf16>
  return %z : tensor<64x64xf16>
}

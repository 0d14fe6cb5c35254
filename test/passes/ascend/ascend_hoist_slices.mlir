// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-hoist-slices)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-hoist-slices,ascend-hoist-slices)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-hoist-slices{rewrites=none})' | FileCheck %s --check-prefix=OFF

// A row of a product with an operator behind it: the row of the operand.
// CHECK-LABEL: func.func @main
// CHECK: ascend.slice{{.*}}%arg0{{.*}}tensor<512x768xf32>{{.*}} -> tensor<1x768xf32>
// CHECK: ascend.matmul{{.*}} -> tensor<1x768xf32>
// CHECK: ascend.gelu{{.*}}tensor<1x768xf32>
// OFF-LABEL: func.func @main
// OFF: ascend.matmul{{.*}} -> tensor<512x768xf32>
// OFF: ascend.slice
func.func @main(%x: tensor<512x768xf32>, %w: tensor<768x768xf32>) -> tensor<1x768xf32> {
  %0 = "ascend.matmul"(%x, %w) : (tensor<512x768xf32>, tensor<768x768xf32>) -> tensor<512x768xf32>
  %1 = "ascend.gelu"(%0) : (tensor<512x768xf32>) -> tensor<512x768xf32>
  %2 = "ascend.slice"(%1) {starts = array<i64: 511, 0>, limits = array<i64: 512, 768>, strides = array<i64: 1, 1>} : (tensor<512x768xf32>) -> tensor<1x768xf32>
  return %2 : tensor<1x768xf32>
}

// -----

// All of the exponential is read besides: it stays.
// CHECK-LABEL: func.func @main
// CHECK: ascend.exp{{.*}}tensor<64x128xf32>
// CHECK: ascend.slice{{.*}}tensor<64x128xf32>{{.*}} -> tensor<1x128xf32>
// OFF-LABEL: func.func @main
// OFF: ascend.exp{{.*}}tensor<64x128xf32>
func.func @main(%x: tensor<64x128xf32>) -> (tensor<64x128xf32>, tensor<1x128xf32>) {
  %0 = "ascend.exp"(%x) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %1 = "ascend.slice"(%0) {starts = array<i64: 63, 0>, limits = array<i64: 64, 128>, strides = array<i64: 1, 1>} : (tensor<64x128xf32>) -> tensor<1x128xf32>
  return %0, %1 : tensor<64x128xf32>, tensor<1x128xf32>
}

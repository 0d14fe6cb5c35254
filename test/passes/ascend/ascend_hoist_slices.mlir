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

// -----

// Rows of whole blocks of 16 elements stay so, though not all of them is read.
// CHECK-LABEL: func.func @main
// CHECK: %[[L:.*]] = "ascend.slice"(%arg0)
// CHECK: %[[C:.*]] = "ascend.concat"(%[[L]], %arg0){{.*}}tensor<64x1936xf32>
// CHECK: %[[A:.*]] = "ascend.slice"(%[[C]])
// CHECK: %[[B:.*]] = "ascend.slice"(%[[C]])
// CHECK: "ascend.add"(%[[A]], %[[B]])
func.func @main(%x: tensor<64x1920xf32>) -> tensor<64x1920xf32> {
  %l = "ascend.slice"(%x) {starts = array<i64: 0, 0>, limits = array<i64: 64, 16>, strides = array<i64: 1, 1>} : (tensor<64x1920xf32>) -> tensor<64x16xf32>
  %c = "ascend.concat"(%l, %x) {dim = 1 : i64} : (tensor<64x16xf32>, tensor<64x1920xf32>) -> tensor<64x1936xf32>
  %a = "ascend.slice"(%c) {starts = array<i64: 0, 15>, limits = array<i64: 64, 1935>, strides = array<i64: 1, 1>} : (tensor<64x1936xf32>) -> tensor<64x1920xf32>
  %b = "ascend.slice"(%c) {starts = array<i64: 0, 16>, limits = array<i64: 64, 1936>, strides = array<i64: 1, 1>} : (tensor<64x1936xf32>) -> tensor<64x1920xf32>
  %s = "ascend.add"(%a, %b) : (tensor<64x1920xf32>, tensor<64x1920xf32>) -> tensor<64x1920xf32>
  return %s : tensor<64x1920xf32>
}

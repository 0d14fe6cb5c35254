// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-weights)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-weights,ascend-scale-weights)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-weights{rewrites=none})' | FileCheck %s --check-prefix=OFF
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-weights{precision=fp32})' | FileCheck %s --check-prefix=OFF

// scale-weights, with a bias in between.
// CHECK-LABEL: func.func @main
// CHECK-NOT: ascend.mul
// CHECK: dense<{{\[}}[2.000000e+00, 6.000000e+00], [2.000000e+00, 6.000000e+00]]>
// CHECK: ascend.matmul
// CHECK: ascend.add
// CHECK-NEXT: return
// OFF-LABEL: func.func @main
// OFF: ascend.matmul
// OFF: ascend.add
// OFF: ascend.mul
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %w = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %c = "ascend.constant"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %s = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<4x2xf32>
  %0 = "ascend.matmul"(%x, %w) : (tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %1 = "ascend.add"(%0, %s) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  %2 = "ascend.mul"(%s, %1) : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

// Factors of rows, factors that take a column out of the range of f16, and products that others
// read, too, stay.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: ascend.mul
// OFF-LABEL: func.func @main
func.func @main(%x: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %w = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %c = "ascend.constant"() {value = dense<[2.0, 3.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %rows = "ascend.broadcast"(%c) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %small = "ascend.full"() {value = 1.0e-7 : f32} : () -> tensor<2x2xf32>
  %two = "ascend.full"() {value = 2.0 : f32} : () -> tensor<2x2xf32>
  %0 = "ascend.matmul"(%x, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "ascend.mul"(%0, %rows) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.matmul"(%1, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "ascend.mul"(%2, %small) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %4 = "ascend.matmul"(%3, %w) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %5 = "ascend.mul"(%4, %two) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %1, %3, %4, %5 : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// merge-linear-layers, with a bias in between.
// CHECK-LABEL: func.func @main
// CHECK: ascend.matmul{{.*}}tensor<4x2xf32>, tensor<2x2xf32>
// CHECK-NOT: ascend.matmul
// CHECK: ascend.add
// OFF-LABEL: func.func @main
// OFF-COUNT-2: ascend.matmul
func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %v = "ascend.constant"() {value = dense<[[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %w = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0], [2.0, 2.0]]> : tensor<3x2xf32>} : () -> tensor<3x2xf32>
  %c = "ascend.constant"() {value = dense<[2.0, 3.0, 4.0]> : tensor<3xf32>} : () -> tensor<3xf32>
  %b = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<3xf32>) -> tensor<4x3xf32>
  %0 = "ascend.matmul"(%x, %v) : (tensor<4x2xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  %1 = "ascend.add"(%0, %b) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  %2 = "ascend.matmul"(%1, %w) : (tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// -----

// A low rank is fewer multiplications than the whole matrix: two products stay.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: ascend.matmul
// OFF-LABEL: func.func @main
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %v = "ascend.constant"() {value = dense<1.0> : tensor<4x1xf32>} : () -> tensor<4x1xf32>
  %w = "ascend.constant"() {value = dense<2.0> : tensor<1x4xf32>} : () -> tensor<1x4xf32>
  %0 = "ascend.matmul"(%x, %v) : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  %1 = "ascend.matmul"(%0, %w) : (tensor<4x1xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  return %1 : tensor<4x4xf32>
}

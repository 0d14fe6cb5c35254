// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp16 machine=ascend910b})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp16 machine=ascend910b},ascend-legalize-precision{precision=fp16 machine=ascend910b})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp16})' --split-input-file | FileCheck %s --check-prefix=APART

// CHECK-LABEL: func.func @row
// CHECK: %[[R:.*]] = "ascend.broadcast"({{.*}}) {{.*}} : (tensor<4xf32>) -> tensor<8x4xf32>
// CHECK: %[[C:.*]] = "ascend.matmul"({{.*}}) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
// CHECK: %[[S:.*]] = "ascend.add"(%[[R]], %[[C]]) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[H:.*]] = "ascend.cast"(%[[S]]) : (tensor<8x4xf32>) -> tensor<8x4xf16>
// CHECK: "ascend.exp"(%[[H]]) : (tensor<8x4xf16>) -> tensor<8x4xf16>
// APART-LABEL: func.func @row
// APART: "ascend.add"({{.*}}) : (tensor<8x4xf16>, tensor<8x4xf16>) -> tensor<8x4xf16>
func.func @row(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %r = "ascend.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %d = "ascend.broadcast"(%r) {dims = array<i64: 1>} : (tensor<4xf32>) -> tensor<8x4xf32>
  %c = "ascend.matmul"(%a, %b) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %s = "ascend.add"(%d, %c) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %e = "ascend.exp"(%s) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %e : tensor<8x4xf32>
}

// -----

// Rows of a constant that are alike are a row.

// CHECK-LABEL: func.func @alike
// CHECK: "ascend.matmul"({{.*}}) : (tensor<2x16xf16>, tensor<16x2xf16>) -> tensor<2x2xf32>
// CHECK: %[[S:.*]] = "ascend.add"({{.*}}) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
// CHECK: "ascend.cast"(%[[S]]) : (tensor<2x2xf32>) -> tensor<2x2xf16>
func.func @alike(%a: tensor<2x16xf32>, %b: tensor<16x2xf32>) -> tensor<2x2xf32> {
  %c = "ascend.matmul"(%a, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %r = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "ascend.add"(%c, %r) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %s : tensor<2x2xf32>
}

// -----

// A matrix, a row that is computed, and a product that something else reads as well are f16.

// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: "ascend.add"({{.*}}) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
func.func @others(%a: tensor<2x16xf32>, %b: tensor<16x2xf32>, %x: tensor<2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) {
  %c = "ascend.matmul"(%a, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %m = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 3.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %s = "ascend.add"(%c, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %d = "ascend.matmul"(%s, %b) {transpose_b} : (tensor<2x2xf32>, tensor<16x2xf32>) -> tensor<2x16xf32>
  %e = "ascend.matmul"(%d, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %y = "ascend.broadcast"(%x) {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %t = "ascend.add"(%e, %y) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %f = "ascend.matmul"(%d, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %r = "ascend.constant"() {value = dense<[[1.0, 2.0], [1.0, 2.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %u = "ascend.add"(%f, %r) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %t, %f, %u : tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>
}

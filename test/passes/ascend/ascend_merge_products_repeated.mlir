// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-merge-products{machine=ascend910b})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-merge-products{machine=ascend910b},ascend-merge-products{machine=ascend910b})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-merge-products)' --split-input-file | FileCheck %s --check-prefix=COUPLED

// Rows of the heads that share keys are those of one product.
// CHECK-LABEL: func.func @shared
// CHECK-DAG: %[[Q:.*]] = "ascend.reshape"(%arg0) : (tensor<8x1x64xf16>) -> tensor<2x4x64xf16>
// CHECK-DAG: %[[K:.*]] = "ascend.reshape"(%arg1) : (tensor<2x1x32x64xf16>) -> tensor<2x32x64xf16>
// CHECK: %[[S:.*]] = "ascend.batch_matmul"(%[[Q]], %[[K]]) {transpose_b} : (tensor<2x4x64xf16>, tensor<2x32x64xf16>) -> tensor<2x4x32xf32>
// CHECK: %[[R:.*]] = "ascend.reshape"(%[[S]]) : (tensor<2x4x32xf32>) -> tensor<8x1x32xf32>
// CHECK: return %[[R]]
// COUPLED-LABEL: func.func @shared
// COUPLED: ascend.broadcast
func.func @shared(%q: tensor<8x1x64xf16>, %k: tensor<2x1x32x64xf16>) -> tensor<8x1x32xf32> {
  %0 = "ascend.broadcast"(%k) {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x1x32x64xf16>) -> tensor<2x4x32x64xf16>
  %1 = "ascend.reshape"(%0) : (tensor<2x4x32x64xf16>) -> tensor<8x32x64xf16>
  %2 = "ascend.batch_matmul"(%q, %1) {transpose_b} : (tensor<8x1x64xf16>, tensor<8x32x64xf16>) -> tensor<8x1x32xf32>
  return %2 : tensor<8x1x32xf32>
}

// -----

// More rows than a fractal take longer, matrices that repeat one behind the other all together are not neighbours, and
// rows that repeat are no matrices.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: ascend.broadcast
// COUPLED-LABEL: func.func @others
func.func @others(%q: tensor<8x5x64xf16>, %k: tensor<2x1x32x64xf16>, %p: tensor<8x1x64xf16>,
                  %r: tensor<8x32x1xf16>) -> (tensor<8x5x32xf32>, tensor<8x1x32xf32>, tensor<8x1x32xf32>) {
  %0 = "ascend.broadcast"(%k) {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x1x32x64xf16>) -> tensor<2x4x32x64xf16>
  %1 = "ascend.reshape"(%0) : (tensor<2x4x32x64xf16>) -> tensor<8x32x64xf16>
  %2 = "ascend.batch_matmul"(%q, %1) {transpose_b} : (tensor<8x5x64xf16>, tensor<8x32x64xf16>) -> tensor<8x5x32xf32>
  %3 = "ascend.reshape"(%k) : (tensor<2x1x32x64xf16>) -> tensor<1x2x32x64xf16>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0, 1, 2, 3>} : (tensor<1x2x32x64xf16>) -> tensor<4x2x32x64xf16>
  %5 = "ascend.reshape"(%4) : (tensor<4x2x32x64xf16>) -> tensor<8x32x64xf16>
  %6 = "ascend.batch_matmul"(%p, %5) {transpose_b} : (tensor<8x1x64xf16>, tensor<8x32x64xf16>) -> tensor<8x1x32xf32>
  %7 = "ascend.broadcast"(%r) {dims = array<i64: 0, 1, 2>} : (tensor<8x32x1xf16>) -> tensor<8x32x64xf16>
  %8 = "ascend.batch_matmul"(%p, %7) {transpose_b} : (tensor<8x1x64xf16>, tensor<8x32x64xf16>) -> tensor<8x1x32xf32>
  return %2, %6, %8 : tensor<8x5x32xf32>, tensor<8x1x32xf32>, tensor<8x1x32xf32>
}

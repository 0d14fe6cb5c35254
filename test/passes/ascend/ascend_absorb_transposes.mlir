// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-absorb-transposes)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-absorb-transposes,ascend-absorb-transposes)' --split-input-file | FileCheck %s

// Keys of attention, split into heads: what is left is the split of queries.
// CHECK-LABEL: func.func @keys
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg1) : (tensor<1x100x768xf16>) -> tensor<100x12x64xf16>
// CHECK: %[[T:.*]] = "ascend.transpose"(%[[S]]) {permutation = array<i64: 1, 0, 2>} : (tensor<100x12x64xf16>) -> tensor<12x100x64xf16>
// CHECK: "ascend.batch_matmul"(%arg0, %[[T]]) {transpose_b} : (tensor<12x100x64xf16>, tensor<12x100x64xf16>) -> tensor<12x100x100xf32>
func.func @keys(%q: tensor<12x100x64xf16>, %k: tensor<1x100x768xf16>) -> tensor<12x100x100xf32> {
  %0 = "ascend.reshape"(%k) : (tensor<1x100x768xf16>) -> tensor<1x100x12x64xf16>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x100x12x64xf16>) -> tensor<1x12x64x100xf16>
  %2 = "ascend.reshape"(%1) : (tensor<1x12x64x100xf16>) -> tensor<12x64x100xf16>
  %3 = "ascend.batch_matmul"(%q, %2) : (tensor<12x100x64xf16>, tensor<12x64x100xf16>) -> tensor<12x100x100xf32>
  return %3 : tensor<12x100x100xf32>
}

// -----

// Both operands; a transpose of what is given transposed undoes it; the transpose stays for others.
// CHECK-LABEL: func.func @both
// CHECK-NEXT: %[[T:.*]] = "ascend.transpose"
// CHECK-NEXT: "ascend.matmul"(%arg0, %arg1) {transpose_a, transpose_b}
// CHECK-NEXT: "ascend.matmul"(%arg0, %arg1) : (tensor<5x5xf16>, tensor<5x5xf16>) -> tensor<5x5xf32>
// CHECK-NEXT: return %[[T]]
func.func @both(%a: tensor<5x5xf16>, %b: tensor<5x5xf16>) -> (tensor<5x5xf16>, tensor<5x5xf32>, tensor<5x5xf32>) {
  %0 = "ascend.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<5x5xf16>) -> tensor<5x5xf16>
  %1 = "ascend.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<5x5xf16>) -> tensor<5x5xf16>
  %2 = "ascend.matmul"(%0, %1) : (tensor<5x5xf16>, tensor<5x5xf16>) -> tensor<5x5xf32>
  %3 = "ascend.matmul"(%0, %1) {transpose_a, transpose_b} : (tensor<5x5xf16>, tensor<5x5xf16>) -> tensor<5x5xf32>
  return %0, %2, %3 : tensor<5x5xf16>, tensor<5x5xf32>, tensor<5x5xf32>
}

// -----

// A vector is a row, not a column with a lane of each fractal.
// CHECK-LABEL: func.func @vector
// CHECK-NEXT: %[[R:.*]] = "ascend.reshape"(%arg1) : (tensor<33xf16>) -> tensor<1x33xf16>
// CHECK-NEXT: "ascend.matmul"(%arg0, %[[R]]) {transpose_b} : (tensor<17x33xf16>, tensor<1x33xf16>) -> tensor<17x1xf32>
func.func @vector(%a: tensor<17x33xf16>, %x: tensor<33xf16>) -> tensor<17x1xf32> {
  %0 = "ascend.reshape"(%x) : (tensor<33xf16>) -> tensor<33x1xf16>
  %1 = "ascend.matmul"(%a, %0) : (tensor<17x33xf16>, tensor<33x1xf16>) -> tensor<17x1xf32>
  return %1 : tensor<17x1xf32>
}

// -----

// What is done to each element is done to keys as they are, once; a sum with an array, or what others need, stays.
// CHECK-LABEL: func.func @scaled
// CHECK: %[[T:.*]] = "ascend.transpose"(%arg1) {permutation = array<i64: 1, 0, 2>} : (tensor<100x12x64xf32>) -> tensor<12x100x64xf32>
// CHECK: %[[N:.*]] = "ascend.full"() {value = 1.250000e-01 : f32} : () -> tensor<12x100x64xf32>
// CHECK: %[[M:.*]] = "ascend.mul"(%[[T]], %[[N]])
// CHECK: %[[C:.*]] = "ascend.cast"(%[[M]]) : (tensor<12x100x64xf32>) -> tensor<12x100x64xf16>
// CHECK: "ascend.batch_matmul"(%arg0, %[[C]]) {transpose_b} : (tensor<12x100x64xf16>, tensor<12x100x64xf16>) -> tensor<12x100x100xf32>
// CHECK: "ascend.batch_matmul"(%arg0, %{{.*}}) : (tensor<12x100x64xf16>, tensor<12x64x100xf16>) -> tensor<12x100x100xf32>
func.func @scaled(%q: tensor<12x100x64xf16>, %k: tensor<100x12x64xf32>) -> (tensor<12x100x100xf32>, tensor<12x100x100xf32>) {
  %0 = "ascend.transpose"(%k) {permutation = array<i64: 1, 2, 0>} : (tensor<100x12x64xf32>) -> tensor<12x64x100xf32>
  %s = "ascend.full"() {value = 0.125 : f32} : () -> tensor<12x64x100xf32>
  %1 = "ascend.mul"(%0, %s) : (tensor<12x64x100xf32>, tensor<12x64x100xf32>) -> tensor<12x64x100xf32>
  %2 = "ascend.cast"(%1) : (tensor<12x64x100xf32>) -> tensor<12x64x100xf16>
  %3 = "ascend.batch_matmul"(%q, %2) : (tensor<12x100x64xf16>, tensor<12x64x100xf16>) -> tensor<12x100x100xf32>
  %4 = "ascend.mul"(%0, %0) : (tensor<12x64x100xf32>, tensor<12x64x100xf32>) -> tensor<12x64x100xf32>
  %5 = "ascend.cast"(%4) : (tensor<12x64x100xf32>) -> tensor<12x64x100xf16>
  %6 = "ascend.batch_matmul"(%q, %5) : (tensor<12x100x64xf16>, tensor<12x64x100xf16>) -> tensor<12x100x100xf32>
  return %3, %6 : tensor<12x100x100xf32>, tensor<12x100x100xf32>
}

// -----

// Constants are folded, heads that are split already have their columns side by side, and where neither rows nor
// columns do nothing changes.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: transpose_
func.func @left_alone(%a: tensor<6x4xf16>, %h: tensor<4x6x2xf16>, %z: tensor<2x3x6xf16>) -> (tensor<6x3xf32>, tensor<6x4x5xf32>, tensor<6x3x4xf32>) {
  %c = "ascend.constant"() {value = dense<[[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0], [1.0, 1.0, 2.0, 2.0]]> : tensor<3x4xf16>} : () -> tensor<3x4xf16>
  %0 = "ascend.transpose"(%c) {permutation = array<i64: 1, 0>} : (tensor<3x4xf16>) -> tensor<4x3xf16>
  %1 = "ascend.matmul"(%a, %0) : (tensor<6x4xf16>, tensor<4x3xf16>) -> tensor<6x3xf32>
  %d = "ascend.full"() {value = 1.0 : f16} : () -> tensor<6x2x5xf16>
  %2 = "ascend.transpose"(%h) {permutation = array<i64: 1, 0, 2>} : (tensor<4x6x2xf16>) -> tensor<6x4x2xf16>
  %3 = "ascend.batch_matmul"(%2, %d) : (tensor<6x4x2xf16>, tensor<6x2x5xf16>) -> tensor<6x4x5xf32>
  %e = "ascend.full"() {value = 1.0 : f16} : () -> tensor<6x2x4xf16>
  %4 = "ascend.transpose"(%z) {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x6xf16>) -> tensor<6x3x2xf16>
  %5 = "ascend.batch_matmul"(%4, %e) : (tensor<6x3x2xf16>, tensor<6x2x4xf16>) -> tensor<6x3x4xf32>
  return %1, %3, %5 : tensor<6x3xf32>, tensor<6x4x5xf32>, tensor<6x3x4xf32>
}

// -----

// A transposed result is a product of exchanged factors; a row that is added becomes a column, weights are turned at
// compile time.
// CHECK-LABEL: func.func @result
// CHECK: %[[R:.*]] = "ascend.constant"() {{.*}} -> tensor<2x3xf16>
// CHECK: %[[C:.*]] = "ascend.matmul"(%[[R]], %arg0) {transpose_b} : (tensor<2x3xf16>, tensor<4x3xf16>) -> tensor<2x4xf32>
// CHECK: %[[B:.*]] = "ascend.broadcast"(%arg1) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x4xf32>
// CHECK: "ascend.add"(%[[C]], %[[B]])
func.func @result(%a: tensor<4x3xf16>, %row: tensor<2xf32>) -> tensor<1x2x4xf32> {
  %w = "ascend.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf16>} : () -> tensor<3x2xf16>
  %0 = "ascend.matmul"(%a, %w) : (tensor<4x3xf16>, tensor<3x2xf16>) -> tensor<4x2xf32>
  %1 = "ascend.reshape"(%0) : (tensor<4x2xf32>) -> tensor<1x4x2xf32>
  %2 = "ascend.broadcast"(%row) {dims = array<i64: 2>} : (tensor<2xf32>) -> tensor<1x4x2xf32>
  %3 = "ascend.add"(%1, %2) : (tensor<1x4x2xf32>, tensor<1x4x2xf32>) -> tensor<1x4x2xf32>
  %4 = "ascend.transpose"(%3) {permutation = array<i64: 0, 2, 1>} : (tensor<1x4x2xf32>) -> tensor<1x2x4xf32>
  return %4 : tensor<1x2x4xf32>
}

// -----

// Columns that are split come in front of rows; two results are parted where they are read as they are.
// CHECK-LABEL: func.func @split
// CHECK: %[[C:.*]] = "ascend.matmul"(%arg1, %arg0) {transpose_b} : (tensor<6x7xf16>, tensor<4x7xf16>) -> tensor<6x4xf32>
// CHECK: %[[S:.*]] = "ascend.reshape"(%[[C]]) : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK: %[[D:.*]] = "ascend.matmul"(%arg0, %arg1) {transpose_b} : (tensor<4x7xf16>, tensor<6x7xf16>) -> tensor<4x6xf32>
// CHECK: %[[T:.*]] = "ascend.transpose"(%[[D]])
// CHECK: return %[[S]], %[[D]], %[[T]]
func.func @split(%a: tensor<4x7xf16>, %w: tensor<6x7xf16>) -> (tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6x4xf32>) {
  %0 = "ascend.matmul"(%a, %w) {transpose_b} : (tensor<4x7xf16>, tensor<6x7xf16>) -> tensor<4x6xf32>
  %1 = "ascend.reshape"(%0) : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
  %2 = "ascend.transpose"(%1) {permutation = array<i64: 1, 2, 0>} : (tensor<4x2x3xf32>) -> tensor<2x3x4xf32>
  %3 = "ascend.matmul"(%a, %w) {transpose_b} : (tensor<4x7xf16>, tensor<6x7xf16>) -> tensor<4x6xf32>
  %4 = "ascend.transpose"(%3) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %2, %3, %4 : tensor<2x3x4xf32>, tensor<4x6xf32>, tensor<6x4xf32>
}

// -----

// Heads whose columns stay last, halves of rows that change places, and a sum with an array are no transposed results.
// CHECK-LABEL: func.func @other_orders
// CHECK-NOT: transpose_
func.func @other_orders(%a: tensor<4x7xf16>, %w: tensor<7x6xf16>, %x: tensor<4x6xf32>) -> (tensor<2x4x3xf32>, tensor<6x2x2xf32>, tensor<6x4xf32>) {
  %0 = "ascend.matmul"(%a, %w) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
  %1 = "ascend.reshape"(%0) : (tensor<4x6xf32>) -> tensor<4x2x3xf32>
  %2 = "ascend.transpose"(%1) {permutation = array<i64: 1, 0, 2>} : (tensor<4x2x3xf32>) -> tensor<2x4x3xf32>
  %3 = "ascend.matmul"(%a, %w) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
  %4 = "ascend.reshape"(%3) : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %5 = "ascend.transpose"(%4) {permutation = array<i64: 2, 1, 0>} : (tensor<2x2x6xf32>) -> tensor<6x2x2xf32>
  %6 = "ascend.matmul"(%a, %w) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
  %7 = "ascend.add"(%6, %x) : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<4x6xf32>
  %8 = "ascend.transpose"(%7) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %2, %5, %8 : tensor<2x4x3xf32>, tensor<6x2x2xf32>, tensor<6x4xf32>
}

// -----

// What is transposed again later stays, for the two are brought together; behind a product nothing of the order is left.
// CHECK-LABEL: func.func @turned_again
// CHECK: "ascend.matmul"(%arg0, %arg1) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
// CHECK: "ascend.matmul"({{.*}}, %arg2) {transpose_b} : (tensor<4x6xf16>, tensor<5x6xf16>) -> tensor<4x5xf32>
func.func @turned_again(%a: tensor<4x7xf16>, %w: tensor<7x6xf16>, %x: tensor<5x6xf16>) -> (tensor<8x6xf32>, tensor<4x5xf32>) {
  %0 = "ascend.matmul"(%a, %w) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = "ascend.concat"(%1, %1) {dim = 1 : i64} : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x8xf32>
  %3 = "ascend.transpose"(%2) {permutation = array<i64: 1, 0>} : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %4 = "ascend.matmul"(%a, %w) : (tensor<4x7xf16>, tensor<7x6xf16>) -> tensor<4x6xf32>
  %5 = "ascend.transpose"(%4) {permutation = array<i64: 1, 0>} : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %6 = "ascend.cast"(%5) : (tensor<6x4xf32>) -> tensor<6x4xf16>
  %7 = "ascend.matmul"(%x, %6) : (tensor<5x6xf16>, tensor<6x4xf16>) -> tensor<5x4xf32>
  %8 = "ascend.transpose"(%7) {permutation = array<i64: 1, 0>} : (tensor<5x4xf32>) -> tensor<4x5xf32>
  return %3, %8 : tensor<8x6xf32>, tensor<4x5xf32>
}

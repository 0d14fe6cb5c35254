// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-merge-products)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-merge-products,ascend-merge-products)' --split-input-file | FileCheck %s

// Weights of several widths, their biases, the casts and reshapes behind them; a bias that is broadcast stays a row.
// CHECK-LABEL: func.func @merged
// CHECK: %[[W:.*]] = "ascend.concat"(%{{.*}}, %{{.*}}) {dim = 1 : i64} : (tensor<5x16xf16>, tensor<5x32xf16>) -> tensor<5x48xf16>
// CHECK-NEXT: %[[P:.*]] = "ascend.matmul"(%arg0, %[[W]]) : (tensor<7x5xf16>, tensor<5x48xf16>) -> tensor<7x48xf32>
// CHECK: %[[B:.*]] = "ascend.concat"(%{{.*}}, %{{.*}}) {dim = 0 : i64} : (tensor<16xf32>, tensor<32xf32>) -> tensor<48xf32>
// CHECK-NEXT: %[[R:.*]] = "ascend.broadcast"(%[[B]]) {dims = array<i64: 1>} : (tensor<48xf32>) -> tensor<7x48xf32>
// CHECK-NEXT: %[[S:.*]] = "ascend.add"(%[[R]], %[[P]])
// CHECK-NEXT: %[[V:.*]] = "ascend.reshape"(%[[S]]) : (tensor<7x48xf32>) -> tensor<1x7x48xf32>
// CHECK-NEXT: %[[H:.*]] = "ascend.cast"(%[[V]]) : (tensor<1x7x48xf32>) -> tensor<1x7x48xf16>
// CHECK-NEXT: %[[A:.*]] = "ascend.slice"(%[[H]]) {limits = array<i64: 1, 7, 16>, starts = array<i64: 0, 0, 0>
// CHECK-NEXT: %[[C:.*]] = "ascend.slice"(%[[H]]) {limits = array<i64: 1, 7, 48>, starts = array<i64: 0, 0, 16>
// CHECK-NEXT: return %[[A]], %[[C]]
func.func @merged(%x: tensor<7x5xf16>) -> (tensor<1x7x16xf16>, tensor<1x7x32xf16>) {
  %w = "ascend.iota"() {dim = 0 : i64} : () -> tensor<5x16xf16>
  %b = "ascend.iota"() {dim = 0 : i64} : () -> tensor<16xf32>
  %0 = "ascend.matmul"(%x, %w) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf32>
  %1 = "ascend.broadcast"(%b) {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<7x16xf32>
  %2 = "ascend.add"(%1, %0) : (tensor<7x16xf32>, tensor<7x16xf32>) -> tensor<7x16xf32>
  %3 = "ascend.reshape"(%2) : (tensor<7x16xf32>) -> tensor<1x7x16xf32>
  %4 = "ascend.cast"(%3) : (tensor<1x7x16xf32>) -> tensor<1x7x16xf16>
  %u = "ascend.iota"() {dim = 1 : i64} : () -> tensor<5x32xf16>
  %c = "ascend.iota"() {dim = 0 : i64} : () -> tensor<32xf32>
  %5 = "ascend.matmul"(%x, %u) : (tensor<7x5xf16>, tensor<5x32xf16>) -> tensor<7x32xf32>
  %6 = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<32xf32>) -> tensor<7x32xf32>
  %7 = "ascend.add"(%6, %5) : (tensor<7x32xf32>, tensor<7x32xf32>) -> tensor<7x32xf32>
  %8 = "ascend.reshape"(%7) : (tensor<7x32xf32>) -> tensor<1x7x32xf32>
  %9 = "ascend.cast"(%8) : (tensor<1x7x32xf32>) -> tensor<1x7x32xf16>
  return %4, %9 : tensor<1x7x16xf16>, tensor<1x7x32xf16>
}

// -----

// Weights given transposed are put together by rows; a row's scale, the same for all, and numbers go with them.
// CHECK-LABEL: func.func @transposed
// CHECK: "ascend.concat"({{.*}}) {dim = 0 : i64} : (tensor<16x5xf16>, tensor<16x5xf16>) -> tensor<32x5xf16>
// CHECK: "ascend.matmul"(%arg0, %{{.*}}) {transpose_b} : (tensor<7x5xf16>, tensor<32x5xf16>) -> tensor<7x32xf32>
// CHECK: "ascend.broadcast"(%arg1) {dims = array<i64: 0>} : (tensor<7xf32>) -> tensor<7x32xf32>
// CHECK-NEXT: "ascend.mul"
// CHECK-NEXT: "ascend.full"() {value = 5.000000e-01 : f32} : () -> tensor<7x32xf32>
// CHECK-NEXT: "ascend.max"
// CHECK-NEXT: "ascend.slice"
// CHECK-NEXT: "ascend.slice"
// CHECK-NEXT: return
func.func @transposed(%x: tensor<7x5xf16>, %s: tensor<7xf32>) -> (tensor<7x16xf32>, tensor<7x16xf32>) {
  %w = "ascend.iota"() {dim = 0 : i64} : () -> tensor<16x5xf16>
  %u = "ascend.iota"() {dim = 1 : i64} : () -> tensor<16x5xf16>
  %half = "ascend.full"() {value = 0.5 : f32} : () -> tensor<7x16xf32>
  %0 = "ascend.broadcast"(%s) {dims = array<i64: 0>} : (tensor<7xf32>) -> tensor<7x16xf32>
  %1 = "ascend.matmul"(%x, %w) {transpose_b} : (tensor<7x5xf16>, tensor<16x5xf16>) -> tensor<7x16xf32>
  %2 = "ascend.mul"(%1, %0) : (tensor<7x16xf32>, tensor<7x16xf32>) -> tensor<7x16xf32>
  %3 = "ascend.max"(%2, %half) : (tensor<7x16xf32>, tensor<7x16xf32>) -> tensor<7x16xf32>
  %4 = "ascend.matmul"(%x, %u) {transpose_b} : (tensor<7x5xf16>, tensor<16x5xf16>) -> tensor<7x16xf32>
  %5 = "ascend.mul"(%4, %0) : (tensor<7x16xf32>, tensor<7x16xf32>) -> tensor<7x16xf32>
  %6 = "ascend.max"(%5, %half) : (tensor<7x16xf32>, tensor<7x16xf32>) -> tensor<7x16xf32>
  return %3, %6 : tensor<7x16xf32>, tensor<7x16xf32>
}

// -----

// A batch of weights; what differs behind the products stays behind the slices, where three products still save two launches.
// CHECK-LABEL: func.func @partly
// CHECK: "ascend.batch_matmul"(%arg0, %{{.*}}) : (tensor<2x7x5xf16>, tensor<2x5x48xf16>) -> tensor<2x7x48xf32>
// CHECK-NEXT: "ascend.tanh"({{.*}}) : (tensor<2x7x48xf32>)
// CHECK-NEXT: %[[A:.*]] = "ascend.slice"
// CHECK-NEXT: %[[B:.*]] = "ascend.slice"
// CHECK-NEXT: %[[C:.*]] = "ascend.slice"
// CHECK-NEXT: %[[E:.*]] = "ascend.exp"(%[[A]])
// CHECK-NEXT: return %[[E]], %[[B]], %[[C]]
func.func @partly(%x: tensor<2x7x5xf16>) -> (tensor<2x7x16xf32>, tensor<2x7x16xf32>, tensor<2x7x16xf32>) {
  %w = "ascend.iota"() {dim = 0 : i64} : () -> tensor<2x5x16xf16>
  %u = "ascend.iota"() {dim = 1 : i64} : () -> tensor<2x5x16xf16>
  %v = "ascend.iota"() {dim = 2 : i64} : () -> tensor<2x5x16xf16>
  %0 = "ascend.batch_matmul"(%x, %w) : (tensor<2x7x5xf16>, tensor<2x5x16xf16>) -> tensor<2x7x16xf32>
  %1 = "ascend.tanh"(%0) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
  %2 = "ascend.exp"(%1) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
  %3 = "ascend.batch_matmul"(%x, %u) : (tensor<2x7x5xf16>, tensor<2x5x16xf16>) -> tensor<2x7x16xf32>
  %4 = "ascend.tanh"(%3) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
  %5 = "ascend.batch_matmul"(%x, %v) : (tensor<2x7x5xf16>, tensor<2x5x16xf16>) -> tensor<2x7x16xf32>
  %6 = "ascend.tanh"(%5) : (tensor<2x7x16xf32>) -> tensor<2x7x16xf32>
  return %2, %4, %6 : tensor<2x7x16xf32>, tensor<2x7x16xf32>, tensor<2x7x16xf32>
}

// -----

// Two with an operator of its own each save no launch; widths that are no whole fractals, other left sides, other types
// and weights that are not known stay apart.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: ascend.concat
// CHECK-NOT: ascend.slice
// CHECK: return
func.func @apart(%x: tensor<7x5xf16>, %y: tensor<7x5xf16>, %a: tensor<5x16xf16>) -> (tensor<7x16xf32>, tensor<7x16xf32>, tensor<7x15xf32>, tensor<7x16xf32>, tensor<7x16xf32>, tensor<7x16xf16>) {
  %w = "ascend.iota"() {dim = 0 : i64} : () -> tensor<5x16xf16>
  %u = "ascend.iota"() {dim = 1 : i64} : () -> tensor<5x16xf16>
  %v = "ascend.iota"() {dim = 1 : i64} : () -> tensor<5x15xf16>
  %0 = "ascend.matmul"(%x, %w) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf32>
  %1 = "ascend.exp"(%0) : (tensor<7x16xf32>) -> tensor<7x16xf32>
  %2 = "ascend.matmul"(%x, %u) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf32>
  %3 = "ascend.tanh"(%2) : (tensor<7x16xf32>) -> tensor<7x16xf32>
  %4 = "ascend.matmul"(%x, %v) : (tensor<7x5xf16>, tensor<5x15xf16>) -> tensor<7x15xf32>
  %5 = "ascend.matmul"(%y, %w) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf32>
  %6 = "ascend.matmul"(%y, %a) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf32>
  %7 = "ascend.matmul"(%y, %u) : (tensor<7x5xf16>, tensor<5x16xf16>) -> tensor<7x16xf16>
  return %1, %3, %4, %5, %6, %7 : tensor<7x16xf32>, tensor<7x16xf32>, tensor<7x15xf32>, tensor<7x16xf32>, tensor<7x16xf32>, tensor<7x16xf16>
}

// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-moves)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-moves,ascend-simplify-moves)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-moves{rewrites=none})' | FileCheck %s --check-prefix=OFF

// cancel-transposes, of a sum of two.
// CHECK-LABEL: func.func @main
// CHECK-NOT: ascend.transpose
// CHECK: "ascend.add"(%arg0, %arg1)
// CHECK-NEXT: ascend.relu
// CHECK-NEXT: return
// OFF-LABEL: func.func @main
// OFF-COUNT-3: ascend.transpose
func.func @main(%x: tensor<2x8x4xf32>, %y: tensor<2x8x4xf32>) -> tensor<2x8x4xf32> {
  %0 = "ascend.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<2x8x4xf32>) -> tensor<8x4x2xf32>
  %1 = "ascend.transpose"(%y) {permutation = array<i64: 1, 2, 0>} : (tensor<2x8x4xf32>) -> tensor<8x4x2xf32>
  %2 = "ascend.add"(%0, %1) : (tensor<8x4x2xf32>, tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  %3 = "ascend.relu"(%2) : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>
  %4 = "ascend.transpose"(%3) {permutation = array<i64: 2, 0, 1>} : (tensor<8x4x2xf32>) -> tensor<2x8x4xf32>
  return %4 : tensor<2x8x4xf32>
}

// -----

// Another permutation, or a sum that is read transposed, too, stays.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: ascend.transpose
// OFF-LABEL: func.func @main
func.func @main(%x: tensor<4x4x4xf32>) -> (tensor<4x4x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>) {
  %0 = "ascend.transpose"(%x) {permutation = array<i64: 1, 2, 0>} : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %1 = "ascend.relu"(%0) : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %2 = "ascend.transpose"(%1) {permutation = array<i64: 1, 2, 0>} : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %3 = "ascend.exp"(%0) : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  %4 = "ascend.transpose"(%3) {permutation = array<i64: 2, 0, 1>} : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
  return %2, %3, %4 : tensor<4x4x4xf32>, tensor<4x4x4xf32>, tensor<4x4x4xf32>
}

// -----

// merge-slices: of slices, and of what is cut and joined; parts in another order stay.
// CHECK-LABEL: func.func @main
// CHECK: "ascend.slice"(%arg0) {limits = array<i64: 4, 7>, starts = array<i64: 0, 3>, strides = array<i64: 1, 3>} : (tensor<4x8xf32>) -> tensor<4x2xf32>
// CHECK-DAG: %[[A:.*]] = "ascend.slice"(%arg1) {{.*}} -> tensor<4x3xf32>
// CHECK-DAG: %[[B:.*]] = "ascend.slice"(%arg1) {{.*}} -> tensor<4x5xf32>
// CHECK: %[[C:.*]] = "ascend.concat"(%[[B]], %[[A]])
// CHECK: return %{{.*}}, %arg1, %[[C]]
// OFF-LABEL: func.func @main
// OFF-COUNT-4: ascend.slice
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = "ascend.slice"(%x) {starts = array<i64: 0, 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, 3>} : (tensor<4x8xf32>) -> tensor<4x3xf32>
  %1 = "ascend.slice"(%0) {starts = array<i64: 0, 1>, limits = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<4x2xf32>
  %2 = "ascend.slice"(%y) {starts = array<i64: 0, 0>, limits = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x3xf32>
  %3 = "ascend.slice"(%y) {starts = array<i64: 0, 3>, limits = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x5xf32>
  %4 = "ascend.concat"(%2, %3) {dim = 1 : i64} : (tensor<4x3xf32>, tensor<4x5xf32>) -> tensor<4x8xf32>
  %5 = "ascend.concat"(%3, %2) {dim = 1 : i64} : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<4x8xf32>
  return %1, %4, %5 : tensor<4x2xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// drop-casts: to a wider type and back, and flags as numbers; a cast that rounds stays.
// CHECK-LABEL: func.func @main
// CHECK-NOT: ascend.compare
// CHECK: %[[H:.*]] = "ascend.cast"(%arg1) : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: %[[F:.*]] = "ascend.cast"(%[[H]])
// CHECK-NEXT: return %arg0, %[[F]], %arg2
// OFF-LABEL: func.func @main
// OFF-COUNT-5: ascend.cast
func.func @main(%x: tensor<4xf16>, %y: tensor<4xf32>, %f: tensor<4xi1>) -> (tensor<4xf16>, tensor<4xf32>, tensor<4xi1>) {
  %zero = "ascend.full"() {value = 0 : i32} : () -> tensor<4xi32>
  %0 = "ascend.cast"(%x) : (tensor<4xf16>) -> tensor<4xf32>
  %1 = "ascend.cast"(%0) : (tensor<4xf32>) -> tensor<4xf16>
  %2 = "ascend.cast"(%y) : (tensor<4xf32>) -> tensor<4xf16>
  %3 = "ascend.cast"(%2) : (tensor<4xf16>) -> tensor<4xf32>
  %4 = "ascend.cast"(%f) : (tensor<4xi1>) -> tensor<4xi32>
  %5 = "ascend.compare"(%4, %zero) {predicate = "NE"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  return %1, %3, %5 : tensor<4xf16>, tensor<4xf32>, tensor<4xi1>
}

// -----

// common-subexpressions: sums in either order, not differences.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = "ascend.add"(%arg0, %arg1)
// CHECK-NOT: ascend.add
// CHECK-COUNT-2: ascend.sub
// CHECK: return %[[A]], %[[A]]
// OFF-LABEL: func.func @main
// OFF-COUNT-2: ascend.add
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = "ascend.add"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "ascend.add"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = "ascend.sub"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = "ascend.sub"(%y, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2, %3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-stablehlo-to-ascend)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-stablehlo-to-ascend,convert-stablehlo-to-ascend)' --split-input-file | FileCheck %s

// Constants that are the same everywhere become full, also through reshape, broadcast and cast;
// what depends on small constants only is computed.
// CHECK-LABEL: func.func @constants
// CHECK: %[[F:.*]] = "ascend.full"() {value = 3.000000e+00 : f32} : () -> tensor<2x3xf32>
// CHECK: %[[C:.*]] = "ascend.constant"() {value = dense<[4.000000e+00, 5.000000e+00]> : tensor<2xf32>}
// CHECK: return %[[F]], %[[C]]
func.func @constants() -> (tensor<2x3xf32>, tensor<2xf32>) {
  %c = arith.constant dense<3> : tensor<1xi64>
  %0 = stablehlo.convert %c : (tensor<1xi64>) -> tensor<1xf32>
  %1 = stablehlo.reshape %0 : (tensor<1xf32>) -> tensor<f32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %d = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %3 = stablehlo.broadcast_in_dim %1, dims = [] : (tensor<f32>) -> tensor<2xf32>
  %4 = stablehlo.add %d, %3 : tensor<2xf32>
  return %2, %4 : tensor<2x3xf32>, tensor<2xf32>
}

// -----

// CHECK-LABEL: func.func @elementwise
// CHECK: "ascend.relu"(%arg0)
// CHECK: "ascend.mul"(%{{.*}}, %{{.*}})
// CHECK: "ascend.pow"
// CHECK: "ascend.compare"(%{{.*}}, %arg0) {predicate = "GE"}
// CHECK: "ascend.select"
// CHECK-NOT: stablehlo
func.func @elementwise(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  %half = stablehlo.constant dense<0.5> : tensor<4xf32>
  %0 = stablehlo.maximum %x, %zero : tensor<4xf32>
  %1 = stablehlo.power %0, %two : tensor<4xf32>
  %2 = stablehlo.power %1, %half : tensor<4xf32>
  %3 = stablehlo.compare GE, %2, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %4 = stablehlo.select %3, %x, %2 : tensor<4xi1>, tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// A composite that is one operator; its decomposition goes.
// CHECK-LABEL: func.func @composite
// CHECK: "ascend.erf"(%arg0)
// CHECK-NOT: @erf_body
func.func @composite(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @erf_body} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @erf_body(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @matmul
// CHECK: "ascend.matmul"(%arg0, %arg1) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
func.func @matmul(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

// A batch of one is no batch, and neither is one whose right side is the same for all.
// CHECK-LABEL: func.func @no_batch
// CHECK: %[[A:.*]] = "ascend.reshape"(%arg0) : (tensor<1x8x16xf32>) -> tensor<8x16xf32>
// CHECK: "ascend.matmul"(%[[A]], %arg1)
// CHECK: %[[B:.*]] = "ascend.reshape"(%arg2) : (tensor<3x8x16xf32>) -> tensor<24x16xf32>
// CHECK: "ascend.matmul"(%[[B]], %arg1)
// CHECK-NOT: batch_matmul
func.func @no_batch(%a: tensor<1x8x16xf32>, %w: tensor<16x4xf32>, %b: tensor<3x8x16xf32>) -> (tensor<1x8x4xf32>, tensor<3x8x4xf32>) {
  %0 = stablehlo.reshape %w : (tensor<16x4xf32>) -> tensor<1x16x4xf32>
  %1 = stablehlo.dot_general %a, %0, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<1x8x16xf32>, tensor<1x16x4xf32>) -> tensor<1x8x4xf32>
  %2 = stablehlo.broadcast_in_dim %w, dims = [1, 2] : (tensor<16x4xf32>) -> tensor<3x16x4xf32>
  %3 = stablehlo.dot_general %b, %2, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<3x8x16xf32>, tensor<3x16x4xf32>) -> tensor<3x8x4xf32>
  return %1, %3 : tensor<1x8x4xf32>, tensor<3x8x4xf32>
}

// -----

// CHECK-LABEL: func.func @batch
// CHECK: %[[T:.*]] = "ascend.transpose"(%arg1) {permutation = array<i64: 0, 1, 3, 2>}
// CHECK: "ascend.batch_matmul"(%{{.*}}, %{{.*}}) : (tensor<6x8x16xf32>, tensor<6x16x4xf32>) -> tensor<6x8x4xf32>
func.func @batch(%a: tensor<2x3x8x16xf32>, %b: tensor<2x3x4x16xf32>) -> tensor<2x3x8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x8x16xf32>, tensor<2x3x4x16xf32>) -> tensor<2x3x8x4xf32>
  return %0 : tensor<2x3x8x4xf32>
}

// -----

// Transposes and broadcasts that only move or add dimensions of size 1 are reshapes.
// CHECK-LABEL: func.func @reshapes
// CHECK-COUNT-2: "ascend.reshape"
// CHECK-NOT: ascend.transpose
// CHECK-NOT: ascend.broadcast
func.func @reshapes(%x: tensor<1x4x5xf32>) -> (tensor<4x1x5xf32>, tensor<4x5x1xf32>) {
  %0 = stablehlo.transpose %x, dims = [1, 0, 2] : (tensor<1x4x5xf32>) -> tensor<4x1x5xf32>
  %1 = stablehlo.reshape %x : (tensor<1x4x5xf32>) -> tensor<4x5xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] : (tensor<4x5xf32>) -> tensor<4x5x1xf32>
  return %0, %2 : tensor<4x1x5xf32>, tensor<4x5x1xf32>
}

// -----

// The start of a reduction is dropped where it is neutral, else combined.
// CHECK-LABEL: func.func @reduce
// CHECK: %[[A:.*]] = "ascend.reduce"(%arg0) {dims = array<i64: 1>, kind = "max"}
// CHECK: %[[B:.*]] = "ascend.reduce"(%arg0) {dims = array<i64: 1>, kind = "add"}
// CHECK: %[[C:.*]] = "ascend.add"(%[[B]], %{{.*}})
// CHECK: return %[[A]], %[[C]]
func.func @reduce(%x: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %inf = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %inf) applies stablehlo.maximum across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  %1 = stablehlo.reduce(%x init: %one) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Rows of a table; a known row is a slice.
// CHECK-LABEL: func.func @gather
// CHECK: %[[I:.*]] = "ascend.reshape"(%arg1) : (tensor<1x5xi64>) -> tensor<5xi64>
// CHECK: "ascend.gather"(%arg0, %[[I]]) : (tensor<9x4xf32>, tensor<5xi64>) -> tensor<5x4xf32>
// CHECK: "ascend.slice"(%arg0) {limits = array<i64: 9, 4>, starts = array<i64: 8, 0>
func.func @gather(%t: tensor<9x4xf32>, %i: tensor<1x5xi64>) -> (tensor<1x5x4xf32>, tensor<1x4xf32>) {
  %0 = "stablehlo.gather"(%t, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 4>} : (tensor<9x4xf32>, tensor<1x5xi64>) -> tensor<1x5x4xf32>
  %c = stablehlo.constant dense<100> : tensor<1xi64>
  %1 = "stablehlo.gather"(%t, %c) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>} : (tensor<9x4xf32>, tensor<1xi64>) -> tensor<1x4xf32>
  return %0, %1 : tensor<1x5x4xf32>, tensor<1x4xf32>
}

// -----

// What has no operator, or not on these types, is called; equal operations share a function.
// CHECK-LABEL: func.func @scalar
// CHECK: %[[A:.*]] = call @reduce_precision_0(%arg0)
// CHECK: call @reduce_precision_0(%[[A]])
// CHECK: call @divide_0(%arg1)
// CHECK-NOT: ascend.full
// CHECK: func.func private @reduce_precision_0(%arg0: tensor<4xf32>) -> tensor<4xf32>
// CHECK: stablehlo.reduce_precision %arg0
// CHECK: func.func private @divide_0(%arg0: tensor<4xi64>) -> tensor<4xi64>
// CHECK: %[[C:.*]] = stablehlo.constant dense<7> : tensor<4xi64>
// CHECK: stablehlo.divide %arg0, %[[C]]
// CHECK-NOT: func.func
func.func @scalar(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xi64>) {
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<4xf32>
  %1 = stablehlo.reduce_precision %0, format = e5m10 : tensor<4xf32>
  %c = stablehlo.constant dense<7> : tensor<4xi64>
  %2 = stablehlo.divide %i, %c : tensor<4xi64>
  return %1, %2 : tensor<4xf32>, tensor<4xi64>
}

// -----

// Kernels and what is below tensors are left alone.
// CHECK-LABEL: func.func @kernel
// CHECK: memref.load
func.func @kernel(%x: memref<f32>) attributes {ascend.kernel} {
  %0 = memref.load %x[] : memref<f32>
  return
}

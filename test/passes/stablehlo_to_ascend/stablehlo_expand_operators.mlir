// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-expand-operators)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-expand-operators,stablehlo-expand-operators)' | FileCheck %s

// CHECK-LABEL: func.func @einsum
// CHECK: %[[D:.*]] = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [2] x [2]
// CHECK: stablehlo.transpose %[[D]], dims = [0, 2, 1] : (tensor<2x3x5xf32>) -> tensor<2x5x3xf32>
func.func @einsum(%a: tensor<2x3x4xf32>, %b: tensor<2x5x4xf32>) -> tensor<2x5x3xf32> {
  %0 = stablehlo.einsum %a, %b, config = "bij,bkj->bki" : (tensor<2x3x4xf32>, tensor<2x5x4xf32>) -> tensor<2x5x3xf32>
  return %0 : tensor<2x5x3xf32>
}

// CHECK-LABEL: func.func @dot
// CHECK: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
func.func @dot(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @broadcast
// CHECK: stablehlo.broadcast_in_dim %arg0, dims = [1, 2] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
func.func @broadcast(%a: tensor<3x4xf32>) -> tensor<2x3x4xf32> {
  %0 = stablehlo.broadcast %a, sizes = [2] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  return %0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func.func @map
// CHECK: stablehlo.maximum %arg0, %arg1 : tensor<3x4xf32>
func.func @map(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %0 = "stablehlo.map"(%a, %b) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// A letter of one operand only is summed first.
// CHECK-LABEL: func.func @einsum_sums
// CHECK: %[[A:.*]] = stablehlo.reduce(%arg0 init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.dot_general %[[A]], %arg1, contracting_dims = [] x []
func.func @einsum_sums(%a: tensor<2x3xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = stablehlo.einsum %a, %b, config = "ij,k->ik" : (tensor<2x3xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @diagonal
// CHECK: stablehlo.unary_einsum
func.func @diagonal(%a: tensor<3x3xf32>) -> tensor<3xf32> {
  %0 = stablehlo.unary_einsum %a, config = "ii->i" : (tensor<3x3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: func.func @normalize
// CHECK-NOT: batch_norm
// CHECK: stablehlo.sqrt
// CHECK: stablehlo.divide
func.func @normalize(%x: tensor<3x5xf32>, %s: tensor<5xf32>) -> tensor<3x5xf32> {
  %0 = "stablehlo.batch_norm_inference"(%x, %s, %s, %s, %s) {epsilon = 1.0e-3 : f32, feature_index = 1 : i64} : (tensor<3x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @select
// CHECK: "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 3>}>
func.func @select(%x: tensor<2x5x3xf32>, %i: tensor<2x4xi32>) -> tensor<2x4x3xf32> {
  %0 = "stablehlo.torch_index_select"(%x, %i) {dim = 1 : i64, batch_dims = 1 : i64} : (tensor<2x5x3xf32>, tensor<2x4xi32>) -> tensor<2x4x3xf32>
  return %0 : tensor<2x4x3xf32>
}

// CHECK-LABEL: func.func @parts
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.0
// CHECK: return %arg0, %[[ZERO]]
func.func @parts(%x: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xf32>) {
  %0 = stablehlo.real %x : (tensor<7xf32>) -> tensor<7xf32>
  %1 = stablehlo.imag %x : (tensor<7xf32>) -> tensor<7xf32>
  return %0, %1 : tensor<7xf32>, tensor<7xf32>
}

// Each result is a pixel's phase: nothing is padded between pixels.
// CHECK-LABEL: func.func @transposed
// CHECK: %[[W:.*]] = stablehlo.reshape %{{.*}} -> tensor<12x5x1x1xf32>
// CHECK: %[[Y:.*]] = stablehlo.convolution(%arg0, %[[W]]){{.*}} -> tensor<1x12x4x4xf32>
// CHECK: stablehlo.transpose %{{.*}}, dims = [0, 1, 4, 5, 2, 6, 3] : (tensor<1x1x2x2x3x4x4xf32>)
// CHECK: stablehlo.reshape %{{.*}} -> tensor<1x3x8x8xf32>
func.func @transposed(%x: tensor<1x5x4x4xf32>, %w: tensor<3x5x2x2xf32>) -> tensor<1x3x8x8xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4x4xf32>, tensor<3x5x2x2xf32>) -> tensor<1x3x8x8xf32>
  return %0 : tensor<1x3x8x8xf32>
}

// CHECK-LABEL: func.func @plain
// CHECK-NEXT: stablehlo.convolution
// CHECK-NEXT: return
func.func @plain(%x: tensor<1x5x4x4xf32>, %w: tensor<3x5x2x2xf32>) -> tensor<1x3x3x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x5x4x4xf32>, tensor<3x5x2x2xf32>) -> tensor<1x3x3x3xf32>
  return %0 : tensor<1x3x3x3xf32>
}

// Depth joins the batch, its taps the channels.
// CHECK-LABEL: func.func @deep
// CHECK: %[[X:.*]] = stablehlo.transpose %arg0, dims = [0, 2, 3, 4, 1]
// CHECK: %[[P:.*]] = stablehlo.pad %[[X]], %{{.*}}, low = [0, 1, 0, 0, 0], high = [0, 1, 0, 0, 0]
// CHECK: %[[A:.*]] = stablehlo.slice %[[P]] [0:1, 0:3:2, 0:6, 0:5, 0:2]
// CHECK: %[[B:.*]] = stablehlo.slice %[[P]] [0:1, 2:5:2, 0:6, 0:5, 0:2]
// CHECK: %[[C:.*]] = stablehlo.concatenate %[[A]], %[[B]], dim = 4
// CHECK: %[[I:.*]] = stablehlo.reshape %[[C]] : (tensor<1x2x6x5x4xf32>) -> tensor<2x6x5x4xf32>
// CHECK: stablehlo.convolution(%[[I]], %{{.*}}) {{.*}}[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{.*}}[1, 1], [0, 0]{{.*}} : (tensor<2x6x5x4xf32>, tensor<3x3x4x7xf32>) -> tensor<2x6x3x7xf32>
// CHECK: stablehlo.transpose %{{.*}} -> tensor<1x7x2x6x3xf32>
func.func @deep(%x: tensor<1x2x4x6x5xf32>, %w: tensor<7x2x2x3x3xf32>) -> tensor<1x7x2x6x3xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1, 2]x[o, i, 0, 1, 2]->[b, f, 0, 1, 2], window = {stride = [2, 1, 1], pad = [[1, 1], [1, 1], [0, 0]], rhs_dilate = [2, 1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x2x4x6x5xf32>, tensor<7x2x2x3x3xf32>) -> tensor<1x7x2x6x3xf32>
  return %0 : tensor<1x7x2x6x3xf32>
}

// -----

// Rounding to fewer bits is arithmetic on bits; of f16 it stays.
// CHECK-LABEL: func.func @main
// CHECK: %[[B:.*]] = stablehlo.bitcast_convert %arg0
// CHECK-NOT: reduce_precision
// CHECK: stablehlo.and %[[B]]
// CHECK: stablehlo.bitcast_convert
// CHECK: stablehlo.select
// CHECK: stablehlo.reduce_precision %arg1
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf16>) -> (tensor<4xf32>, tensor<4xf16>) {
  %0 = stablehlo.reduce_precision %x, format = e5m10 : tensor<4xf32>
  %1 = stablehlo.reduce_precision %y, format = e5m2 : tensor<4xf16>
  return %0, %1 : tensor<4xf32>, tensor<4xf16>
}

// -----

// Windows of three rows become three lines, at the index and the two behind it; rows stay.
// CHECK-LABEL: func.func @windows
// CHECK-DAG: %[[STEPS:.*]] = stablehlo.constant dense<{{\[\[}}0], [1], [2]]> : tensor<3x1xi32>
// CHECK-DAG: %[[I:.*]] = stablehlo.broadcast_in_dim %arg1, dims = [0, 2] : (tensor<5x1xi32>) -> tensor<5x3x1xi32>
// CHECK-DAG: %[[S:.*]] = stablehlo.broadcast_in_dim %[[STEPS]], dims = [1, 2]
// CHECK: %[[J:.*]] = stablehlo.add %[[I]], %[[S]]
// CHECK: %[[R:.*]] = "stablehlo.scatter"(%arg0, %[[J]], %arg2)
// CHECK-SAME: update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2
// CHECK: "stablehlo.scatter"(%[[R]], %arg1, %arg3)
func.func @windows(%x: tensor<50x8xf32>, %i: tensor<5x1xi32>, %u: tensor<5x3x8xf32>, %v: tensor<5x8xf32>) -> tensor<50x8xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<50x8xf32>, tensor<5x1xi32>, tensor<5x3x8xf32>) -> tensor<50x8xf32>
  %1 = "stablehlo.scatter"(%0, %i, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<50x8xf32>, tensor<5x1xi32>, tensor<5x8xf32>) -> tensor<50x8xf32>
  return %1 : tensor<50x8xf32>
}

// A function of numbers that may be of one place twice stays as it is.
// CHECK-LABEL: func.func @twice
// CHECK: "stablehlo.scatter"(%arg0, %arg1, %arg2)
// CHECK: stablehlo.sine
func.func @twice(%x: tensor<50xf32>, %i: tensor<5x1xi32>, %u: tensor<5xf32>) -> tensor<50xf32> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.sine %a : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<50xf32>, tensor<5x1xi32>, tensor<5xf32>) -> tensor<50xf32>
  return %0 : tensor<50xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-expand-reduce)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-expand-reduce,stablehlo-expand-reduce)' | FileCheck %s

// CHECK-LABEL: func.func @one(%arg0: tensor<2x3xf32>)
// CHECK: %[[C:.*]] = stablehlo.constant dense<5.0
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
// CHECK: stablehlo.reduce(%[[X]] init: %[[C]]) applies stablehlo.add across dimensions = [2] : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3xf32>
func.func @one(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %c = stablehlo.constant dense<5.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @several_of_rank_0
// CHECK: %[[X:.*]] = stablehlo.reshape %arg0 : (tensor<i32>) -> tensor<1xi32>
// CHECK: %[[Y:.*]] = stablehlo.reshape %arg1 : (tensor<f32>) -> tensor<1xf32>
// CHECK: stablehlo.reduce(%[[X]] init: %arg2), (%[[Y]] init: %arg3) across dimensions = [0]
func.func @several_of_rank_0(%x: tensor<i32>, %y: tensor<f32>, %c: tensor<i32>, %d: tensor<f32>) -> (tensor<i32>, tensor<f32>) {
  %0:2 = stablehlo.reduce(%x init: %c), (%y init: %d) across dimensions = [] : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)
    reducer(%a: tensor<i32>, %b: tensor<i32>) (%e: tensor<f32>, %f: tensor<f32>) {
      %1 = stablehlo.add %a, %b : tensor<i32>
      %2 = stablehlo.multiply %e, %f : tensor<f32>
      stablehlo.return %1, %2 : tensor<i32>, tensor<f32>
    }
  return %0#0, %0#1 : tensor<i32>, tensor<f32>
}

// Upstream keeps the start values of other reductions.
// CHECK-LABEL: func.func @over_a_dimension
// CHECK-NOT: reshape
// CHECK: across dimensions = [1]
func.func @over_a_dimension(%x: tensor<2x1xf32>, %c: tensor<f32>) -> tensor<2xf32> {
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] : (tensor<2x1xf32>, tensor<f32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-join-updates)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-join-updates,stablehlo-join-updates)' | FileCheck %s

// CHECK-LABEL: func.func @whole(
// CHECK-NOT: dynamic_update_slice
// CHECK: stablehlo.concatenate %arg2, %arg1, %arg2, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
func.func @whole(%x: tensor<3x4xf32>, %a: tensor<1x4xf32>, %b: tensor<1x4xf32>) -> tensor<3x4xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c9 = stablehlo.constant dense<9> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c1, %c0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  %1 = stablehlo.dynamic_update_slice %0, %b, %c0, %c0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  %2 = stablehlo.dynamic_update_slice %1, %b, %c9, %c0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @gaps(
// CHECK: %[[A:.*]] = stablehlo.slice %arg0 [0:4, 0:1]
// CHECK: %[[B:.*]] = stablehlo.slice %arg0 [0:4, 3:7]
// CHECK: stablehlo.concatenate %[[A]], %arg1, %[[B]], dim = 1
func.func @gaps(%x: tensor<4x7xf32>, %a: tensor<4x2xf32>) -> tensor<4x7xf32> {
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c1, %c1 : (tensor<4x7xf32>, tensor<4x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// Of two that overlap the later one is on top; of one that is used twice both values are needed.
// CHECK-LABEL: func.func @overlap(
// CHECK: %[[A:.*]] = stablehlo.concatenate
// CHECK: %[[B:.*]] = stablehlo.slice %[[A]] [0:1]
// CHECK: %[[C:.*]] = stablehlo.slice %[[A]] [3:5]
// CHECK: %[[D:.*]] = stablehlo.concatenate %[[B]], %arg1, %[[C]]
// CHECK: return %[[A]], %[[D]]
func.func @overlap(%x: tensor<5xf32>, %a: tensor<2xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c0 : (tensor<5xf32>, tensor<2xf32>, tensor<i32>) -> tensor<5xf32>
  %1 = stablehlo.dynamic_update_slice %0, %a, %c1 : (tensor<5xf32>, tensor<2xf32>, tensor<i32>) -> tensor<5xf32>
  return %0, %1 : tensor<5xf32>, tensor<5xf32>
}

// CHECK-LABEL: func.func @others(
// CHECK-COUNT-2: stablehlo.dynamic_update_slice
func.func @others(%x: tensor<5x5xf32>, %a: tensor<2x2xf32>, %b: tensor<1x5xf32>, %i: tensor<i32>) -> (tensor<5x5xf32>, tensor<5x5xf32>) {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c, %c : (tensor<5x5xf32>, tensor<2x2xf32>, tensor<i32>, tensor<i32>) -> tensor<5x5xf32>
  %1 = stablehlo.dynamic_update_slice %x, %b, %i, %c : (tensor<5x5xf32>, tensor<1x5xf32>, tensor<i32>, tensor<i32>) -> tensor<5x5xf32>
  return %0, %1 : tensor<5x5xf32>, tensor<5x5xf32>
}

// What becomes the next value of the argument that it updates is written in place.
// CHECK-LABEL: func.func @state(
// CHECK: stablehlo.dynamic_update_slice %arg0, %arg1
// CHECK: stablehlo.concatenate
func.func @state(%x: tensor<3x4xf32>, %a: tensor<1x4xf32>, %y: tensor<3x4xf32>)
    -> (tensor<3x4xf32> {ascend.state = 0 : i64}, tensor<3x4xf32> {ascend.state = 0 : i64}) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %a, %c1, %c0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  %1 = stablehlo.dynamic_update_slice %y, %a, %c1, %c0 : (tensor<3x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
  return %0, %1 : tensor<3x4xf32>, tensor<3x4xf32>
}

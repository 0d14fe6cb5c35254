// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-sign-integers,stablehlo-sign-integers)' | FileCheck %s

// CHECK-LABEL: func.func @order
// CHECK-SAME: %arg0: tensor<8xi32> {ascend.name = "x", ascend.unsigned}
// CHECK-SAME: %arg1: tensor<8xi32> {ascend.unsigned}
// CHECK-SAME: -> (tensor<8xi32> {ascend.unsigned}, tensor<8xi1>)
func.func @order(%x: tensor<8xui32> {ascend.name = "x"}, %y: tensor<8xui32>) -> (tensor<8xui32>, tensor<8xi1>) {
  // CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %arg1 : tensor<8xi32>
  %0 = stablehlo.add %x, %y : tensor<8xui32>
  // CHECK: dense<-2147483648> : tensor<8xi32>
  // CHECK: %[[A:.*]] = stablehlo.add %[[SUM]],
  // CHECK: %[[B:.*]] = stablehlo.add %arg1,
  // CHECK: stablehlo.compare LT, %[[A]], %[[B]] : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %1 = stablehlo.compare LT, %0, %y : (tensor<8xui32>, tensor<8xui32>) -> tensor<8xi1>
  return %0, %1 : tensor<8xui32>, tensor<8xi1>
}

// Half of the dividend is divided, which has no sign.
// CHECK-LABEL: func.func @quotient
func.func @quotient(%x: tensor<8xui64>, %y: tensor<8xui64>) -> tensor<8xui64> {
  // CHECK: %[[HALF:.*]] = stablehlo.shift_right_logical %arg0, %{{.*}} : tensor<8xi64>
  // CHECK: %[[Q:.*]] = stablehlo.divide %[[HALF]], %arg1 : tensor<8xi64>
  // CHECK: stablehlo.shift_left %[[Q]], %{{.*}} : tensor<8xi64>
  // CHECK-NOT: ui64
  %0 = stablehlo.divide %x, %y : tensor<8xui64>
  return %0 : tensor<8xui64>
}

// What has no signed form is between bitcasts; bytes stay as they are.
// CHECK-LABEL: func.func @power
func.func @power(%x: tensor<8xui64>, %y: tensor<8xui8>) -> (tensor<8xui64>, tensor<8xui8>) {
  // CHECK: %[[U:.*]] = stablehlo.bitcast_convert %arg0 : (tensor<8xi64>) -> tensor<8xui64>
  // CHECK: %[[V:.*]] = stablehlo.bitcast_convert %arg0 : (tensor<8xi64>) -> tensor<8xui64>
  // CHECK: %[[P:.*]] = stablehlo.power %[[U]], %[[V]] : tensor<8xui64>
  // CHECK: stablehlo.bitcast_convert %[[P]] : (tensor<8xui64>) -> tensor<8xi64>
  %0 = stablehlo.power %x, %x : tensor<8xui64>
  // CHECK: stablehlo.add %arg1, %arg1 : tensor<8xui8>
  %1 = stablehlo.add %y, %y : tensor<8xui8>
  return %0, %1 : tensor<8xui64>, tensor<8xui8>
}

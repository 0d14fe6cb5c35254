// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-combine-operators)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-combine-operators,ascend-combine-operators)' | FileCheck %s

// The half may stand with x, and the scale be a division.
// CHECK-LABEL: func.func @main
// CHECK-NOT: ascend.erf
// CHECK: ascend.gelu
// CHECK-NOT: ascend.mul
// CHECK: return
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = "ascend.full"() {value = 1.0 : f32} : () -> tensor<4x8xf32>
  %half = "ascend.full"() {value = 0.5 : f32} : () -> tensor<4x8xf32>
  %root = "ascend.full"() {value = 1.41421354 : f32} : () -> tensor<4x8xf32>
  %s = "ascend.div"(%x, %root) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = "ascend.erf"(%s) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = "ascend.add"(%e, %one) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = "ascend.mul"(%x, %f) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = "ascend.mul"(%g, %half) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// Another factor, or a sum that others need, is no gelu.
// CHECK-LABEL: func.func @other
// CHECK: ascend.erf
// CHECK-NOT: ascend.gelu
func.func @other(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = "ascend.full"() {value = 1.0 : f32} : () -> tensor<4x8xf32>
  %root = "ascend.full"() {value = 0.70710677 : f32} : () -> tensor<4x8xf32>
  %s = "ascend.mul"(%x, %root) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = "ascend.erf"(%s) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %f = "ascend.add"(%e, %one) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %g = "ascend.mul"(%x, %f) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %g : tensor<4x8xf32>
}

// What saturates at the zero point does what relu does.
// CHECK-LABEL: func.func @quantized
// CHECK: ascend.mul
// CHECK: ascend.quantize
func.func @quantized(%x: tensor<4x8xf32>) -> tensor<4x8xi8> {
  %scale = "ascend.full"() {value = 0.5 : f32} : () -> tensor<4x8xf32>
  %low = "ascend.full"() {value = -128.0 : f32} : () -> tensor<4x8xf32>
  %high = "ascend.full"() {value = 127.0 : f32} : () -> tensor<4x8xf32>
  %r = "ascend.relu"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = "ascend.mul"(%r, %scale) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %w = "ascend.round"(%s) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = "ascend.add"(%w, %low) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %a = "ascend.max"(%z, %low) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %b = "ascend.min"(%a, %high) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %y = "ascend.cast"(%b) : (tensor<4x8xf32>) -> tensor<4x8xi8>
  return %y : tensor<4x8xi8>
}

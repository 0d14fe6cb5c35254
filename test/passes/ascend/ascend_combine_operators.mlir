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

// Scales of both factors of attention's scores are one behind the product.
// CHECK-LABEL: func.func @scores
// CHECK: %[[S:.*]] = "ascend.matmul"(%arg0, %arg1)
// CHECK: value = 1.250000e-01
// CHECK: ascend.mul{{.*}}%[[S]]
// CHECK-NOT: ascend.mul
// CHECK: return
func.func @scores(%a: tensor<2x16xf32>, %b: tensor<16x2xf32>) -> tensor<2x2xf32> {
  %p = "ascend.full"() {value = 0.5 : f32} : () -> tensor<2x16xf32>
  %q = "ascend.full"() {value = 0.25 : f32} : () -> tensor<16x2xf32>
  %c = "ascend.mul"(%a, %p) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %d = "ascend.mul"(%b, %q) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %x = "ascend.matmul"(%c, %d) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %e : tensor<2x2xf32>
}

// No softmax, and a factor that others need: scales stay where they are.
// CHECK-LABEL: func.func @other_products
// CHECK: %[[A:.*]] = "ascend.mul"
// CHECK: %[[B:.*]] = "ascend.matmul"(%[[A]]
// CHECK: %[[C:.*]] = "ascend.mul"
// CHECK: "ascend.matmul"(%[[C]]
func.func @other_products(%a: tensor<2x16xf32>, %b: tensor<16x2xf32>) -> (tensor<2x2xf32>, tensor<2x16xf32>, tensor<2x2xf32>) {
  %p = "ascend.full"() {value = 0.5 : f32} : () -> tensor<2x16xf32>
  %c = "ascend.mul"(%a, %p) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %x = "ascend.matmul"(%c, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %d = "ascend.mul"(%a, %p) : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %y = "ascend.matmul"(%d, %b) : (tensor<2x16xf32>, tensor<16x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%y) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%y, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  return %x, %d, %e : tensor<2x2xf32>, tensor<2x16xf32>, tensor<2x2xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-legalize-element-types)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-legalize-element-types,stablehlo-legalize-element-types)' | FileCheck %s

// Arithmetic is in f32, and rounded once.
// CHECK-LABEL: func.func @arithmetic
// CHECK-SAME: (%[[X:.*]]: tensor<8xi16> {ascend.element = "bf16"}) -> (tensor<8xi16> {ascend.element = "bf16", jax.result_info = "y"})
// CHECK: %[[W:.*]] = stablehlo.custom_call @ascend.from_bfloat(%[[X]])
// CHECK: %[[E:.*]] = stablehlo.exponential %[[W]] : tensor<8xf32>
// CHECK: %[[S:.*]] = stablehlo.add %[[E]], %[[W]] : tensor<8xf32>
// CHECK: %[[R:.*]] = stablehlo.custom_call @ascend.to_bfloat(%[[S]])
// CHECK: return %[[R]] : tensor<8xi16>
func.func @arithmetic(%x: tensor<8xbf16>) -> (tensor<8xbf16> {jax.result_info = "y"}) {
  %0 = stablehlo.exponential %x : tensor<8xbf16>
  %1 = stablehlo.add %0, %x : tensor<8xbf16>
  return %1 : tensor<8xbf16>
}

// What only moves stays as it is.
// CHECK-LABEL: func.func @moves
// CHECK: %[[T:.*]] = stablehlo.transpose %{{.*}}, dims = [1, 0] : (tensor<2x4xi8>) -> tensor<4x2xi8>
// CHECK: return %[[T]]
func.func @moves(%x: tensor<2x4xf8E4M3FN>) -> tensor<4x2xf8E4M3FN> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x4xf8E4M3FN>) -> tensor<4x2xf8E4M3FN>
  return %0 : tensor<4x2xf8E4M3FN>
}

// Constants are converted at once.
// CHECK-LABEL: func.func @constants
// CHECK: stablehlo.constant dense<[1.500000e+00, 0x7F800000]> : tensor<2xf32>
func.func @constants(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.constant dense<[1.5, 0x7F80]> : tensor<2xbf16>
  %1 = stablehlo.convert %0 : (tensor<2xbf16>) -> tensor<2xf32>
  %2 = stablehlo.add %1, %x : tensor<2xf32>
  return %2 : tensor<2xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK-SAME: tensor<8xi8> {ascend.element = "i4"}
// CHECK: %[[S:.*]] = stablehlo.add %{{.*}} : tensor<8xi8>
// CHECK: call @wrap_i4_0(%[[S]])
// CHECK: stablehlo.maximum
// CHECK-NOT: wrap_i4
// CHECK: return
func.func @integers(%x: tensor<8xi4>) -> (tensor<8xi4>, tensor<8xi4>) {
  %0 = stablehlo.add %x, %x : tensor<8xi4>
  %1 = stablehlo.maximum %x, %0 : tensor<8xi4>
  return %0, %1 : tensor<8xi4>, tensor<8xi4>
}

// In the body of a reduction there are no calls.
// CHECK-LABEL: func.func @regions
// CHECK: stablehlo.reduce
// CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<ui8>
// CHECK: stablehlo.and %{{.*}} : tensor<ui8>
// CHECK: stablehlo.return %{{.*}} : tensor<ui8>
func.func @regions(%x: tensor<8xui4>, %c: tensor<ui4>) -> tensor<ui4> {
  %0 = stablehlo.reduce(%x init: %c) across dimensions = [0] : (tensor<8xui4>, tensor<ui4>) -> tensor<ui4>
    reducer(%a: tensor<ui4>, %b: tensor<ui4>) {
      %1 = stablehlo.add %a, %b : tensor<ui4>
      stablehlo.return %1 : tensor<ui4>
    }
  return %0 : tensor<ui4>
}

// Other types are left alone.
// CHECK-LABEL: func.func @others
// CHECK: stablehlo.add %{{.*}} : tensor<4xf16>
func.func @others(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = stablehlo.add %x, %x : tensor<4xf16>
  return %0 : tensor<4xf16>
}

// Conversions to bf16 keep the precision of f32, unless the policy is fp32.
// CHECK-LABEL: func.func @twice
// CHECK-NEXT: stablehlo.add %arg0, %arg0 : tensor<4xf32>
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
  %1 = stablehlo.add %0, %0 : tensor<4xbf16>
  %2 = stablehlo.convert %1 : (tensor<4xbf16>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// Other narrow floats are converted by functions.
// CHECK-LABEL: func.func @bytes
// CHECK: call @convert_f8E5M2_to_f32_0(%arg0)
func.func @bytes(%x: tensor<8xf8E5M2>) -> tensor<8xf8E5M2> {
  %0 = stablehlo.exponential %x : tensor<8xf8E5M2>
  return %0 : tensor<8xf8E5M2>
}

// CHECK: func.func private @convert_f8E5M2_to_f32_0(%{{.*}}: tensor<8xi8>) -> tensor<8xf32>
// CHECK: "stablehlo.map"
// CHECK: func.func private @convert_f32_to_f8E5M2_0(%{{.*}}: tensor<8xf32>) -> tensor<8xi8>

// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-widen-half)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-widen-half,stablehlo-widen-half)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-widen-half{precision=fp32})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-widen-half{precision=fp16})' | FileCheck %s --check-prefix=HALF

// A sum that leaves the range of f16, and the quotient that brings it back.
// CHECK-LABEL: func.func @mean
// CHECK: %[[SUM:.*]] = stablehlo.reduce({{.*}}) applies stablehlo.add across dimensions = [0] : (tensor<64x8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK: %[[MEAN:.*]] = stablehlo.divide %[[SUM]], {{.*}} : tensor<8xf32>
// CHECK: %[[ROUNDED:.*]] = stablehlo.convert %[[MEAN]] : (tensor<8xf32>) -> tensor<8xf16>
// CHECK: return %[[ROUNDED]]
// HALF-LABEL: func.func @mean
// HALF-NOT: f32
// HALF: return
func.func @mean(%x: tensor<64x8xf16>, %n: tensor<8xf16>) -> tensor<8xf16> {
  %c = stablehlo.constant dense<0.0> : tensor<f16>
  %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [0] : (tensor<64x8xf16>, tensor<f16>) -> tensor<8xf16>
  %1 = stablehlo.divide %0, %n : tensor<8xf16>
  return %1 : tensor<8xf16>
}

// Nothing is rounded: nothing changes.
// CHECK-LABEL: func.func @moves_and_maxima
// CHECK-NOT: f32
// CHECK: return
func.func @moves_and_maxima(%x: tensor<2x3xf16>, %c: tensor<f16>) -> tensor<3xf16> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf16>) -> tensor<3x2xf16>
  %1 = stablehlo.reduce(%0 init: %c) applies stablehlo.maximum across dimensions = [1] : (tensor<3x2xf16>, tensor<f16>) -> tensor<3xf16>
  return %1 : tensor<3xf16>
}

// What the model rounds to f16 stays rounded; what it widens is wide already.
// CHECK-LABEL: func.func @conversions
// CHECK: %[[H:.*]] = stablehlo.convert %arg0 : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: %[[W:.*]] = stablehlo.convert %[[H]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[W]] : tensor<4xf32>
// CHECK-NEXT: return %[[E]] : tensor<4xf32>
func.func @conversions(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf16>
  %1 = stablehlo.exponential %0 : tensor<4xf16>
  %2 = stablehlo.convert %1 : (tensor<4xf16>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// The body of a reduction, and a constant in it, become f32; the bodies of control flow do inside.
// CHECK-LABEL: func.func @bodies
// CHECK: "stablehlo.if"
// CHECK: stablehlo.add {{.*}} : tensor<4xf32>
// CHECK: stablehlo.return {{.*}} : tensor<4xf16>
// CHECK: stablehlo.reduce
// CHECK: stablehlo.constant dense<5.000000e-01> : tensor<f32>
// CHECK: stablehlo.multiply {{.*}} : tensor<f32>
func.func @bodies(%p: tensor<i1>, %x: tensor<4xf16>, %c: tensor<f16>) -> tensor<f16> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.add %x, %x : tensor<4xf16>
    stablehlo.return %1 : tensor<4xf16>
  }, {
    stablehlo.return %x : tensor<4xf16>
  }) : (tensor<i1>) -> tensor<4xf16>
  %2 = stablehlo.reduce(%0 init: %c) across dimensions = [0] : (tensor<4xf16>, tensor<f16>) -> tensor<f16>
    reducer(%a: tensor<f16>, %b: tensor<f16>) {
      %h = stablehlo.constant dense<5.000000e-01> : tensor<f16>
      %3 = stablehlo.multiply %a, %h : tensor<f16>
      %4 = stablehlo.add %3, %b : tensor<f16>
      stablehlo.return %4 : tensor<f16>
    }
  return %2 : tensor<f16>
}

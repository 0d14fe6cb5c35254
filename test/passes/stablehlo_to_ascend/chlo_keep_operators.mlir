// RUN: npu-opt %s --pass-pipeline='builtin.module(chlo-keep-operators)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(chlo-keep-operators,chlo-keep-operators)' | FileCheck %s

// CHECK-LABEL: func.func @erf
// CHECK: %[[E:.*]] = stablehlo.custom_call @chlo.erf(%arg0)
// CHECK: return %[[E]]
func.func @erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @composite
// CHECK: stablehlo.custom_call @chlo.erf(%arg0)
func.func @composite(%x: tensor<4xf16>) -> tensor<4xf16> {
  %0 = stablehlo.composite "chlo.erf" %x {decomposition = @body} : (tensor<4xf16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}
func.func private @body(%x: tensor<4xf16>) -> tensor<4xf16> {
  return %x : tensor<4xf16>
}

// The vector unit has no f64, and ascend no operator for the others.
// CHECK-LABEL: func.func @left_alone
// CHECK: chlo.erf %arg0 : tensor<4xf64>
// CHECK: chlo.sinh
// CHECK: stablehlo.composite "mine.odd"
func.func @left_alone(%x: tensor<4xf64>, %y: tensor<4xf16>) -> (tensor<4xf64>, tensor<4xf16>, tensor<4xf16>) {
  %0 = chlo.erf %x : tensor<4xf64> -> tensor<4xf64>
  %1 = chlo.sinh %y : tensor<4xf16> -> tensor<4xf16>
  %2 = stablehlo.composite "mine.odd" %y {decomposition = @body} : (tensor<4xf16>) -> tensor<4xf16>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf16>, tensor<4xf16>
}

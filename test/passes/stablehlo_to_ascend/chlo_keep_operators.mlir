// RUN: npu-opt %s --pass-pipeline='builtin.module(chlo-keep-operators)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(chlo-keep-operators,chlo-keep-operators)' | FileCheck %s

// CHECK-LABEL: func.func @erf
// CHECK: %[[E:.*]] = stablehlo.custom_call @chlo.erf(%arg0)
// CHECK: return %[[E]]
func.func @erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.erf %x : tensor<4xf32> -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @inverse
// CHECK: stablehlo.custom_call @chlo.asin(%arg0)
func.func @inverse(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = chlo.asin %x : tensor<4xf32> -> tensor<4xf32>
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
// CHECK: chlo.lgamma
// CHECK: stablehlo.composite "mine.odd"
func.func @left_alone(%x: tensor<4xf64>, %y: tensor<4xf16>) -> (tensor<4xf64>, tensor<4xf16>, tensor<4xf16>) {
  %0 = chlo.erf %x : tensor<4xf64> -> tensor<4xf64>
  %1 = chlo.lgamma %y : tensor<4xf16> -> tensor<4xf16>
  %2 = stablehlo.composite "mine.odd" %y {decomposition = @body} : (tensor<4xf16>) -> tensor<4xf16>
  return %0, %1, %2 : tensor<4xf64>, tensor<4xf16>, tensor<4xf16>
}

// Composites may name operators of ascend; not those that need attributes, with other operands, or none.
// CHECK-LABEL: func.func @named
// CHECK: stablehlo.custom_call @ascend.hard_swish(%arg0)
// CHECK: stablehlo.custom_call @ascend.div(%arg0, %arg0)
// CHECK: stablehlo.composite "ascend.compare"
// CHECK: stablehlo.composite "ascend.exp"
// CHECK: stablehlo.composite "ascend.none"
func.func @named(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "ascend.hard_swish" %x {decomposition = @one} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.composite "ascend.div" %x, %x {decomposition = @two} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.composite "ascend.compare" %x, %x {decomposition = @two} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.composite "ascend.exp" %x, %x {decomposition = @two} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = stablehlo.composite "ascend.none" %x {decomposition = @one} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @one(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func private @two(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

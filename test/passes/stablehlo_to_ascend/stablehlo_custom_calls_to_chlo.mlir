// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-custom-calls-to-chlo)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-custom-calls-to-chlo,stablehlo-custom-calls-to-chlo)' | FileCheck %s

// CHECK-LABEL: func.func @calls
// CHECK: chlo.erf %arg0
// CHECK: chlo.top_k(%arg0, k = 3)
// CHECK: stablehlo.tan %arg0
// CHECK: stablehlo.custom_call @mine
func.func @calls(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<3xi32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.custom_call @mhlo.erf(%x) {mhlo.version = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = true}} : (tensor<4xf32>) -> (tensor<3xf32>, tensor<3xi32>)
  %2 = stablehlo.custom_call @mhlo.tan(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %3 = stablehlo.custom_call @mine(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1#0, %1#1, %2, %3 : tensor<4xf32>, tensor<3xf32>, tensor<3xi32>, tensor<4xf32>, tensor<4xf32>
}

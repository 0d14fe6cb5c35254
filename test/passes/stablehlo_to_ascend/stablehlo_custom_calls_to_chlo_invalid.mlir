// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-custom-calls-to-chlo)' --verify-diagnostics

func.func @smallest(%x: tensor<4xf32>) -> (tensor<3xf32>, tensor<3xi32>) {
  // expected-error@+1 {{asks for the smallest elements}}
  %1:2 = stablehlo.custom_call @mhlo.topk(%x) {mhlo.attributes = {k = 3 : i64, largest = false}} : (tensor<4xf32>) -> (tensor<3xf32>, tensor<3xi32>)
  return %1#0, %1#1 : tensor<3xf32>, tensor<3xi32>
}

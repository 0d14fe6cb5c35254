// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-legalize-element-types)' --verify-diagnostics

func.func @main(%x: tensor<3x2xi4>) -> tensor<3xi8> {
  // expected-error@+1 {{changes the number of elements of a type of less than a byte}}
  %0 = stablehlo.bitcast_convert %x : (tensor<3x2xi4>) -> tensor<3xi8>
  return %0 : tensor<3xi8>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-stablehlo-to-ascend)' --split-input-file --verify-diagnostics

// expected-error@below {{not a static tensor; found tensor<?xf32>; expected a tensor of static shape}}
func.func @dynamic(%x: tensor<?xf32>) -> tensor<?xf32> {
  %0 = stablehlo.add %x, %x : tensor<?xf32>
  return %0 : tensor<?xf32>
}

// -----

func.func @other_dialect(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'arith.addf' op cannot be converted to ascend; expected StableHLO operations on tensors}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@below {{element type that kernels cannot hold; found complex<f32>; expected one of i1, f16, f32, f64, i8}}
func.func @complex(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.add %x, %x : tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

// -----

func.func @recursion(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{calls a function that has calls itself; found @recursion; run inline first}}
  %0 = call @recursion(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-bufferize)' --split-input-file --verify-diagnostics

// expected-error@below {{a value of @main has a dynamic shape; found tensor<?xf32>; expected static shapes}}
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  return %x : tensor<?xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'arith.addf' op cannot be bufferized; expected ascend operators on tensors}}
  %0 = arith.addf %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@below {{a value of @main is not a ranked tensor; found index}}
func.func @main(%x: index) -> index {
  return %x : index
}

// -----

// expected-error@below {{element type that GM buffers cannot hold; found tensor<4xcomplex<f32>>}}
func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  return %x : tensor<4xcomplex<f32>>
}

// -----

func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'func.call' op calls a function that is not a kernel on memrefs; found @f}}
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

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

// -----

func.func @main(%a: tensor<16x16xi8>) -> tensor<16x16xi32> {
  // expected-error@below {{'ascend.matmul' op has no kernel for rows of bytes; found 16x16xi8; expected #ascend.layout<"nz">; run ascend-propagate-layouts before ascend-bufferize}}
  %0 = "ascend.matmul"(%a, %a) : (tensor<16x16xi8>, tensor<16x16xi8>) -> tensor<16x16xi32>
  return %0 : tensor<16x16xi32>
}

// -----

// expected-error@below {{a value of @main has a type that is wrong: unknown layout; found "zz"; expected #ascend.layout<"nz">, or none for rows; found tensor<4x4xf32, "zz">}}
func.func @main(%x: tensor<4x4xf32, "zz">) -> tensor<4x4xf32, "zz"> {
  return %x : tensor<4x4xf32, "zz">
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-propagate-layouts)' --split-input-file --verify-diagnostics

func.func @not_legalized(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  // expected-error@below {{'ascend.matmul' op has element types that the cube has not; found f32 x f32 to f32; expected f16 x f16 to f32 or f16, i8 x i8 to i32, si8 x si8 to si32; ascend-legalize-precision brings f32 to f16}}
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @no_such_result(%a: tensor<2x8x16xi8>, %b: tensor<2x16x4xi8>) -> tensor<2x8x4xi8> {
  // expected-error@below {{'ascend.batch_matmul' op has element types that the cube has not; found i8 x i8 to i8}}
  %0 = "ascend.batch_matmul"(%a, %b) : (tensor<2x8x16xi8>, tensor<2x16x4xi8>) -> tensor<2x8x4xi8>
  return %0 : tensor<2x8x4xi8>
}

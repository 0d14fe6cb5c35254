// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fold-constants)' --split-input-file --verify-diagnostics

func.func @no_data() -> tensor<2xf16> {
  // expected-error@below {{a constant has no data; found dense_resource<gone> : tensor<2xf32>; expected {-# dialect_resources}}
  %0 = "ascend.constant"() {value = dense_resource<gone> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "ascend.cast"(%0) : (tensor<2xf32>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
}

// -----

func.func @other_size() -> tensor<2xf16> {
  // expected-error@below {{a constant has 4 bytes of data; found dense_resource<one> : tensor<2xf32>; expected 8 bytes}}
  %0 = "ascend.constant"() {value = dense_resource<one> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = "ascend.cast"(%0) : (tensor<2xf32>) -> tensor<2xf16>
  return %1 : tensor<2xf16>
}

{-# dialect_resources: { builtin: { one: "0x040000000000803F" } } #-}

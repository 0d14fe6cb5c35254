// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-scalar)' --verify-diagnostics

func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = call @fft_0(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
func.func private @fft_0(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error@below {{'stablehlo.fft' op is not supported in this form: no unit has a kernel for it, and upstream MLIR has no loops for it; found operands (tensor<4xcomplex<f32>>)}}
  %0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

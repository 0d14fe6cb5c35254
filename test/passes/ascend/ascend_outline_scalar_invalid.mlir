// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-scalar)' --verify-diagnostics

func.func @main(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-error@below {{unsupported operator 'fft': it has no kernel, and upstream MLIR cannot bring it to loops}}
  %0 = call @fft_0(%x) : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
func.func private @fft_0(%x: tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>> {
  %0 = stablehlo.fft %x, type = FFT, length = [4] : (tensor<4xcomplex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}

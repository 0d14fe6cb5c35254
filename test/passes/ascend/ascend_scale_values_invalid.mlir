// RUN: npu-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(ascend-scale-values{precision=scaled-fp16})'

// expected-error@below {{'func.func' op has a bad range; found [255.0, 0.0]; expected [lowest, highest], two finite floats}}
func.func @main(%x: tensor<64xf32> {ascend.range = [255.0, 0.0]}) -> tensor<64xf32> {
  return %x : tensor<64xf32>
}

// -----

// expected-error@below {{'func.func' op has a bad range; found [0, 255]; expected [lowest, highest], two finite floats}}
func.func @main(%x: tensor<64xf32> {ascend.range = [0, 255]}) -> tensor<64xf32> {
  return %x : tensor<64xf32>
}

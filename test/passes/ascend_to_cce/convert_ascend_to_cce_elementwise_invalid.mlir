// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce)' --verify-diagnostics

func.func @rectified_integers(%a: memref<64xi64>, %r: memref<64xi64>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<64xi64> to tensor<64xi64>
  // expected-error@below {{has no vector instructions for its element type}}
  %y = "ascend.relu"(%ta) : (tensor<64xi64>) -> tensor<64xi64>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<64xi64>, memref<64xi64>) -> ()
  return
}

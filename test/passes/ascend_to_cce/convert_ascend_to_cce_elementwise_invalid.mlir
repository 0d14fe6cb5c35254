// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce)' --verify-diagnostics

func.func @integer_division(%a: memref<64xi32>, %r: memref<64xi32>) attributes {ascend.kernel} {
  // expected-error@below {{has no vector instructions for its element type}}
  "ascend.div"(%a, %a, %r) : (memref<64xi32>, memref<64xi32>, memref<64xi32>) -> ()
  return
}

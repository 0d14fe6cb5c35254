// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce)' --verify-diagnostics

func.func @padded_bytes(%a: memref<17x33xi8>, %r: memref<2x2x16x32xi8>) attributes {ascend.kernel} {
  // expected-error@below {{'ascend.fractalize' op pads 8-bit elements, which the vector unit cannot fill; found 17 x 33; expected multiples of 16 x 32; pad the matrix before}}
  "ascend.fractalize"(%a, %r) : (memref<17x33xi8>, memref<2x2x16x32xi8>) -> ()
  return
}

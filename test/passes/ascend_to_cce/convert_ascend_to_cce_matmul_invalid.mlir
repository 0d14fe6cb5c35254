// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{m=4096 n=4096 k=4096})' --split-input-file --verify-diagnostics

func.func @bytes(%a: memref<1x1x16x32xi8>, %b: memref<1x2x16x32xi8>, %c: memref<2x1x16x16xi32>) attributes {ascend.kernel} {
  // expected-error@below {{'ascend.matmul' op cannot be lowered for these element types; found i8 x i8 to i32; expected f16 x f16 to f32 or f16; load2d transposes 16-bit fractals only}}
  "ascend.matmul"(%a, %b, %c) : (memref<1x1x16x32xi8>, memref<1x2x16x32xi8>, memref<2x1x16x16xi32>) -> ()
  return
}

// -----

func.func @tile(%a: memref<256x256x16x16xf16>, %b: memref<256x256x16x16xf16>, %c: memref<256x256x16x16xf32>) attributes {ascend.kernel} {
  // expected-error@below {{'ascend.matmul' op no tile (m, n, k) for the output stationary strategy and (M, N, K) = (4096, 4096, 4096); found (4096, 4096, 4096); expected}}
  "ascend.matmul"(%a, %b, %c) : (memref<256x256x16x16xf16>, memref<256x256x16x16xf16>, memref<256x256x16x16xf32>) -> ()
  return
}

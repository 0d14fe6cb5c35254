// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{m=4096 n=4096 k=4096})' --split-input-file --verify-diagnostics

func.func @bytes(%a: memref<1x1x16x32xi8>, %b: memref<1x2x16x32xi8>, %c: memref<2x1x16x16xi32>) attributes {ascend.kernel} {
  %ta_buffer = bufferization.to_tensor %a restrict : memref<1x1x16x32xi8> to tensor<1x1x16x32xi8>
  %ta = builtin.unrealized_conversion_cast %ta_buffer : tensor<1x1x16x32xi8> to tensor<16x32xi8, #ascend.layout<"nz">>
  %tb_buffer = bufferization.to_tensor %b restrict : memref<1x2x16x32xi8> to tensor<1x2x16x32xi8>
  %tb = builtin.unrealized_conversion_cast %tb_buffer : tensor<1x2x16x32xi8> to tensor<32x32xi8, #ascend.layout<"nz">>
  // expected-error@below {{'ascend.matmul' op cannot be lowered for these element types; found 16x32xi8 in nz x 32x32xi8 in nz to i32; expected f16 x f16 to f32 or f16, or i8 x i8 to i32 in nz with transpose_b; load2d transposes 16-bit fractals only}}
  %y = "ascend.matmul"(%ta, %tb) : (tensor<16x32xi8, #ascend.layout<"nz">>, tensor<32x32xi8, #ascend.layout<"nz">>) -> tensor<16x32xi32, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<16x32xi32, #ascend.layout<"nz">> to tensor<2x1x16x16xi32>
  bufferization.materialize_in_destination %y_buffer in restrict writable %c : (tensor<2x1x16x16xi32>, memref<2x1x16x16xi32>) -> ()
  return
}

// -----

func.func @tile(%a: memref<256x256x16x16xf16>, %b: memref<256x256x16x16xf16>, %c: memref<256x256x16x16xf32>) attributes {ascend.kernel} {
  %ta_buffer = bufferization.to_tensor %a restrict : memref<256x256x16x16xf16> to tensor<256x256x16x16xf16>
  %ta = builtin.unrealized_conversion_cast %ta_buffer : tensor<256x256x16x16xf16> to tensor<4096x4096xf16, #ascend.layout<"nz">>
  %tb_buffer = bufferization.to_tensor %b restrict : memref<256x256x16x16xf16> to tensor<256x256x16x16xf16>
  %tb = builtin.unrealized_conversion_cast %tb_buffer : tensor<256x256x16x16xf16> to tensor<4096x4096xf16, #ascend.layout<"nz">>
  // expected-error@below {{'ascend.matmul' op no tile (m, n, k) for the output stationary strategy and (M, N, K) = (4096, 4096, 4096); found (4096, 4096, 4096); expected}}
  %y = "ascend.matmul"(%ta, %tb) : (tensor<4096x4096xf16, #ascend.layout<"nz">>, tensor<4096x4096xf16, #ascend.layout<"nz">>) -> tensor<4096x4096xf32, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<4096x4096xf32, #ascend.layout<"nz">> to tensor<256x256x16x16xf32>
  bufferization.materialize_in_destination %y_buffer in restrict writable %c : (tensor<256x256x16x16xf32>, memref<256x256x16x16xf32>) -> ()
  return
}

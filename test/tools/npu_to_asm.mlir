// RUN: npu-opt %s --npu-pipeline=core-choice=all --npu-to-asm | FileCheck %s

// CHECK: add_f32_16x64:
// CHECK: PIPE_MTE2 copy_gm_to_ubuf {{.*}}len_burst=16
// CHECK: PIPE_MTE2 set_flag {{.*}}dst_pipe=PIPE_V
// CHECK: PIPE_V wait_flag
// CHECK: PIPE_V vadd.f32 {{.*}}repeat=2
// CHECK-SAME: npu_to_asm.mlir:11
// CHECK: PIPE_MTE3 copy_ubuf_to_gm
func.func @main(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = stablehlo.add %x, %y : tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

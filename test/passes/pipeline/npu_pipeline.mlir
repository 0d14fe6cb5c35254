// RUN: npu-opt %s --npu-pipeline | FileCheck %s
// RUN: npu-opt %s --stablehlo-to-ascend --ascend-to-memref --ascend-to-cce --cce-to-hivm --hivm-to-llvm | FileCheck %s
// RUN: npu-opt %s --npu-pipeline | npu-opt --npu-pipeline | FileCheck %s

// The host part stays a list of launches; the kernels end as calls of intrinsics.

// CHECK: func.func @main
// CHECK-SAME: ascend.entry
// CHECK: call @add_f32_16x64
// CHECK: module @kernels
// CHECK: llvm.func @add_f32_16x64
// CHECK: llvm.call @hivm.copy_gm_to_ubuf
// CHECK: llvm.call @hivm.vadd.f32
// CHECK: llvm.call @hivm.copy_ubuf_to_gm
func.func @main(%x: tensor<16x64xf32>, %y: tensor<16x64xf32>) -> tensor<16x64xf32> {
  %0 = stablehlo.add %x, %y : tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}

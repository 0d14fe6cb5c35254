// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse,ascend-fuse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fuse{fusion=none})' | FileCheck %s --check-prefix=ALONE

// A softmax is one kernel: its statistics never see GM. A view at the end stays outside.
// CHECK-LABEL: func.func @main
// CHECK: call @softmax_f32_64x128(%arg0)
// CHECK-NEXT: ascend.reshape
// CHECK-NOT: ascend.
// CHECK: return
// ALONE-LABEL: func.func @main
// ALONE: call @reduce_f32_64
// ALONE: call @sub_f32_64x128
// ALONE: call @exp_f32_64x128
func.func @main(%x: tensor<64x128xf32>) -> tensor<8192xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %mb = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x128xf32>
  %s = "ascend.sub"(%x, %mb) : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %e = "ascend.exp"(%s) : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %t = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<64x128xf32>) -> tensor<64xf32>
  %tb = "ascend.broadcast"(%t) {dims = array<i64: 0>} : (tensor<64xf32>) -> tensor<64x128xf32>
  %r = "ascend.div"(%e, %tb) : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %flat = "ascend.reshape"(%r) : (tensor<64x128xf32>) -> tensor<8192xf32>
  return %flat : tensor<8192xf32>
}
// CHECK: module @kernels
// CHECK: bufferization.to_tensor %arg0
// CHECK: ascend.reduce
// CHECK: bufferization.materialize_in_destination

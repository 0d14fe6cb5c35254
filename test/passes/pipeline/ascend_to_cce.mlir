// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-to-cce{cores=2 core-choice=all machine=ascend310})' | FileCheck %s

// Addresses and synchronisation come with it; options reach the passes that have them.

// CHECK: func.func @exp
// CHECK-SAME: ascend.blocks = 2
// CHECK-SAME: cce.synced
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: "cce.vexp"
func.func @exp(%x: memref<100000xf32>, %y: memref<100000xf32>)
    attributes {ascend.kernel, ascend.op = "exp", ascend.unit = "vector"} {
  %tx = bufferization.to_tensor %x restrict : memref<100000xf32> to tensor<100000xf32>
  %r = "ascend.exp"(%tx) : (tensor<100000xf32>) -> tensor<100000xf32>
  bufferization.materialize_in_destination %r in restrict writable %y : (tensor<100000xf32>, memref<100000xf32>) -> ()
  return
}

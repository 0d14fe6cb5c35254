// RUN: npu-opt-short %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s
// RUN: npu-opt-short %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 matmul-strategy=is m=64 n=128 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=INPUT
// RUN: npu-opt-short %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 matmul-strategy=ws m=64 n=128 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=WEIGHT
// RUN: npu-opt-short %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=4 core-choice=all m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=BLOCKS
// RUN: npu-opt-short %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 m=64 n=64 k=64},convert-ascend-to-cce{cores=1 m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s

// Tiles of C are summed up in L0C; pieces of A and B stay in L1 for the next tile.
// CHECK-LABEL: func.func @square
// CHECK-SAME: ascend.blocks = 1
// CHECK-NOT: scf.for
// CHECK-DAG: cce.load2d {{.*}}, L0A<4x4x16x16xf16
// CHECK-DAG: cce.load2d {{.*}} {transpose} : {{.*}}, L0B<4x4x16x16xf16
// CHECK: cce.mad {{.*}} %true :
// CHECK: cce.mad {{.*}} %false :
// CHECK: cce.copy_l0c {{.*}} : L0C<4x4x16x16xf32{{.*}}, UB<4x4x16x16xf32
// CHECK: cce.copy {{.*}} : UB<4x4x16x16xf32{{.*}}, memref<4x4x16x16xf32, strided<[2048, 256, 16, 1]
// CHECK-NOT: ascend.matmul

// Input stationary: L1 holds two pieces of A until B has walked past; B comes again.
// INPUT-LABEL: func.func @square
// INPUT-COUNT-4: cce.copy {{.*}} L1<
// INPUT: cce.mad
// INPUT: cce.copy_l0c {{.*}} UB<4x4x16x16xf32

// Weight stationary: the same of B.
// WEIGHT-LABEL: func.func @square
// WEIGHT: cce.copy {{.*}} L1<8x4x16x16xf16
// WEIGHT: cce.mad
// WEIGHT: cce.copy_l0c {{.*}} UB<4x4x16x16xf32

// As many blocks as shares of C take one each.
// BLOCKS-LABEL: func.func @square
// BLOCKS-SAME: ascend.blocks = 4
// BLOCKS: %[[BLOCK:.*]] = cce.get_block_idx
// BLOCKS-NOT: scf.for
// BLOCKS: arith.remui %[[BLOCK]]
func.func @square(%a: memref<8x8x16x16xf16>, %b: memref<8x8x16x16xf16>, %c: memref<8x8x16x16xf32>)
    attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube"} {
  %ta_buffer = bufferization.to_tensor %a restrict : memref<8x8x16x16xf16> to tensor<8x8x16x16xf16>
  %ta = builtin.unrealized_conversion_cast %ta_buffer : tensor<8x8x16x16xf16> to tensor<128x128xf16, #ascend.layout<"nz">>
  %tb_buffer = bufferization.to_tensor %b restrict : memref<8x8x16x16xf16> to tensor<8x8x16x16xf16>
  %tb = builtin.unrealized_conversion_cast %tb_buffer : tensor<8x8x16x16xf16> to tensor<128x128xf16, #ascend.layout<"nz">>
  %y = "ascend.matmul"(%ta, %tb) : (tensor<128x128xf16, #ascend.layout<"nz">>, tensor<128x128xf16, #ascend.layout<"nz">>) -> tensor<128x128xf32, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<128x128xf32, #ascend.layout<"nz">> to tensor<8x8x16x16xf32>
  bufferization.materialize_in_destination %y_buffer in restrict writable %c : (tensor<8x8x16x16xf32>, memref<8x8x16x16xf32>) -> ()
  return
}

// A result in f16 is cast on its way to UB.
// CHECK-LABEL: func.func @batches
// CHECK: cce.copy_l0c {{.*}} : L0C<1x1x16x16xf32{{.*}}, UB<1x1x16x16xf16
func.func @batches(%a: memref<3x1x1x16x16xf16>, %b: memref<3x1x1x16x16xf16>, %c: memref<3x1x1x16x16xf16>)
    attributes {ascend.kernel, ascend.op = "batch_matmul", ascend.unit = "cube"} {
  %ta_buffer = bufferization.to_tensor %a restrict : memref<3x1x1x16x16xf16> to tensor<3x1x1x16x16xf16>
  %ta = builtin.unrealized_conversion_cast %ta_buffer : tensor<3x1x1x16x16xf16> to tensor<3x16x16xf16, #ascend.layout<"nz">>
  %tb_buffer = bufferization.to_tensor %b restrict : memref<3x1x1x16x16xf16> to tensor<3x1x1x16x16xf16>
  %tb = builtin.unrealized_conversion_cast %tb_buffer : tensor<3x1x1x16x16xf16> to tensor<3x16x16xf16, #ascend.layout<"nz">>
  %y = "ascend.batch_matmul"(%ta, %tb) : (tensor<3x16x16xf16, #ascend.layout<"nz">>, tensor<3x16x16xf16, #ascend.layout<"nz">>) -> tensor<3x16x16xf16, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<3x16x16xf16, #ascend.layout<"nz">> to tensor<3x1x1x16x16xf16>
  bufferization.materialize_in_destination %y_buffer in restrict writable %c : (tensor<3x1x1x16x16xf16>, memref<3x1x1x16x16xf16>) -> ()
  return
}

// What is no kernel stays as it is.
// CHECK-LABEL: func.func @host
// CHECK-NEXT: ascend.matmul
func.func @host(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>) -> tensor<16x16xf32> {
  %c = "ascend.matmul"(%a, %b) : (tensor<16x16xf16>, tensor<16x16xf16>) -> tensor<16x16xf32>
  return %c : tensor<16x16xf32>
}

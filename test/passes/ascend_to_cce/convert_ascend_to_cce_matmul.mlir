// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 matmul-strategy=is m=64 n=128 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=INPUT
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 matmul-strategy=ws m=64 n=128 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=WEIGHT
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=4 m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s --check-prefix=BLOCKS
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 m=64 n=64 k=64},convert-ascend-to-cce{cores=1 m=64 n=64 k=64},canonicalize,cse)' | FileCheck %s

// Output stationary: a loop over tiles of C, one over the contracted dimension, two halves each.
// CHECK-LABEL: func.func @square
// CHECK-SAME: ascend.blocks = 1
// CHECK-DAG: memref.alloc() : memref<4x2x16x16xf16, #cce.space<"L0A">>
// CHECK-DAG: memref.alloc() : memref<2x4x16x16xf16, #cce.space<"L0B">>
// CHECK-DAG: memref.alloc() : memref<4x4x16x16xf32, #cce.space<"L0C">>
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[FIRST:.*]] = arith.cmpi eq
// CHECK: "cce.copy"{{.*}} #cce.space<"L1">>) -> ()
// CHECK: "cce.load2d"{{.*}} #cce.space<"L0A">>) -> ()
// CHECK: "cce.copy"{{.*}} #cce.space<"L1">>) -> ()
// CHECK: "cce.load2d"{{.*}} {transpose}
// CHECK: "cce.mad"({{.*}}, %[[FIRST]])
// CHECK: "cce.mad"({{.*}}, %false)
// CHECK: }
// CHECK: "cce.copy_l0c"
// CHECK: "cce.copy"{{.*}}#cce.space<"UB">>, memref<4x4x16x16xf32, strided<[2048, 256, 16, 1], offset: ?>>)
// CHECK-NOT: ascend.matmul

// Input stationary: A is loaded before the loop in which B walks past; no sum crosses a tile.
// INPUT-LABEL: func.func @square
// INPUT: scf.for
// INPUT-COUNT-2: "cce.load2d"{{.*}} #cce.space<"L0A">>) -> ()
// INPUT: scf.for
// INPUT-NOT: #cce.space<"L0A">>) -> ()
// INPUT: "cce.load2d"{{.*}} {transpose}
// INPUT: "cce.mad"({{.*}}, %true)
// INPUT: "cce.load2d"{{.*}} {transpose}
// INPUT: "cce.mad"({{.*}}, %false)
// INPUT: "cce.copy_l0c"

// Weight stationary: B first.
// WEIGHT-LABEL: func.func @square
// WEIGHT: scf.for
// WEIGHT-COUNT-2: "cce.load2d"{{.*}} {transpose}
// WEIGHT: scf.for
// WEIGHT-NOT: {transpose}
// WEIGHT: "cce.load2d"{{.*}} #cce.space<"L0A">>) -> ()
// WEIGHT: "cce.mad"({{.*}}, %true)
// WEIGHT: "cce.copy_l0c"

// Blocks take tiles in turn.
// BLOCKS-LABEL: func.func @square
// BLOCKS-SAME: ascend.blocks = 4
// BLOCKS: %[[BLOCK:.*]] = "cce.get_block_idx"
// BLOCKS: %[[NUMBER:.*]] = "cce.get_block_num"
// BLOCKS: scf.for %{{.*}} = %[[BLOCK]] to %{{.*}} step %[[NUMBER]]
func.func @square(%a: memref<8x8x16x16xf16>, %b: memref<8x8x16x16xf16>, %c: memref<8x8x16x16xf32>)
    attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube"} {
  "ascend.matmul"(%a, %b, %c)
    : (memref<8x8x16x16xf16>, memref<8x8x16x16xf16>, memref<8x8x16x16xf32>) -> ()
  return
}

// A result in f16 is cast on its way to UB.
// CHECK-LABEL: func.func @batches
// CHECK: "cce.copy_l0c"{{.*}} : ({{.*}}f32{{.*}}#cce.space<"L0C">>, memref<1x1x16x16xf16, #cce.space<"UB">>) -> ()
func.func @batches(%a: memref<3x1x1x16x16xf16>, %b: memref<3x1x1x16x16xf16>, %c: memref<3x1x1x16x16xf16>)
    attributes {ascend.kernel, ascend.op = "batch_matmul", ascend.unit = "cube"} {
  "ascend.batch_matmul"(%a, %b, %c)
    : (memref<3x1x1x16x16xf16>, memref<3x1x1x16x16xf16>, memref<3x1x1x16x16xf16>) -> ()
  return
}

// What is no kernel stays as it is.
// CHECK-LABEL: func.func @host
// CHECK-NEXT: ascend.matmul
func.func @host(%a: memref<1x1x16x16xf16>, %b: memref<1x1x16x16xf16>, %c: memref<1x1x16x16xf32>) {
  "ascend.matmul"(%a, %b, %c)
    : (memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf32>) -> ()
  return
}

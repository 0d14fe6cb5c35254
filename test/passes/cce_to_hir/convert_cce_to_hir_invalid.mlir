// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hir)' 2>&1 | FileCheck %s

// All that has no counterpart is named.
// CHECK: a kernel has operations that AscendNPU-IR has no counterpart for; found memref.alloc without an address (2x), cce.load2d (2x), a program of one kind of cores (1x), cce.mad_l1 of fractals 256 and 512 elements apart (1x)
func.func @k() attributes {ascend.kernel} {
  %a = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L1">>
  %b = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  "cce.load2d"(%a, %b) : (memref<1x1x16x16xf16, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%a, %b) : (memref<1x1x16x16xf16, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  %true = arith.constant true
  %l = memref.alloc() {cce.address = 0 : i64} : memref<1024xf16, #cce.space<"L1">>
  %p = memref.reinterpret_cast %l to offset: [0], sizes: [2, 2, 16, 16], strides: [256, 512, 16, 1] : memref<1024xf16, #cce.space<"L1">> to memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>
  %d = memref.alloc() {cce.address = 1024 : i64} : memref<2x2x16x16xf32, #cce.space<"L0C">>
  "cce.mad_l1"(%p, %p, %d, %true) : (memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>, memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>, memref<2x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

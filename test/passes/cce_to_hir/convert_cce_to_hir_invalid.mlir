// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hir)' 2>&1 | FileCheck %s

// All that has no counterpart is named.
// CHECK: a kernel has operations that AscendNPU-IR has no counterpart for; found memref.alloc without an address (2x), cce.load2d (2x), a program of one kind of cores (1x)
func.func @k() attributes {ascend.kernel} {
  %a = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L1">>
  %b = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  "cce.load2d"(%a, %b) : (memref<1x1x16x16xf16, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%a, %b) : (memref<1x1x16x16xf16, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  return
}

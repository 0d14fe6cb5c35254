// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hir)' 2>&1 | FileCheck %s

// All that has no counterpart is named.
// CHECK: a kernel has operations that AscendNPU-IR has no counterpart for; found cce.vcmpsel (2x), a program of one kind of cores (1x), memref.alloc without an address (1x)
func.func @k() attributes {ascend.kernel} {
  %a = memref.alloc() : memref<64xf32, #cce.space<"UB">>
  "cce.vcmpsel"(%a, %a, %a, %a, %a) {predicate = "lt"} : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vcmpsel"(%a, %a, %a, %a, %a) {predicate = "lt"} : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  return
}

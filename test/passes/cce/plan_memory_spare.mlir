// RUN: npu-opt %s --pass-pipeline='builtin.module(plan-memory{machine=ascend910b spare-bytes=8192})' | FileCheck %s

// UB has 196,608 bytes. Buffers that would fill them share so that the last 8,192 stay free.
// CHECK-LABEL: func.func @shared
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: memref.alloc() {cce.address = 0 : i64}
func.func @shared(%x: memref<24000xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() : memref<24000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %a) : (memref<24000xf32>, memref<24000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%a, %x) : (memref<24000xf32, #cce.space<"UB">>, memref<24000xf32>) -> ()
  %b = memref.alloc() : memref<24000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %b) : (memref<24000xf32>, memref<24000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%b, %x) : (memref<24000xf32, #cce.space<"UB">>, memref<24000xf32>) -> ()
  return
}

// What needs these bytes has them.
// CHECK-LABEL: func.func @whole
// CHECK: memref.alloc() {cce.address = 0 : i64}
func.func @whole(%x: memref<49000xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() : memref<49000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %a) : (memref<49000xf32>, memref<49000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%a, %x) : (memref<49000xf32, #cce.space<"UB">>, memref<49000xf32>) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(insert-sync)' --split-input-file --verify-diagnostics

!ub = memref<256xf32, #cce.space<"UB">>
func.func @unplanned(%x: memref<256xf32>) attributes {ascend.kernel} {
  // expected-error@below {{'memref.alloc' op has no address; run plan-memory before insert-sync}}
  %a = memref.alloc() : !ub
  "cce.copy"(%x, %a) : (memref<256xf32>, !ub) -> ()
  return
}

// -----

!ub = memref<256xf32, #cce.space<"UB">>
func.func @unknown(%x: memref<256xf32>, %y: memref<256xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  "cce.copy"(%x, %a) : (memref<256xf32>, !ub) -> ()
  // expected-error@below {{'memref.copy' op touches memory in a way that insert-sync does not know}}
  memref.copy %x, %y : memref<256xf32> to memref<256xf32>
  return
}

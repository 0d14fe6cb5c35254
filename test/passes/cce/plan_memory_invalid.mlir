// RUN: npu-opt %s --pass-pipeline='builtin.module(plan-memory)' --split-input-file --verify-diagnostics

// The table at the end lists what is alive at the peak, largest first.
// expected-error@below {{the buffers of kernel @overflow do not fit UB; found 360000 bytes alive at once, 360000 with gaps between buffers; expected at most 262144 bytes; use tiles of 72 % of the size; alive at the peak:}}
func.func @overflow(%x: memref<30000xf32>, %y: memref<60000xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<60000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %a) : (memref<30000xf32>, memref<30000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%y, %b) : (memref<60000xf32>, memref<60000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%a, %x) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32>) -> ()
  return
}

// -----

func.func @layout() attributes {ascend.kernel} {
  // expected-error@below {{'memref.alloc' op cannot be given an address}}
  %a = memref.alloc() : memref<8xf32, strided<[2]>, #cce.space<"UB">>
  return
}

// -----

func.func @choice(%c: i1) attributes {ascend.kernel} {
  %a = memref.alloc() : memref<8xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<8xf32, #cce.space<"UB">>
  // expected-error@below {{'arith.select' op makes a view that lifetimes do not follow}}
  %x = arith.select %c, %a, %b : memref<8xf32, #cce.space<"UB">>
  return
}

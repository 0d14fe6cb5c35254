// RUN: npu-opt %s --pass-pipeline='builtin.module(plan-memory)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(plan-memory,plan-memory)' | FileCheck %s

// Each memory is planned by itself, sizes and addresses rounded to its alignment.
// CHECK-LABEL: func.func @memories
// CHECK: memref.alloc() {cce.address = 0 : i64} : memref<5xf32, #cce.space<"UB">>
// CHECK: memref.alloc() {cce.address = 32 : i64} : memref<8xf32, #cce.space<"UB">>
// CHECK: memref.alloc() {cce.address = 0 : i64} : memref<1x1x16x16xf16, #cce.space<"L0A">>
// CHECK: memref.alloc() {cce.address = 512 : i64} : memref<1x1x16x16xf16, #cce.space<"L0A">>
func.func @memories(%x: memref<8xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() : memref<5xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<8xf32, #cce.space<"UB">>
  %c = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  %d = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  return
}

// A buffer whose value comes from before a loop lives through the loop. What does not fit side by side
// shares: %late with %early, never with %through.
// CHECK-LABEL: func.func @loops
func.func @loops(%x: memref<30000xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // CHECK: memref.alloc() {cce.address = 0 : i64}
  %through = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %through) : (memref<30000xf32>, memref<30000xf32, #cce.space<"UB">>) -> ()
  scf.for %i = %c0 to %c4 step %c1 {
    // CHECK: scf.for
    // CHECK: memref.alloc() {cce.address = 120000 : i64}
    %early = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
    "cce.vexp"(%through, %early) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%early, %x) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32>) -> ()
    // CHECK: memref.alloc() {cce.address = 120000 : i64}
    %late = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
    "cce.vexp"(%through, %late) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%late, %x) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32>) -> ()
  }
  return
}

// A view keeps its buffer alive.
// CHECK-LABEL: func.func @views
func.func @views(%x: memref<30000xf32>) attributes {ascend.kernel} {
  // CHECK: memref.alloc() {cce.address = 0 : i64}
  %a = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
  %v = memref.subview %a[0] [16] [1] : memref<30000xf32, #cce.space<"UB">> to memref<16xf32, strided<[1]>, #cce.space<"UB">>
  "cce.copy"(%x, %a) : (memref<30000xf32>, memref<30000xf32, #cce.space<"UB">>) -> ()
  // CHECK: memref.alloc() {cce.address = 120000 : i64}
  %b = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %b) : (memref<30000xf32>, memref<30000xf32, #cce.space<"UB">>) -> ()
  "cce.vexp"(%v, %v) : (memref<16xf32, strided<[1]>, #cce.space<"UB">>, memref<16xf32, strided<[1]>, #cce.space<"UB">>) -> ()
  // CHECK: memref.alloc() {cce.address = 0 : i64}
  %c = memref.alloc() : memref<30000xf32, #cce.space<"UB">>
  "cce.copy"(%x, %c) : (memref<30000xf32>, memref<30000xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%b, %x) : (memref<30000xf32, #cce.space<"UB">>, memref<30000xf32>) -> ()
  return
}

// Buffers in front of a loop share if every iteration writes them before it reads them.
// CHECK-LABEL: func.func @iterations
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: memref.alloc() {cce.address = 0 : i64}
func.func @iterations(%x: memref<60000xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<60000xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<60000xf32, #cce.space<"UB">>
  scf.for %i = %c0 to %c4 step %c1 {
    "cce.copy"(%x, %a) : (memref<60000xf32>, memref<60000xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%a, %x) : (memref<60000xf32, #cce.space<"UB">>, memref<60000xf32>) -> ()
    "cce.copy"(%x, %b) : (memref<60000xf32>, memref<60000xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%b, %x) : (memref<60000xf32, #cce.space<"UB">>, memref<60000xf32>) -> ()
  }
  return
}

// Buffers of one loop stay apart, and share with those of another one: that waits once.
// CHECK-LABEL: func.func @one_loop_after_the_other
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: memref.alloc() {cce.address = 88064 : i64}
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: memref.alloc() {cce.address = 88064 : i64}
func.func @one_loop_after_the_other(%x: memref<22016xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %a = memref.alloc() : memref<22016xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<22016xf32, #cce.space<"UB">>
  %c = memref.alloc() : memref<22016xf32, #cce.space<"UB">>
  %d = memref.alloc() : memref<22016xf32, #cce.space<"UB">>
  scf.for %i = %c0 to %c4 step %c1 {
    "cce.copy"(%x, %a) : (memref<22016xf32>, memref<22016xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%a, %x) : (memref<22016xf32, #cce.space<"UB">>, memref<22016xf32>) -> ()
    "cce.copy"(%x, %b) : (memref<22016xf32>, memref<22016xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%b, %x) : (memref<22016xf32, #cce.space<"UB">>, memref<22016xf32>) -> ()
  }
  scf.for %i = %c0 to %c4 step %c1 {
    "cce.copy"(%x, %c) : (memref<22016xf32>, memref<22016xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%c, %x) : (memref<22016xf32, #cce.space<"UB">>, memref<22016xf32>) -> ()
    "cce.copy"(%x, %d) : (memref<22016xf32>, memref<22016xf32, #cce.space<"UB">>) -> ()
    "cce.copy"(%d, %x) : (memref<22016xf32, #cce.space<"UB">>, memref<22016xf32>) -> ()
  }
  return
}

// The sources of an instruction begin in different halves of the bank groups, 256 bytes each.
// CHECK-LABEL: func.func @banks
// CHECK: memref.alloc() {cce.address = 0 : i64}
// CHECK: memref.alloc() {cce.address = 768 : i64}
func.func @banks(%x: memref<128xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() : memref<128xf32, #cce.space<"UB">>
  %b = memref.alloc() : memref<128xf32, #cce.space<"UB">>
  "cce.vadd"(%a, %b, %b) : (memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>) -> ()
  return
}

// Given addresses stay, others keep clear of them.
// CHECK-LABEL: func.func @planned
func.func @planned(%x: memref<30000xf32>) attributes {ascend.kernel} {
  // CHECK: memref.alloc() {cce.address = 128 : i64} : memref<8xf32
  %a = memref.alloc() {cce.address = 128 : i64} : memref<8xf32, #cce.space<"UB">>
  // CHECK: memref.alloc() {cce.address = 160 : i64} : memref<64xf32
  %b = memref.alloc() : memref<64xf32, #cce.space<"UB">>
  // CHECK: memref.alloc() {cce.address = 0 : i64} : memref<32xf32
  %c = memref.alloc() : memref<32xf32, #cce.space<"UB">>
  return
}

// Functions that are not kernels, and buffers in GM, are left alone.
// CHECK-LABEL: func.func @host
// CHECK: memref.alloc() : memref<8xf32, #cce.space<"UB">>
func.func @host() {
  %a = memref.alloc() : memref<8xf32, #cce.space<"UB">>
  return
}
// CHECK-LABEL: func.func @gm
// CHECK: memref.alloc() : memref<8xf32>
func.func @gm() attributes {ascend.kernel} {
  %a = memref.alloc() : memref<8xf32>
  return
}

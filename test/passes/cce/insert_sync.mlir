// RUN: npu-opt %s --pass-pipeline='builtin.module(insert-sync)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(insert-sync,insert-sync)' | FileCheck %s

!gm = memref<1024xf32>
!tile = memref<256xf32, strided<[1], offset: ?>>
!ub = memref<256xf32, #cce.space<"UB">>

// Straight line: one flag from each pipe to the next.
// CHECK-LABEL: func.func @line
// CHECK-SAME: cce.synced
// CHECK: cce.copy
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: "cce.set_flag"() {dst = "MTE3", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "MTE3", event = 0 : i64, src = "V"}
// CHECK-NEXT: cce.copy
// CHECK-NEXT: return
func.func @line(%x: memref<256xf32>, %y: memref<256xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  "cce.copy"(%x, %a) : (memref<256xf32>, !ub) -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.copy"(%a, %y) : (!ub, memref<256xf32>) -> ()
  return
}

// Within the vector pipe, what depends on the operation just before waits for it in a barrier, which
// serves what depends on others before, too.
// CHECK-LABEL: func.func @barriers
// CHECK: cce.vexp
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: "cce.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: cce.vabs
// CHECK-NEXT: return
func.func @barriers() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 1024 : i64} : !ub
  %c = memref.alloc() {cce.address = 2048 : i64} : !ub
  "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
  "cce.vexp"(%a, %c) : (!ub, !ub) -> ()
  "cce.vexp"(%c, %a) : (!ub, !ub) -> ()
  "cce.vabs"(%b, %b) : (!ub, !ub) -> ()
  return
}

// With other work between, the order goes by flags to an idle pipe and back, which the work fills.
// CHECK-LABEL: func.func @relay
// CHECK: cce.vexp
// CHECK-NEXT: "cce.set_flag"() {dst = "M", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "M", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: cce.vabs
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: return
func.func @relay() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 1024 : i64} : !ub
  %c = memref.alloc() {cce.address = 2048 : i64} : !ub
  "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
  "cce.vabs"(%c, %c) : (!ub, !ub) -> ()
  "cce.vexp"(%b, %a) : (!ub, !ub) -> ()
  return
}

// The same from one iteration to the next: flags for it are set before the loop.
// CHECK-LABEL: func.func @relay_in_loop
// CHECK: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 1 : i64, src = "M"}
// CHECK-NEXT: scf.for
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: "cce.set_flag"() {dst = "M", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "M", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 1 : i64, src = "M"}
// CHECK-NEXT: cce.vabs
// CHECK-NEXT: "cce.set_flag"() {dst = "M", event = 1 : i64, src = "V"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "M", event = 1 : i64, src = "V"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 1 : i64, src = "M"}
// CHECK-NEXT: }
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "M"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 1 : i64, src = "M"}
// CHECK-NEXT: return
func.func @relay_in_loop() attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 1024 : i64} : !ub
  scf.for %i = %c0 to %c8 step %c1 {
    "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
    "cce.vabs"(%b, %b) : (!ub, !ub) -> ()
  }
  return
}

// No pipe is idle: a barrier.
// CHECK-LABEL: func.func @no_idle_pipe
// CHECK: cce.vexp
// CHECK-NEXT: cce.vabs
// CHECK-NEXT: "cce.pipe_barrier"() {pipe = "V"}
// CHECK-NEXT: cce.vexp
// CHECK-NOT: src = "V"
// CHECK: return
func.func @no_idle_pipe(%x: memref<256xf32>, %y: memref<256xf32>) attributes {ascend.kernel} {
  %true = arith.constant true
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 1024 : i64} : !ub
  %c = memref.alloc() {cce.address = 2048 : i64} : !ub
  %d = memref.alloc() {cce.address = 3072 : i64} : !ub
  %e = memref.alloc() {cce.address = 4096 : i64} : !ub
  %f = memref.alloc() {cce.address = 0 : i64} : memref<256xf32, #cce.space<"L1">>
  %la = memref.alloc() {cce.address = 0 : i64} : memref<1x1x16x16xf16, #cce.space<"L0A">>
  %lb = memref.alloc() {cce.address = 0 : i64} : memref<1x1x16x16xf16, #cce.space<"L0B">>
  %lc = memref.alloc() {cce.address = 0 : i64} : memref<1x1x16x16xf32, #cce.space<"L0C">>
  "cce.vexp"(%a, %b) : (!ub, !ub) -> ()
  "cce.vabs"(%c, %c) : (!ub, !ub) -> ()
  "cce.vexp"(%b, %a) : (!ub, !ub) -> ()
  "cce.copy"(%x, %d) : (memref<256xf32>, !ub) -> ()
  "cce.copy"(%e, %y) : (!ub, memref<256xf32>) -> ()
  "cce.copy"(%f, %d) : (memref<256xf32, #cce.space<"L1">>, !ub) -> ()
  "cce.mad"(%la, %lb, %lc, %true) : (memref<1x1x16x16xf16, #cce.space<"L0A">>, memref<1x1x16x16xf16, #cce.space<"L0B">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

// A loop: flags for the next iteration are set before the loop and waited for after it. Tiles of
// different iterations in GM are disjoint, so the stores need no barrier of MTE3.
// CHECK-LABEL: func.func @loop
// CHECK: "cce.set_flag"() {dst = "MTE2", event = 0 : i64, src = "MTE3"}
// CHECK-NEXT: scf.for
// CHECK: "cce.wait_flag"() {dst = "MTE2", event = 0 : i64, src = "MTE3"}
// CHECK-NEXT: cce.copy
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: "cce.set_flag"() {dst = "MTE3", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.wait_flag"() {dst = "MTE3", event = 0 : i64, src = "V"}
// CHECK-NEXT: cce.copy
// CHECK-NEXT: "cce.set_flag"() {dst = "MTE2", event = 0 : i64, src = "MTE3"}
// CHECK-NEXT: }
// CHECK-NEXT: "cce.wait_flag"() {dst = "MTE2", event = 0 : i64, src = "MTE3"}
// CHECK-NEXT: return
func.func @loop(%x: !gm, %y: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c1024 = arith.constant 1024 : index
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  scf.for %i = %c0 to %c1024 step %c256 {
    %from = memref.subview %x[%i] [256] [1] : !gm to !tile
    %to = memref.subview %y[%i] [256] [1] : !gm to !tile
    "cce.copy"(%from, %a) : (!tile, !ub) -> ()
    "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
    "cce.copy"(%a, %to) : (!ub, !tile) -> ()
  }
  return
}

// Two buffers, two flags: loading one goes on while the other is worked on.
// CHECK-LABEL: func.func @two_buffers
// CHECK: "cce.set_flag"() {dst = "MTE2", event = 0 : i64, src = "V"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "MTE3"}
// CHECK-NEXT: "cce.set_flag"() {dst = "MTE2", event = 1 : i64, src = "V"}
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 1 : i64, src = "MTE3"}
// CHECK-NEXT: scf.for
// CHECK-NOT: pipe_barrier
// CHECK: return
func.func @two_buffers(%x: !gm, %y: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c256 = arith.constant 256 : index
  %c512 = arith.constant 512 : index
  %c1024 = arith.constant 1024 : index
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 1024 : i64} : !ub
  %r = memref.alloc() {cce.address = 2048 : i64} : !ub
  %s = memref.alloc() {cce.address = 3072 : i64} : !ub
  scf.for %i = %c0 to %c1024 step %c512 {
    %j = arith.addi %i, %c256 : index
    %from0 = memref.subview %x[%i] [256] [1] : !gm to !tile
    %from1 = memref.subview %x[%j] [256] [1] : !gm to !tile
    "cce.copy"(%from0, %a) : (!tile, !ub) -> ()
    "cce.vexp"(%a, %r) : (!ub, !ub) -> ()
    "cce.copy"(%from1, %b) : (!tile, !ub) -> ()
    "cce.vexp"(%b, %s) : (!ub, !ub) -> ()
    %to0 = memref.subview %y[%i] [256] [1] : !gm to !tile
    %to1 = memref.subview %y[%j] [256] [1] : !gm to !tile
    "cce.copy"(%r, %to0) : (!ub, !tile) -> ()
    "cce.copy"(%s, %to1) : (!ub, !tile) -> ()
  }
  return
}

// Quotient and remainder of the loop variable name another tile in each iteration; the remainder
// alone does not.
// CHECK-LABEL: func.func @tiles
// CHECK-NOT: pipe_barrier
// CHECK: return
// CHECK-LABEL: func.func @columns
// CHECK: "cce.pipe_barrier"() {pipe = "MTE3"}
func.func @tiles(%y: memref<4x512xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %a = memref.alloc() {cce.address = 0 : i64} : memref<1x256xf32, #cce.space<"UB">>
  scf.for %i = %c0 to %c8 step %c1 {
    %row = arith.divui %i, %c2 : index
    %half = arith.remui %i, %c2 : index
    %column = arith.muli %half, %c256 : index
    %to = memref.subview %y[%row, %column] [1, 256] [1, 1] : memref<4x512xf32> to memref<1x256xf32, strided<[512, 1], offset: ?>>
    "cce.copy"(%a, %to) : (memref<1x256xf32, #cce.space<"UB">>, memref<1x256xf32, strided<[512, 1], offset: ?>>) -> ()
  }
  return
}
func.func @columns(%y: memref<512xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c256 = arith.constant 256 : index
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  scf.for %i = %c0 to %c8 step %c1 {
    %half = arith.remui %i, %c2 : index
    %column = arith.muli %half, %c256 : index
    %to = memref.subview %y[%column] [256] [1] : memref<512xf32> to !tile
    "cce.copy"(%a, %to) : (!ub, !tile) -> ()
  }
  return
}

// A producer in a branch: the flag is set after the branch, whether it was taken or not.
// CHECK-LABEL: func.func @branch
// CHECK: scf.if
// CHECK-NEXT: cce.copy
// CHECK-NEXT: }
// CHECK-NEXT: set_flag
// CHECK-NEXT: wait_flag
// CHECK-NEXT: cce.vexp
func.func @branch(%x: memref<256xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %block = "cce.get_block_idx"() : () -> index
  %c0 = arith.constant 0 : index
  %first = arith.cmpi eq, %block, %c0 : index
  scf.if %first {
    "cce.copy"(%x, %a) : (memref<256xf32>, !ub) -> ()
  }
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  return
}

// The matrix unit is sequential, and so is the scalar unit.
// CHECK-LABEL: func.func @sequential
// CHECK-NOT: barrier
// CHECK-NOT: flag
// CHECK: return
func.func @sequential(%x: memref<256xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<256xf32>
  memref.store %v, %x[%c0] : memref<256xf32>
  return
}

// Kernels synchronised by hand, and functions that are no kernels, stay as they are.
// CHECK-LABEL: func.func @by_hand
// CHECK: cce.copy
// CHECK-NEXT: "cce.pipe_barrier"() {pipe = "ALL"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: return
func.func @by_hand(%x: memref<256xf32>) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  "cce.copy"(%x, %a) : (memref<256xf32>, !ub) -> ()
  "cce.pipe_barrier"() {pipe = "ALL"} : () -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  return
}
// CHECK-LABEL: func.func @host
// CHECK: cce.vexp
// CHECK-NEXT: cce.vexp
func.func @host() {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  return
}

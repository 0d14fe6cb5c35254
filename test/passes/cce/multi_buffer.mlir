// RUN: npu-opt %s --pass-pipeline='builtin.module(multi-buffer)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(multi-buffer,multi-buffer)' | FileCheck %s

!gm = memref<256xf32>
!row = memref<64xf32>
!tile = memref<64xf32, strided<[1], offset: ?>>
!ub = memref<64xf32, #cce.space<"UB">>

// All iterations are copies: copy j uses buffer j % 2 of %x and the one of %y. The second tile is
// loaded before the first has been computed, the third when %x's first buffer has been read.
// CHECK-LABEL: func.func @whole
// CHECK-COUNT-3: memref.alloc() : memref<64xf32, #cce.space<"UB">>
// CHECK-NOT: alloc()
// CHECK-NOT: scf.for
// CHECK: "cce.copy"({{.*}}, [[X0:%alloc]])
// CHECK: "cce.copy"({{.*}}, [[X1:%alloc_0]])
// CHECK: "cce.vexp"([[X0]], [[Y:%alloc_1]])
// CHECK: "cce.copy"({{.*}}, [[X0]])
// CHECK: "cce.copy"([[Y]], {{.*}})
// CHECK: "cce.vexp"([[X1]], [[Y]])
// CHECK: "cce.copy"({{.*}}, [[X1]])
// CHECK: "cce.copy"([[Y]], {{.*}})
// CHECK: "cce.vexp"([[X0]], [[Y]])
// CHECK: "cce.copy"([[Y]], {{.*}})
// CHECK: "cce.vexp"([[X1]], [[Y]])
// CHECK: "cce.copy"([[Y]], {{.*}})
// CHECK-NEXT: return
func.func @whole(%in: !gm, %out: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  scf.for %i = %c0 to %c256 step %c64 {
    %x = memref.alloc() {cce.slots = 2 : i64} : !ub
    %y = memref.alloc() : !ub
    %from = memref.subview %in[%i] [64] [1] : !gm to !tile
    %to = memref.subview %out[%i] [64] [1] : !gm to !tile
    "cce.copy"(%from, %x) : (!tile, !ub) -> ()
    "cce.vexp"(%x, %y) : (!ub, !ub) -> ()
    "cce.copy"(%y, %to) : (!ub, !tile) -> ()
  } {cce.unroll = 9 : i64}
  return
}

// What a loop of copies leaves is written out after it; no more buffers than copies.
// CHECK-LABEL: func.func @remainder
// CHECK-COUNT-2: memref.alloc() : memref<64xf32, #cce.space<"UB">>
// CHECK-NOT: alloc()
// CHECK: scf.for {{.*}} = %c0{{.*}} to %c4{{.*}} step %c2{{.*}} {
// CHECK-COUNT-2: "cce.vexp"
// CHECK-NOT: "cce.
// CHECK: }
// CHECK-NEXT: "cce.vexp"
// CHECK-NEXT: return
func.func @remainder(%in: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %x = memref.alloc() {cce.slots = 4 : i64} : !ub
    "cce.vexp"(%x, %x) : (!ub, !ub) -> ()
  } {cce.unroll = 2 : i64}
  return
}

// A loop of a computed length: copies, then loops of half as many for what is left.
// CHECK-LABEL: func.func @computed
// CHECK: arith.maxsi
// CHECK: scf.for
// CHECK-COUNT-4: "cce.vexp"
// CHECK: }
// CHECK: scf.for
// CHECK-COUNT-2: "cce.vexp"
// CHECK: }
// CHECK: scf.for
// CHECK-COUNT-1: "cce.vexp"
// CHECK-NOT: "cce.
// CHECK: return
func.func @computed(%in: !gm) attributes {ascend.kernel} {
  %c1 = arith.constant 1 : index
  %block = "cce.get_block_idx"() : () -> index
  %blocks = "cce.get_block_num"() : () -> index
  scf.for %i = %block to %blocks step %c1 {
    %x = memref.alloc() {cce.slots = 2 : i64} : !ub
    "cce.vexp"(%x, %x) : (!ub, !ub) -> ()
  } {cce.unroll = 4 : i64}
  return
}

// What a loop carries goes from copy to copy.
// CHECK-LABEL: func.func @carried
// CHECK: [[SUM:%.*]] = scf.for {{.*}} iter_args([[BEFORE:%.*]] = %c0{{.*}})
// CHECK: [[ONE:%.*]] = arith.addi [[BEFORE]]
// CHECK: [[TWO:%.*]] = arith.addi [[ONE]]
// CHECK: scf.yield [[TWO]]
// CHECK: }
// CHECK: [[LAST:%.*]] = arith.addi [[SUM]]
// CHECK: memref.subview %arg0[[[LAST]]]
func.func @carried(%in: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %x = memref.alloc() : !ub
  %sum = scf.for %i = %c0 to %c5 step %c1 iter_args(%before = %c0) -> (index) {
    %next = arith.addi %before, %i : index
    "cce.vexp"(%x, %x) : (!ub, !ub) -> ()
    scf.yield %next : index
  } {cce.unroll = 2 : i64}
  %to = memref.subview %in[%sum] [64] [1] : !gm to !tile
  "cce.copy"(%x, %to) : (!ub, !tile) -> ()
  return
}

// A block that was a straight line is ordered if it says so: %b, whose chain is longer, comes first.
// CHECK-LABEL: func.func @line
// CHECK-NOT: cce.order
// CHECK: "cce.vln"
// CHECK: "cce.vexp"
// CHECK: "cce.vabs"
// CHECK: "cce.vabs"
func.func @line(%in: !row) attributes {ascend.kernel, cce.order} {
  %a = memref.alloc() : !ub
  %b = memref.alloc() : !ub
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.vln"(%b, %b) : (!ub, !ub) -> ()
  "cce.vabs"(%b, %b) : (!ub, !ub) -> ()
  "cce.vabs"(%b, %b) : (!ub, !ub) -> ()
  "cce.copy"(%b, %in) : (!ub, !row) -> ()
  return
}

// Without the attributes a kernel stays as it is, a slot or none.
// CHECK-LABEL: func.func @alone
// CHECK: scf.for
// CHECK-NEXT: memref.alloc() {cce.slots = 2 : i64}
// CHECK: "cce.vexp"
// CHECK-NOT: "cce.
// CHECK: return
func.func @alone(%in: !gm) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  scf.for %i = %c0 to %c5 step %c1 {
    %x = memref.alloc() {cce.slots = 2 : i64} : !ub
    "cce.vexp"(%x, %x) : (!ub, !ub) -> ()
  } {cce.unroll = 0 : i64}
  return
}

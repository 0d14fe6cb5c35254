// RUN: npu-opt %s --pass-pipeline='builtin.module(insert-sync)' | FileCheck %s

!lines = memref<2x8xi32>
!scratch = memref<3x8xi32, #cce.space<"UB">>
!ub = memref<64xf32, #cce.space<"UB">>

// A meeting is behind what the core stored before, and so behind what the vector unit waited for:
// flags of these loads are clear, so that the load of the meeting has one, too.
// CHECK-LABEL: func.func @flags_before_a_meeting_are_clear
// CHECK-COUNT-3: "cce.set_flag"() {dst = "V", event = {{[012]}} : i64, src = "MTE2"}
// CHECK-NOT: dst = "MTE2"
// CHECK: cce.sync_and_copy
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = {{[012]}} : i64, src = "MTE2"}
// CHECK-NOT: dst = "S"
// CHECK: cce.vabs
func.func @flags_before_a_meeting_are_clear(%x: memref<64xf32>, %y: memref<64xf32>, %lines: !lines, %number: i32) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 256 : i64} : !ub
  %c = memref.alloc() {cce.address = 512 : i64} : !ub
  %d = memref.alloc() {cce.address = 768 : i64} : !ub
  %scratch = memref.alloc() {cce.address = 1024 : i64} : !scratch
  "cce.copy"(%x, %a) : (memref<64xf32>, !ub) -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.copy"(%x, %b) : (memref<64xf32>, !ub) -> ()
  "cce.vexp"(%b, %b) : (!ub, !ub) -> ()
  "cce.copy"(%x, %c) : (memref<64xf32>, !ub) -> ()
  "cce.vadd"(%a, %b, %a) : (!ub, !ub, !ub) -> ()
  "cce.vadd"(%a, %c, %a) : (!ub, !ub, !ub) -> ()
  "cce.copy"(%a, %y) : (!ub, memref<64xf32>) -> ()
  "cce.sync_and_copy"(%lines, %number, %scratch, %x, %d) : (!lines, i32, !scratch, memref<64xf32>, !ub) -> ()
  "cce.vabs"(%d, %d) : (!ub, !ub) -> ()
  return
}

// Between pipes without flags of meetings all event ids are there: each of four stores has its own.
// CHECK-LABEL: func.func @stores_have_all_event_ids
// CHECK: "cce.set_flag"() {dst = "MTE3", event = 0 : i64, src = "V"}
// CHECK: "cce.set_flag"() {dst = "MTE3", event = 1 : i64, src = "V"}
// CHECK: "cce.set_flag"() {dst = "MTE3", event = 2 : i64, src = "V"}
// CHECK: "cce.set_flag"() {dst = "MTE3", event = 3 : i64, src = "V"}
// CHECK: cce.sync_cores
func.func @stores_have_all_event_ids(%y: memref<256xf32>, %lines: !lines, %number: i32) attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 256 : i64} : !ub
  %c = memref.alloc() {cce.address = 512 : i64} : !ub
  %d = memref.alloc() {cce.address = 768 : i64} : !ub
  %scratch = memref.alloc() {cce.address = 1024 : i64} : !scratch
  %y0 = memref.subview %y[0] [64] [1] : memref<256xf32> to memref<64xf32, strided<[1]>>
  %y1 = memref.subview %y[64] [64] [1] : memref<256xf32> to memref<64xf32, strided<[1], offset: 64>>
  %y2 = memref.subview %y[128] [64] [1] : memref<256xf32> to memref<64xf32, strided<[1], offset: 128>>
  %y3 = memref.subview %y[192] [64] [1] : memref<256xf32> to memref<64xf32, strided<[1], offset: 192>>
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.vexp"(%b, %b) : (!ub, !ub) -> ()
  "cce.vexp"(%c, %c) : (!ub, !ub) -> ()
  "cce.vexp"(%d, %d) : (!ub, !ub) -> ()
  "cce.copy"(%a, %y0) : (!ub, memref<64xf32, strided<[1]>>) -> ()
  "cce.copy"(%b, %y1) : (!ub, memref<64xf32, strided<[1], offset: 64>>) -> ()
  "cce.copy"(%c, %y2) : (!ub, memref<64xf32, strided<[1], offset: 128>>) -> ()
  "cce.copy"(%d, %y3) : (!ub, memref<64xf32, strided<[1], offset: 192>>) -> ()
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  return
}

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

// RUN: npu-opt %s --pass-pipeline='builtin.module(order-issue)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(order-issue,order-issue)' | FileCheck %s

!ub = memref<4096xf32, #cce.space<"UB">>
!large = memref<32768xf32, #cce.space<"UB">>
!small = memref<64xf32, #cce.space<"UB">>

// The vector unit is given more than its queue holds, and waits for the first transfer; the second
// one is issued before that.
// CHECK-LABEL: func.func @full
// CHECK: cce.copy
// CHECK-NEXT: "cce.set_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: cce.copy
// CHECK: "cce.wait_flag"() {dst = "V", event = 0 : i64, src = "MTE2"}
// CHECK-NEXT: cce.vexp
// CHECK: "cce.wait_flag"() {dst = "V", event = 1 : i64, src = "MTE2"}
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: return
func.func @full(%x: memref<4096xf32>, %y: memref<32768xf32>) attributes {ascend.kernel, cce.synced} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 16384 : i64} : !large
  %c = memref.alloc() {cce.address = 147456 : i64} : !small
  "cce.copy"(%x, %a) : (memref<4096xf32>, !ub) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.vexp"(%c, %c) : (!small, !small) -> ()
  "cce.copy"(%y, %b) : (memref<32768xf32>, !large) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 1 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 1 : i64} : () -> ()
  "cce.vexp"(%b, %b) : (!large, !large) -> ()
  return
}

// Queues have room for everything: nothing is moved.
// CHECK-LABEL: func.func @room
// CHECK: cce.copy
// CHECK-NEXT: "cce.set_flag"
// CHECK-NEXT: "cce.wait_flag"
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: cce.copy
// CHECK-NEXT: return
func.func @room(%x: memref<4096xf32>, %y: memref<4096xf32>) attributes {ascend.kernel, cce.synced} {
  %a = memref.alloc() {cce.address = 0 : i64} : !ub
  %b = memref.alloc() {cce.address = 16384 : i64} : !ub
  "cce.copy"(%x, %a) : (memref<4096xf32>, !ub) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 0 : i64} : () -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.copy"(%y, %b) : (memref<4096xf32>, !ub) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(load-at-meetings)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(load-at-meetings,load-at-meetings)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(load-at-meetings{machine=ascend910b})' | FileCheck %s --check-prefix=FLAGS

!lines = memref<2x8xi32>
!scratch = memref<3x8xi32, #cce.space<"UB">>
!ub = memref<64xf32, #cce.space<"UB">>

// What stands between is moved in front of the meeting; the second load stays behind it.
// CHECK-LABEL: func.func @load
// CHECK: %[[PART:.+]] = memref.subview %arg3
// CHECK: %[[A:.+]] = memref.alloc() : memref<64xf32
// CHECK-NEXT: "cce.sync_and_copy"(%arg0, %arg1, %arg2, %[[PART]], %[[A]])
// CHECK-NOT: sync_cores
// CHECK: "cce.copy"(%[[PART]], %[[B:.+]]) :
// CHECK-NEXT: "cce.vadd"(%[[A]], %[[B]]
// FLAGS-LABEL: func.func @load
// FLAGS: cce.sync_cores
// FLAGS-NOT: sync_and_copy
func.func @load(%lines: !lines, %number: i32, %scratch: !scratch, %x: memref<4x64xf32>) attributes {ascend.kernel} {
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  %part = memref.subview %x[2, 0] [1, 64] [1, 1] : memref<4x64xf32> to memref<64xf32, strided<[1], offset: 128>>
  %a = memref.alloc() : !ub
  "cce.copy"(%part, %a) : (memref<64xf32, strided<[1], offset: 128>>, !ub) -> ()
  %b = memref.alloc() : !ub
  "cce.copy"(%part, %b) : (memref<64xf32, strided<[1], offset: 128>>, !ub) -> ()
  "cce.vadd"(%a, %b, %b) : (!ub, !ub, !ub) -> ()
  return
}

// Behind other work, or a store, or a copy of part of a block, or in a branch: all stays.
// CHECK-LABEL: func.func @others
// CHECK: cce.sync_cores
// CHECK-NEXT: cce.vexp
// CHECK-NEXT: cce.copy
// CHECK-NEXT: cce.sync_cores
// CHECK-NEXT: "cce.copy"(%{{.+}}, %arg4)
// CHECK-NEXT: cce.sync_cores
// CHECK: "cce.copy"({{.+}}round_up
// CHECK-NEXT: cce.sync_cores
// CHECK-NEXT: scf.if
func.func @others(%lines: !lines, %number: i32, %scratch: !scratch, %x: memref<64xf32>, %y: memref<64xf32>, %few: memref<3xf32>, %yes: i1) attributes {ascend.kernel} {
  %a = memref.alloc() : !ub
  %c = memref.alloc() : memref<3xf32, #cce.space<"UB">>
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  "cce.vexp"(%a, %a) : (!ub, !ub) -> ()
  "cce.copy"(%x, %a) : (memref<64xf32>, !ub) -> ()
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  "cce.copy"(%a, %y) : (!ub, memref<64xf32>) -> ()
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  "cce.copy"(%few, %c) {round_up} : (memref<3xf32>, memref<3xf32, #cce.space<"UB">>) -> ()
  "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
  scf.if %yes {
    "cce.copy"(%x, %a) : (memref<64xf32>, !ub) -> ()
  }
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(join-launches{machine=ascend910b})' | FileCheck %s

// Cube and vector cores are in one launch, of as many cube cores as the phase that needs most: 30
// blocks of vector cores are 15 of them. Kernels of vector cores alone are launches of those. A
// kernel whose cores meet by a flag of all of them has a launch of its own, but where blocks without
// work only meet (`ascend.meets`): it is a phase, with all blocks of the launch.

!line = memref<64xf32>

// CHECK:      func.func private @meeting_of_15()
// CHECK-SAME:   ascend.launch = [@kernels::@meeting_of_15_aic, @kernels::@meeting_of_15_aiv]
// CHECK:      func.func private @meeting_of_20()
// CHECK-SAME:   ascend.launch = @kernels::@meeting_of_20}
// CHECK:      func.func @main
// CHECK-NEXT:   call @cube(%{{.*}}) {ascend.blocks = 12 : i64}
// CHECK-NEXT:   call @meeting_of_15() {ascend.blocks = 15 : i64, ascend.meeting = -1 : i64}
// CHECK-NEXT:   call @vector(%{{.*}}) {ascend.blocks = 30 : i64}
// CHECK-NEXT:   call @meeting_of_15()
// CHECK-NEXT:   call @both(%{{.*}}) {ascend.blocks = 4 : i64}
// CHECK-NEXT:   call @meets(
// CHECK-NEXT:   call @vector(%{{.*}}) {ascend.blocks = 20 : i64}
// CHECK-NEXT:   call @meeting_of_20() {ascend.blocks = 20 : i64, ascend.meeting = -1 : i64}
// CHECK-NEXT:   call @all_meet(%{{.*}}) {ascend.blocks = 20 : i64}
// CHECK-NEXT:   call @meeting_of_20()
// CHECK-NEXT:   call @vector(
// CHECK-NEXT:   return
// CHECK:      func.func @meeting_of_15_aic() attributes {ascend.core = "aic", ascend.kernel
// CHECK-NEXT:   cce.pipe_barrier{{.*}}{pipe = "ALL"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 0{{.*}}}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 1{{.*}}, of_all, pipe = "FIX"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 1{{.*}}}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 2{{.*}}, pipe = "FIX"}
// CHECK:      func.func @meeting_of_15_aiv() attributes {ascend.core = "aiv", ascend.kernel
// CHECK-NEXT:   cce.pipe_barrier{{.*}}{pipe = "ALL"}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 0{{.*}}, pipe = "MTE3"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 2{{.*}}}
// CHECK:      func.func @meeting_of_20() attributes {ascend.core = "aiv", ascend.kernel
// CHECK-NEXT:   cce.pipe_barrier{{.*}}{pipe = "ALL"}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 1{{.*}}, of_all, pipe = "MTE3"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 1{{.*}}}
module {
  func.func @main(%x: !line {ascend.name = "x"}, %y: !line {ascend.name = "y", ascend.output})
      attributes {ascend.entry} {
    call @cube(%x, %y) {ascend.blocks = 12 : i64} : (!line, !line) -> ()
    call @vector(%x, %y) {ascend.blocks = 30 : i64} : (!line, !line) -> ()
    call @both(%x, %y) {ascend.blocks = 4 : i64} : (!line, !line) -> ()
    call @meets(%x, %y) {ascend.blocks = 4 : i64} : (!line, !line) -> ()
    call @vector(%x, %y) {ascend.blocks = 20 : i64} : (!line, !line) -> ()
    call @all_meet(%x, %y) {ascend.blocks = 4 : i64} : (!line, !line) -> ()
    call @vector(%x, %y) {ascend.blocks = 5 : i64} : (!line, !line) -> ()
    return
  }
  func.func private @cube(!line, !line) attributes {ascend.launch = @kernels::@cube}
  func.func private @vector(!line, !line) attributes {ascend.launch = @kernels::@vector}
  func.func private @both(!line, !line)
      attributes {ascend.launch = [@kernels::@cube, @kernels::@vector]}
  func.func private @meets(!line, !line) attributes {ascend.launch = @kernels::@meets}
  func.func private @all_meet(!line, !line) attributes {ascend.launch = @kernels::@all_meet}

  module @kernels {
    func.func @cube(%x: !line, %y: !line)
        attributes {ascend.kernel, ascend.core = "aic", ascend.members = []} {
      return
    }
    func.func @vector(%x: !line, %y: !line)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.members = []} {
      return
    }
    func.func @meets(%x: !line, %y: !line)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.members = []} {
      %lines = memref.alloc() : memref<4x8xi32>
      %room = memref.alloc() : memref<5x8xi32, #cce.space<"UB">>
      %one = arith.constant 1 : i32
      "cce.sync_cores"(%lines, %one, %room)
        : (memref<4x8xi32>, i32, memref<5x8xi32, #cce.space<"UB">>) -> ()
      return
    }
    func.func @all_meet(%x: !line, %y: !line)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.meets, ascend.members = []} {
      %lines = memref.alloc() : memref<4x8xi32>
      %room = memref.alloc() : memref<5x8xi32, #cce.space<"UB">>
      %one = arith.constant 1 : i32
      "cce.sync_cores"(%lines, %one, %room)
        : (memref<4x8xi32>, i32, memref<5x8xi32, #cce.space<"UB">>) -> ()
      return
    }
  }
}

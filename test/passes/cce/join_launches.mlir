// RUN: npu-opt %s --pass-pipeline='builtin.module(join-launches)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(join-launches,join-launches)' | FileCheck %s

// Behind the second launch, whose kernels run side by side, a kernel has a launch of its own, since
// its scalar unit stores to global memory; the one behind that loads, and so begins a launch. What
// no kernel writes, as an argument or a constant, may be loaded in any phase; a state is written.

!line = memref<64xf32>

// CHECK:      memref.global "private" @counters : memref<12x8xi32> = dense<0>
// CHECK:      func.func @main
// CHECK:        %[[LINES:.*]] = memref.get_global @counters : memref<12x8xi32>
// CHECK-NEXT:   %[[NUMBER:.*]] = arith.constant 0 : i64
// CHECK:        call @a(%{{.*}}) {ascend.blocks = 8 : i64}
// CHECK-NEXT:   call @meeting_of_12(%[[LINES]], %[[NUMBER]]) {ascend.blocks = 12 : i64, ascend.meeting = 1 : i64}
// CHECK-NEXT:   call @a(%{{.*}}) {ascend.blocks = 8 : i64, ascend.stage = 3 : i64}
// CHECK-NEXT:   call @a(%{{.*}}) {ascend.blocks = 4 : i64, ascend.stage = 3 : i64}
// CHECK-NEXT:   call @stores
// CHECK-NEXT:   call @loads
// CHECK-NEXT:   call @meeting_of_1(
// CHECK-NEXT:   call @loads
// CHECK-NEXT:   call @meeting_of_1(
// CHECK-NEXT:   call @loads
// CHECK-NEXT:   call @loads
// CHECK-NEXT:   call @meeting_of_2(
// CHECK-NEXT:   call @a(%{{.*}}) {ascend.blocks = 2 : i64}
// CHECK-NEXT:   call @by_hand
// CHECK-NEXT:   call @a(
// CHECK-NEXT:   return
// CHECK:      func.func @meeting_of_12(%[[ALL:.*]]: memref<12x8xi32>, %[[REACHED:.*]]: i64)
// CHECK:        cce.pipe_barrier{{.*}}{pipe = "ALL"}
// CHECK:        cce.sync_cores
module {
  memref.global "private" constant @table : !line = dense<1.0>
  func.func @main(%x: !line {ascend.name = "x"}, %s: !line,
                  %y: !line {ascend.name = "y", ascend.output},
                  %t: !line {ascend.output, ascend.state = 1 : i64}) attributes {ascend.entry} {
    %table = memref.get_global @table : !line
    call @a(%x, %y) {ascend.blocks = 8 : i64} : (!line, !line) -> ()
    call @a(%x, %y) {ascend.blocks = 8 : i64, ascend.stage = 3 : i64} : (!line, !line) -> ()
    call @a(%x, %y) {ascend.blocks = 4 : i64, ascend.stage = 3 : i64} : (!line, !line) -> ()
    call @stores(%x, %y) {ascend.blocks = 1 : i64} : (!line, !line) -> ()
    call @loads(%y, %y) {ascend.blocks = 1 : i64} : (!line, !line) -> ()
    call @loads(%x, %y) {ascend.blocks = 1 : i64} : (!line, !line) -> ()
    call @loads(%table, %y) {ascend.blocks = 1 : i64} : (!line, !line) -> ()
    call @loads(%s, %y) {ascend.blocks = 1 : i64} : (!line, !line) -> ()
    call @a(%x, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    call @by_hand(%x, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    call @a(%x, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    return
  }
  func.func private @a(!line, !line) attributes {ascend.launch = @kernels::@a}
  func.func private @stores(!line, !line) attributes {ascend.launch = @kernels::@stores}
  func.func private @loads(!line, !line) attributes {ascend.launch = @kernels::@loads}
  func.func private @by_hand(!line, !line) attributes {ascend.launch = @kernels::@by_hand}

  module @kernels {
    func.func @a(%x: !line, %y: !line) attributes {ascend.kernel, ascend.members = []} {
      return
    }
    func.func @stores(%x: !line, %y: !line) attributes {ascend.kernel, ascend.members = []} {
      %c0 = arith.constant 0 : index
      %one = arith.constant 1.0 : f32
      memref.store %one, %y[%c0] : !line
      return
    }
    func.func @loads(%x: !line, %y: !line) attributes {ascend.kernel, ascend.members = []} {
      %c0 = arith.constant 0 : index
      %one = memref.load %x[%c0] : !line
      return
    }
    func.func @by_hand(%x: !line, %y: !line) attributes {ascend.kernel} {
      return
    }
  }
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(check-meetings)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(check-meetings,check-meetings)' --split-input-file | FileCheck %s

// Each of two blocks writes its half of %t; behind the meeting it reads the other's.
// CHECK: func.func @main
// CHECK-SAME: ascend.checked_launches = ["launch 1 at @halves: 2 phases, 2 cores, 1 meeting, {{[0-9]+}} overlapping pairs: proven"]
!line = memref<64xf32>
!half = memref<32xf32, strided<[1], offset: ?>>
!ub = memref<32xf32, #cce.space<"UB">>
!lines = memref<2x8xi32>
!scratch = memref<3x8xi32, #cce.space<"UB">>
module {
  memref.global "private" @counters : !lines = dense<0>
  func.func @main(%x: !line, %y: !line {ascend.output}) attributes {ascend.entry} {
    %lines = memref.get_global @counters : !lines
    %number = arith.constant 0 : i64
    %c0 = arith.constant 0 : index
    %arena = memref.alloc() : memref<256xi8>
    %t = memref.view %arena[%c0][] : memref<256xi8> to !line
    call @halves(%x, %t) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    call @meet(%lines, %number) {ascend.blocks = 2 : i64, ascend.meeting = 1 : i64} : (!lines, i64) -> ()
    call @others(%t, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    return
  }
  func.func private @halves(!line, !line) attributes {ascend.launch = @kernels::@halves}
  func.func private @meet(!lines, i64) attributes {ascend.launch = @kernels::@meet}
  func.func private @others(!line, !line) attributes {ascend.launch = @kernels::@others}
  module @kernels {
    func.func @halves(%x: !line, %y: !line) attributes {ascend.kernel} {
      %c32 = arith.constant 32 : index
      %block = "cce.get_block_idx"() : () -> index
      %first = arith.muli %block, %c32 : index
      %own = memref.alloc() : !ub
      %from = memref.subview %x[%first] [32] [1] : !line to !half
      %to = memref.subview %y[%first] [32] [1] : !line to !half
      "cce.copy"(%from, %own) : (!half, !ub) -> ()
      "cce.copy"(%own, %to) : (!ub, !half) -> ()
      return
    }
    func.func @others(%x: !line, %y: !line) attributes {ascend.kernel} {
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %block = "cce.get_block_idx"() : () -> index
      %other = arith.subi %c1, %block : index
      %first = arith.muli %other, %c32 : index
      %mine = arith.muli %block, %c32 : index
      %own = memref.alloc() : !ub
      %from = memref.subview %x[%first] [32] [1] : !line to !half
      %to = memref.subview %y[%mine] [32] [1] : !line to !half
      "cce.copy"(%from, %own) : (!half, !ub) -> ()
      "cce.copy"(%own, %to) : (!ub, !half) -> ()
      return
    }
    func.func @meet(%lines: !lines, %number: i64) attributes {ascend.kernel} {
      "cce.pipe_barrier"() {pipe = "ALL"} : () -> ()
      %scratch = memref.alloc() : !scratch
      %reached = arith.trunci %number : i64 to i32
      "cce.sync_cores"(%lines, %reached, %scratch) : (!lines, i32, !scratch) -> ()
      return
    }
  }
}

// -----

// Where a block stores depends on data: it may be the bytes of the other one. What it loads so may be
// anywhere where nobody stores. What is no operation of cce is not followed.
// CHECK: func.func @main
// CHECK-SAME: ["launch 1 at @gather: 1 phase, 2 cores, 0 meetings, {{[0-9]+}} overlapping pairs: proven",
// CHECK-SAME: "launch 2 at @scatter: 1 phase, 2 cores, 0 meetings, 1 overlapping pair: not proven: block 1 writes what block 0 writes, at
// CHECK-SAME: "launch 3 at @others: {{.*}} not proven: memref.copy at {{.*}} is not followed, in @others"
!line = memref<64xf32>
!half = memref<32xf32, strided<[1], offset: ?>>
!ub = memref<32xf32, #cce.space<"UB">>
module {
  func.func @main(%x: !line, %places: memref<2xi64>, %y: !line {ascend.output}) attributes {ascend.entry} {
    call @gather(%x, %places, %y) {ascend.blocks = 2 : i64} : (!line, memref<2xi64>, !line) -> ()
    call @scatter(%x, %places, %y) {ascend.blocks = 2 : i64} : (!line, memref<2xi64>, !line) -> ()
    call @others(%x, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    return
  }
  func.func private @gather(!line, memref<2xi64>, !line) attributes {ascend.launch = @kernels::@gather}
  func.func private @others(!line, !line) attributes {ascend.launch = @kernels::@others}
  func.func private @scatter(!line, memref<2xi64>, !line) attributes {ascend.launch = @kernels::@scatter}
  module @kernels {
    func.func @gather(%x: !line, %places: memref<2xi64>, %y: !line) attributes {ascend.kernel} {
      %c32 = arith.constant 32 : index
      %block = "cce.get_block_idx"() : () -> index
      %mine = arith.muli %block, %c32 : index
      %read = memref.load %places[%block] : memref<2xi64>
      %place = arith.index_cast %read : i64 to index
      %own = memref.alloc() : !ub
      %from = memref.subview %x[%place] [32] [1] : !line to !half
      %to = memref.subview %y[%mine] [32] [1] : !line to !half
      "cce.copy"(%from, %own) : (!half, !ub) -> ()
      "cce.copy"(%own, %to) : (!ub, !half) -> ()
      return
    }
    func.func @others(%x: !line, %y: !line) attributes {ascend.kernel} {
      memref.copy %x, %y : !line to !line
      return
    }
    func.func @scatter(%x: !line, %places: memref<2xi64>, %y: !line) attributes {ascend.kernel} {
      %c32 = arith.constant 32 : index
      %block = "cce.get_block_idx"() : () -> index
      %mine = arith.muli %block, %c32 : index
      %read = memref.load %places[%block] : memref<2xi64>
      %place = arith.index_cast %read : i64 to index
      %own = memref.alloc() : !ub
      %from = memref.subview %x[%mine] [32] [1] : !line to !half
      %to = memref.subview %y[%place] [32] [1] : !line to !half
      "cce.copy"(%from, %own) : (!half, !ub) -> ()
      "cce.copy"(%own, %to) : (!ub, !half) -> ()
      return
    }
  }
}

// -----

// All wait for block 0 alone, which writes a row in each turn of a loop; all read that row, and write
// rows of their own, between which there is no order.
// CHECK: func.func @main
// CHECK-SAME: "launch 1 at @rows: 1 phase, 3 cores, 4 meetings, {{[0-9]+}} overlapping pairs: proven"
!rows = memref<4x32xf32>
!row = memref<32xf32, strided<[1], offset: ?>>
!ub = memref<32xf32, #cce.space<"UB">>
!lines = memref<3x8xi32>
!scratch = memref<2x8xi32, #cce.space<"UB">>
module {
  memref.global "private" @counters : !lines = dense<0>
  func.func @main(%x: !rows, %y: !rows {ascend.output}) attributes {ascend.entry} {
    %lines = memref.get_global @counters : !lines
    call @rows(%x, %y, %lines) {ascend.blocks = 3 : i64} : (!rows, !rows, !lines) -> ()
    return
  }
  func.func private @rows(!rows, !rows, !lines) attributes {ascend.launch = @kernels::@rows}
  module @kernels {
    func.func @rows(%x: !rows, %y: !rows, %lines: !lines) attributes {ascend.kernel} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %one = arith.constant 1 : i32
      %block = "cce.get_block_idx"() : () -> index
      %scratch = memref.alloc() : !scratch
      %own = memref.alloc() : !ub
      %base = "cce.read_counter"(%lines, %scratch) {seen = array<i64: 0, 1>} : (!lines, !scratch) -> i32
      scf.for %i = %c0 to %c4 step %c1 {
        %row = memref.subview %x[%i, 0] [1, 32] [1, 1] : !rows to !row
        %writes = arith.cmpi ult, %block, %c1 : index
        scf.if %writes {
          "cce.copy"(%own, %row) : (!ub, !row) -> ()
        }
        %turn = arith.index_cast %i : index to i32
        %more = arith.addi %turn, %one : i32
        %number = arith.addi %base, %more : i32
        "cce.sync_cores"(%lines, %number, %scratch) {seen = array<i64: 0, 1>} : (!lines, i32, !scratch) -> ()
        %to = memref.subview %y[%block, 0] [1, 32] [1, 1] : !rows to !row
        "cce.copy"(%row, %own) : (!row, !ub) -> ()
        "cce.copy"(%own, %to) : (!ub, !row) -> ()
      }
      return
    }
  }
}

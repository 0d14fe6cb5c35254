// RUN: npu-opt %s --pass-pipeline='builtin.module(check-meetings)' --split-input-file --verify-diagnostics

// Block 0 does not come.
!lines = memref<2x8xi32>
!scratch = memref<3x8xi32, #cce.space<"UB">>
module {
  func.func @main(%lines: !lines) attributes {ascend.entry} {
    // expected-error@below {{begins a launch with a deadlock: block 1 waits for 1 of a counter in which no block counts, which stays at 0}}
    call @some(%lines) {ascend.blocks = 2 : i64} : (!lines) -> ()
    return
  }
  func.func private @some(!lines) attributes {ascend.launch = @kernels::@some}
  module @kernels {
    func.func @some(%lines: !lines) attributes {ascend.kernel} {
      %c1 = arith.constant 1 : index
      %one = arith.constant 1 : i32
      %block = "cce.get_block_idx"() : () -> index
      %scratch = memref.alloc() : !scratch
      %base = "cce.read_counter"(%lines, %scratch) : (!lines, !scratch) -> i32
      %comes = arith.cmpi uge, %block, %c1 : index
      scf.if %comes {
        %number = arith.addi %base, %one : i32
        "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
      }
      return
    }
  }
}

// -----

// Between what all blocks write and what another one reads there is no meeting.
!line = memref<64xf32>
!half = memref<32xf32, strided<[1], offset: ?>>
!ub = memref<32xf32, #cce.space<"UB">>
module {
  func.func @main(%x: !line, %y: !line {ascend.output}) attributes {ascend.entry} {
    // expected-error@below {{begins a launch with a race: block 1 reads what block 0 writes, at}}
    call @halves(%x, %y) {ascend.blocks = 2 : i64} : (!line, !line) -> ()
    return
  }
  func.func private @halves(!line, !line) attributes {ascend.launch = @kernels::@halves}
  module @kernels {
    func.func @halves(%x: !line, %y: !line) attributes {ascend.kernel} {
      %c1 = arith.constant 1 : index
      %c32 = arith.constant 32 : index
      %block = "cce.get_block_idx"() : () -> index
      %mine = arith.muli %block, %c32 : index
      %other = arith.subi %c1, %block : index
      %first = arith.muli %other, %c32 : index
      %own = memref.alloc() : !ub
      %to = memref.subview %x[%mine] [32] [1] : !line to !half
      %from = memref.subview %x[%first] [32] [1] : !line to !half
      "cce.copy"(%own, %to) : (!ub, !half) -> ()
      "cce.copy"(%from, %own) : (!half, !ub) -> ()
      return
    }
  }
}

// -----

// The second meeting waits for what the first one waited for.
!lines = memref<2x8xi32>
!scratch = memref<3x8xi32, #cce.space<"UB">>
module {
  func.func @main(%lines: !lines) attributes {ascend.entry} {
    // expected-error@below {{begins a launch with a counter that does not grow, of block 1}}
    call @twice(%lines) {ascend.blocks = 2 : i64} : (!lines) -> ()
    return
  }
  func.func private @twice(!lines) attributes {ascend.launch = @kernels::@twice}
  module @kernels {
    func.func @twice(%lines: !lines) attributes {ascend.kernel} {
      %one = arith.constant 1 : i32
      %scratch = memref.alloc() : !scratch
      %base = "cce.read_counter"(%lines, %scratch) : (!lines, !scratch) -> i32
      %number = arith.addi %base, %one : i32
      "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
      "cce.sync_cores"(%lines, %number, %scratch) : (!lines, i32, !scratch) -> ()
      return
    }
  }
}

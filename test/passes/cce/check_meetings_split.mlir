// RUN: npu-opt %s --pass-pipeline='builtin.module(check-meetings{machine=ascend910b})' | FileCheck %s

// Vector cores set the flag on their stores behind what they have loaded: the cube core may leave
// the next row where the last one was.
// CHECK: func.func @main
// CHECK-SAME: ascend.checked_launches = ["launch 1 at @ring: 1 phase, 6 cores, 3 waits, {{[0-9]+}} overlapping pairs: proven"]
!rings = memref<2x16x16xf32>
!slot = memref<1x16x16xf32, strided<[256, 16, 1], offset: ?>>
!part = memref<8x16xf32, strided<[16, 1], offset: ?>>
!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!ub = memref<8x16xf32, #cce.space<"UB">>
module {
  func.func @main(%x: !rings) attributes {ascend.entry} {
    call @ring(%x) {ascend.blocks = 2 : i64} : (!rings) -> ()
    return
  }
  func.func private @ring(!rings) attributes {ascend.launch = [@kernels::@ring_aic, @kernels::@ring_aiv]}
  module @kernels {
    func.func @ring_aic(%x: !rings) attributes {ascend.kernel, ascend.core = "aic", ascend.unit = "cube"} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %block = "cce.get_block_idx"() : () -> index
      %made = memref.alloc() : !l0c
      %slot = memref.subview %x[%block, 0, 0] [1, 16, 16] [1, 1, 1] : !rings to !slot
      scf.for %i = %c0 to %c3 step %c1 {
        "cce.fixpipe"(%made, %slot) : (!l0c, !slot) -> ()
        "cce.set_core_flag"() {flag = 1 : i64, pipe = "FIX"} : () -> ()
        "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
      }
      return
    }
    func.func @ring_aiv(%x: !rings) attributes {ascend.kernel, ascend.core = "aiv", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %c8 = arith.constant 8 : index
      %block = "cce.get_block_idx"() : () -> index
      %own = "cce.get_sub_block_idx"() : () -> index
      %first = arith.muli %own, %c8 : index
      %seen = memref.alloc() : !ub
      %part = memref.subview %x[%block, %first, 0] [1, 8, 16] [1, 1, 1] : !rings to !part
      scf.for %i = %c0 to %c3 step %c1 {
        "cce.wait_core_flag"() {flag = 1 : i64} : () -> ()
        "cce.copy"(%part, %seen) : (!part, !ub) -> ()
        "cce.set_flag"() {src = "MTE2", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE2", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.set_core_flag"() {flag = 2 : i64, pipe = "MTE3"} : () -> ()
      }
      return
    }
  }
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(check-meetings{machine=ascend910b})' --split-input-file --verify-diagnostics

// Without the flag between pipes nothing says that the row has been loaded.
!rings = memref<2x16x16xf32>
!slot = memref<1x16x16xf32, strided<[256, 16, 1], offset: ?>>
!part = memref<8x16xf32, strided<[16, 1], offset: ?>>
!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!ub = memref<8x16xf32, #cce.space<"UB">>
module {
  func.func @main(%x: !rings) attributes {ascend.entry} {
    // expected-error@below {{begins a launch with a race: vector core 0 of group 0 reads what cube core 0 writes}}
    call @ring(%x) {ascend.blocks = 2 : i64} : (!rings) -> ()
    return
  }
  func.func private @ring(!rings) attributes {ascend.launch = [@kernels::@ring_aic, @kernels::@ring_aiv]}
  module @kernels {
    func.func @ring_aic(%x: !rings) attributes {ascend.kernel, ascend.core = "aic", ascend.unit = "cube"} {
      %block = "cce.get_block_idx"() : () -> index
      %made = memref.alloc() : !l0c
      %slot = memref.subview %x[%block, 0, 0] [1, 16, 16] [1, 1, 1] : !rings to !slot
      "cce.fixpipe"(%made, %slot) : (!l0c, !slot) -> ()
      "cce.set_core_flag"() {flag = 1 : i64, pipe = "FIX"} : () -> ()
      "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
      "cce.fixpipe"(%made, %slot) : (!l0c, !slot) -> ()
      return
    }
    func.func @ring_aiv(%x: !rings) attributes {ascend.kernel, ascend.core = "aiv", ascend.unit = "vector"} {
      %c8 = arith.constant 8 : index
      %block = "cce.get_block_idx"() : () -> index
      %own = "cce.get_sub_block_idx"() : () -> index
      %first = arith.muli %own, %c8 : index
      %seen = memref.alloc() : !ub
      %part = memref.subview %x[%block, %first, 0] [1, 8, 16] [1, 1, 1] : !rings to !part
      "cce.wait_core_flag"() {flag = 1 : i64} : () -> ()
      "cce.copy"(%part, %seen) : (!part, !ub) -> ()
      "cce.set_core_flag"() {flag = 2 : i64, pipe = "MTE3"} : () -> ()
      return
    }
  }
}

// -----
// Blocks come to the flag one time more than the vector cores set it.
module {
  func.func @main() attributes {ascend.entry} {
    // expected-error@below {{begins a launch with a deadlock: cube core 0 waits for flag 2, which nobody sets}}
    call @talk() {ascend.blocks = 1 : i64} : () -> ()
    return
  }
  func.func private @talk() attributes {ascend.launch = [@kernels::@talk_aic, @kernels::@talk_aiv]}
  module @kernels {
    func.func @talk_aic() attributes {ascend.kernel, ascend.core = "aic", ascend.unit = "cube"} {
      "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
      "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
      return
    }
    func.func @talk_aiv() attributes {ascend.kernel, ascend.core = "aiv", ascend.unit = "vector"} {
      "cce.set_core_flag"() {flag = 2 : i64, pipe = "MTE3"} : () -> ()
      return
    }
  }
}

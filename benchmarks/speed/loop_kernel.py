"""A loop written by hand in instructions: copies in, two vector instructions, a copy out.

Addresses in global memory and in UB change from one turn to the next.
"""

from __future__ import annotations

PER_TURN = 11
"""Instructions of a turn."""


def text(times: int) -> str:
    """The module with so many turns of the loop, at the hivm level."""
    return TEXT.replace("TIMES", str(times))


TEXT = """
module {
  func.func @main(%x: memref<1048576xf32> {ascend.name = "x"},
                  %z: memref<1048576xf32> {ascend.name = "z", ascend.output})
      attributes {ascend.entry} {
    call @loop(%x, %z) : (memref<1048576xf32>, memref<1048576xf32>) -> ()
    return
  }
  func.func private @loop(memref<1048576xf32>, memref<1048576xf32>)
      attributes {ascend.launch = @kernels::@loop}
  module @kernels {
    func.func @loop(%x: !llvm.ptr<1>, %z: !llvm.ptr<1>)
        attributes {ascend.kernel, ascend.op = "loop", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %n = arith.constant TIMES : i64
      %lines = arith.constant 2047 : i64
      %slots = arith.constant 31 : i64
      %line = arith.constant 2048 : i64
      %slot = arith.constant 4096 : i64
      %xa = llvm.ptrtoint %x : !llvm.ptr<1> to i64
      %za = llvm.ptrtoint %z : !llvm.ptr<1> to i64
      "hivm.set_vector_mask"() {low = -1, high = -1} : () -> ()
      scf.for %i = %c0 to %n step %c1 : i64 {
        %j = arith.andi %i, %lines : i64
        %jb = arith.muli %j, %line : i64
        %xi = arith.addi %xa, %jb : i64
        %zi = arith.addi %za, %jb : i64
        %s = arith.andi %i, %slots : i64
        %sb = arith.muli %s, %slot : i64
        %xp = llvm.inttoptr %xi : i64 to !llvm.ptr<1>
        %zp = llvm.inttoptr %zi : i64 to !llvm.ptr<1>
        %a = llvm.inttoptr %sb : i64 to !llvm.ptr<6>
        "hivm.copy_gm_to_ubuf"(%a, %xp) {n_burst = 1, len_burst = 64, src_gap = 0, dst_gap = 0}
            : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
        "hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
        "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
        "hivm.vadd"(%a, %a, %a) {type = "f32", repeat = 8, dst_blk_stride = 1, src0_blk_stride = 1,
            src1_blk_stride = 1, dst_rep_stride = 8, src0_rep_stride = 8, src1_rep_stride = 8}
            : (!llvm.ptr<6>, !llvm.ptr<6>, !llvm.ptr<6>) -> ()
        "hivm.pipe_barrier"() {pipe = 1} : () -> ()
        "hivm.vrelu"(%a, %a) {type = "f32", repeat = 8, dst_blk_stride = 1, src_blk_stride = 1,
            dst_rep_stride = 8, src_rep_stride = 8} : (!llvm.ptr<6>, !llvm.ptr<6>) -> ()
        "hivm.set_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
        "hivm.wait_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
        "hivm.copy_ubuf_to_gm"(%zp, %a) {n_burst = 1, len_burst = 64, src_gap = 0, dst_gap = 0}
            : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()
        "hivm.set_flag"() {src_pipe = 5, dst_pipe = 4, event = 0} : () -> ()
        "hivm.wait_flag"() {src_pipe = 5, dst_pipe = 4, event = 0} : () -> ()
      }
      return
    }
  }
}
"""

// x + y on the 48 vector cores of the 910B: each block takes 2,000 elements on a core of its own.
//   npu-run examples/split_vector_add.mlir --machine ascend910b --outputs out.npz
// A launch of vector cores alone has one block for each of them.
!gm = !llvm.ptr<1>
!ub = !llvm.ptr<6>
!x = memref<96000xf32>
module {
  func.func @main(%x: !x {ascend.name = "x"}, %y: !x {ascend.name = "y"},
                  %z: !x {ascend.name = "z", ascend.output}) attributes {ascend.entry} {
    call @add(%x, %y, %z) {ascend.blocks = 48 : i64} : (!x, !x, !x) -> ()
    return
  }
  func.func private @add(!x, !x, !x) attributes {ascend.launch = @kernels::@add}
  module @kernels {
    func.func @add(%x: !gm, %y: !gm, %z: !gm)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.op = "add", ascend.unit = "vector"} {
      %share = arith.constant 8000 : i64
      %block = "hivm.get_block_idx"() : () -> i64
      %offset = arith.muli %block, %share : i64
      %xb = llvm.getelementptr %x[%offset] : (!gm, i64) -> !gm, i8
      %yb = llvm.getelementptr %y[%offset] : (!gm, i64) -> !gm, i8
      %zb = llvm.getelementptr %z[%offset] : (!gm, i64) -> !gm, i8
      %c0 = arith.constant 0 : i64
      %c8192 = arith.constant 8192 : i64
      %a = llvm.inttoptr %c0 : i64 to !ub
      %b = llvm.inttoptr %c8192 : i64 to !ub
      // Lengths are in bytes here.
      "hivm.copy_gm_to_ubuf_align"(%a, %xb) {type = "b32", n_burst = 1, len_burst = 8000,
          src_gap = 0, dst_gap = 0} : (!ub, !gm) -> ()
      "hivm.copy_gm_to_ubuf_align"(%b, %yb) {type = "b32", n_burst = 1, len_burst = 8000,
          src_gap = 0, dst_gap = 0} : (!ub, !gm) -> ()
      "hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 7} : () -> ()
      "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 7} : () -> ()
      // 31 repeats of 64 lanes, then 16 lanes.
      "hivm.set_vector_mask"() {low = -1, high = -1} : () -> ()
      "hivm.vadd"(%a, %a, %b) {type = "f32", repeat = 31, dst_blk_stride = 1, src0_blk_stride = 1,
          src1_blk_stride = 1, dst_rep_stride = 8, src0_rep_stride = 8, src1_rep_stride = 8}
          : (!ub, !ub, !ub) -> ()
      %at = llvm.getelementptr %a[7936] : (!ub) -> !ub, i8
      %bt = llvm.getelementptr %b[7936] : (!ub) -> !ub, i8
      "hivm.set_vector_mask"() {low = 65535, high = 0} : () -> ()
      "hivm.vadd"(%at, %at, %bt) {type = "f32", repeat = 1, dst_blk_stride = 1, src0_blk_stride = 1,
          src1_blk_stride = 1, dst_rep_stride = 8, src0_rep_stride = 8, src1_rep_stride = 8}
          : (!ub, !ub, !ub) -> ()
      "hivm.set_flag"() {src_pipe = 1, dst_pipe = 5, event = 7} : () -> ()
      "hivm.wait_flag"() {src_pipe = 1, dst_pipe = 5, event = 7} : () -> ()
      "hivm.copy_ubuf_to_gm_align"(%zb, %a) {type = "b32", n_burst = 1, len_burst = 8000,
          src_gap = 0, dst_gap = 0} : (!gm, !ub) -> ()
      return
    }
  }
}

// A kernel written by hand in instructions: relu(x + y) of 1,024 elements in one visit to UB.
//   npu-run examples/hand_written.mlir --outputs out.npz
//   npu-opt examples/hand_written.mlir --hivm-to-llvm --npu-to-asm
// Leave out a flag or the barrier, and the simulator reports a race.
module {
  func.func @main(%x: memref<1024xf32> {ascend.name = "x"}, %y: memref<1024xf32> {ascend.name = "y"},
                  %z: memref<1024xf32> {ascend.name = "z", ascend.output}) attributes {ascend.entry} {
    call @add_relu(%x, %y, %z) : (memref<1024xf32>, memref<1024xf32>, memref<1024xf32>) -> ()
    return
  }
  func.func private @add_relu(memref<1024xf32>, memref<1024xf32>, memref<1024xf32>)
      attributes {ascend.launch = @kernels::@add_relu}
  module @kernels {
    func.func @add_relu(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %z: !llvm.ptr<1>)
        attributes {ascend.kernel, ascend.op = "add_relu", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : i64
      %c4096 = arith.constant 4096 : i64
      %a = llvm.inttoptr %c0 : i64 to !llvm.ptr<6>
      %b = llvm.inttoptr %c4096 : i64 to !llvm.ptr<6>
      // 128 blocks of 32 bytes are 1,024 floats.
      "hivm.copy_gm_to_ubuf"(%a, %x) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
      "hivm.copy_gm_to_ubuf"(%b, %y) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
      // PIPE_MTE2 (4) tells PIPE_V (1) that the data has arrived.
      "hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
      "hivm.set_vector_mask"() {low = -1, high = -1} : () -> ()
      // 16 repeats of 64 lanes.
      "hivm.vadd"(%a, %a, %b) {type = "f32", repeat = 16, dst_blk_stride = 1, src0_blk_stride = 1,
          src1_blk_stride = 1, dst_rep_stride = 8, src0_rep_stride = 8, src1_rep_stride = 8}
          : (!llvm.ptr<6>, !llvm.ptr<6>, !llvm.ptr<6>) -> ()
      "hivm.pipe_barrier"() {pipe = 1} : () -> ()
      "hivm.vrelu"(%a, %a) {type = "f32", repeat = 16, dst_blk_stride = 1, src_blk_stride = 1,
          dst_rep_stride = 8, src_rep_stride = 8} : (!llvm.ptr<6>, !llvm.ptr<6>) -> ()
      "hivm.set_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
      "hivm.copy_ubuf_to_gm"(%z, %a) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()
      return
    }
  }
}

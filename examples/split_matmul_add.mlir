// a * b + d on two cube cores of the 910B and their four vector cores: each cube core multiplies 64
// rows and leaves them in global memory, each of its vector cores adds 32 of them to d.
//   npu-run examples/split_matmul_add.mlir --machine ascend910b --outputs out.npz
// Leave out the flag between the cores (ffts_cross_core_sync, wait_flag_dev), and the simulator
// reports a race; leave out one of the two, and it reports a deadlock or a flag left set.
!gm = !llvm.ptr<1>
!l1 = !llvm.ptr<2>
!ub = !llvm.ptr<6>
!a = memref<128x64xf16>
!b = memref<64x32xf16>
!c = memref<128x32xf32>
module {
  func.func @main(%a: !a {ascend.name = "a"}, %b: !b {ascend.name = "b"}, %d: !c {ascend.name = "d"},
                  %out: !c {ascend.name = "out", ascend.output}) attributes {ascend.entry} {
    %product = memref.alloc() : !c
    call @matmul_add(%a, %b, %d, %product, %out) {ascend.blocks = 2 : i64}
        : (!a, !b, !c, !c, !c) -> ()
    return
  }
  // The programs of a block's cube core and of its vector cores; they get the same arguments.
  func.func private @matmul_add(!a, !b, !c, !c, !c)
      attributes {ascend.launch = [@kernels::@matmul, @kernels::@add]}
  module @kernels {
    func.func @matmul(%a: !gm, %b: !gm, %d: !gm, %product: !gm, %out: !gm)
        attributes {ascend.kernel, ascend.core = "aic", ascend.op = "matmul", ascend.unit = "cube"} {
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %c4 = arith.constant 4 : i64
      %c1024 = arith.constant 1024 : i64
      %c2048 = arith.constant 2048 : i64
      %c8192 = arith.constant 8192 : i64
      %block = "hivm.get_block_idx"() : () -> i64
      %offset = arith.muli %block, %c8192 : i64
      %rows = llvm.getelementptr %a[%offset] : (!gm, i64) -> !gm, i8
      %result = llvm.getelementptr %product[%offset] : (!gm, i64) -> !gm, i8
      %l1a = llvm.inttoptr %c0 : i64 to !l1
      %l1b = llvm.inttoptr %c8192 : i64 to !l1
      %l0c = llvm.inttoptr %c0 : i64 to !llvm.ptr<5>
      %l0a0 = llvm.inttoptr %c0 : i64 to !llvm.ptr<3>
      %l0b0 = llvm.inttoptr %c0 : i64 to !llvm.ptr<4>
      // Rows become fractals on the way: a [4 k][64 m][16], b [2 n][64 k][16].
      "hivm.copy_gm_to_cbuf_multi_nd2nz"(%l1a, %rows) {type = "b16", nd_num = 1, n_value = 64,
          d_value = 64, src_nd_matrix_stride = 0, src_d_value = 64, dst_nz_c0_stride = 64,
          dst_nz_n_stride = 1, dst_nz_matrix_stride = 0} : (!l1, !gm) -> ()
      "hivm.copy_gm_to_cbuf_multi_nd2nz"(%l1b, %b) {type = "b16", nd_num = 1, n_value = 64,
          d_value = 32, src_nd_matrix_stride = 0, src_d_value = 32, dst_nz_c0_stride = 64,
          dst_nz_n_stride = 1, dst_nz_matrix_stride = 0} : (!l1, !gm) -> ()
      "hivm.set_flag"() {src_pipe = 4, dst_pipe = 3, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 3, event = 0} : () -> ()
      scf.for %i = %c0 to %c4 step %c1 : i64 {
        // L0A holds rows of fractals, L0B the transposed fractals of b.
        %to_a = arith.muli %i, %c2048 : i64
        %l0a = llvm.inttoptr %to_a : i64 to !llvm.ptr<3>
        "hivm.load_cbuf_to_ca"(%l0a, %l1a, %i) {type = "f16", dynamic = ["start_index"],
            src_stride = 4, transpose = 0, repeat = 4} : (!llvm.ptr<3>, !l1, i64) -> ()
        %to_b = arith.muli %i, %c1024 : i64
        %l0b = llvm.inttoptr %to_b : i64 to !llvm.ptr<4>
        "hivm.load_cbuf_to_cb"(%l0b, %l1b, %i) {type = "f16", dynamic = ["start_index"],
            src_stride = 4, transpose = 1, repeat = 2} : (!llvm.ptr<4>, !l1, i64) -> ()
      }
      "hivm.set_flag"() {src_pipe = 3, dst_pipe = 2, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 3, dst_pipe = 2, event = 0} : () -> ()
      "hivm.mad"(%l0c, %l0a0, %l0b0) {type = "f162f32", m = 64, k = 64, n = 32, init = 1}
          : (!llvm.ptr<5>, !llvm.ptr<3>, !llvm.ptr<4>) -> ()
      // PIPE_FIX (10) moves the product out of L0C, as rows.
      "hivm.set_flag"() {src_pipe = 2, dst_pipe = 10, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 2, dst_pipe = 10, event = 0} : () -> ()
      "hivm.fixpipe"(%result, %l0c) {type = "f32", n_size = 32, m_size = 64, dst_stride = 32,
          src_stride = 64, relu = 0, nz2nd = 1} : (!gm, !llvm.ptr<5>) -> ()
      // Both vector cores of the block may go on when PIPE_FIX is done.
      "hivm.ffts_cross_core_sync"() {pipe = 10, mode = 2, flag = 0} : () -> ()
      return
    }
    func.func @add(%a: !gm, %b: !gm, %d: !gm, %product: !gm, %out: !gm)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.op = "add", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : i64
      %c2 = arith.constant 2 : i64
      %c4096 = arith.constant 4096 : i64
      %block = "hivm.get_block_idx"() : () -> i64
      %sub = "hivm.get_sub_block_idx"() : () -> i64
      %first = arith.muli %block, %c2 : i64
      %part = arith.addi %first, %sub : i64
      %offset = arith.muli %part, %c4096 : i64
      %db = llvm.getelementptr %d[%offset] : (!gm, i64) -> !gm, i8
      %pb = llvm.getelementptr %product[%offset] : (!gm, i64) -> !gm, i8
      %ob = llvm.getelementptr %out[%offset] : (!gm, i64) -> !gm, i8
      %x = llvm.inttoptr %c0 : i64 to !ub
      %y = llvm.inttoptr %c4096 : i64 to !ub
      "hivm.copy_gm_to_ubuf"(%x, %db) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!ub, !gm) -> ()
      "hivm.wait_flag_dev"() {flag = 0} : () -> ()
      "hivm.copy_gm_to_ubuf"(%y, %pb) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!ub, !gm) -> ()
      "hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
      "hivm.set_vector_mask"() {low = -1, high = -1} : () -> ()
      "hivm.vadd"(%x, %x, %y) {type = "f32", repeat = 16, dst_blk_stride = 1, src0_blk_stride = 1,
          src1_blk_stride = 1, dst_rep_stride = 8, src0_rep_stride = 8, src1_rep_stride = 8}
          : (!ub, !ub, !ub) -> ()
      "hivm.set_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
      "hivm.wait_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
      "hivm.copy_ubuf_to_gm"(%ob, %x) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
          : (!gm, !ub) -> ()
      return
    }
  }
}

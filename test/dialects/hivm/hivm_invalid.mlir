// RUN: npu-opt %s --split-input-file --verify-diagnostics

func.func @unknown_type(%ub: !llvm.ptr<6>) {
  // expected-error@+1 {{'hivm.vnot' op attribute type; found 'f32'; expected 's16'}}
  "hivm.vnot"(%ub, %ub) {type = "f32", dst_blk_stride = 1, src_blk_stride = 1,
    dst_rep_stride = 8, src_rep_stride = 8, repeat = 1} : (!llvm.ptr<6>, !llvm.ptr<6>) -> ()
  return
}

// -----

func.func @out_of_range(%ub: !llvm.ptr<6>) {
  // expected-error@+1 {{field dst_blk_stride is out of range; found 0; expected 1..65535}}
  "hivm.vnot"(%ub, %ub) {type = "s16", dst_blk_stride = 0, src_blk_stride = 1,
    dst_rep_stride = 8, src_rep_stride = 8, repeat = 1} : (!llvm.ptr<6>, !llvm.ptr<6>) -> ()
  return
}

// -----

func.func @wrong_memory(%l1: !llvm.ptr<2>) {
  // expected-error@+1 {{address dst; found !llvm.ptr<2> (L1); expected !llvm.ptr<6> (UB)}}
  "hivm.vnot"(%l1, %l1) {type = "s16", dst_blk_stride = 1, src_blk_stride = 1,
    dst_rep_stride = 8, src_rep_stride = 8, repeat = 1} : (!llvm.ptr<2>, !llvm.ptr<2>) -> ()
  return
}

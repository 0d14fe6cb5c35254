// RUN: npu-opt %s | npu-opt | FileCheck %s

// A kernel written by hand: y = exp(x) for 1024 numbers, with a dynamic repeat count.

// CHECK-LABEL: func.func @exp
func.func @exp(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : i64
  %repeat = arith.constant 16 : i64
  // CHECK: [[UB:%.+]] = llvm.inttoptr
  %ub = llvm.inttoptr %c0 : i64 to !llvm.ptr<6>
  // CHECK: "hivm.copy_gm_to_ubuf"([[UB]], %arg0)
  // CHECK-SAME: dst_gap = 0 : i64, len_burst = 128 : i64, n_burst = 1 : i64, src_gap = 0 : i64
  "hivm.copy_gm_to_ubuf"(%ub, %x) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
    : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
  // CHECK: "hivm.set_flag"() {dst_pipe = 1 : i64, event = 0 : i64, src_pipe = 4 : i64}
  "hivm.set_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
  "hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()
  // CHECK: "hivm.vexp"([[UB]], [[UB]], {{.*}}) {{.*}}dynamic = ["repeat"]{{.*}}type = "f32"
  // CHECK-SAME: (!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()
  "hivm.vexp"(%ub, %ub, %repeat) {type = "f32", dynamic = ["repeat"], dst_blk_stride = 1,
    src_blk_stride = 1, dst_rep_stride = 8, src_rep_stride = 8}
    : (!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()
  "hivm.set_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
  "hivm.wait_flag"() {src_pipe = 1, dst_pipe = 5, event = 0} : () -> ()
  // CHECK: "hivm.copy_ubuf_to_gm"(%arg1, [[UB]])
  "hivm.copy_ubuf_to_gm"(%y, %ub) {n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}
    : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()
  // CHECK: "hivm.get_block_idx"() : () -> i64
  %block = "hivm.get_block_idx"() : () -> i64
  // CHECK: [[VALUE:%.+]] = "hivm.ld"(%arg0) : (!llvm.ptr<1>) -> f32
  %value = "hivm.ld"(%x) : (!llvm.ptr<1>) -> f32
  // CHECK: "hivm.st"(%arg1, [[VALUE]]) : (!llvm.ptr<1>, f32) -> ()
  "hivm.st"(%y, %value) : (!llvm.ptr<1>, f32) -> ()
  return
}

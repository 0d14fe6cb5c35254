// RUN: npu-opt %s --pass-pipeline='builtin.module(multi-buffer)' --split-input-file --verify-diagnostics

func.func @flags(%x: memref<8xf32>) attributes {ascend.kernel, cce.order} {
  // expected-error@below {{'cce.set_flag' op is in a kernel whose loops are to be unrolled or whose operations to be ordered; leave synchronisation to insert-sync, or the attributes away}}
  "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
  "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
  return
}

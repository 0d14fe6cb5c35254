// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm{machine=ascend910})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm{machine=ascend910b})' | FileCheck %s --check-prefix=FLAGS

// Two blocks: what was loaded first, then the counter to its line, then looks at both until they have come.
// CHECK-LABEL: func.func @meet
// CHECK: "hivm.set_flag"() {dst_pipe = 5 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.wait_flag"() {dst_pipe = 5 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK: "hivm.st"([[OWN:%.+]], %arg1)
// CHECK: "hivm.copy_ubuf_to_gm"([[LINE:%.+]], [[OWN]])
// CHECK-NEXT: "hivm.post_counter"([[LINE]], [[WANTED:%.+]]) {dynamic = ["value"]}
// CHECK: scf.while : () -> () {
// CHECK-NEXT: "hivm.poll_counters"(%arg0, [[ALL:%.+]], [[WANTED]]) {count = 2 : i64, dynamic = ["value"], looks = 2 : i64}
// CHECK-NEXT: "hivm.copy_gm_to_ubuf"([[ALL]], %arg0)
// CHECK: [[FIRST:%.+]] = "hivm.ld"({{%.+}})
// CHECK: [[SECOND:%.+]] = "hivm.ld"({{%.+}})
// CHECK: [[SEEN:%.+]] = arith.minsi [[FIRST]], [[SECOND]]
// CHECK: [[AGAIN:%.+]] = arith.cmpi slt, [[SEEN]], %arg1 : i32
// CHECK: "hivm.end_poll"
// CHECK: scf.condition([[AGAIN]])

// Cores with flags for each other use these.
// FLAGS-LABEL: func.func @meet
// FLAGS: "hivm.ffts_cross_core_sync"() {flag = 0 : i64, mode = 0 : i64, pipe = 5 : i64}
// FLAGS-NEXT: "hivm.wait_flag_dev"() {flag = 0 : i64}
func.func @meet(%lines: memref<2x8xi32>, %number: i32) attributes {ascend.kernel, ascend.core = "aiv"} {
  %scratch = memref.alloc() {cce.address = 512 : i64} : memref<3x8xi32, #cce.space<"UB">>
  "cce.sync_cores"(%lines, %number, %scratch) : (memref<2x8xi32>, i32, memref<3x8xi32, #cce.space<"UB">>) -> ()
  return
}

// Blocks 2 and 3 look at lines 2 and 3: 64 bytes in front of them are those of blocks 0 and 1.
// CHECK-LABEL: func.func @meet_in_pairs
// CHECK-DAG: [[PAIR:%.+]] = arith.divui {{%.+}}, %c2_i64
// CHECK-DAG: [[BYTES:%.+]] = arith.muli [[PAIR]], %c64_i64
// CHECK: [[FIRST:%.+]] = llvm.getelementptr %arg0[[[BYTES]]]
// CHECK: scf.while : () -> () {
// CHECK-NEXT: "hivm.poll_counters"([[FIRST]], {{%.+}}, {{%.+}}) {count = 2 : i64
func.func @meet_in_pairs(%lines: memref<4x8xi32>, %number: i32) attributes {ascend.kernel, ascend.core = "aiv"} {
  %scratch = memref.alloc() {cce.address = 512 : i64} : memref<3x8xi32, #cce.space<"UB">>
  "cce.sync_cores"(%lines, %number, %scratch) {group = 2 : i64} : (memref<4x8xi32>, i32, memref<3x8xi32, #cce.space<"UB">>) -> ()
  return
}

// What is copied follows the lines in each look, before the scalar unit has seen them; behind the flags elsewhere.
// CHECK-LABEL: func.func @meet_and_copy
// CHECK: scf.while : () -> () {
// CHECK-NEXT: "hivm.poll_counters"(%arg0, [[ALL:%.+]], [[WANTED:%.+]])
// CHECK-NEXT: "hivm.copy_gm_to_ubuf"([[ALL]], %arg0)
// CHECK-NEXT: "hivm.set_flag"() {dst_pipe = 0 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.pipe_barrier"() {pipe = 4 : i64}
// CHECK: "hivm.copy_gm_to_ubuf"({{%.+}}, %arg2)
// CHECK-NEXT: "hivm.wait_flag"() {dst_pipe = 0 : i64, event = 3 : i64, src_pipe = 4 : i64}
// CHECK: "hivm.ld"
// CHECK: "hivm.end_poll"
// CHECK: scf.condition
// FLAGS-LABEL: func.func @meet_and_copy
// FLAGS: "hivm.wait_flag_dev"() {flag = 0 : i64}
// FLAGS: "hivm.copy_gm_to_ubuf"
func.func @meet_and_copy(%lines: memref<2x8xi32>, %number: i32, %all: memref<16x16xf16>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %scratch = memref.alloc() {cce.address = 512 : i64} : memref<3x8xi32, #cce.space<"UB">>
  %tile = memref.alloc() {cce.address = 1024 : i64} : memref<16x16xf16, #cce.space<"UB">>
  "cce.sync_and_copy"(%lines, %number, %scratch, %all, %tile) : (memref<2x8xi32>, i32, memref<3x8xi32, #cce.space<"UB">>, memref<16x16xf16>, memref<16x16xf16, #cce.space<"UB">>) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hivm-to-llvm)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hivm-to-llvm,convert-hivm-to-llvm)' | FileCheck %s

// CHECK: hivm.locations = ["", "{{.*}}convert_hivm_to_llvm.mlir:{{[0-9]+}}:3",
// The host stays as it is.
// CHECK-LABEL: func.func @main(%arg0: memref<8xf32>)
// CHECK-NEXT: arith.constant
// CHECK-NEXT: memref.load
// CHECK-NEXT: return
func.func @main(%x: memref<8xf32>) attributes {ascend.entry} {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<8xf32>
  return
}

// CHECK-DAG: llvm.func @hivm.vexp.f32(!llvm.ptr<6>, !llvm.ptr<6>, i64, i64)
// CHECK-DAG: llvm.func @hivm.vadds.f32(!llvm.ptr<6>, !llvm.ptr<6>, i64, i64, i64)
// CHECK-DAG: llvm.func @hivm.ld.f32(!llvm.ptr<1>, i64) -> f32
// CHECK-DAG: llvm.func @hivm.st.ub.f32(!llvm.ptr<6>, f32, i64)
// CHECK-DAG: llvm.func @hivm.get_block_idx() -> i64

// A word is its known fields or-ed with the dynamic ones, shifted: repeat goes to bits 56 and up.
// CHECK-LABEL: llvm.func @kernel
// CHECK-SAME: (%arg0: !llvm.ptr<1>, %arg1: i64) attributes {ascend.kernel, ascend.op = "exp"}
// CHECK-DAG: [[BITS:%.+]] = llvm.mlir.constant(56 : i64) : i64
// 1 | 1 << 16 | 8 << 32 | 8 << 40
// CHECK-DAG: [[FIELDS:%.+]] = llvm.mlir.constant(8830452826113 : i64) : i64
// Location 1, one scalar operation (reading the block number) before: 1 << 32 | 1 << 16.
// CHECK-DAG: [[TAG1:%.+]] = llvm.mlir.constant(4295032832 : i64) : i64
// Location 2, three scalar operations (multiplication, shift, or) before: 2 << 32 | 3 << 16.
// CHECK-DAG: [[TAG2:%.+]] = llvm.mlir.constant(8590131200 : i64) : i64
// CHECK: [[BLOCK:%.+]] = llvm.call @hivm.get_block_idx() : () -> i64
// CHECK: llvm.call @hivm.set_vector_mask({{.*}}, {{.*}}, [[TAG1]])
// CHECK: [[N:%.+]] = llvm.mul [[BLOCK]], %arg1 : i64
// CHECK: [[SHIFTED:%.+]] = llvm.shl [[N]], [[BITS]] : i64
// CHECK: [[WORD:%.+]] = llvm.or [[SHIFTED]], [[FIELDS]] : i64
// CHECK: llvm.call @hivm.vexp.f32([[U:%.+]], [[U]], [[WORD]], [[TAG2]]) : (!llvm.ptr<6>, !llvm.ptr<6>, i64, i64) -> ()
// The scalar is the second word.
// CHECK: [[X:%.+]] = llvm.call @hivm.ld.f32(%arg0, {{.*}}) : (!llvm.ptr<1>, i64) -> f32
// CHECK: [[RAW:%.+]] = llvm.bitcast [[X]] : f32 to i32
// CHECK: [[VALUE:%.+]] = llvm.zext [[RAW]] : i32 to i64
// CHECK: llvm.call @hivm.vadds.f32([[U]], [[U]], {{.*}}, [[VALUE]], {{.*}})
// CHECK: llvm.call @hivm.st.ub.f32([[U]], [[X]], {{.*}})
// CHECK: llvm.return
func.func @kernel(%x: !llvm.ptr<1>, %factor: i64) attributes {ascend.kernel, ascend.op = "exp"} {
  %c0 = arith.constant 0 : i64
  %u = llvm.inttoptr %c0 : i64 to !llvm.ptr<6>
  %block = "hivm.get_block_idx"() : () -> i64
  "hivm.set_vector_mask"() {low = -1 : i64, high = -1 : i64} : () -> ()
  %n = arith.muli %block, %factor : i64
  "hivm.vexp"(%u, %u, %n) {type = "f32", dynamic = ["repeat"], dst_blk_stride = 1 : i64, src_blk_stride = 1 : i64, dst_rep_stride = 8 : i64, src_rep_stride = 8 : i64} : (!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()
  %v = "hivm.ld"(%x) : (!llvm.ptr<1>) -> f32
  %raw = arith.bitcast %v : f32 to i32
  %value = arith.extui %raw : i32 to i64
  "hivm.vadds"(%u, %u, %value) {type = "f32", dynamic = ["value"], repeat = 1 : i64, dst_blk_stride = 1 : i64, src_blk_stride = 1 : i64, dst_rep_stride = 8 : i64, src_rep_stride = 8 : i64} : (!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()
  "hivm.st"(%u, %v) : (!llvm.ptr<6>, f32) -> ()
  return
}

// Control flow and functions of the scalar unit are lowered by upstream.
// CHECK-LABEL: llvm.func @helper
// CHECK: llvm.fadd
func.func private @helper(%x: f32) -> f32 {
  %y = arith.addf %x, %x : f32
  return %y : f32
}

// CHECK-LABEL: llvm.func @loop
// CHECK: llvm.cond_br
// CHECK: llvm.call @helper
func.func @loop(%x: !llvm.ptr<1>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %v = "hivm.ld"(%x) : (!llvm.ptr<1>) -> f32
    %w = func.call @helper(%v) : (f32) -> f32
    "hivm.st"(%x, %w) : (!llvm.ptr<1>, f32) -> ()
  }
  return
}

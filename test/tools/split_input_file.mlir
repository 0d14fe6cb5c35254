// RUN: npu-opt %s --split-input-file --cse | FileCheck %s

// CHECK-LABEL: func.func @first
// CHECK: arith.addi
// CHECK-NOT: arith.addi
// CHECK: // -----
func.func @first(%x: i32) -> (i32, i32) {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  return %0, %1 : i32, i32
}

// -----

// The same name again: the parts are modules of their own.
// CHECK-LABEL: func.func @first
func.func @first() {
  return
}

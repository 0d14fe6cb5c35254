// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(cse),plan-memory)' --mlir-print-ir-before-all --mlir-print-ir-after-all -o %t 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=FILE --input-file %t

// Upstream's passes and ours report in the order they run, and the result goes to the file alone.

// CHECK: IR Dump Before CSEPass
// CHECK: IR Dump After CSEPass
// CHECK: IR Dump Before PlanMemoryPass (plan-memory)
// CHECK: IR Dump After PlanMemoryPass (plan-memory)
// CHECK-NOT: IR Dump

// FILE-NOT: IR Dump
// FILE: func.func @f
func.func @f(%x: i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  return %1 : i32
}

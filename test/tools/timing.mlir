// RUN: npu-opt %s --cse --plan-memory --mlir-timing 2>&1 | FileCheck %s

// CHECK: Execution time
// CHECK-DAG: cse
// CHECK-DAG: plan-memory
// CHECK: total
func.func @f() {
  return
}

// RUN: npu-opt %s --mlir-print-op-generic --mlir-elide-elementsattrs-if-larger=4 | FileCheck %s
// RUN: npu-opt - < %s | FileCheck %s --check-prefix=STDIN

// CHECK: "func.func"()
// CHECK: dense_resource<__elided__>
// STDIN: dense<[1, 2, 3, 4, 5]>
func.func @f() -> tensor<5xi32> {
  %0 = arith.constant dense<[1, 2, 3, 4, 5]> : tensor<5xi32>
  return %0 : tensor<5xi32>
}

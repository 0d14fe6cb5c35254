// RUN: not npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp8})' 2>&1 | FileCheck %s

// CHECK: error: --pass-pipeline:16: bad value of option 'precision' of 'ascend-legalize-precision'; found 'fp8'; expected one of mixed, fp16
// CHECK-NOT: func.func
func.func @main(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  return %a : tensor<8x16xf32>
}

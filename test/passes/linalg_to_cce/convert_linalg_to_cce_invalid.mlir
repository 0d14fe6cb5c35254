// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-cce{machine=ascend910b})' 2>&1 | FileCheck %s

// CHECK: :7:8: error: operations of upstream dialects that our passes do not lower; found linalg.matmul (2x), linalg.transpose (1x); compile the kernel as the vendor's compiler makes it
func.func @products(%a: memref<16x16xf16>) attributes {ascend.kernel, ascend.core = "aiv", ascend.upstream} {
  %b = tensor.empty() : tensor<16x16xf16>
  %c = tensor.empty() : tensor<16x16xf32>
  %d = linalg.matmul ins(%b, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%c : tensor<16x16xf32>) -> tensor<16x16xf32>
  %e = linalg.matmul ins(%b, %b : tensor<16x16xf16>, tensor<16x16xf16>) outs(%d : tensor<16x16xf32>) -> tensor<16x16xf32>
  %f = linalg.transpose ins(%e : tensor<16x16xf32>) outs(%c : tensor<16x16xf32>) permutation = [1, 0]
  return
}

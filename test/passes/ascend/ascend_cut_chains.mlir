// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-cut-chains{memory-limit=112KiB})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-cut-chains{memory-limit=112KiB},ascend-cut-chains{memory-limit=112KiB})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-cut-chains{memory-limit=112KiB},ascend-propagate-layouts,ascend-fuse,ascend-legalize-layouts,ascend-bufferize{memory-limit=112KiB})' | FileCheck %s --check-prefix=FITS
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-cut-chains{memory-limit=160KiB})' | FileCheck %s --check-prefix=WHOLE
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-cut-chains)' | FileCheck %s --check-prefix=WHOLE

// The wide value between two products is computed for half of the rows at a time.
// CHECK-LABEL: func.func @main
// CHECK: ascend.slice{{.*}}ascend.in_place{{.*}} -> tensor<64x64xf16>
// CHECK: ascend.exp{{.*}}tensor<64x64xf16>
// CHECK: ascend.matmul{{.*}} -> tensor<64x512xf32>
// CHECK: ascend.gelu{{.*}}tensor<64x512xf32>
// CHECK: ascend.matmul{{.*}} -> tensor<64x64xf32>
// CHECK: ascend.slice{{.*}}ascend.in_place{{.*}} -> tensor<64x64xf16>
// CHECK: ascend.matmul{{.*}} -> tensor<64x512xf32>
// CHECK: ascend.matmul{{.*}} -> tensor<64x64xf32>
// CHECK: ascend.concat{{.*}}ascend.in_place, dim = 0
// CHECK: ascend.exp{{.*}}tensor<128x64xf32>
// FITS: ascend.arena_remedies = [{{.*}}"cut of 1 chain in 2 parts:
// WHOLE-LABEL: func.func @main
// WHOLE-NOT: ascend.slice
// WHOLE: ascend.matmul{{.*}} -> tensor<128x512xf32>
// WHOLE-NOT: ascend.concat
func.func @main(%x: tensor<128x64xf16>, %w: tensor<64x512xf16>, %v: tensor<512x64xf16>) -> tensor<128x64xf32> {
  %0 = "ascend.exp"(%x) : (tensor<128x64xf16>) -> tensor<128x64xf16>
  %1 = "ascend.matmul"(%0, %w) : (tensor<128x64xf16>, tensor<64x512xf16>) -> tensor<128x512xf32>
  %2 = "ascend.gelu"(%1) : (tensor<128x512xf32>) -> tensor<128x512xf32>
  %3 = "ascend.cast"(%2) : (tensor<128x512xf32>) -> tensor<128x512xf16>
  %4 = "ascend.matmul"(%3, %v) : (tensor<128x512xf16>, tensor<512x64xf16>) -> tensor<128x64xf32>
  %5 = "ascend.reduce"(%4) {dims = array<i64: 1>, kind = "max"} : (tensor<128x64xf32>) -> tensor<128xf32>
  %6 = "ascend.broadcast"(%5) {dims = array<i64: 0>} : (tensor<128xf32>) -> tensor<128x64xf32>
  %7 = "ascend.exp"(%6) : (tensor<128x64xf32>) -> tensor<128x64xf32>
  return %7 : tensor<128x64xf32>
}

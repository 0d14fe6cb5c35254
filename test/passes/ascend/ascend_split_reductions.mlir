// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions,ascend-split-reductions)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=1})' --split-input-file | FileCheck %s --check-prefix=ALONE

// 16 MB to one value.
// CHECK-LABEL: func.func @everything
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0)
// CHECK: %[[P:.*]] = "ascend.reduce"(%[[S]]) {{.*}}dims = array<i64: 1, 2>
// CHECK: %[[R:.*]] = "ascend.reduce"(%[[P]]) {{.*}}dims = array<i64: 0>
// CHECK: return %[[R]] : tensor<f32>
// ALONE-LABEL: func.func @everything
// ALONE-NEXT: "ascend.reduce"
// ALONE-NEXT: return
func.func @everything(%x: tensor<4096x1024xf32>) -> tensor<f32> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 0, 1>} : (tensor<4096x1024xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// f16 is added in f32 all the way.
// CHECK-LABEL: func.func @half
// CHECK: %[[W:.*]] = "ascend.cast"(%arg0) : (tensor<2x4194304xf16>) -> tensor<2x4194304xf32>
// CHECK: "ascend.reduce"{{.*}} -> tensor<2x{{[0-9]+}}xf32>
// CHECK: %[[R:.*]] = "ascend.reduce"{{.*}} -> tensor<2xf32>
// CHECK: "ascend.cast"(%[[R]]) : (tensor<2xf32>) -> tensor<2xf16>
func.func @half(%x: tensor<2x4194304xf16>) -> tensor<2xf16> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<2x4194304xf16>) -> tensor<2xf16>
  return %0 : tensor<2xf16>
}

// -----

// A launch costs more than what is gained; cores have rows of their own; a prime has no equal parts.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: "ascend.reduce"(%arg0)
// CHECK-NEXT: "ascend.reduce"(%arg1)
// CHECK-NEXT: "ascend.reduce"(%arg2)
// CHECK-NEXT: return
func.func @whole(%a: tensor<64x64xf32>, %b: tensor<64x65536xf32>, %c: tensor<4194301xf32>) -> (tensor<f32>, tensor<64xf32>, tensor<f32>) {
  %0 = "ascend.reduce"(%a) {kind = "max", dims = array<i64: 0, 1>} : (tensor<64x64xf32>) -> tensor<f32>
  %1 = "ascend.reduce"(%b) {kind = "add", dims = array<i64: 1>} : (tensor<64x65536xf32>) -> tensor<64xf32>
  %2 = "ascend.reduce"(%c) {kind = "add", dims = array<i64: 0>} : (tensor<4194301xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<64xf32>, tensor<f32>
}

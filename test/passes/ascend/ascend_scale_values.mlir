// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-values{precision=scaled-fp16})' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-values{precision=scaled-fp16},ascend-scale-values{precision=scaled-fp16})' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-scale-values)' | FileCheck %s --check-prefix=OFF

// x (2.5 x + 0.5), at most 162,690: the constants take the scale 2^-3.
// CHECK: ascend.scaling
// CHECK-LABEL: func.func @main
// CHECK-DAG: value = 3.125000e-01 : f32
// CHECK-DAG: value = 6.250000e-02 : f32
// CHECK: %[[Y:.*]] = "ascend.mul"{{.*}}f16
// CHECK-NEXT: %[[W:.*]] = "ascend.cast"(%[[Y]])
// CHECK-NEXT: %[[C:.*]] = "ascend.full"() {value = 8.000000e+00 : f32}
// CHECK-NEXT: %[[R:.*]] = "ascend.mul"(%[[W]], %[[C]])
// CHECK-NEXT: return %[[R]]
// OFF-LABEL: func.func @main
// OFF-NOT: f16
// OFF: return
func.func @main(%x: tensor<64xf32> {ascend.range = [0.0, 255.0]}) -> tensor<64xf32> {
  %a = "ascend.full"() {value = 2.5 : f32} : () -> tensor<64xf32>
  %b = "ascend.full"() {value = 0.5 : f32} : () -> tensor<64xf32>
  %0 = "ascend.mul"(%x, %a) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %1 = "ascend.add"(%0, %b) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %2 = "ascend.mul"(%x, %1) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}

// -----

// Without a range everything stays f32.
// CHECK-LABEL: func.func @main
// CHECK-NOT: f16
// CHECK: return
// OFF-LABEL: func.func @main
// OFF: return
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %0 = "ascend.mul"(%x, %x) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// -----

// A sum is f32; its few elements are scaled back, not the many that are summed.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = "ascend.reduce"{{.*}}tensor<4x64xf32>
// CHECK-NEXT: ascend.full
// CHECK-NEXT: %[[R:.*]] = "ascend.mul"(%[[S]]
// CHECK: return %[[R]]
// OFF-LABEL: func.func @main
// OFF: return
func.func @main(%x: tensor<4x64xf32> {ascend.range = [0.0, 1.0e6]}) -> (tensor<4xf32>, tensor<4x64xf32>) {
  %0 = "ascend.abs"(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  %1 = "ascend.reduce"(%0) {kind = "add", dims = array<i64: 1>} : (tensor<4x64xf32>) -> tensor<4xf32>
  return %1, %0 : tensor<4xf32>, tensor<4x64xf32>
}

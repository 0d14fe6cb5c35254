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

// -----

// Scores that are read in f32 only, beside a mask that f16 does not hold, stay as the cube gives
// them; the scale of the factors meets the divisor: 8 / 4.
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = "ascend.batch_matmul"{{.*}}tensor<2x4x8xf16>{{.*}}tensor<2x4x4xf32>
// CHECK-DAG: %[[C:.*]] = "ascend.full"() {value = 2.000000e+00 : f32}
// CHECK: %[[D:.*]] = "ascend.div"(%[[S]], %[[C]])
// CHECK-NEXT: %[[M:.*]] = "ascend.add"(%[[D]], %{{.*}}) : (tensor<2x4x4xf32>
// CHECK: return
func.func @main(%q: tensor<2x4x8xf32> {ascend.range = [-300.0, 300.0]},
                %k: tensor<2x8x4xf32> {ascend.range = [-1000.0, 1000.0]}) -> tensor<2x4x4xf32> {
  %m = "ascend.full"() {value = -1.0e30 : f32} : () -> tensor<2x4x4xf32>
  %h = "ascend.mul"(%q, %q) : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %s = "ascend.batch_matmul"(%h, %k) : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  %c = "ascend.full"() {value = 8.0 : f32} : () -> tensor<2x4x4xf32>
  %d = "ascend.div"(%s, %c) : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %0 = "ascend.add"(%d, %m) : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %1 = "ascend.exp"(%0) : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %1 : tensor<2x4x4xf32>
}

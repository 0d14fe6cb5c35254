// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-moves{machine=ascend910b})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-moves{machine=ascend910b},ascend-split-moves{machine=ascend910b})' --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @turned_round
// CHECK-NEXT: %[[S:.*]] = "ascend.transpose"(%arg0) {{.*}} : (tensor<4x64x192xf16>) -> tensor<[[KIND:.*xf16]]>
// CHECK-NEXT: %[[T:.*]] = "ascend.transpose"(%[[S]]) {{.*}} : (tensor<[[KIND]]>) -> tensor<192x64x4xf16>
// CHECK-NEXT: return %[[T]]
func.func @turned_round(%x: tensor<4x64x192xf16>) -> tensor<192x64x4xf16> {
  %0 = "ascend.transpose"(%x) {permutation = array<i64: 2, 1, 0>} : (tensor<4x64x192xf16>) -> tensor<192x64x4xf16>
  return %0 : tensor<192x64x4xf16>
}

// -----

// Dimensions are padded one after the other, all with the same number.
// CHECK-LABEL: func.func @drawn_apart
// CHECK: %[[S:.*]] = "ascend.pad"(%arg0, %[[V:.*]]) {{.*}} -> tensor<[[KIND:.*xf32]]>
// CHECK-NEXT: %[[T:.*]] = "ascend.pad"(%[[S]], %[[V]]) {{.*}} : (tensor<[[KIND]]>, tensor<f32>) -> tensor<199x115x6x2xf32>
// CHECK-NEXT: return %[[T]]
func.func @drawn_apart(%x: tensor<196x112x5x1xf32>) -> tensor<199x115x6x2xf32> {
  %v = "ascend.full"() {value = 0.0 : f32} : () -> tensor<f32>
  %0 = "ascend.pad"(%x, %v) {low = array<i64: 0, 3, 1, 0>, high = array<i64: 3, 0, 0, 1>, interior = array<i64: 0, 0, 0, 0>} : (tensor<196x112x5x1xf32>, tensor<f32>) -> tensor<199x115x6x2xf32>
  return %0 : tensor<199x115x6x2xf32>
}

// -----

// A part of rows is cut out first, then columns of it.
// CHECK-LABEL: func.func @cut_out
// CHECK-NEXT: %[[S:.*]] = "ascend.slice"(%arg0) {limits = array<i64: 4, 38, 50>, starts = array<i64: 1, 8, 0>, strides = array<i64: 1, 1, 1>} : {{.*}} -> tensor<3x30x50xi8>
// CHECK-NEXT: %[[T:.*]] = "ascend.slice"(%[[S]]) {limits = array<i64: 3, 30, 20>, starts = array<i64: 0, 0, 7>, strides = array<i64: 1, 1, 1>} : {{.*}} -> tensor<3x30x13xi8>
// CHECK-NEXT: return %[[T]]
func.func @cut_out(%x: tensor<16x96x50xi8>) -> tensor<3x30x13xi8> {
  %0 = "ascend.slice"(%x) {starts = array<i64: 1, 8, 7>, limits = array<i64: 4, 38, 20>, strides = array<i64: 1, 1, 1>} : (tensor<16x96x50xi8>) -> tensor<3x30x13xi8>
  return %0 : tensor<3x30x13xi8>
}

// -----

// These take no longer at once; of a few elements the scalar unit is done before another launch is.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: "ascend.transpose"(%arg0)
// CHECK-NEXT: "ascend.transpose"(%arg1)
// CHECK-NEXT: "ascend.slice"(%arg2)
// CHECK-NEXT: return
func.func @whole(%a: tensor<64x192xf16>, %b: tensor<2x3x2xf64>, %c: tensor<64x192xf16>) -> (tensor<192x64xf16>, tensor<2x3x2xf64>, tensor<32x192xf16>) {
  %0 = "ascend.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<64x192xf16>) -> tensor<192x64xf16>
  %1 = "ascend.transpose"(%b) {permutation = array<i64: 2, 1, 0>} : (tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  %2 = "ascend.slice"(%c) {starts = array<i64: 0, 0>, limits = array<i64: 32, 192>, strides = array<i64: 1, 1>} : (tensor<64x192xf16>) -> tensor<32x192xf16>
  return %0, %1, %2 : tensor<192x64xf16>, tensor<2x3x2xf64>, tensor<32x192xf16>
}

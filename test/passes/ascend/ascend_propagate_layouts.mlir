// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-propagate-layouts)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-propagate-layouts,ascend-propagate-layouts)' --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @product
// CHECK: %[[A:.*]] = "ascend.relayout"(%arg0) : (tensor<17x33xf16>) -> tensor<17x33xf16, #ascend.layout<"nz">>
// CHECK: %[[B:.*]] = "ascend.relayout"(%arg1) : (tensor<33x5xf16>) -> tensor<33x5xf16, #ascend.layout<"nz">>
// CHECK: %[[C:.*]] = "ascend.matmul"(%[[A]], %[[B]]) : (tensor<17x33xf16, #ascend.layout<"nz">>, tensor<33x5xf16, #ascend.layout<"nz">>) -> tensor<17x5xf32, #ascend.layout<"nz">>
// CHECK: "ascend.relayout"(%[[C]]) : (tensor<17x5xf32, #ascend.layout<"nz">>) -> tensor<17x5xf32>
func.func @product(%a: tensor<17x33xf16>, %b: tensor<33x5xf16>) -> tensor<17x5xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<17x33xf16>, tensor<33x5xf16>) -> tensor<17x5xf32>
  return %0 : tensor<17x5xf32>
}

// -----

// Consecutive products need no layout change between them, with or without a cast.
// CHECK-LABEL: func.func @chain
// CHECK: %[[C:.*]] = "ascend.matmul"
// CHECK: %[[D:.*]] = "ascend.cast"(%[[C]]) : (tensor<8x8xf32, #ascend.layout<"nz">>) -> tensor<8x8xf16, #ascend.layout<"nz">>
// CHECK: %[[E:.*]] = "ascend.matmul"(%[[D]], %{{.*}})
// CHECK: "ascend.matmul"(%[[E]], %{{.*}})
// CHECK: "ascend.relayout"
// CHECK-NOT: ascend.relayout
func.func @chain(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>) -> tensor<8x8xf16> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf32>
  %1 = "ascend.cast"(%0) : (tensor<8x8xf32>) -> tensor<8x8xf16>
  %2 = "ascend.matmul"(%1, %b) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16>
  %3 = "ascend.matmul"(%2, %b) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16>
  return %3 : tensor<8x8xf16>
}

// -----

// A value is laid out once for all its uses.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-1: "ascend.relayout"(%arg0)
// CHECK-NOT: "ascend.relayout"(%arg0)
func.func @shared(%a: tensor<8x8xf16>) -> (tensor<8x8xf32>, tensor<8x8xf16>) {
  %0 = "ascend.matmul"(%a, %a) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf32>
  %1 = "ascend.matmul"(%a, %a) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf16>
}

// -----

// CHECK-LABEL: func.func @batch
// CHECK: "ascend.relayout"(%arg0) : (tensor<2x17x33xf16>) -> tensor<2x17x33xf16, #ascend.layout<"nz">>
// CHECK: "ascend.batch_matmul"(%{{.*}}, %{{.*}}) : ({{.*}}) -> tensor<2x17x5xf16, #ascend.layout<"nz">>
func.func @batch(%a: tensor<2x17x33xf16>, %b: tensor<2x33x5xf16>) -> tensor<2x17x5xf16> {
  %0 = "ascend.batch_matmul"(%a, %b) : (tensor<2x17x33xf16>, tensor<2x33x5xf16>) -> tensor<2x17x5xf16>
  return %0 : tensor<2x17x5xf16>
}

// -----

// Products that have layouts, and what is no product, stay as they are.
// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT: "ascend.matmul"
// CHECK-NEXT: "ascend.exp"
// CHECK-NEXT: return
func.func @left_alone(%a: tensor<16x16xf16, #ascend.layout<"nz">>, %b: tensor<8x8xf32>) -> (tensor<16x16xf32, #ascend.layout<"nz">>, tensor<8x8xf32>) {
  %0 = "ascend.matmul"(%a, %a) : (tensor<16x16xf16, #ascend.layout<"nz">>, tensor<16x16xf16, #ascend.layout<"nz">>) -> tensor<16x16xf32, #ascend.layout<"nz">>
  %1 = "ascend.exp"(%b) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<16x16xf32, #ascend.layout<"nz">>, tensor<8x8xf32>
}

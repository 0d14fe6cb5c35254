// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-layouts)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-layouts,ascend-legalize-layouts)' --split-input-file | FileCheck %s

// One change of layout serves two reductions; a broadcast goes to nz behind its kernel.
// CHECK-LABEL: func.func @statistics
// CHECK-NEXT: %[[R:.*]] = "ascend.relayout"(%arg0) : (tensor<17x33xf32, #ascend.layout<"nz">>) -> tensor<17x33xf32>
// CHECK-NEXT: %[[A:.*]] = "ascend.reduce"(%[[R]]) {dims = array<i64: 1>, kind = "add"} : (tensor<17x33xf32>) -> tensor<17xf32>
// CHECK-NEXT: %[[M:.*]] = "ascend.reduce"(%[[R]]) {dims = array<i64: 1>, kind = "max"} : (tensor<17x33xf32>) -> tensor<17xf32>
// CHECK-NEXT: %[[B:.*]] = "ascend.broadcast"(%[[A]]) {dims = array<i64: 0>} : (tensor<17xf32>) -> tensor<17x33xf32>
// CHECK-NEXT: %[[N:.*]] = "ascend.relayout"(%[[B]]) : (tensor<17x33xf32>) -> tensor<17x33xf32, #ascend.layout<"nz">>
// CHECK-NEXT: return %[[N]], %[[M]]
func.func @statistics(%x: tensor<17x33xf32, #ascend.layout<"nz">>) -> (tensor<17x33xf32, #ascend.layout<"nz">>, tensor<17xf32>) {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<17x33xf32, #ascend.layout<"nz">>) -> tensor<17xf32>
  %1 = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<17x33xf32, #ascend.layout<"nz">>) -> tensor<17xf32>
  %2 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<17xf32>) -> tensor<17x33xf32, #ascend.layout<"nz">>
  return %2, %1 : tensor<17x33xf32, #ascend.layout<"nz">>, tensor<17xf32>
}

// -----

// A reduction of a batch keeps its layout outside.
// CHECK-LABEL: func.func @batch
// CHECK-NEXT: "ascend.relayout"
// CHECK-NEXT: "ascend.reduce"({{.*}}) {{.*}} : (tensor<2x17x33xf32>) -> tensor<17x33xf32>
// CHECK-NEXT: "ascend.relayout"({{.*}}) : (tensor<17x33xf32>) -> tensor<17x33xf32, #ascend.layout<"nz">>
func.func @batch(%x: tensor<2x17x33xf32, #ascend.layout<"nz">>) -> tensor<17x33xf32, #ascend.layout<"nz">> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 0>} : (tensor<2x17x33xf32, #ascend.layout<"nz">>) -> tensor<17x33xf32, #ascend.layout<"nz">>
  return %0 : tensor<17x33xf32, #ascend.layout<"nz">>
}

// -----

// What is in rows, or has a kernel in nz, stays.
// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT: "ascend.exp"
// CHECK-NEXT: "ascend.reduce"
// CHECK-NEXT: return
func.func @left_alone(%x: tensor<16x16xf32, #ascend.layout<"nz">>, %y: tensor<3x4xf32>) -> (tensor<16x16xf32, #ascend.layout<"nz">>, tensor<3xf32>) {
  %0 = "ascend.exp"(%x) : (tensor<16x16xf32, #ascend.layout<"nz">>) -> tensor<16x16xf32, #ascend.layout<"nz">>
  %1 = "ascend.reduce"(%y) {kind = "add", dims = array<i64: 1>} : (tensor<3x4xf32>) -> tensor<3xf32>
  return %0, %1 : tensor<16x16xf32, #ascend.layout<"nz">>, tensor<3xf32>
}

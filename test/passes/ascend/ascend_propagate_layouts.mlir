// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-propagate-layouts)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-propagate-layouts,ascend-propagate-layouts)' --split-input-file | FileCheck %s

// A product takes and gives rows, too; its kernel changes them on their way.
// CHECK-LABEL: func.func @product
// CHECK-NEXT: "ascend.matmul"(%arg0, %arg1) : (tensor<17x33xf16>, tensor<33x5xf16>) -> tensor<17x5xf32>
func.func @product(%a: tensor<17x33xf16>, %b: tensor<33x5xf16>) -> tensor<17x5xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<17x33xf16>, tensor<33x5xf16>) -> tensor<17x5xf32>
  return %0 : tensor<17x5xf32>
}

// -----

// Between products that follow each other: activations, casts, a residual, dimensions of size 1. What others made in
// rows, or need in rows, does not change.
// CHECK-LABEL: func.func @chain
// CHECK-NOT: ascend.relayout
// CHECK: return
func.func @chain(%a: tensor<8x8xf16>, %b: tensor<8x8xf16>, %x: tensor<1x8x8xf32>) -> tensor<1x8x8xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf32>
  %1 = "ascend.reshape"(%0) : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %2 = "ascend.tanh"(%1) : (tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %3 = "ascend.add"(%2, %x) : (tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  %4 = "ascend.cast"(%3) : (tensor<1x8x8xf32>) -> tensor<1x8x8xf16>
  %5 = "ascend.reshape"(%4) : (tensor<1x8x8xf16>) -> tensor<8x8xf16>
  %6 = "ascend.matmul"(%5, %b) : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf32>
  %7 = "ascend.reshape"(%6) : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
  %8 = "ascend.add"(%7, %x) : (tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
  return %8 : tensor<1x8x8xf32>
}

// -----

// Kernels of products see to padding: what follows them may make other numbers than zeros of it. Numbers that are the
// same everywhere are so in padding, too.
// CHECK-LABEL: func.func @padding
// CHECK: %[[A:.*]] = "ascend.matmul"({{.*}}) -> tensor<17x32xf32, #ascend.layout<"nz">>
// CHECK-NEXT: %[[B:.*]] = "ascend.exp"(%[[A]])
// CHECK-NEXT: %[[D:.*]] = "ascend.full"() {value = 1.000000e+00 : f32} : () -> tensor<17x32xf32, #ascend.layout<"nz">>
// CHECK-NEXT: "ascend.add"(%[[B]], %[[D]])
// CHECK: %[[C:.*]] = "ascend.matmul"({{.*}}) -> tensor<32x32xf32, #ascend.layout<"nz">>
// CHECK-NEXT: %[[E:.*]] = "ascend.exp"(%[[C]])
// CHECK-NEXT: %[[F:.*]] = "ascend.full"() {value = 1.000000e+00 : f32} : () -> tensor<32x32xf32, #ascend.layout<"nz">>
// CHECK-NEXT: "ascend.add"(%[[E]], %[[F]])
func.func @padding(%a: tensor<17x32xf16>, %b: tensor<32x32xf16>, %c: tensor<32x32xf16>) -> (tensor<17x32xf32>, tensor<32x32xf32>) {
  %0 = "ascend.matmul"(%a, %b) : (tensor<17x32xf16>, tensor<32x32xf16>) -> tensor<17x32xf32>
  %1 = "ascend.exp"(%0) : (tensor<17x32xf32>) -> tensor<17x32xf32>
  %2 = "ascend.full"() {value = 1.0 : f32} : () -> tensor<17x32xf32>
  %3 = "ascend.add"(%1, %2) : (tensor<17x32xf32>, tensor<17x32xf32>) -> tensor<17x32xf32>
  %4 = "ascend.cast"(%3) : (tensor<17x32xf32>) -> tensor<17x32xf16>
  %5 = "ascend.matmul"(%4, %b) : (tensor<17x32xf16>, tensor<32x32xf16>) -> tensor<17x32xf32>
  %6 = "ascend.matmul"(%c, %b) : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf32>
  %7 = "ascend.exp"(%6) : (tensor<32x32xf32>) -> tensor<32x32xf32>
  %8 = "ascend.full"() {value = 1.0 : f32} : () -> tensor<32x32xf32>
  %9 = "ascend.add"(%7, %8) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %10 = "ascend.cast"(%9) : (tensor<32x32xf32>) -> tensor<32x32xf16>
  %11 = "ascend.matmul"(%10, %b) : (tensor<32x32xf16>, tensor<32x32xf16>) -> tensor<32x32xf32>
  return %5, %11 : tensor<17x32xf32>, tensor<32x32xf32>
}

// -----

// Where others compute, padding must stay zero, so exp of a padded matrix is computed in rows.
// CHECK-LABEL: func.func @padding_of_others
// CHECK: "ascend.exp"({{.*}}) : (tensor<17x32xf32>) -> tensor<17x32xf32>
func.func @padding_of_others(%a: tensor<17x32xf16>, %b: tensor<32x32xf16>, %x: tensor<17x32xf32>) -> tensor<17x32xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<17x32xf16>, tensor<32x32xf16>) -> tensor<17x32xf32>
  %1 = "ascend.mul"(%0, %x) : (tensor<17x32xf32>, tensor<17x32xf32>) -> tensor<17x32xf32>
  %2 = "ascend.exp"(%1) : (tensor<17x32xf32>) -> tensor<17x32xf32>
  %3 = "ascend.cast"(%2) : (tensor<17x32xf32>) -> tensor<17x32xf16>
  %4 = "ascend.matmul"(%3, %b) : (tensor<17x32xf16>, tensor<32x32xf16>) -> tensor<17x32xf32>
  return %4 : tensor<17x32xf32>
}

// -----

// Heads are split and merged by views; the mask and the choice by it have the layout of what they choose from.
// CHECK-LABEL: func.func @heads
// CHECK: %[[Q:.*]] = "ascend.view"(%{{.*}}) {permutation = array<i64: 1, 0, 2>, shape = array<i64: 100, 3, 32>} : (tensor<100x96xf16, #ascend.layout<"nz">>) -> tensor<3x100x32xf16, #ascend.layout<"nz">>
// CHECK-NOT: ascend.transpose
// CHECK: %[[S:.*]] = "ascend.batch_matmul"(%[[Q]], %[[Q]]) {transpose_b}
// CHECK: %[[M:.*]] = "ascend.compare"({{.*}}) {predicate = "GT"} : ({{.*}}) -> tensor<3x100x100xi1, #ascend.layout<"nz">>
// CHECK: "ascend.select"(%[[M]], %[[S]], %{{.*}})
// CHECK: %[[O:.*]] = "ascend.batch_matmul"
// CHECK-NEXT: "ascend.view"(%[[O]]) {permutation = array<i64: 1, 0, 2>, shape = array<i64: 3, 100, 32>} : (tensor<3x100x32xf16, #ascend.layout<"nz">>) -> tensor<100x96xf16, #ascend.layout<"nz">>
// CHECK-NEXT: "ascend.matmul"{{.*}} -> tensor<100x96xf32>
// CHECK-NEXT: return
func.func @heads(%x: tensor<100x96xf16>, %w: tensor<96x96xf16>) -> tensor<100x96xf32> {
  %0 = "ascend.matmul"(%x, %w) : (tensor<100x96xf16>, tensor<96x96xf16>) -> tensor<100x96xf16>
  %1 = "ascend.reshape"(%0) : (tensor<100x96xf16>) -> tensor<1x100x3x32xf16>
  %2 = "ascend.transpose"(%1) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x100x3x32xf16>) -> tensor<1x3x100x32xf16>
  %3 = "ascend.reshape"(%2) : (tensor<1x3x100x32xf16>) -> tensor<3x100x32xf16>
  %4 = "ascend.batch_matmul"(%3, %3) {transpose_b} : (tensor<3x100x32xf16>, tensor<3x100x32xf16>) -> tensor<3x100x100xf32>
  %5 = "ascend.full"() {value = 0.0 : f32} : () -> tensor<3x100x100xf32>
  %6 = "ascend.compare"(%4, %5) {predicate = "GT"} : (tensor<3x100x100xf32>, tensor<3x100x100xf32>) -> tensor<3x100x100xi1>
  %7 = "ascend.select"(%6, %4, %5) : (tensor<3x100x100xi1>, tensor<3x100x100xf32>, tensor<3x100x100xf32>) -> tensor<3x100x100xf32>
  %8 = "ascend.cast"(%7) : (tensor<3x100x100xf32>) -> tensor<3x100x100xf16>
  %9 = "ascend.batch_matmul"(%8, %3) : (tensor<3x100x100xf16>, tensor<3x100x32xf16>) -> tensor<3x100x32xf16>
  %10 = "ascend.transpose"(%9) {permutation = array<i64: 1, 0, 2>} : (tensor<3x100x32xf16>) -> tensor<100x3x32xf16>
  %11 = "ascend.reshape"(%10) : (tensor<100x3x32xf16>) -> tensor<100x96xf16>
  %12 = "ascend.matmul"(%11, %w) : (tensor<100x96xf16>, tensor<96x96xf16>) -> tensor<100x96xf32>
  return %12 : tensor<100x96xf32>
}

// -----

// Columns cut on fractals are views; others are cut in rows. A value that is needed in rows once is changed once.
// CHECK-LABEL: func.func @slices
// CHECK: %[[P:.*]] = "ascend.matmul"
// CHECK: %[[L:.*]] = "ascend.slice"(%[[P]]) {{.*}} : (tensor<33x48xf16, #ascend.layout<"nz">>) -> tensor<33x32xf16, #ascend.layout<"nz">>
// CHECK: %[[ROWS:.*]] = "ascend.relayout"(%[[P]]) : (tensor<33x48xf16, #ascend.layout<"nz">>) -> tensor<33x48xf16>
// CHECK: "ascend.slice"(%[[ROWS]]) {{.*}} -> tensor<33x8xf16>
// CHECK: "ascend.slice"(%[[ROWS]]) {{.*}} -> tensor<9x48xf16>
// CHECK: "ascend.matmul"(%[[L]]
func.func @slices(%a: tensor<33x33xf16>, %b: tensor<33x48xf16>, %c: tensor<32x32xf16>) -> (tensor<33x32xf32>, tensor<33x8xf16>, tensor<9x48xf16>) {
  %0 = "ascend.matmul"(%a, %b) : (tensor<33x33xf16>, tensor<33x48xf16>) -> tensor<33x48xf16>
  %1 = "ascend.slice"(%0) {starts = array<i64: 0, 16>, limits = array<i64: 33, 48>, strides = array<i64: 1, 1>} : (tensor<33x48xf16>) -> tensor<33x32xf16>
  %2 = "ascend.slice"(%0) {starts = array<i64: 0, 8>, limits = array<i64: 33, 16>, strides = array<i64: 1, 1>} : (tensor<33x48xf16>) -> tensor<33x8xf16>
  %3 = "ascend.slice"(%0) {starts = array<i64: 8, 0>, limits = array<i64: 17, 48>, strides = array<i64: 1, 1>} : (tensor<33x48xf16>) -> tensor<9x48xf16>
  %4 = "ascend.matmul"(%1, %c) : (tensor<33x32xf16>, tensor<32x32xf16>) -> tensor<33x32xf32>
  return %4, %2, %3 : tensor<33x32xf32>, tensor<33x8xf16>, tensor<9x48xf16>
}

// -----

// Constants are free to have any layout: here in rows for one, in nz for the other.
// CHECK-LABEL: func.func @constants
// CHECK: %[[C:.*]] = "ascend.constant"() {{.*}} -> tensor<1x2xf16>
// CHECK: %[[D:.*]] = "ascend.constant"() {{.*}} -> tensor<1x2xf16, #ascend.layout<"nz">>
// CHECK: "ascend.matmul"(%{{.*}}, %[[D]])
// CHECK: "ascend.add"(%arg1, %[[C]])
func.func @constants(%a: tensor<3x1xf16>, %b: tensor<1x2xf16>) -> (tensor<3x2xf32>, tensor<1x2xf16>) {
  %c = "ascend.constant"() {value = dense<[[1.0, 2.0]]> : tensor<1x2xf16>} : () -> tensor<1x2xf16>
  %0 = "ascend.matmul"(%a, %c) : (tensor<3x1xf16>, tensor<1x2xf16>) -> tensor<3x2xf32>
  %1 = "ascend.add"(%b, %c) : (tensor<1x2xf16>, tensor<1x2xf16>) -> tensor<1x2xf16>
  return %0, %1 : tensor<3x2xf32>, tensor<1x2xf16>
}

// -----

// What lies the same way in both layouts is a view.
// CHECK-LABEL: func.func @same_bytes
// CHECK-NEXT: "ascend.view"(%arg0) {permutation = array<i64: 0, 1>, shape = array<i64: 32, 16>} : (tensor<32x16xf16>) -> tensor<32x16xf16, #ascend.layout<"nz">>
// CHECK-NEXT: "ascend.view"(%arg1)
// CHECK-NEXT: "ascend.matmul"
// CHECK-NEXT: "ascend.view"
func.func @same_bytes(%a: tensor<32x16xf16>, %b: tensor<16x16xf16>) -> tensor<32x16xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<32x16xf16>, tensor<16x16xf16>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// -----

// What has a layout keeps it; without products everything is in rows.
// CHECK-LABEL: func.func @left_alone
// CHECK-NEXT: "ascend.matmul"
// CHECK-NEXT: "ascend.exp"
// CHECK-NEXT: return
func.func @left_alone(%a: tensor<16x16xf16, #ascend.layout<"nz">>, %b: tensor<8x8xf32>) -> (tensor<16x16xf32, #ascend.layout<"nz">>, tensor<8x8xf32>) {
  %0 = "ascend.matmul"(%a, %a) : (tensor<16x16xf16, #ascend.layout<"nz">>, tensor<16x16xf16, #ascend.layout<"nz">>) -> tensor<16x16xf32, #ascend.layout<"nz">>
  %1 = "ascend.exp"(%b) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<16x16xf32, #ascend.layout<"nz">>, tensor<8x8xf32>
}

// -----

// A residual that is stored as f16 comes to fractals as such: the kernel that adds it widens it.
// CHECK-LABEL: func.func @residual
// CHECK: %[[HALF:.*]] = "ascend.cast"(%arg0)
// CHECK: %[[NZ:.*]] = "ascend.relayout"(%[[HALF]]) : (tensor<512x768xf16>) -> tensor<512x768xf16, #ascend.layout<"nz">>
// CHECK: %[[WIDE:.*]] = "ascend.cast"(%[[NZ]])
// CHECK: "ascend.matmul"(%[[NZ]]
// CHECK: "ascend.add"(%{{.*}}, %[[WIDE]])
func.func @residual(%x: tensor<512x768xf32>, %b: tensor<768x768xf16>, %c: tensor<768x768xf16>, %d: tensor<12x64x64xf16>) -> tensor<12x512x64xf32> {
  %h = "ascend.cast"(%x) : (tensor<512x768xf32>) -> tensor<512x768xf16>
  %w = "ascend.cast"(%h) : (tensor<512x768xf16>) -> tensor<512x768xf32>
  %0 = "ascend.matmul"(%h, %b) : (tensor<512x768xf16>, tensor<768x768xf16>) -> tensor<512x768xf16>
  %1 = "ascend.matmul"(%0, %c) : (tensor<512x768xf16>, tensor<768x768xf16>) -> tensor<512x768xf32>
  %2 = "ascend.add"(%1, %w) : (tensor<512x768xf32>, tensor<512x768xf32>) -> tensor<512x768xf32>
  %3 = "ascend.cast"(%2) : (tensor<512x768xf32>) -> tensor<512x768xf16>
  %4 = "ascend.reshape"(%3) : (tensor<512x768xf16>) -> tensor<512x12x64xf16>
  %5 = "ascend.transpose"(%4) {permutation = array<i64: 1, 0, 2>} : (tensor<512x12x64xf16>) -> tensor<12x512x64xf16>
  %6 = "ascend.batch_matmul"(%5, %d) : (tensor<12x512x64xf16>, tensor<12x64x64xf16>) -> tensor<12x512x64xf32>
  return %6 : tensor<12x512x64xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce,convert-ascend-to-cce)' | FileCheck %s

// Columns are folded in halves to what a repeat holds, then vcadd sums the lanes of every row.
// CHECK-LABEL: @sum_of_rows
// CHECK: "cce.copy"({{.*}}memref<8x768xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x384xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x192xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x96xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x48xf32
// CHECK: "cce.vcadd"({{.*}}) : (memref<8x48xf32{{.*}}, memref<8xf32
// CHECK: "cce.copy"({{.*}}) : (memref<8xf32
func.func @sum_of_rows(%a: memref<128x768xf32>, %r: memref<128xf32>) attributes {ascend.kernel} {
  "ascend.reduce"(%a, %r) {kind = "add", dims = array<i64: 1>}
    : (memref<128x768xf32>, memref<128xf32>) -> ()
  return
}

// There is no vcmax for f32: vcadd copies single lanes to vectors, which combine.
// CHECK-LABEL: @largest_of_rows
// CHECK: "cce.vmax"({{.*}}) : (memref<8x8xf32
// CHECK: "cce.vcadd"({{.*}}) {first_lane = 0 : i64, lanes = 1 : i64}
// CHECK: "cce.vcadd"({{.*}}) {first_lane = 7 : i64, lanes = 1 : i64}
// CHECK: "cce.vmax"({{.*}}) : (memref<4x8xf32
// CHECK: "cce.vmax"({{.*}}) : (memref<2x8xf32
// CHECK: "cce.vmax"({{.*}}) : (memref<1x8xf32
func.func @largest_of_rows(%a: memref<8x16xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  "ascend.reduce"(%a, %r) {kind = "max", dims = array<i64: 1>}
    : (memref<8x16xf32>, memref<8xf32>) -> ()
  return
}

// The last block of a ragged row comes again; a sum leaves out the lanes it repeats.
// CHECK-LABEL: @ragged_rows
// CHECK: "cce.vcadd"({{.*}}) : (memref<8x16xf32
// CHECK: "cce.vcadd"({{.*}}) {first_lane = 7 : i64, lanes = 1 : i64} : (memref<8x8xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8xf32
func.func @ragged_rows(%a: memref<8x17xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  "ascend.reduce"(%a, %r) {kind = "add", dims = array<i64: 1>}
    : (memref<8x17xf32>, memref<8xf32>) -> ()
  return
}

// The last dimension stays: whole rows are combined in halves.
// CHECK-LABEL: @sum_of_columns
// CHECK: "cce.vadd"({{.*}}) : (memref<4x64xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<2x64xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<1x64xf32
// CHECK-NOT: "cce.vcadd"
func.func @sum_of_columns(%a: memref<8x64xf32>, %r: memref<64xf32>) attributes {ascend.kernel} {
  "ascend.reduce"(%a, %r) {kind = "add", dims = array<i64: 0>}
    : (memref<8x64xf32>, memref<64xf32>) -> ()
  return
}

// Rows shorter than a block are left to the scalar unit.
// CHECK-LABEL: @short_rows
// CHECK-SAME: ascend.unit = "scalar"
// CHECK: memref.load
// CHECK: arith.maximumf
// CHECK: memref.store
func.func @short_rows(%a: memref<8x3xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  "ascend.reduce"(%a, %r) {kind = "max", dims = array<i64: 1>}
    : (memref<8x3xf32>, memref<8xf32>) -> ()
  return
}

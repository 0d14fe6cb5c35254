// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{core-choice=all})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{core-choice=all},convert-ascend-to-cce{core-choice=all})' | FileCheck %s

// Neighbouring blocks of rows are combined to what a repeat holds; vcadd sums the lanes of every
// row to a block, and two transpositions bring the sums together. A tile has eight rows, whose sums
// are a block.
// CHECK-LABEL: @sum_of_rows
// CHECK: "cce.copy"({{.*}}memref<8x768xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x48x8xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<8x24x8xf32
// CHECK: "cce.vcadd"
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vnchwconv"
// CHECK: "cce.copy"({{.*}}) : (memref<8xf32
func.func @sum_of_rows(%a: memref<128x768xf32>, %r: memref<128xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<128x768xf32> to tensor<128x768xf32>
  %y = "ascend.reduce"(%ta) {kind = "add", dims = array<i64: 1>} : (tensor<128x768xf32>) -> tensor<128xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<128xf32>, memref<128xf32>) -> ()
  return
}

// Rows that are shorter than a repeat become lanes by transposition, and halves of them combine.
// CHECK-LABEL: @largest_of_rows
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vmax"({{.*}}) : (memref<8x8xf32
// CHECK: "cce.vmax"({{.*}}) : (memref<4x8xf32
// CHECK: "cce.copy"({{.*}}) : (memref<8xf32
func.func @largest_of_rows(%a: memref<8x16xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x16xf32> to tensor<8x16xf32>
  %y = "ascend.reduce"(%ta) {kind = "max", dims = array<i64: 1>} : (tensor<8x16xf32>) -> tensor<8xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// The last block of a ragged row comes again; the lanes it repeats become 0 before they are summed.
// CHECK-LABEL: @ragged_rows
// CHECK: "cce.copy"({{.*}}) : (memref<1x80xf32
// CHECK: "cce.copy"({{.*}}) : (memref<1x8xf32
// CHECK: "cce.vector_dup"({{.*}}) {first_lane = 0 : i64, lanes = 7 : i64}
// CHECK: "cce.vcadd"
func.func @ragged_rows(%a: memref<8x81xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x81xf32> to tensor<8x81xf32>
  %y = "ascend.reduce"(%ta) {kind = "add", dims = array<i64: 1>} : (tensor<8x81xf32>) -> tensor<8xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

// The last dimension stays: whole rows are combined in halves.
// CHECK-LABEL: @sum_of_columns
// CHECK: "cce.vadd"({{.*}}) : (memref<4x64xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<2x64xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<1x64xf32
// CHECK-NOT: "cce.vcadd"
func.func @sum_of_columns(%a: memref<8x64xf32>, %r: memref<64xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x64xf32> to tensor<8x64xf32>
  %y = "ascend.reduce"(%ta) {kind = "add", dims = array<i64: 0>} : (tensor<8x64xf32>) -> tensor<64xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<64xf32>, memref<64xf32>) -> ()
  return
}

// Rows shorter than a block become lanes, too: elements of a column follow each other.
// CHECK-LABEL: @short_rows
// CHECK: "cce.copy"({{.*}}) : (memref<24xf32
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vmax"({{.*}}) : (memref<1x8xf32
// CHECK: "cce.vmax"({{.*}}) : (memref<1x8xf32
// CHECK: "cce.copy"({{.*}}) : (memref<8xf32
func.func @short_rows(%a: memref<8x3xf32>, %r: memref<8xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<8x3xf32> to tensor<8x3xf32>
  %y = "ascend.reduce"(%ta) {kind = "max", dims = array<i64: 1>} : (tensor<8x3xf32>) -> tensor<8xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<8xf32>, memref<8xf32>) -> ()
  return
}

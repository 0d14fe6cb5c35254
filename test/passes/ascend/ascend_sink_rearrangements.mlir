// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-sink-rearrangements)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-sink-rearrangements,ascend-sink-rearrangements)' | FileCheck %s

// A bias of channels, a residual and relu are done before channels come first again; the next
// convolution takes the pixels as they are.
// CHECK-LABEL: func.func @block
// CHECK-NEXT: %[[FIRST:.*]] = "ascend.conv"(%arg0, %arg1)
// CHECK-NEXT: %[[ROW:.*]] = "ascend.broadcast"(%arg2) {dims = array<i64: 2>} : (tensor<16xf32>) -> tensor<2x12x16xf32>
// CHECK-NEXT: %[[SUM:.*]] = "ascend.add"(%[[FIRST]], %[[ROW]]) : (tensor<2x12x16xf32>, tensor<2x12x16xf32>)
// CHECK-NEXT: %[[RELU:.*]] = "ascend.relu"(%[[SUM]]) : (tensor<2x12x16xf32>) -> tensor<2x12x16xf32>
// CHECK-NEXT: %[[SECOND:.*]] = "ascend.conv"(%[[RELU]], %arg1)
// CHECK-NEXT: %[[TOTAL:.*]] = "ascend.add"(%[[SECOND]], %[[FIRST]]) : (tensor<2x12x16xf32>, tensor<2x12x16xf32>)
// CHECK-NEXT: "ascend.transpose"(%[[TOTAL]]) {permutation = array<i64: 0, 2, 1>} : (tensor<2x12x16xf32>) -> tensor<2x16x12xf32>
// CHECK-NEXT: ascend.reshape
// CHECK-NEXT: "ascend.reduce"(%[[TOTAL]]) {dims = array<i64: 1>, kind = "add"} : (tensor<2x12x16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT: return
func.func @block(%x: tensor<2x12x16xf32>, %w: tensor<1x16x16xf32>, %b: tensor<16xf32>)
    -> (tensor<2x16xf32>, tensor<2x16x3x4xf32>) {
  %0 = "ascend.conv"(%x, %w) {image = array<i64: 3, 4>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x12x16xf32>, tensor<1x16x16xf32>) -> tensor<2x12x16xf32>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 0, 2, 1>} : (tensor<2x12x16xf32>) -> tensor<2x16x12xf32>
  %2 = "ascend.reshape"(%1) : (tensor<2x16x12xf32>) -> tensor<2x16x3x4xf32>
  %3 = "ascend.broadcast"(%b) {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<2x16x3x4xf32>
  %4 = "ascend.add"(%2, %3) : (tensor<2x16x3x4xf32>, tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32>
  %5 = "ascend.relu"(%4) : (tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32>
  %6 = "ascend.reshape"(%5) : (tensor<2x16x3x4xf32>) -> tensor<2x16x12xf32>
  %7 = "ascend.transpose"(%6) {permutation = array<i64: 0, 2, 1>} : (tensor<2x16x12xf32>) -> tensor<2x12x16xf32>
  %8 = "ascend.conv"(%7, %w) {image = array<i64: 3, 4>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x12x16xf32>, tensor<1x16x16xf32>) -> tensor<2x12x16xf32>
  %9 = "ascend.transpose"(%8) {permutation = array<i64: 0, 2, 1>} : (tensor<2x12x16xf32>) -> tensor<2x16x12xf32>
  %10 = "ascend.reshape"(%9) : (tensor<2x16x12xf32>) -> tensor<2x16x3x4xf32>
  %11 = "ascend.add"(%10, %2) : (tensor<2x16x3x4xf32>, tensor<2x16x3x4xf32>) -> tensor<2x16x3x4xf32>
  %12 = "ascend.reduce"(%11) {kind = "add", dims = array<i64: 2, 3>} : (tensor<2x16x3x4xf32>) -> tensor<2x16xf32>
  return %12, %11 : tensor<2x16xf32>, tensor<2x16x3x4xf32>
}

// So is what is computed of all channels of a pixel, and spread again, though rows of pixels are a
// dimension of their own.
// CHECK-LABEL: func.func @centred
// CHECK-NEXT: %[[IMAGE:.*]] = "ascend.conv"(%arg0, %arg1)
// CHECK-NEXT: %[[SUM:.*]] = "ascend.reduce"(%[[IMAGE]]) {dims = array<i64: 0, 2>, kind = "add"} : (tensor<1x12x16xf32>) -> tensor<12xf32>
// CHECK: %[[SPREAD:.*]] = "ascend.broadcast"({{.*}}) {dims = array<i64: 1>} : (tensor<12xf32>) -> tensor<1x12x16xf32>
// CHECK-NEXT: %[[FOUND:.*]] = "ascend.sub"(%[[IMAGE]], %[[SPREAD]]) : (tensor<1x12x16xf32>, tensor<1x12x16xf32>)
// CHECK-NEXT: "ascend.reshape"(%[[FOUND]]) : (tensor<1x12x16xf32>) -> tensor<1x3x4x16xf32>
// CHECK-NEXT: return
func.func @centred(%x: tensor<1x12x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<1x3x4x16xf32> {
  %0 = "ascend.conv"(%x, %w) {image = array<i64: 3, 4>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<1x12x16xf32>, tensor<1x16x16xf32>) -> tensor<1x12x16xf32>
  %1 = "ascend.reshape"(%0) : (tensor<1x12x16xf32>) -> tensor<1x3x4x16xf32>
  %2 = "ascend.reduce"(%1) {kind = "add", dims = array<i64: 3>} : (tensor<1x3x4x16xf32>) -> tensor<1x3x4xf32>
  %3 = "ascend.broadcast"(%2) {dims = array<i64: 0, 1, 2>} : (tensor<1x3x4xf32>) -> tensor<1x3x4x16xf32>
  %4 = "ascend.sub"(%1, %3) : (tensor<1x3x4x16xf32>, tensor<1x3x4x16xf32>) -> tensor<1x3x4x16xf32>
  return %4 : tensor<1x3x4x16xf32>
}

// Sums over pixels and over groups of two channels: over pixels of each channel first, and then of
// each group, whose sum is repeated for its channels and for all pixels.
// CHECK-LABEL: func.func @groups
// CHECK-NEXT: %[[IMAGE:.*]] = "ascend.conv"(%arg0, %arg1)
// CHECK-NEXT: %[[SUMS:.*]] = "ascend.reduce"(%[[IMAGE]]) {dims = array<i64: 1>, kind = "add"} : (tensor<2x12x16xf32>) -> tensor<2x16xf32>
// CHECK-NEXT: %[[PARTS:.*]] = "ascend.reshape"(%[[SUMS]]) : (tensor<2x16xf32>) -> tensor<2x8x2xf32>
// CHECK-NEXT: %[[TOTAL:.*]] = "ascend.reduce"(%[[PARTS]]) {dims = array<i64: 2>, kind = "add"} : (tensor<2x8x2xf32>) -> tensor<2x8xf32>
// CHECK: %[[EACH:.*]] = "ascend.broadcast"(%[[TOTAL]]) {dims = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<2x8x2xf32>
// CHECK-NEXT: %[[ROWS:.*]] = "ascend.reshape"(%[[EACH]]) : (tensor<2x8x2xf32>) -> tensor<2x16xf32>
// CHECK-NEXT: %[[ALL:.*]] = "ascend.broadcast"(%[[ROWS]]) {dims = array<i64: 0, 2>} : (tensor<2x16xf32>) -> tensor<2x12x16xf32>
// CHECK-NEXT: "ascend.sub"(%[[IMAGE]], %[[ALL]]) : (tensor<2x12x16xf32>, tensor<2x12x16xf32>)
func.func @groups(%x: tensor<2x12x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<2x16x3x4xf32> {
  %0 = "ascend.conv"(%x, %w) {image = array<i64: 3, 4>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<2x12x16xf32>, tensor<1x16x16xf32>) -> tensor<2x12x16xf32>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 0, 2, 1>} : (tensor<2x12x16xf32>) -> tensor<2x16x12xf32>
  %2 = "ascend.reshape"(%1) : (tensor<2x16x12xf32>) -> tensor<2x8x24xf32>
  %3 = "ascend.reduce"(%2) {kind = "add", dims = array<i64: 2>} : (tensor<2x8x24xf32>) -> tensor<2x8xf32>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0, 1>} : (tensor<2x8xf32>) -> tensor<2x8x24xf32>
  %5 = "ascend.sub"(%2, %4) : (tensor<2x8x24xf32>, tensor<2x8x24xf32>) -> tensor<2x8x24xf32>
  %6 = "ascend.reshape"(%5) : (tensor<2x8x24xf32>) -> tensor<2x16x3x4xf32>
  return %6 : tensor<2x16x3x4xf32>
}

// Images of one pixel, and rows of a product, are joined though they are written in two ways.
// CHECK-LABEL: func.func @joined
// CHECK-NEXT: %[[PRODUCT:.*]] = "ascend.matmul"(%arg1, %arg1)
// CHECK-NEXT: %[[IMAGE:.*]] = "ascend.conv"(%arg0, %arg2)
// CHECK-NEXT: %[[ROW:.*]] = "ascend.reshape"(%[[IMAGE]]) : (tensor<16x1x16xf32>) -> tensor<16x16xf32>
// CHECK-NEXT: %[[JOINED:.*]] = "ascend.concat"(%[[PRODUCT]], %[[ROW]]) {dim = 1 : i64} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x32xf32>
// CHECK-NEXT: "ascend.reshape"(%[[JOINED]]) : (tensor<16x32xf32>) -> tensor<16x32x1x1xf32>
// CHECK-NEXT: return
func.func @joined(%x: tensor<16x1x16xf32>, %a: tensor<16x16xf32>, %w: tensor<1x16x16xf32>) -> tensor<16x32x1x1xf32> {
  %0 = "ascend.matmul"(%a, %a) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = "ascend.reshape"(%0) : (tensor<16x16xf32>) -> tensor<16x16x1x1xf32>
  %2 = "ascend.conv"(%x, %w) {image = array<i64: 1, 1>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>} : (tensor<16x1x16xf32>, tensor<1x16x16xf32>) -> tensor<16x1x16xf32>
  %3 = "ascend.reshape"(%2) : (tensor<16x1x16xf32>) -> tensor<16x16x1x1xf32>
  %4 = "ascend.concat"(%1, %3) {dim = 1 : i64} : (tensor<16x16x1x1xf32>, tensor<16x16x1x1xf32>) -> tensor<16x32x1x1xf32>
  return %4 : tensor<16x32x1x1xf32>
}

// What follows a product of the rows of several sequences is done before they are parted.
// CHECK-LABEL: func.func @sequences
// CHECK-NEXT: %[[PRODUCT:.*]] = "ascend.matmul"(%arg0, %arg1)
// CHECK-NEXT: %[[ROW:.*]] = "ascend.broadcast"(%arg2) {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<12x16xf32>
// CHECK-NEXT: %[[SUM:.*]] = "ascend.add"(%[[PRODUCT]], %[[ROW]]) : (tensor<12x16xf32>, tensor<12x16xf32>)
// CHECK-NEXT: "ascend.reshape"(%[[SUM]]) : (tensor<12x16xf32>) -> tensor<3x4x16xf32>
// CHECK-NEXT: return
func.func @sequences(%x: tensor<12x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> tensor<3x4x16xf32> {
  %0 = "ascend.matmul"(%x, %w) : (tensor<12x16xf32>, tensor<16x16xf32>) -> tensor<12x16xf32>
  %1 = "ascend.reshape"(%0) : (tensor<12x16xf32>) -> tensor<3x4x16xf32>
  %2 = "ascend.broadcast"(%b) {dims = array<i64: 2>} : (tensor<16xf32>) -> tensor<3x4x16xf32>
  %3 = "ascend.add"(%1, %2) : (tensor<3x4x16xf32>, tensor<3x4x16xf32>) -> tensor<3x4x16xf32>
  return %3 : tensor<3x4x16xf32>
}

// Nothing else is touched: no convolution, no image, no product.
// CHECK-LABEL: func.func @others
// CHECK-NEXT: %[[TURNED:.*]] = "ascend.transpose"(%arg0)
// CHECK-NEXT: "ascend.relu"(%[[TURNED]]) : (tensor<16x12xf32>) -> tensor<16x12xf32>
func.func @others(%x: tensor<12x16xf32>) -> tensor<16x12xf32> {
  %0 = "ascend.transpose"(%x) {permutation = array<i64: 1, 0>} : (tensor<12x16xf32>) -> tensor<16x12xf32>
  %1 = "ascend.relu"(%0) : (tensor<16x12xf32>) -> tensor<16x12xf32>
  return %1 : tensor<16x12xf32>
}

// Numbers that are joined are no images.
// CHECK-LABEL: func.func @numbers
// CHECK: "ascend.concat"
func.func @numbers(%x: tensor<f32>, %y: tensor<f32>) -> tensor<2xf32> {
  %0 = "ascend.reshape"(%x) : (tensor<f32>) -> tensor<1xf32>
  %1 = "ascend.reshape"(%y) : (tensor<f32>) -> tensor<1xf32>
  %2 = "ascend.concat"(%0, %1) {dim = 0 : i64} : (tensor<1xf32>, tensor<1xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}

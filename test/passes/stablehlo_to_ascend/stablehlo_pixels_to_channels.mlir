// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(stablehlo-pixels-to-channels{machine=ascend310})' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(stablehlo-pixels-to-channels{machine=ascend310},stablehlo-pixels-to-channels{machine=ascend310})' | FileCheck %s

// Three planes with the same weights are three images of a batch.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.reshape %arg0
// CHECK: stablehlo.convolution
// CHECK-SAME: pad = {{\[}}[1, 1], [1, 1]]
// CHECK-SAME: (tensor<3x256x32x16xf32>, tensor<3x3x16x16xf32>) -> tensor<3x256x32x16xf32>
// CHECK-NOT: stablehlo.transpose
// CHECK: return
func.func @main(%x: tensor<1x3x256x512xf32>) -> tensor<1x3x256x512xf32> {
  %w = stablehlo.constant dense<1.0> : tensor<3x1x3x3xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 3 : i64} : (tensor<1x3x256x512xf32>, tensor<3x1x3x3xf32>) -> tensor<1x3x256x512xf32>
  return %y : tensor<1x3x256x512xf32>
}

// -----

// Rows of 250 pixels are padded and cut.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.pad
// CHECK: stablehlo.convolution
// CHECK-SAME: tensor<1x500x16x16xf32>
// CHECK: stablehlo.slice
func.func @main(%x: tensor<1x500x250x1xf32>) -> tensor<1x500x250x1xf32> {
  %w = stablehlo.constant dense<1.0> : tensor<3x3x1x1xf32>
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x500x250x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x500x250x1xf32>
  return %y : tensor<1x500x250x1xf32>
}

// -----

// Many outputs, weights that are not known, windows that step over pixels of a row, and an image of
// a few pixels, which takes no longer as it is.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.reshape
func.func @main(%x: tensor<1x1x256x512xf32>, %v: tensor<1x1x3x3xf32>, %s: tensor<1x1x4x4xf32>) -> (tensor<1x8x256x512xf32>, tensor<1x1x256x512xf32>, tensor<1x1x256x256xf32>, tensor<1x1x4x4xf32>) {
  %w = stablehlo.constant dense<1.0> : tensor<8x1x3x3xf32>
  %u = stablehlo.constant dense<1.0> : tensor<1x1x3x3xf32>
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x256x512xf32>, tensor<8x1x3x3xf32>) -> tensor<1x8x256x512xf32>
  %1 = stablehlo.convolution(%x, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x256x512xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x256x512xf32>
  %2 = stablehlo.convolution(%x, %u) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {stride = [1, 2], pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x256x512xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x256x256xf32>
  %3 = stablehlo.convolution(%s, %u) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x1x4x4xf32>, tensor<1x1x3x3xf32>) -> tensor<1x1x4x4xf32>
  return %0, %1, %2, %3 : tensor<1x8x256x512xf32>, tensor<1x1x256x512xf32>, tensor<1x1x256x256xf32>, tensor<1x1x4x4xf32>
}

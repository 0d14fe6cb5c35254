// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(stablehlo-fold-pads)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(stablehlo-fold-pads,stablehlo-fold-pads)' | FileCheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.convolution(%arg0, %arg1)
// CHECK-SAME: pad = {{\[}}[1, 1], [0, 2]]
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.pad %x, %zero, low = [0, 0, 1, 0], high = [0, 0, 0, 1], interior = [0, 0, 0, 0] : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x9x9xf32>
  %y = stablehlo.convolution(%p, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %y : tensor<1x4x8x8xf32>
}

// -----

// Padding with ones, of channels, or that cuts something off, stays.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: stablehlo.pad
func.func @main(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %v: tensor<4x4x3x3xf32>) -> (tensor<1x4x7x7xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %p = stablehlo.pad %x, %one, low = [0, 0, 1, 0], high = [0, 0, 0, 1], interior = [0, 0, 0, 0] : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x9x9xf32>
  %0 = stablehlo.convolution(%p, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x9x9xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x7x7xf32>
  %q = stablehlo.pad %x, %zero, low = [0, 1, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0] : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x4x8x8xf32>
  %1 = stablehlo.convolution(%q, %v) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  %r = stablehlo.pad %x, %zero, low = [0, 0, -1, 0], high = [0, 0, 0, -1], interior = [0, 0, 0, 0] : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x7x7xf32>
  %2 = stablehlo.convolution(%r, %w) dim_numbers = [b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x3x7x7xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x5x5xf32>
  return %0, %1, %2 : tensor<1x4x7x7xf32>, tensor<1x4x6x6xf32>, tensor<1x4x5x5xf32>
}

// -----

// A maximum starts at minus infinity; what a ReLU made may also be padded with zeros, but not where
// a window lies in the padding alone.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = stablehlo.maximum
// CHECK: "stablehlo.reduce_window"(%[[R]]
// CHECK-SAME{LITERAL}: padding = dense<[[1, 0], [1, 0]]>
// CHECK: stablehlo.pad %[[R]]
// CHECK: reduce_window
// CHECK: stablehlo.pad %arg0
// CHECK: reduce_window
func.func @main(%x: tensor<8x8xf32>) -> (tensor<3x3xf32>, tensor<10x10xf32>, tensor<3x3xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %relu = stablehlo.maximum %x, %zeros : tensor<8x8xf32>
  %p = stablehlo.pad %relu, %zero, low = [1, 1], high = [0, 0], interior = [0, 0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<9x9xf32>
  %0 = "stablehlo.reduce_window"(%p, %least) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) {window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 3, 3>} : (tensor<9x9xf32>, tensor<f32>) -> tensor<3x3xf32>
  %q = stablehlo.pad %relu, %zero, low = [2, 2], high = [1, 1], interior = [0, 0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<11x11xf32>
  %1 = "stablehlo.reduce_window"(%q, %least) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) {window_dimensions = array<i64: 2, 2>, window_strides = array<i64: 1, 1>} : (tensor<11x11xf32>, tensor<f32>) -> tensor<10x10xf32>
  %r = stablehlo.pad %x, %zero, low = [1, 1], high = [0, 0], interior = [0, 0] : (tensor<8x8xf32>, tensor<f32>) -> tensor<9x9xf32>
  %2 = "stablehlo.reduce_window"(%r, %least) ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %m = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %m : tensor<f32>
    }) {window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 3, 3>} : (tensor<9x9xf32>, tensor<f32>) -> tensor<3x3xf32>
  return %0, %1, %2 : tensor<3x3xf32>, tensor<10x10xf32>, tensor<3x3xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-unfold-windows)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-unfold-windows,ascend-unfold-windows)' --split-input-file | FileCheck %s

// Nine shifted images beside each other; rows of the weights follow.
// CHECK-LABEL: func.func @image
// CHECK: %[[P:.*]] = "ascend.pad"({{.*}} {high = array<i64: 0, 1, 1, 0>, {{.*}} low = array<i64: 0, 1, 1, 0>} : (tensor<1x8x8x20xf32>, tensor<f32>) -> tensor<1x10x10x20xf32>
// CHECK-COUNT-9: "ascend.slice"(%[[P]])
// CHECK: %[[U:.*]] = "ascend.concat"({{.*}} {dim = 3 : i64} : ({{.*}}) -> tensor<1x8x8x180xf32>
// CHECK: "ascend.transpose"({{.*}} {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<1x2x9x16x5xf32>) -> tensor<1x9x2x16x5xf32>
// CHECK: "ascend.slice"({{.*}} : (tensor<1x9x32x5xf32>) -> tensor<1x9x20x5xf32>
// CHECK: "ascend.matmul"({{.*}} : (tensor<64x180xf32>, tensor<180x5xf32>) -> tensor<64x5xf32>
// CHECK-NOT: "ascend.conv"
func.func @image(%x: tensor<1x64x20xf32>, %w: tensor<1x288x5xf32>) -> tensor<1x64x5xf32> {
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x64x20xf32>, tensor<1x288x5xf32>) -> tensor<1x64x5xf32>
  return %0 : tensor<1x64x5xf32>
}

// -----

// Bytes lie around images as attributes say; weights, of one row for each column of the result, come
// from blocks of 32 channels.
// CHECK-LABEL: func.func @bytes
// CHECK: %[[F:.*]] = "ascend.full"() {value = 3 : i8}
// CHECK: "ascend.pad"({{.*}}, %[[F]]) {{.*}} -> tensor<1x10x10x64xi8>
// CHECK: "ascend.transpose"({{.*}} {permutation = array<i64: 0, 2, 1, 3>} : (tensor<5x2x9x32xi8>) -> tensor<5x9x2x32xi8>
// CHECK: "ascend.matmul"({{.*}} : (tensor<64x576xi8>, tensor<5x576xi8>) -> tensor<64x5xi32>
// CHECK-NOT: "ascend.conv"
func.func @bytes(%x: tensor<1x64x64xi8>, %w: tensor<1x5x576xi8>) -> tensor<1x64x5xi32> {
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, padding = 3 : i64, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>, transpose_b = true} : (tensor<1x64x64xi8>, tensor<1x5x576xi8>) -> tensor<1x64x5xi32>
  return %0 : tensor<1x64x5xi32>
}

// -----

// Groups are a batch of products; a step between windows is one of the slice.
// CHECK-LABEL: func.func @groups
// CHECK: "ascend.slice"({{.*}} {limits = array<i64: 1, 7, 7, 32>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 2, 2, 1>}
// CHECK: "ascend.batch_matmul"({{.*}} : (tensor<2x16x16xf32>, tensor<2x16x16xf32>) -> tensor<2x16x16xf32>
// CHECK-NOT: "ascend.conv"
func.func @groups(%x: tensor<1x64x32xf32>, %w: tensor<2x16x16xf32>) -> tensor<1x16x32xf32> {
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 2 : i64, image = array<i64: 8, 8>, kernel = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 2, 2>} : (tensor<1x64x32xf32>, tensor<2x16x16xf32>) -> tensor<1x16x32xf32>
  return %0 : tensor<1x16x32xf32>
}

// -----

// Windows that are the pixels, and bytes in groups: left alone.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: "ascend.conv"
// CHECK-NOT: "ascend.matmul"
// CHECK: return
func.func @others(%x: tensor<1x64x16xf32>, %w: tensor<1x16x16xf32>, %b: tensor<1x64x64xi8>) -> (tensor<1x64x16xf32>, tensor<1x36x64xi32>) {
  %c = "ascend.full"() {value = 5 : i8} : () -> tensor<2x32x288xi8>
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x64x16xf32>, tensor<1x16x16xf32>) -> tensor<1x64x16xf32>
  %1 = "ascend.conv"(%b, %c) {dilations = array<i64: 1, 1>, groups = 2 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, padding = 0 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, transpose_b = true} : (tensor<1x64x64xi8>, tensor<2x32x288xi8>) -> tensor<1x36x64xi32>
  return %0, %1 : tensor<1x64x16xf32>, tensor<1x36x64xi32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd{winograd=2x2})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd{winograd=2x2},ascend-winograd{winograd=2x2})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd{winograd=4x4})' --split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd)' --split-input-file | FileCheck %s --check-prefix=DIRECT
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd{winograd=none})' --split-input-file | FileCheck %s --check-prefix=DIRECT
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-winograd{precision=fp32 winograd=2x2})' --split-input-file | FileCheck %s --check-prefix=EXACT

// Channels are two blocks, outputs one; 8x8 pixels are 16 tiles of 2x2 or, of 4x4, 4 and 12 beside
// them, which make a fractal.
// CHECK-LABEL: func.func @image
// CHECK: %[[C:.*]] = "ascend.conv"({{.*}} kernel = array<i64: 4, 1>, pads = array<i64: 1, 1, 0, 0>, strides = array<i64: 2, 1>} : (tensor<2x64x16xf32>, tensor<1x64x64xf32>) -> tensor<2x32x64xf32>
// CHECK: "ascend.conv"({{.*}} kernel = array<i64: 1, 4>, pads = array<i64: 0, 0, 1, 1>, strides = array<i64: 1, 2>} : (tensor<8x32x16xf32>, tensor<1x64x64xf32>) -> tensor<8x16x64xf32>
// CHECK: "ascend.transpose"({{.*}} -> tensor<16x2x1x16x16xf32>
// CHECK: "ascend.conv"({{.*}} groups = 16 : i64{{.*}} : (tensor<1x16x512xf32>, tensor<16x32x16xf32>) -> tensor<1x16x256xf32>
// CHECK: "ascend.conv"({{.*}} : (tensor<1x16x256xf32>, tensor<1x256x64xf32>) -> tensor<1x16x64xf32>
// CHECK: "ascend.cast"({{.*}} -> tensor<1x16x64xf16>
// CHECK: "ascend.transpose"({{.*}} -> tensor<2x16x2x16xf16>
// CHECK: "ascend.transpose"({{.*}} -> tensor<1x4x2x128xf16>
// CHECK: return {{.*}} : tensor<1x64x16xf32>
// FOUR-LABEL: func.func @image
// FOUR: "ascend.conv"({{.*}} kernel = array<i64: 6, 1>
// FOUR: "ascend.conv"({{.*}} kernel = array<i64: 1, 6>
// FOUR: "ascend.conv"({{.*}} groups = 36 : i64{{.*}} : (tensor<1x16x1152xf32>, tensor<36x32x16xf32>) -> tensor<1x16x576xf32>
// FOUR: "ascend.conv"({{.*}} : (tensor<1x16x576xf32>, tensor<1x576x256xf32>) -> tensor<1x16x256xf32>
// FOUR: "ascend.slice"
// FOUR: return
// EXACT-LABEL: func.func @image
// EXACT: groups = 16
// EXACT-NOT: f16
// EXACT: return
// A small one is computed as it is, where nothing is asked for.
// DIRECT-LABEL: func.func @image
// DIRECT: "ascend.conv"
// DIRECT-NOT: "ascend.conv"
// DIRECT: return
func.func @image(%x: tensor<1x64x32xf32>) -> tensor<1x64x16xf32> {
  %w = "ascend.full"() {value = 5.000000e-01 : f32} : () -> tensor<1x288x16xf32>
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 1, 1>} : (tensor<1x64x32xf32>, tensor<1x288x16xf32>) -> tensor<1x64x16xf32>
  return %0 : tensor<1x64x16xf32>
}

// -----

// Steps between windows or in them, weights that are computed, and bytes: left alone.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-4: "ascend.conv"
// CHECK-NOT: "ascend.conv"
// CHECK: return
// FOUR-LABEL: func.func @others
// FOUR-COUNT-4: "ascend.conv"
// FOUR-NOT: "ascend.conv"
// FOUR: return
// DIRECT-LABEL: func.func @others
// DIRECT: return
func.func @others(%x: tensor<1x64x16xf32>, %v: tensor<1x144x16xf32>, %b: tensor<1x64x32xi8>) -> (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1x36x16xf32>, tensor<1x36x16xi32>) {
  %w = "ascend.full"() {value = 5.000000e-01 : f32} : () -> tensor<1x144x16xf32>
  %c = "ascend.full"() {value = 5 : i8} : () -> tensor<1x16x288xi8>
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 1, 1, 1, 1>, strides = array<i64: 2, 2>} : (tensor<1x64x16xf32>, tensor<1x144x16xf32>) -> tensor<1x16x16xf32>
  %1 = "ascend.conv"(%x, %w) {dilations = array<i64: 2, 2>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x64x16xf32>, tensor<1x144x16xf32>) -> tensor<1x16x16xf32>
  %2 = "ascend.conv"(%x, %v) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x64x16xf32>, tensor<1x144x16xf32>) -> tensor<1x36x16xf32>
  %3 = "ascend.conv"(%b, %c) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 8, 8>, kernel = array<i64: 3, 3>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, transpose_b = true} : (tensor<1x64x32xi8>, tensor<1x16x288xi8>) -> tensor<1x36x16xi32>
  return %0, %1, %2, %3 : tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<1x36x16xf32>, tensor<1x36x16xi32>
}

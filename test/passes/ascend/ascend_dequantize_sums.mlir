// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums,ascend-dequantize-sums)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums{precision=fp32})' | FileCheck %s --check-prefix=EXACT

// EXACT-NOT: dequantize
// EXACT-COUNT-6: ascend.quantize

// Scales and the step are one; bias and zero points are added to the integers. Of the first column
// these are -10 + 3 / 0.01 + 5 / 0.005 = 1290 = 20 + 127 * 10, the digits 0x14 and 0x0A.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUMS:.*]] = "ascend.matmul"
// CHECK: %[[SCALES:.*]] = "ascend.constant"() {value = dense<[5.00{{.*}}e-03, 1.00{{.*}}e-02]> : tensor<2xf16>}
// CHECK: %[[DIGITS:.*]] = "ascend.constant"() {value = dense<"0x140A00{{.*}}">
// CHECK: %[[HALF:.*]] = "ascend.dequantize"(%[[SUMS]], %[[SCALES]], %[[DIGITS]]) : (tensor<16x2xi32>, tensor<2xf16>, tensor<2x32xi8, {{.*}}) -> tensor<16x2xf16>
// CHECK-NEXT: "ascend.quantize"(%[[HALF]]) {zero = 0 : i64} : (tensor<16x2xf16>) -> tensor<16x2xi8>
func.func @main(%x: tensor<16x32xi8>) -> tensor<16x2xi8> {
  %w = "ascend.constant"() {value = dense<1> : tensor<2x32xi8>} : () -> tensor<2x32xi8>
  %z = "ascend.constant"() {value = dense<[10, 20]> : tensor<2xi32>} : () -> tensor<2xi32>
  %s = "ascend.constant"() {value = dense<[0.01, 0.02]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = "ascend.constant"() {value = dense<[3.0, -1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %step = "ascend.full"() {value = 2.0 : f32} : () -> tensor<16x2xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8>, tensor<2x32xi8>) -> tensor<16x2xi32>
  %1 = "ascend.broadcast"(%z) {dims = array<i64: 1>} : (tensor<2xi32>) -> tensor<16x2xi32>
  %2 = "ascend.sub"(%0, %1) : (tensor<16x2xi32>, tensor<16x2xi32>) -> tensor<16x2xi32>
  %3 = "ascend.cast"(%2) : (tensor<16x2xi32>) -> tensor<16x2xf32>
  %4 = "ascend.broadcast"(%s) {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<16x2xf32>
  %5 = "ascend.mul"(%3, %4) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %6 = "ascend.broadcast"(%b) {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<16x2xf32>
  %7 = "ascend.add"(%5, %6) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %8 = "ascend.div"(%7, %step) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %9 = "ascend.quantize"(%8) {zero = 5 : i64} : (tensor<16x2xf32>) -> tensor<16x2xi8>
  return %9 : tensor<16x2xi8>
}

// A residual of bytes is added in steps; relu does what saturating does.
// CHECK-LABEL: func.func @residual
// CHECK: %[[HALF:.*]] = "ascend.dequantize"
// CHECK: %[[BYTES:.*]] = "ascend.cast"({{.*}}) : (tensor<16x2xi8>) -> tensor<16x2xf16>
// CHECK: %[[STEPS:.*]] = "ascend.mul"(%[[BYTES]], {{.*}} -> tensor<16x2xf16>
// CHECK: %[[SUM:.*]] = "ascend.add"(%[[HALF]], %[[STEPS]])
// CHECK-NEXT: "ascend.quantize"(%[[SUM]]) {zero = 0 : i64}
func.func @residual(%x: tensor<16x32xi8>, %r: tensor<16x2xi8>) -> tensor<16x2xi8> {
  %w = "ascend.constant"() {value = dense<1> : tensor<2x32xi8>} : () -> tensor<2x32xi8>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<16x2xf32>
  %z = "ascend.full"() {value = 4.0 : f32} : () -> tensor<16x2xf32>
  %step = "ascend.full"() {value = 0.5 : f32} : () -> tensor<16x2xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8>, tensor<2x32xi8>) -> tensor<16x2xi32>
  %1 = "ascend.cast"(%0) : (tensor<16x2xi32>) -> tensor<16x2xf32>
  %2 = "ascend.mul"(%1, %s) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %3 = "ascend.cast"(%r) : (tensor<16x2xi8>) -> tensor<16x2xf32>
  %4 = "ascend.sub"(%3, %z) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %5 = "ascend.mul"(%4, %s) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %6 = "ascend.add"(%2, %5) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %7 = "ascend.relu"(%6) : (tensor<16x2xf32>) -> tensor<16x2xf32>
  %8 = "ascend.div"(%7, %step) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %9 = "ascend.quantize"(%8) {zero = -128 : i64} : (tensor<16x2xf32>) -> tensor<16x2xi8>
  return %9 : tensor<16x2xi8>
}

// QLinearMatMul multiplies by one factor, and is exact.
// CHECK-LABEL: func.func @exact
// CHECK-NOT: dequantize
// CHECK: "ascend.quantize"{{.*}} : (tensor<16x2xf32>) -> tensor<16x2xi8>
func.func @exact(%x: tensor<16x32xi8>) -> tensor<16x2xi8> {
  %w = "ascend.constant"() {value = dense<1> : tensor<2x32xi8>} : () -> tensor<2x32xi8>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<16x2xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8>, tensor<2x32xi8>) -> tensor<16x2xi32>
  %1 = "ascend.cast"(%0) : (tensor<16x2xi32>) -> tensor<16x2xf32>
  %2 = "ascend.mul"(%1, %s) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %9 = "ascend.quantize"(%2) {zero = 3 : i64} : (tensor<16x2xf32>) -> tensor<16x2xi8>
  return %9 : tensor<16x2xi8>
}

// Nor is what has no sums of products in it.
// CHECK-LABEL: func.func @floats
// CHECK-NOT: dequantize
// CHECK: "ascend.quantize"{{.*}} : (tensor<16x2xf32>) -> tensor<16x2xi8>
func.func @floats(%r: tensor<16x2xi8>) -> tensor<16x2xi8> {
  %step = "ascend.full"() {value = 0.5 : f32} : () -> tensor<16x2xf32>
  %3 = "ascend.cast"(%r) : (tensor<16x2xi8>) -> tensor<16x2xf32>
  %8 = "ascend.div"(%3, %step) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %9 = "ascend.quantize"(%8) {zero = -128 : i64} : (tensor<16x2xf32>) -> tensor<16x2xi8>
  return %9 : tensor<16x2xi8>
}

// What was to go to rows is computed in fractals, as bytes, which readers in fractals take as they are.
// CHECK-LABEL: func.func @rows
// CHECK: %[[HALF:.*]] = "ascend.dequantize"
// CHECK-NEXT: %[[BYTES:.*]] = "ascend.quantize"(%[[HALF]]) {zero = 0 : i64} : (tensor<16x64xf16, #ascend.layout<"nz">>) -> tensor<16x64xi8, #ascend.layout<"nz">>
// CHECK-NEXT: %[[ROWS:.*]] = "ascend.relayout"(%[[BYTES]])
// CHECK-NEXT: return %[[ROWS]], %[[BYTES]]
func.func @rows(%x: tensor<16x32xi8, #ascend.layout<"nz">>) -> (tensor<16x64xi8>, tensor<16x64xi8, #ascend.layout<"nz">>) {
  %w = "ascend.constant"() {value = dense<1> : tensor<1x4x16x32xi8>} : () -> tensor<64x32xi8, #ascend.layout<"nz">>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<16x64xf32>
  %step = "ascend.full"() {value = 0.5 : f32} : () -> tensor<16x64xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8, #ascend.layout<"nz">>, tensor<64x32xi8, #ascend.layout<"nz">>) -> tensor<16x64xi32, #ascend.layout<"nz">>
  %1 = "ascend.relayout"(%0) : (tensor<16x64xi32, #ascend.layout<"nz">>) -> tensor<16x64xi32>
  %2 = "ascend.cast"(%1) : (tensor<16x64xi32>) -> tensor<16x64xf32>
  %3 = "ascend.mul"(%2, %s) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %4 = "ascend.div"(%3, %step) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %5 = "ascend.quantize"(%4) {zero = 2 : i64} : (tensor<16x64xf32>) -> tensor<16x64xi8>
  %6 = "ascend.relayout"(%5) : (tensor<16x64xi8>) -> tensor<16x64xi8, #ascend.layout<"nz">>
  return %5, %6 : tensor<16x64xi8>, tensor<16x64xi8, #ascend.layout<"nz">>
}

// Sums of rows are taken in f32 of values of f16, which are scaled up as far as f16 allows.
// CHECK-LABEL: func.func @average
// CHECK: %[[HALF:.*]] = "ascend.dequantize"
// CHECK-NEXT: %[[RELU:.*]] = "ascend.relu"(%[[HALF]])
// CHECK-NEXT: %[[WIDE:.*]] = "ascend.cast"(%[[RELU]]) : (tensor<1x16x32xf16, #ascend.layout<"nz">>) -> tensor<1x16x32xf32, #ascend.layout<"nz">>
// CHECK-NEXT: %[[SUM:.*]] = "ascend.reduce"(%[[WIDE]]) {dims = array<i64: 1>, kind = "add"}
// CHECK-NEXT: "ascend.full"() {value = 6.250000e-02 : f32}
// CHECK-NEXT: %[[MEAN:.*]] = "ascend.mul"(%[[SUM]]
// CHECK: "ascend.quantize"({{.*}}) {zero = 0 : i64} : (tensor<1x32xf32>) -> tensor<1x32xi8>
func.func @average(%x: tensor<1x16x32xi8, #ascend.layout<"nz">>) -> tensor<1x32xi8> {
  %w = "ascend.constant"() {value = dense<1> : tensor<1x1x2x16x32xi8>} : () -> tensor<1x32x32xi8, #ascend.layout<"nz">>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<1x16x32xf32, #ascend.layout<"nz">>
  %n = "ascend.full"() {value = 16.0 : f32} : () -> tensor<1x32xf32>
  %step = "ascend.full"() {value = 0.5 : f32} : () -> tensor<1x32xf32>
  %0 = "ascend.conv"(%x, %w) {dilations = array<i64: 1, 1>, groups = 1 : i64, image = array<i64: 4, 4>, kernel = array<i64: 1, 1>, padding = 0 : i64, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>, transpose_b = true} : (tensor<1x16x32xi8, #ascend.layout<"nz">>, tensor<1x32x32xi8, #ascend.layout<"nz">>) -> tensor<1x16x32xi32, #ascend.layout<"nz">>
  %1 = "ascend.cast"(%0) : (tensor<1x16x32xi32, #ascend.layout<"nz">>) -> tensor<1x16x32xf32, #ascend.layout<"nz">>
  %2 = "ascend.mul"(%1, %s) : (tensor<1x16x32xf32, #ascend.layout<"nz">>, tensor<1x16x32xf32, #ascend.layout<"nz">>) -> tensor<1x16x32xf32, #ascend.layout<"nz">>
  %3 = "ascend.relu"(%2) : (tensor<1x16x32xf32, #ascend.layout<"nz">>) -> tensor<1x16x32xf32, #ascend.layout<"nz">>
  %4 = "ascend.reduce"(%3) {dims = array<i64: 1>, kind = "add"} : (tensor<1x16x32xf32, #ascend.layout<"nz">>) -> tensor<1x32xf32>
  %5 = "ascend.div"(%4, %n) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %6 = "ascend.div"(%5, %step) : (tensor<1x32xf32>, tensor<1x32xf32>) -> tensor<1x32xf32>
  %7 = "ascend.quantize"(%6) {zero = 3 : i64} : (tensor<1x32xf32>) -> tensor<1x32xi8>
  return %7 : tensor<1x32xi8>
}

// Floats that were bytes are integers in f16, and weights take what these count: 0.5 / 0.25 times 3.
// CHECK-LABEL: func.func @image
// CHECK: %[[WIDE:.*]] = "ascend.cast"(%arg0) : (tensor<1x16x16xi8>) -> tensor<1x16x16xf16>
// CHECK-NEXT: %[[ZERO:.*]] = "ascend.full"() {value = 7.000000e+00 : f16}
// CHECK-NEXT: %[[WHOLE:.*]] = "ascend.sub"(%[[WIDE]], %[[ZERO]])
// CHECK-NEXT: %[[MOVED:.*]] = "ascend.relayout"(%[[WHOLE]])
// CHECK-NEXT: %[[WEIGHTS:.*]] = "ascend.constant"() {value = dense<6.000000e+00>
// CHECK-NEXT: %[[SUMS:.*]] = "ascend.conv"(%[[MOVED]], %[[WEIGHTS]])
// CHECK: "ascend.cast"(%[[SUMS]])
func.func @image(%b: tensor<1x16x16xi8>) -> tensor<1x16x16xi8, #ascend.layout<"nz">> {
  %z = "ascend.full"() {value = 7.0 : f32} : () -> tensor<1x16x16xf32>
  %s = "ascend.full"() {value = 0.5 : f32} : () -> tensor<1x16x16xf32>
  %w = "ascend.constant"() {value = dense<3.0> : tensor<1x1x1x16x16xf16>} : () -> tensor<1x16x16xf16, #ascend.layout<"nz">>
  %step = "ascend.full"() {value = 0.25 : f32} : () -> tensor<1x16x16xf32, #ascend.layout<"nz">>
  %0 = "ascend.cast"(%b) : (tensor<1x16x16xi8>) -> tensor<1x16x16xf32>
  %1 = "ascend.sub"(%0, %z) : (tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<1x16x16xf32>
  %2 = "ascend.mul"(%1, %s) : (tensor<1x16x16xf32>, tensor<1x16x16xf32>) -> tensor<1x16x16xf32>
  %3 = "ascend.cast"(%2) : (tensor<1x16x16xf32>) -> tensor<1x16x16xf16>
  %4 = "ascend.relayout"(%3) : (tensor<1x16x16xf16>) -> tensor<1x16x16xf16, #ascend.layout<"nz">>
  %5 = "ascend.conv"(%4, %w) {image = array<i64: 4, 4>, kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, groups = 1 : i64} : (tensor<1x16x16xf16, #ascend.layout<"nz">>, tensor<1x16x16xf16, #ascend.layout<"nz">>) -> tensor<1x16x16xf32, #ascend.layout<"nz">>
  %6 = "ascend.div"(%5, %step) : (tensor<1x16x16xf32, #ascend.layout<"nz">>, tensor<1x16x16xf32, #ascend.layout<"nz">>) -> tensor<1x16x16xf32, #ascend.layout<"nz">>
  %7 = "ascend.quantize"(%6) {zero = 0 : i64} : (tensor<1x16x16xf32, #ascend.layout<"nz">>) -> tensor<1x16x16xi8, #ascend.layout<"nz">>
  return %7 : tensor<1x16x16xi8, #ascend.layout<"nz">>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums{machine=ascend910b},ascend-dequantize-sums{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-dequantize-sums{machine=ascend910b precision=fp32})' | FileCheck %s --check-prefix=EXACT

// EXACT-NOT: scale_sums
// EXACT-COUNT-3: ascend.quantize
// EXACT-NOT: scale_sums

// Scales and the step are one, 0.005 and 0.01 with 19 bits, 0x3BA3E000 and 0x3C23E000; bias and zero
// points are added to the integers: -10 + 3 / 0.01 + 5 / 0.005 and -20 - 1 / 0.02 + 5 / 0.01. Words
// have no offset, and bit 14 of the upper half says that bytes have a sign.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUMS:.*]] = "ascend.matmul"
// CHECK: %[[ROW:.*]] = "ascend.constant"() {value = dense<[1290, 430]> : tensor<2xi32>}
// CHECK: %[[ALL:.*]] = "ascend.add"(%[[SUMS]], {{.*}}) : (tensor<16x2xi32>
// CHECK: %[[WORDS:.*]] = "ascend.constant"() {value = dense<{{\[\[}}1000595456, 16384], [1008984064, 16384]]> : tensor<2x2xi32>}
// CHECK: %[[BYTES:.*]] = "ascend.scale_sums"(%[[ALL]], %[[WORDS]]) : (tensor<16x2xi32>, tensor<2x2xi32>) -> tensor<16x2xi8>
// CHECK-NEXT: return %[[BYTES]]
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

// A relu that is no limit of bytes is done on the way out, before the scale, and what is added behind
// it is the offset of words: -3, 0x1FD << 5 and the sign.
// CHECK-LABEL: func.func @relu
// CHECK: "ascend.constant"() {value = dense<{{\[\[}}{{[0-9]*}}, 32672], [{{[0-9]*}}, 32672]]> : tensor<2x2xi32>}
// CHECK: "ascend.scale_sums"({{.*}}) {relu}
// CHECK-NOT: ascend.quantize
func.func @relu(%x: tensor<16x32xi8>) -> tensor<16x2xi8> {
  %w = "ascend.constant"() {value = dense<1> : tensor<2x32xi8>} : () -> tensor<2x32xi8>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<16x2xf32>
  %step = "ascend.full"() {value = 2.0 : f32} : () -> tensor<16x2xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8>, tensor<2x32xi8>) -> tensor<16x2xi32>
  %1 = "ascend.cast"(%0) : (tensor<16x2xi32>) -> tensor<16x2xf32>
  %2 = "ascend.mul"(%1, %s) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %3 = "ascend.relu"(%2) : (tensor<16x2xf32>) -> tensor<16x2xf32>
  %4 = "ascend.div"(%3, %step) : (tensor<16x2xf32>, tensor<16x2xf32>) -> tensor<16x2xf32>
  %5 = "ascend.quantize"(%4) {zero = -3 : i64} : (tensor<16x2xf32>) -> tensor<16x2xi8>
  return %5 : tensor<16x2xi8>
}

// A residual of bytes is added by vector cores, in rows, to which the sums go as f16.
// CHECK-LABEL: func.func @residual
// CHECK: %[[SUMS:.*]] = "ascend.matmul"({{.*}} -> tensor<16x64xi32>
// CHECK: %[[HALF:.*]] = "ascend.scale_sums"({{.*}}) : (tensor<16x64xi32>, tensor<64x2xi32>) -> tensor<16x64xf16>
// CHECK: %[[ROWS:.*]] = "ascend.relayout"(%arg1) : (tensor<16x64xi8, #ascend.layout<"nz">>) -> tensor<16x64xi8>
// CHECK: %[[BYTES:.*]] = "ascend.cast"(%[[ROWS]]) : (tensor<16x64xi8>) -> tensor<16x64xf16>
// CHECK: %[[STEPS:.*]] = "ascend.mul"(%[[BYTES]], {{.*}} -> tensor<16x64xf16>
// CHECK: %[[SUM:.*]] = "ascend.add"(%[[HALF]], %[[STEPS]])
// CHECK: %[[MADE:.*]] = "ascend.quantize"(%[[SUM]]) {zero = 0 : i64} : (tensor<16x64xf16>) -> tensor<16x64xi8>
// CHECK: "ascend.relayout"(%[[MADE]])
func.func @residual(%x: tensor<16x32xi8, #ascend.layout<"nz">>, %r: tensor<16x64xi8, #ascend.layout<"nz">>) -> tensor<16x64xi8, #ascend.layout<"nz">> {
  %w = "ascend.constant"() {value = dense<1> : tensor<1x4x16x32xi8>} : () -> tensor<64x32xi8, #ascend.layout<"nz">>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<16x64xf32>
  %step = "ascend.full"() {value = 0.5 : f32} : () -> tensor<16x64xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8, #ascend.layout<"nz">>, tensor<64x32xi8, #ascend.layout<"nz">>) -> tensor<16x64xi32, #ascend.layout<"nz">>
  %1 = "ascend.relayout"(%0) : (tensor<16x64xi32, #ascend.layout<"nz">>) -> tensor<16x64xi32>
  %2 = "ascend.cast"(%1) : (tensor<16x64xi32>) -> tensor<16x64xf32>
  %3 = "ascend.mul"(%2, %s) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %4 = "ascend.relayout"(%r) : (tensor<16x64xi8, #ascend.layout<"nz">>) -> tensor<16x64xi8>
  %5 = "ascend.cast"(%4) : (tensor<16x64xi8>) -> tensor<16x64xf32>
  %6 = "ascend.mul"(%5, %s) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %7 = "ascend.add"(%3, %6) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %8 = "ascend.relu"(%7) : (tensor<16x64xf32>) -> tensor<16x64xf32>
  %9 = "ascend.div"(%8, %step) : (tensor<16x64xf32>, tensor<16x64xf32>) -> tensor<16x64xf32>
  %10 = "ascend.quantize"(%9) {zero = -128 : i64} : (tensor<16x64xf32>) -> tensor<16x64xi8>
  %11 = "ascend.relayout"(%10) : (tensor<16x64xi8>) -> tensor<16x64xi8, #ascend.layout<"nz">>
  return %11 : tensor<16x64xi8, #ascend.layout<"nz">>
}

// What is rounded to f16 leaves L0C so: a relu before the scale, another limit behind it.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[SUMS:.*]] = "ascend.matmul"
// CHECK: %[[HALF:.*]] = "ascend.scale_sums"(%[[SUMS]], {{.*}}) {relu} : (tensor<16x2xi32>, tensor<2x2xi32>) -> tensor<16x2xf16>
// CHECK: %[[SAME:.*]] = "ascend.reshape"(%[[HALF]]) : (tensor<16x2xf16>) -> tensor<1x16x2xf16>
// CHECK: "ascend.min"(%[[SAME]], {{.*}}) : (tensor<1x16x2xf16>
func.func @rounded(%x: tensor<16x32xi8>) -> tensor<1x16x2xf16> {
  %w = "ascend.constant"() {value = dense<1> : tensor<2x32xi8>} : () -> tensor<2x32xi8>
  %s = "ascend.full"() {value = 0.01 : f32} : () -> tensor<1x16x2xf32>
  %most = "ascend.full"() {value = 6.0 : f32} : () -> tensor<1x16x2xf32>
  %0 = "ascend.matmul"(%x, %w) {transpose_b = true} : (tensor<16x32xi8>, tensor<2x32xi8>) -> tensor<16x2xi32>
  %1 = "ascend.reshape"(%0) : (tensor<16x2xi32>) -> tensor<1x16x2xi32>
  %2 = "ascend.cast"(%1) : (tensor<1x16x2xi32>) -> tensor<1x16x2xf32>
  %3 = "ascend.mul"(%2, %s) : (tensor<1x16x2xf32>, tensor<1x16x2xf32>) -> tensor<1x16x2xf32>
  %4 = "ascend.relu"(%3) : (tensor<1x16x2xf32>) -> tensor<1x16x2xf32>
  %5 = "ascend.min"(%4, %most) : (tensor<1x16x2xf32>, tensor<1x16x2xf32>) -> tensor<1x16x2xf32>
  %6 = "ascend.cast"(%5) : (tensor<1x16x2xf32>) -> tensor<1x16x2xf16>
  return %6 : tensor<1x16x2xf16>
}

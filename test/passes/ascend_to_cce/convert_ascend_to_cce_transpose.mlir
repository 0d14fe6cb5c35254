// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1},convert-ascend-to-cce{cores=1})' | FileCheck %s

// Form 2: runs move as they are, several at a time.
// CHECK-LABEL: @heads
// CHECK-NOT: cce.vnchwconv
// CHECK: "cce.copy"({{.*}}) : (memref<2x6x64xf32, strided<[64, 128, 1]>>, memref<2x6x64xf32, {{.*}}#cce.space<"UB">>)
// CHECK: "cce.copy"({{.*}}) : (memref<2x6x64xf32, {{.*}}#cce.space<"UB">>, memref<2x6x64xf32, strided<[384, 64, 1]>>)
func.func @heads(%a: memref<1x6x2x64xf32>, %r: memref<1x2x6x64xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<1x6x2x64xf32> to tensor<1x6x2x64xf32>
  %y = "ascend.transpose"(%ta) {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x6x2x64xf32>) -> tensor<1x2x6x64xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<1x2x6x64xf32>, memref<1x2x6x64xf32>) -> ()
  return
}

// Form 1: 16 rows at a time, a repeat for each 16 columns.
// CHECK-LABEL: @matrix
// CHECK: "cce.copy"({{.*}}memref<32x48xf16
// CHECK: "cce.vnchwconv"({{.*}}) : (memref<16x3x16xf16, strided<[48, 16, 1]>{{.*}}, memref<16x3x16xf16, strided<[32, 512, 1]>
// CHECK: "cce.vnchwconv"({{.*}}) : (memref<16x3x16xf16, strided<[48, 16, 1], offset: 768>{{.*}}, memref<16x3x16xf16, strided<[32, 512, 1], offset: 16>
// CHECK: "cce.copy"({{.*}}memref<48x32xf16
func.func @matrix(%a: memref<32x48xf16>, %r: memref<48x32xf16>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<32x48xf16> to tensor<32x48xf16>
  %y = "ascend.transpose"(%ta) {permutation = array<i64: 1, 0>} : (tensor<32x48xf16>) -> tensor<48x32xf16>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<48x32xf16>, memref<48x32xf16>) -> ()
  return
}

// 32-bit elements: halves of each word become blocks where those of the result belong, and go back.
// CHECK-LABEL: @wide
// CHECK-NOT: "cce.vmax"
// CHECK: "cce.vnchwconv"({{.*}}) : (memref<2x2x2x2x16x8xf32{{.*}}, memref<8x2x16x8xi32
// CHECK: "cce.vnchwconv"({{.*}}) : (memref<16x16x8xi32{{.*}}, memref<2x2x2x2x16x8xf32
// CHECK: "cce.copy"
func.func @wide(%a: memref<16x16xf32>, %r: memref<16x16xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<16x16xf32> to tensor<16x16xf32>
  %y = "ascend.transpose"(%ta) {permutation = array<i64: 1, 0>} : (tensor<16x16xf32>) -> tensor<16x16xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<16x16xf32>, memref<16x16xf32>) -> ()
  return
}

// A side shorter than a block: words become blocks, which are moved, and back.
// CHECK-LABEL: @narrow
// CHECK-NOT: memref.load
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vmax"
// CHECK: "cce.vnchwconv"
func.func @narrow(%a: memref<16x3xf32>, %r: memref<3x16xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<16x3xf32> to tensor<16x3xf32>
  %y = "ascend.transpose"(%ta) {permutation = array<i64: 1, 0>} : (tensor<16x3xf32>) -> tensor<3x16xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<3x16xf32>, memref<3x16xf32>) -> ()
  return
}

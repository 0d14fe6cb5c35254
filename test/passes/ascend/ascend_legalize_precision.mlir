// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision,ascend-legalize-precision)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp16})' --split-input-file | FileCheck %s --check-prefix=FP16
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp16},ascend-legalize-precision{precision=fp16})' --split-input-file | FileCheck %s --check-prefix=FP16
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp32})' --split-input-file | FileCheck %s --check-prefix=FP32
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-legalize-precision{precision=fp32},ascend-legalize-precision{precision=fp32})' --split-input-file | FileCheck %s --check-prefix=FP32

// CHECK-LABEL: func.func @product
// CHECK: %[[A:.*]] = "ascend.cast"(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf16>
// CHECK: %[[B:.*]] = "ascend.cast"(%arg1)
// CHECK: %[[C:.*]] = "ascend.matmul"(%[[A]], %[[B]]) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
// CHECK: "ascend.exp"(%[[C]]) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// FP16-LABEL: func.func @product
// FP16: %[[C:.*]] = "ascend.matmul"(%{{.*}}, %{{.*}}) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf16>
// FP16: %[[E:.*]] = "ascend.exp"(%[[C]]) : (tensor<8x4xf16>) -> tensor<8x4xf16>
// FP16: %[[R:.*]] = "ascend.cast"(%[[E]]) : (tensor<8x4xf16>) -> tensor<8x4xf32>
// FP16: return %[[R]]
// FP32-LABEL: func.func @product
// FP32: %[[M:.*]] = "ascend.reduce"({{.*}}) {dims = array<i64: 1>, kind = "max"} : (tensor<8x16xf32>) -> tensor<8xf32>
// FP32: %[[H:.*]] = "ascend.cube_scale"(%[[M]])
// FP32-COUNT-6: "ascend.half_part"
// FP32-COUNT-6: "ascend.matmul"({{.*}}) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
// FP32: "ascend.select"
// FP32: "ascend.exp"({{.*}}) : (tensor<8x4xf32>) -> tensor<8x4xf32>
func.func @product(%a: tensor<8x16xf32>, %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  %1 = "ascend.exp"(%0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// The cast goes in front of what only moves data, and one serves two products.
// CHECK-LABEL: func.func @moved
// CHECK: %[[A:.*]] = "ascend.cast"(%arg0)
// CHECK: "ascend.transpose"(%[[A]]) {permutation = array<i64: 1, 0>} : (tensor<8x16xf16>) -> tensor<16x8xf16>
// CHECK: "ascend.cast"(%arg1)
// CHECK-NOT: ascend.cast
// FP16-LABEL: func.func @moved
func.func @moved(%a: tensor<8x16xf32>, %b: tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>) {
  %0 = "ascend.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %1 = "ascend.matmul"(%0, %b) : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %2 = "ascend.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<8x16xf32>) -> tensor<16x8xf32>
  %3 = "ascend.matmul"(%2, %b) : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  return %1, %3 : tensor<16x4xf32>, tensor<16x4xf32>
}

// -----

// Keys that several heads share are cast before they are repeated.
// CHECK-LABEL: func.func @repeated
// CHECK: %[[K:.*]] = "ascend.cast"(%arg1) : (tensor<2x1x16x8xf32>) -> tensor<2x1x16x8xf16>
// CHECK: "ascend.broadcast"(%[[K]]) {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x1x16x8xf16>) -> tensor<2x4x16x8xf16>
// CHECK: "ascend.reshape"({{.*}}) : (tensor<2x4x16x8xf16>) -> tensor<8x16x8xf16>
// FP16-LABEL: func.func @repeated
func.func @repeated(%q: tensor<8x1x16xf16>, %k: tensor<2x1x16x8xf32>) -> tensor<8x1x8xf32> {
  %0 = "ascend.broadcast"(%k) {dims = array<i64: 0, 1, 2, 3>} : (tensor<2x1x16x8xf32>) -> tensor<2x4x16x8xf32>
  %1 = "ascend.reshape"(%0) : (tensor<2x4x16x8xf32>) -> tensor<8x16x8xf32>
  %2 = "ascend.cast"(%q) : (tensor<8x1x16xf16>) -> tensor<8x1x16xf32>
  %3 = "ascend.batch_matmul"(%2, %1) : (tensor<8x1x16xf32>, tensor<8x16x8xf32>) -> tensor<8x1x8xf32>
  return %3 : tensor<8x1x8xf32>
}

// -----

// One cast serves products behind one reshape; others that read a transpose keep it wide, and a cast of much more than
// a slice takes is none in front of it.
// CHECK-LABEL: func.func @shared
// CHECK: %[[A:.*]] = "ascend.cast"(%arg0) : (tensor<1x16x8xf32>) -> tensor<1x16x8xf16>
// CHECK: %[[R:.*]] = "ascend.reshape"(%[[A]])
// CHECK: "ascend.matmul"(%[[R]]
// CHECK: "ascend.matmul"(%[[R]]
// CHECK: %[[S:.*]] = "ascend.slice"(%arg0) {{.*}} -> tensor<1x2x8xf32>
// CHECK: %[[N:.*]] = "ascend.cast"(%[[S]])
// CHECK: %[[Q:.*]] = "ascend.reshape"(%[[N]])
// CHECK: "ascend.matmul"(%[[Q]]
// CHECK: %[[T:.*]] = "ascend.transpose"(%arg1) {{.*}} -> tensor<8x16xf32>
// CHECK: %[[W:.*]] = "ascend.cast"(%[[T]])
// CHECK: "ascend.matmul"(%[[W]]
// CHECK: return {{.*}}, %[[T]] :
// FP16-LABEL: func.func @shared
func.func @shared(%a: tensor<1x16x8xf32>, %b: tensor<16x8xf32>, %c: tensor<8x4xf32>, %d: tensor<16x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x16xf32>) {
  %0 = "ascend.reshape"(%a) : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
  %1 = "ascend.matmul"(%0, %c) : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %e = "ascend.neg"(%c) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "ascend.matmul"(%0, %e) : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %3 = "ascend.slice"(%a) {starts = array<i64: 0, 3, 0>, limits = array<i64: 1, 5, 8>, strides = array<i64: 1, 1, 1>} : (tensor<1x16x8xf32>) -> tensor<1x2x8xf32>
  %4 = "ascend.reshape"(%3) : (tensor<1x2x8xf32>) -> tensor<2x8xf32>
  %5 = "ascend.matmul"(%4, %c) : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  %6 = "ascend.transpose"(%b) {permutation = array<i64: 1, 0>} : (tensor<16x8xf32>) -> tensor<8x16xf32>
  %7 = "ascend.matmul"(%6, %d) : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %1, %2, %5, %7, %6 : tensor<16x4xf32>, tensor<16x4xf32>, tensor<2x4xf32>, tensor<8x4xf32>, tensor<8x16xf32>
}

// -----

// What an average for products is taken of is rounded once, for it and for the products beside it; one that is a result
// is taken of what there was.
// CHECK-LABEL: func.func @averages
// CHECK: %[[X:.*]] = "ascend.cast"(%arg0) : (tensor<1x9x16xf32>) -> tensor<1x9x16xf16>
// CHECK: "ascend.pool"(%[[X]]) {{.*}} : (tensor<1x9x16xf16>) -> tensor<1x4x16xf32>
// CHECK: "ascend.pool"(%arg1) {{.*}} : (tensor<1x9x16xf32>) -> tensor<1x4x16xf32>
// FP16-LABEL: func.func @averages
func.func @averages(%x: tensor<1x9x16xf32>, %y: tensor<1x9x16xf32>, %w: tensor<16x4xf32>) -> (tensor<4x4xf32>, tensor<9x4xf32>, tensor<1x4x16xf32>) {
  %four = "ascend.full"() {value = 4.0 : f32} : () -> tensor<1x4x16xf32>
  %0 = "ascend.pool"(%x) {image = array<i64: 3, 3>, kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, kind = "add"} : (tensor<1x9x16xf32>) -> tensor<1x4x16xf32>
  %1 = "ascend.div"(%0, %four) : (tensor<1x4x16xf32>, tensor<1x4x16xf32>) -> tensor<1x4x16xf32>
  %2 = "ascend.reshape"(%1) : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
  %3 = "ascend.matmul"(%2, %w) : (tensor<4x16xf32>, tensor<16x4xf32>) -> tensor<4x4xf32>
  %4 = "ascend.reshape"(%x) : (tensor<1x9x16xf32>) -> tensor<9x16xf32>
  %5 = "ascend.matmul"(%4, %w) : (tensor<9x16xf32>, tensor<16x4xf32>) -> tensor<9x4xf32>
  %6 = "ascend.pool"(%y) {image = array<i64: 3, 3>, kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, kind = "add"} : (tensor<1x9x16xf32>) -> tensor<1x4x16xf32>
  return %3, %5, %6 : tensor<4x4xf32>, tensor<9x4xf32>, tensor<1x4x16xf32>
}

// -----

// Sums of which integers are made stay f32, also where their elements are moved first.
// FP16-LABEL: func.func @counted
// FP16: "ascend.matmul"(%arg0, %arg1) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
// FP16: return
// FP16-LABEL: func.func @counted_and_read
// FP16: "ascend.matmul"(%arg0, %arg1) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf16>
func.func @counted(%a: tensor<8x16xf16>, %b: tensor<16x4xf16>) -> (tensor<4x8xi32>, tensor<2x4xi32>) {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = "ascend.cast"(%1) : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %3 = "ascend.slice"(%0) {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  %4 = "ascend.cast"(%3) : (tensor<2x4xf32>) -> tensor<2x4xi32>
  return %2, %4 : tensor<4x8xi32>, tensor<2x4xi32>
}
func.func @counted_and_read(%a: tensor<8x16xf16>, %b: tensor<16x4xf16>) -> (tensor<4x8xi32>, tensor<2x4xf32>) {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf32>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %2 = "ascend.cast"(%1) : (tensor<4x8xf32>) -> tensor<4x8xi32>
  %3 = "ascend.slice"(%0) {starts = array<i64: 2, 0>, limits = array<i64: 4, 4>, strides = array<i64: 1, 1>} : (tensor<8x4xf32>) -> tensor<2x4xf32>
  return %2, %3 : tensor<4x8xi32>, tensor<2x4xf32>
}

// -----

// Integer products, and products that are f16 already, stay.
// CHECK-LABEL: func.func @others
// CHECK-NOT: ascend.cast
// CHECK: return
// FP16-LABEL: func.func @others
// FP16-NOT: ascend.cast
// FP16: return
func.func @others(%a: tensor<8x16xi8>, %b: tensor<16x4xi8>, %c: tensor<8x16xf16>, %d: tensor<16x4xf16>) -> (tensor<8x4xi32>, tensor<8x4xf16>) {
  %0 = "ascend.matmul"(%a, %b) : (tensor<8x16xi8>, tensor<16x4xi8>) -> tensor<8x4xi32>
  %1 = "ascend.matmul"(%c, %d) : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf16>
  return %0, %1 : tensor<8x4xi32>, tensor<8x4xf16>
}

// -----

// What a product reads rounded others read rounded, too, but for results of the function; sums that no product reads
// stay f32.
// CHECK-LABEL: func.func @residual
// CHECK: %[[S:.*]] = "ascend.add"
// CHECK: %[[Y:.*]] = "ascend.exp"(%[[S]])
// CHECK: %[[N:.*]] = "ascend.cast"(%[[Y]]) : (tensor<8x16xf32>) -> tensor<8x16xf16>
// CHECK: %[[W:.*]] = "ascend.cast"(%[[N]]) : (tensor<8x16xf16>) -> tensor<8x16xf32>
// CHECK: %[[P:.*]] = "ascend.matmul"(%[[N]]
// CHECK: %[[Z:.*]] = "ascend.add"(%[[P]], %[[W]])
// CHECK: %[[T:.*]] = "ascend.add"(%[[Z]], %[[S]])
// CHECK: return %[[T]], %[[Y]]
// FP16-LABEL: func.func @residual
// FP32-LABEL: func.func @residual
func.func @residual(%a: tensor<8x16xf32>, %b: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %s = "ascend.add"(%a, %a) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %y = "ascend.exp"(%s) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %p = "ascend.matmul"(%y, %b) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %z = "ascend.add"(%p, %y) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %t = "ascend.add"(%z, %s) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  return %t, %y : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// Of two products that are added and then rounded the later one is rounded first: its sums cross GM.
// CHECK-LABEL: func.func @shortcut
// CHECK: %[[P:.*]] = "ascend.matmul"
// CHECK: %[[Q:.*]] = "ascend.matmul"
// CHECK: %[[N:.*]] = "ascend.cast"(%[[Q]]) : (tensor<8x16xf32>) -> tensor<8x16xf16>
// CHECK: %[[W:.*]] = "ascend.cast"(%[[N]]) : (tensor<8x16xf16>) -> tensor<8x16xf32>
// CHECK: "ascend.add"(%[[P]], %[[W]]) {finite}
// FP16-LABEL: func.func @shortcut
// FP32-LABEL: func.func @shortcut
func.func @shortcut(%a: tensor<8x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %p = "ascend.matmul"(%a, %b) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %q = "ascend.matmul"(%a, %c) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %s = "ascend.add"(%p, %q) : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %r = "ascend.relu"(%s) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %z = "ascend.matmul"(%r, %b) : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// -----

// Pixels are rounded before the largest of windows are taken of them, where only products and sums beside those read
// these.
// CHECK-LABEL: func.func @largest
// CHECK: %[[Y:.*]] = "ascend.exp"
// CHECK: %[[N:.*]] = "ascend.cast"(%[[Y]]) : (tensor<1x9x16xf32>) -> tensor<1x9x16xf16>
// CHECK: %[[L:.*]] = "ascend.pool"(%[[N]]) {{.*}} : (tensor<1x9x16xf16>) -> tensor<1x4x16xf16>
// CHECK: "ascend.matmul"
// CHECK: "ascend.add"
// FP16-LABEL: func.func @largest
// FP32-LABEL: func.func @largest
func.func @largest(%x: tensor<1x9x16xf32>, %w: tensor<16x16xf32>) -> tensor<4x16xf32> {
  %y = "ascend.exp"(%x) : (tensor<1x9x16xf32>) -> tensor<1x9x16xf32>
  %0 = "ascend.pool"(%y) {image = array<i64: 3, 3>, kernel = array<i64: 2, 2>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, kind = "max"} : (tensor<1x9x16xf32>) -> tensor<1x4x16xf32>
  %1 = "ascend.reshape"(%0) : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
  %2 = "ascend.matmul"(%1, %w) : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
  %3 = "ascend.add"(%2, %1) : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  return %3 : tensor<4x16xf32>
}

// -----

// A softmax between values of f16 is computed in f16, but its sums. One that a product reads stays as it is.
// CHECK-LABEL: func.func @softmax
// CHECK: %[[D:.*]] = "ascend.sub"(%arg0, %{{.*}}) : (tensor<8x512xf16>, tensor<8x512xf16>) -> tensor<8x512xf16>
// CHECK: %[[E:.*]] = "ascend.exp"(%[[D]]) : (tensor<8x512xf16>) -> tensor<8x512xf16>
// CHECK: %[[W:.*]] = "ascend.cast"(%[[E]]) : (tensor<8x512xf16>) -> tensor<8x512xf32>
// CHECK: "ascend.reduce"(%[[W]]) {{.*}} : (tensor<8x512xf32>) -> tensor<8xf32>
// CHECK: %[[R:.*]] = "ascend.broadcast"({{.*}}) {{.*}} : (tensor<8x1xf16>) -> tensor<8x512xf16>
// CHECK: "ascend.mul"(%[[E]], %[[R]]) : (tensor<8x512xf16>, tensor<8x512xf16>) -> tensor<8x512xf16>
// CHECK: "ascend.exp"({{.*}}) : (tensor<8x512xf32>) -> tensor<8x512xf32>
// CHECK: "ascend.div"
// CHECK: "ascend.matmul"
// FP16-LABEL: func.func @softmax
// FP32-LABEL: func.func @softmax
// FP32: "ascend.exp"({{.*}}) : (tensor<8x512xf32>) -> tensor<8x512xf32>
func.func @softmax(%x: tensor<8x512xf16>, %y: tensor<8x512xf16>, %b: tensor<512x16xf16>) -> (tensor<8x512xf16>, tensor<8x16xf32>) {
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<8x512xf16>) -> tensor<8xf16>
  %1 = "ascend.reshape"(%0) : (tensor<8xf16>) -> tensor<8x1xf16>
  %2 = "ascend.broadcast"(%1) {dims = array<i64: 0, 1>} : (tensor<8x1xf16>) -> tensor<8x512xf16>
  %3 = "ascend.cast"(%x) : (tensor<8x512xf16>) -> tensor<8x512xf32>
  %4 = "ascend.cast"(%2) : (tensor<8x512xf16>) -> tensor<8x512xf32>
  %5 = "ascend.sub"(%3, %4) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
  %6 = "ascend.exp"(%5) : (tensor<8x512xf32>) -> tensor<8x512xf32>
  %7 = "ascend.reduce"(%6) {dims = array<i64: 1>, kind = "add"} : (tensor<8x512xf32>) -> tensor<8xf32>
  %8 = "ascend.reshape"(%7) : (tensor<8xf32>) -> tensor<8x1xf32>
  %9 = "ascend.broadcast"(%8) {dims = array<i64: 0, 1>} : (tensor<8x1xf32>) -> tensor<8x512xf32>
  %10 = "ascend.div"(%6, %9) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
  %11 = "ascend.cast"(%10) : (tensor<8x512xf32>) -> tensor<8x512xf16>
  %12 = "ascend.reduce"(%y) {dims = array<i64: 1>, kind = "max"} : (tensor<8x512xf16>) -> tensor<8xf16>
  %13 = "ascend.reshape"(%12) : (tensor<8xf16>) -> tensor<8x1xf16>
  %14 = "ascend.broadcast"(%13) {dims = array<i64: 0, 1>} : (tensor<8x1xf16>) -> tensor<8x512xf16>
  %15 = "ascend.cast"(%y) : (tensor<8x512xf16>) -> tensor<8x512xf32>
  %16 = "ascend.cast"(%14) : (tensor<8x512xf16>) -> tensor<8x512xf32>
  %17 = "ascend.sub"(%15, %16) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
  %18 = "ascend.exp"(%17) : (tensor<8x512xf32>) -> tensor<8x512xf32>
  %19 = "ascend.reduce"(%18) {dims = array<i64: 1>, kind = "add"} : (tensor<8x512xf32>) -> tensor<8xf32>
  %20 = "ascend.reshape"(%19) : (tensor<8xf32>) -> tensor<8x1xf32>
  %21 = "ascend.broadcast"(%20) {dims = array<i64: 0, 1>} : (tensor<8x1xf32>) -> tensor<8x512xf32>
  %22 = "ascend.div"(%18, %21) : (tensor<8x512xf32>, tensor<8x512xf32>) -> tensor<8x512xf32>
  %23 = "ascend.cast"(%22) : (tensor<8x512xf32>) -> tensor<8x512xf16>
  %24 = "ascend.matmul"(%23, %b) : (tensor<8x512xf16>, tensor<512x16xf16>) -> tensor<8x16xf32>
  return %11, %24 : tensor<8x512xf16>, tensor<8x16xf32>
}

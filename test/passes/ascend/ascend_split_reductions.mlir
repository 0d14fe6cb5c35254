// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions,ascend-split-reductions)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=1})' --split-input-file | FileCheck %s --check-prefix=ALONE

// 16 MB to one value.
// CHECK-LABEL: func.func @everything
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0)
// CHECK: %[[P:.*]] = "ascend.reduce"(%[[S]]) {{.*}}dims = array<i64: 1, 2>
// CHECK: %[[B:.*]] = "ascend.reshape"(%[[P]]) {ascend.begins}
// CHECK: %[[R:.*]] = "ascend.reduce"(%[[B]]) {{.*}}dims = array<i64: 0>
// CHECK: return %[[R]] : tensor<f32>
// ALONE-LABEL: func.func @everything
// ALONE-NEXT: "ascend.reduce"
// ALONE-NEXT: return
func.func @everything(%x: tensor<4096x1024xf32>) -> tensor<f32> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 0, 1>} : (tensor<4096x1024xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}

// -----

// f16 is added in f32 all the way.
// CHECK-LABEL: func.func @half
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<2x4194304xf16>) -> tensor<2x[[PARTS:.*]]xf16>
// CHECK: "ascend.cast"(%[[S]]) : (tensor<2x[[PARTS]]xf16>) -> tensor<2x[[PARTS]]xf32>
// CHECK: "ascend.reduce"{{.*}} -> tensor<2x{{[0-9]+}}xf32>
// CHECK: %[[R:.*]] = "ascend.reduce"{{.*}} -> tensor<2xf32>
// CHECK: "ascend.cast"(%[[R]]) : (tensor<2xf32>) -> tensor<2xf16>
func.func @half(%x: tensor<2x4194304xf16>) -> tensor<2xf16> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<2x4194304xf16>) -> tensor<2xf16>
  return %0 : tensor<2xf16>
}

// -----

// A launch costs more than what is gained; cores have rows of their own; a prime has no equal parts.
// CHECK-LABEL: func.func @whole
// CHECK-NEXT: "ascend.reduce"(%arg0)
// CHECK-NEXT: "ascend.reduce"(%arg1)
// CHECK-NEXT: "ascend.reduce"(%arg2)
// CHECK-NEXT: return
func.func @whole(%a: tensor<64x64xf32>, %b: tensor<64x65536xf32>, %c: tensor<4194301xf32>) -> (tensor<f32>, tensor<64xf32>, tensor<f32>) {
  %0 = "ascend.reduce"(%a) {kind = "max", dims = array<i64: 0, 1>} : (tensor<64x64xf32>) -> tensor<f32>
  %1 = "ascend.reduce"(%b) {kind = "add", dims = array<i64: 1>} : (tensor<64x65536xf32>) -> tensor<64xf32>
  %2 = "ascend.reduce"(%c) {kind = "add", dims = array<i64: 0>} : (tensor<4194301xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<64xf32>, tensor<f32>
}

// -----

// What is read by reductions alone is parted before it is computed, once for all of them.
// CHECK-LABEL: func.func @square_and_largest
// CHECK-NEXT: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<4096x1024xf16>) -> tensor<[[PARTS:.*]]xf16>
// CHECK-NEXT: %[[W:.*]] = "ascend.cast"(%[[S]]) : (tensor<[[PARTS]]xf16>) -> tensor<[[PARTS]]xf32>
// CHECK-NEXT: %[[Q:.*]] = "ascend.mul"(%[[W]], %[[W]]) : {{.*}} -> tensor<[[PARTS]]xf32>
// CHECK-NEXT: "ascend.reduce"(%[[Q]])
// CHECK-NEXT: "ascend.reshape"{{.*}} {ascend.begins}
// CHECK-NEXT: "ascend.reduce"
// CHECK-NEXT: "ascend.reduce"(%[[S]])
// CHECK-NEXT: "ascend.reshape"{{.*}} {ascend.begins}
// CHECK-NEXT: "ascend.reduce"
// CHECK-NEXT: return
// ALONE-LABEL: func.func @square_and_largest
// ALONE-NOT: ascend.reshape
func.func @square_and_largest(%x: tensor<4096x1024xf16>) -> (tensor<f32>, tensor<f16>) {
  %0 = "ascend.cast"(%x) : (tensor<4096x1024xf16>) -> tensor<4096x1024xf32>
  %1 = "ascend.mul"(%0, %0) : (tensor<4096x1024xf32>, tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  %2 = "ascend.reduce"(%1) {kind = "add", dims = array<i64: 0, 1>} : (tensor<4096x1024xf32>) -> tensor<f32>
  %3 = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 0, 1>} : (tensor<4096x1024xf16>) -> tensor<f16>
  return %2, %3 : tensor<f32>, tensor<f16>
}

// -----

// Another reader wants the product whole: only what is summed is parted.
// CHECK-LABEL: func.func @returned_too
// CHECK-NEXT: "ascend.mul"(%arg0, %arg0) : {{.*}} -> tensor<4096x1024xf32>
// CHECK-NEXT: "ascend.reshape"
func.func @returned_too(%x: tensor<4096x1024xf32>) -> (tensor<f32>, tensor<4096x1024xf32>) {
  %0 = "ascend.mul"(%x, %x) : (tensor<4096x1024xf32>, tensor<4096x1024xf32>) -> tensor<4096x1024xf32>
  %1 = "ascend.reduce"(%0) {kind = "add", dims = array<i64: 0, 1>} : (tensor<4096x1024xf32>) -> tensor<f32>
  return %1, %0 : tensor<f32>, tensor<4096x1024xf32>
}

// -----

// Exponentials of a long row are summed in parts, each less its own maximum, and 64 lanes of each
// are joined; what needs the sum of the row comes behind.
// CHECK-LABEL: func.func @exponentials
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<1x131072xf32>) -> tensor<1x[[N:[0-9]+]]x[[K:[0-9]+]]x64xf32>
// CHECK: %[[M:.*]] = "ascend.reduce"(%[[S]]) {dims = array<i64: 2>, kind = "max"} : {{.*}} -> tensor<1x[[N]]x64xf32>
// CHECK: %[[E:.*]] = "ascend.exp"
// CHECK: %[[T:.*]] = "ascend.reduce"(%[[E]]) {dims = array<i64: 2>, kind = "add"} : {{.*}} -> tensor<1x[[N]]x64xf32>
// CHECK: %[[P:.*]] = "ascend.reshape"(%[[M]]) {ascend.begins}
// CHECK: "ascend.reduce"(%[[P]]) {dims = array<i64: 1>, kind = "max"} : {{.*}} -> tensor<1xf32>
// CHECK: %[[L:.*]] = "ascend.exp"
// CHECK: %[[Q:.*]] = "ascend.reshape"(%[[T]]) {ascend.begins}
// CHECK: %[[J:.*]] = "ascend.mul"(%[[Q]], %[[L]])
// CHECK: "ascend.reduce"(%[[J]]) {dims = array<i64: 1>, kind = "add"} : {{.*}} -> tensor<1xf32>
// CHECK: "ascend.div"
// ALONE-LABEL: func.func @exponentials
// ALONE-NEXT: "ascend.reduce"(%arg0)
func.func @exponentials(%x: tensor<1x131072xf32>) -> tensor<1x131072xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<1x131072xf32>) -> tensor<1xf32>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131072xf32>
  %d = "ascend.sub"(%x, %b) : (tensor<1x131072xf32>, tensor<1x131072xf32>) -> tensor<1x131072xf32>
  %e = "ascend.exp"(%d) : (tensor<1x131072xf32>) -> tensor<1x131072xf32>
  %s = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<1x131072xf32>) -> tensor<1xf32>
  %c = "ascend.broadcast"(%s) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131072xf32>
  %y = "ascend.div"(%e, %c) : (tensor<1x131072xf32>, tensor<1x131072xf32>) -> tensor<1x131072xf32>
  return %y : tensor<1x131072xf32>
}

// -----

// Of a row that has no equal parts the rest is joined with what they leave.
// CHECK-LABEL: func.func @vocabulary
// CHECK: "ascend.slice"(%arg0) {{.*}} -> tensor<1x[[W:[0-9]+]]xf32>
// CHECK: "ascend.reshape"{{.*}} : (tensor<1x[[W]]xf32>) -> tensor<1x[[N:[0-9]+]]x[[K:[0-9]+]]x8xf32>
// CHECK: %[[R:.*]] = "ascend.slice"(%arg0) {{.*}} -> tensor<1x[[J:[0-9]+]]xf32>
// CHECK: %[[L:.*]] = "ascend.min"(%[[R]], %{{.*}}) : (tensor<1x[[J]]xf32>, {{.*}}
// CHECK: "ascend.max"({{.*}}, %[[L]])
// CHECK: "ascend.sub"(%[[L]],
func.func @vocabulary(%x: tensor<1x131071xf32>) -> tensor<1x131071xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<1x131071xf32>) -> tensor<1xf32>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131071xf32>
  %d = "ascend.sub"(%x, %b) : (tensor<1x131071xf32>, tensor<1x131071xf32>) -> tensor<1x131071xf32>
  %e = "ascend.exp"(%d) : (tensor<1x131071xf32>) -> tensor<1x131071xf32>
  %s = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<1x131071xf32>) -> tensor<1xf32>
  %c = "ascend.broadcast"(%s) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131071xf32>
  %y = "ascend.div"(%e, %c) : (tensor<1x131071xf32>, tensor<1x131071xf32>) -> tensor<1x131071xf32>
  return %y : tensor<1x131071xf32>
}

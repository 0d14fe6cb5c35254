// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=8})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=8},ascend-split-reductions{cores=8})' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=1})' --split-input-file | FileCheck %s --check-prefix=ALONE
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-split-reductions{cores=3 launches=joined})' --split-input-file | FileCheck %s --check-prefix=JOINED

// 8 cores cannot share 5 rows evenly.
// CHECK-LABEL: func.func @uneven
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0)
// CHECK: %[[P:.*]] = "ascend.reduce"(%[[S]]) {{.*}}dims = array<i64: 2>
// CHECK: %[[B:.*]] = "ascend.reshape"(%[[P]]) {ascend.begins}
// CHECK: %[[R:.*]] = "ascend.reduce"(%[[B]]) {{.*}}dims = array<i64: 1>
// CHECK: return %[[R]] : tensor<5xf32>
// ALONE-LABEL: func.func @uneven
// ALONE-NEXT: "ascend.reduce"
// ALONE-NEXT: return
func.func @uneven(%x: tensor<5x1048576xf32>) -> tensor<5xf32> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<5x1048576xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

// Cores that share a row meet in one kernel: 16 MB to one value, and a softmax.
// CHECK-LABEL: func.func @met
// CHECK-NOT: ascend.reshape
// CHECK: return
func.func @met(%a: tensor<4096x1024xf32>, %x: tensor<1x131072xf32>) -> (tensor<f32>, tensor<1x131072xf32>) {
  %0 = "ascend.reduce"(%a) {kind = "add", dims = array<i64: 0, 1>} : (tensor<4096x1024xf32>) -> tensor<f32>
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<1x131072xf32>) -> tensor<1xf32>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131072xf32>
  %d = "ascend.sub"(%x, %b) : (tensor<1x131072xf32>, tensor<1x131072xf32>) -> tensor<1x131072xf32>
  %e = "ascend.exp"(%d) : (tensor<1x131072xf32>) -> tensor<1x131072xf32>
  %s = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<1x131072xf32>) -> tensor<1xf32>
  %c = "ascend.broadcast"(%s) {dims = array<i64: 0>} : (tensor<1xf32>) -> tensor<1x131072xf32>
  %y = "ascend.div"(%e, %c) : (tensor<1x131072xf32>, tensor<1x131072xf32>) -> tensor<1x131072xf32>
  return %0, %y : tensor<f32>, tensor<1x131072xf32>
}

// -----

// f16 is added in f32 all the way.
// CHECK-LABEL: func.func @half
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<5x1048576xf16>) -> tensor<5x[[PARTS:.*]]xf16>
// CHECK: "ascend.cast"(%[[S]]) : (tensor<5x[[PARTS]]xf16>) -> tensor<5x[[PARTS]]xf32>
// CHECK: "ascend.reduce"{{.*}} -> tensor<5x{{[0-9]+}}xf32>
// CHECK: %[[R:.*]] = "ascend.reduce"{{.*}} -> tensor<5xf32>
// CHECK: "ascend.cast"(%[[R]]) : (tensor<5xf32>) -> tensor<5xf16>
func.func @half(%x: tensor<5x1048576xf16>) -> tensor<5xf16> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<5x1048576xf16>) -> tensor<5xf16>
  return %0 : tensor<5xf16>
}

// -----

// Rows of 28 x 7 lanes are added first, in parts, then those that are left with the 7 lanes of each.
// CHECK-LABEL: func.func @around
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0) {{.*}} -> tensor<[[N:[0-9]+]]x{{[0-9]+}}x28x7xf32>
// CHECK: %[[P:.*]] = "ascend.reduce"(%[[S]]) {{.*}}dims = array<i64: 1>{{.*}} -> tensor<[[N]]x28x7xf32>
// CHECK: %[[B:.*]] = "ascend.reshape"(%[[P]]) {ascend.begins}
// CHECK: %[[R:.*]] = "ascend.reduce"(%[[B]]) {{.*}}dims = array<i64: 0, 2>{{.*}} -> tensor<28xf32>
// CHECK: return %[[R]]
// ALONE-LABEL: func.func @around
// ALONE-NEXT: "ascend.reduce"
// ALONE-NEXT: return
func.func @around(%x: tensor<2688x28x7xf32>) -> tensor<28xf32> {
  %0 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 0, 2>} : (tensor<2688x28x7xf32>) -> tensor<28xf32>
  return %0 : tensor<28xf32>
}

// -----

// Four rows of 14 numbers are seven blocks of 32 bytes, which are added together; not where a kernel
// may compute what else is made of them.
// CHECK-LABEL: func.func @blocks
// CHECK: %[[S:.*]] = "ascend.reshape"(%arg0) {{.*}} -> tensor<512x20x4x14xf32>
// CHECK: %[[E:.*]] = "ascend.exp"(%[[S]])
// CHECK: %[[P:.*]] = "ascend.reduce"(%[[E]]) {{.*}}dims = array<i64: 1>{{.*}} -> tensor<512x4x14xf32>
// CHECK: %[[B:.*]] = "ascend.reshape"(%[[P]]) {ascend.begins}
// CHECK: %[[R:.*]] = "ascend.reduce"(%[[B]]) {{.*}}dims = array<i64: 1>{{.*}} -> tensor<512x14xf32>
// CHECK: %[[T:.*]] = "ascend.reduce"(%arg1)
// CHECK: return %[[R]], %[[T]]
// ALONE-LABEL: func.func @blocks
// ALONE-NEXT: "ascend.exp"
// ALONE-NEXT: "ascend.reduce"
// ALONE-NEXT: "ascend.reduce"
func.func @blocks(%x: tensor<512x80x14xf32>, %y: tensor<512x80x14xf32>) -> (tensor<512x14xf32>, tensor<512x14xf32>, tensor<512x80x14xf32>) {
  %e = "ascend.exp"(%x) : (tensor<512x80x14xf32>) -> tensor<512x80x14xf32>
  %0 = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<512x80x14xf32>) -> tensor<512x14xf32>
  %1 = "ascend.reduce"(%y) {kind = "max", dims = array<i64: 1>} : (tensor<512x80x14xf32>) -> tensor<512x14xf32>
  %b = "ascend.broadcast"(%1) {dims = array<i64: 0, 2>} : (tensor<512x14xf32>) -> tensor<512x80x14xf32>
  %2 = "ascend.sub"(%y, %b) : (tensor<512x80x14xf32>, tensor<512x80x14xf32>) -> tensor<512x80x14xf32>
  return %0, %1, %2 : tensor<512x14xf32>, tensor<512x14xf32>, tensor<512x80x14xf32>
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
// CHECK-LABEL: func.func @square_and_sum
// CHECK-NEXT: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<5x1048576xf32>) -> tensor<[[PARTS:.*]]xf32>
// CHECK-NEXT: %[[Q:.*]] = "ascend.mul"(%[[S]], %[[S]]) : {{.*}} -> tensor<[[PARTS]]xf32>
// CHECK-NEXT: "ascend.reduce"(%[[Q]])
// CHECK-NEXT: "ascend.reshape"{{.*}} {ascend.begins}
// CHECK-NEXT: "ascend.reduce"
// CHECK-NEXT: "ascend.reduce"(%[[S]])
// CHECK-NEXT: "ascend.reshape"{{.*}} {ascend.begins}
// CHECK-NEXT: "ascend.reduce"
// CHECK-NEXT: return
// ALONE-LABEL: func.func @square_and_sum
// ALONE-NOT: ascend.reshape
func.func @square_and_sum(%x: tensor<5x1048576xf32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %1 = "ascend.mul"(%x, %x) : (tensor<5x1048576xf32>, tensor<5x1048576xf32>) -> tensor<5x1048576xf32>
  %2 = "ascend.reduce"(%1) {kind = "add", dims = array<i64: 1>} : (tensor<5x1048576xf32>) -> tensor<5xf32>
  %3 = "ascend.reduce"(%x) {kind = "add", dims = array<i64: 1>} : (tensor<5x1048576xf32>) -> tensor<5xf32>
  return %2, %3 : tensor<5xf32>, tensor<5xf32>
}

// -----

// Another reader wants the product whole: only what is summed is parted.
// CHECK-LABEL: func.func @returned_too
// CHECK-NEXT: "ascend.mul"(%arg0, %arg0) : {{.*}} -> tensor<5x1048576xf32>
// CHECK-NEXT: "ascend.reshape"
func.func @returned_too(%x: tensor<5x1048576xf32>) -> (tensor<5xf32>, tensor<5x1048576xf32>) {
  %0 = "ascend.mul"(%x, %x) : (tensor<5x1048576xf32>, tensor<5x1048576xf32>) -> tensor<5x1048576xf32>
  %1 = "ascend.reduce"(%0) {kind = "add", dims = array<i64: 1>} : (tensor<5x1048576xf32>) -> tensor<5xf32>
  return %1, %0 : tensor<5xf32>, tensor<5x1048576xf32>
}

// -----

// Where kernels are phases of one launch, exponentials of a long row are summed in parts, each less
// its own maximum, and 64 lanes of each are joined; what needs the sum of the row comes behind.
// JOINED-LABEL: func.func @exponentials
// JOINED: %[[S:.*]] = "ascend.reshape"(%arg0) : (tensor<2x393216xf32>) -> tensor<2x[[N:[0-9]+]]x[[K:[0-9]+]]x64xf32>
// JOINED: %[[M:.*]] = "ascend.reduce"(%[[S]]) {dims = array<i64: 2>, kind = "max"} : {{.*}} -> tensor<2x[[N]]x64xf32>
// JOINED: %[[E:.*]] = "ascend.exp"
// JOINED: %[[T:.*]] = "ascend.reduce"(%[[E]]) {dims = array<i64: 2>, kind = "add"} : {{.*}} -> tensor<2x[[N]]x64xf32>
// JOINED: %[[P:.*]] = "ascend.reshape"(%[[M]]) {ascend.begins}
// JOINED: "ascend.reduce"(%[[P]]) {dims = array<i64: 1>, kind = "max"} : {{.*}} -> tensor<2xf32>
// JOINED: %[[L:.*]] = "ascend.exp"
// JOINED: %[[Q:.*]] = "ascend.reshape"(%[[T]]) {ascend.begins}
// JOINED: %[[J:.*]] = "ascend.mul"(%[[Q]], %[[L]])
// JOINED: "ascend.reduce"(%[[J]]) {dims = array<i64: 1>, kind = "add"} : {{.*}} -> tensor<2xf32>
// JOINED: "ascend.log"
// ALONE-LABEL: func.func @exponentials
// ALONE-NEXT: "ascend.reduce"(%arg0)
func.func @exponentials(%x: tensor<2x393216xf32>) -> tensor<2xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<2x393216xf32>) -> tensor<2xf32>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x393216xf32>
  %d = "ascend.sub"(%x, %b) : (tensor<2x393216xf32>, tensor<2x393216xf32>) -> tensor<2x393216xf32>
  %e = "ascend.exp"(%d) : (tensor<2x393216xf32>) -> tensor<2x393216xf32>
  %s = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<2x393216xf32>) -> tensor<2xf32>
  %l = "ascend.log"(%s) : (tensor<2xf32>) -> tensor<2xf32>
  %y = "ascend.add"(%l, %m) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// -----

// Of a row that has no equal parts the rest is joined with what they leave.
// JOINED-LABEL: func.func @vocabulary
// JOINED: "ascend.slice"(%arg0) {{.*}} -> tensor<2x[[W:[0-9]+]]xf32>
// JOINED: "ascend.reshape"{{.*}} : (tensor<2x[[W]]xf32>) -> tensor<2x[[N:[0-9]+]]x[[K:[0-9]+]]x64xf32>
// JOINED: %[[R:.*]] = "ascend.slice"(%arg0) {{.*}} -> tensor<2x[[J:[0-9]+]]xf32>
// JOINED: %[[L:.*]] = "ascend.min"(%[[R]], %{{.*}}) : (tensor<2x[[J]]xf32>, {{.*}}
// JOINED: "ascend.max"({{.*}}, %[[L]])
// JOINED: "ascend.sub"(%[[L]],
func.func @vocabulary(%x: tensor<2x262147xf32>) -> tensor<2xf32> {
  %m = "ascend.reduce"(%x) {kind = "max", dims = array<i64: 1>} : (tensor<2x262147xf32>) -> tensor<2xf32>
  %b = "ascend.broadcast"(%m) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x262147xf32>
  %d = "ascend.sub"(%x, %b) : (tensor<2x262147xf32>, tensor<2x262147xf32>) -> tensor<2x262147xf32>
  %e = "ascend.exp"(%d) : (tensor<2x262147xf32>) -> tensor<2x262147xf32>
  %s = "ascend.reduce"(%e) {kind = "add", dims = array<i64: 1>} : (tensor<2x262147xf32>) -> tensor<2xf32>
  %l = "ascend.log"(%s) : (tensor<2xf32>) -> tensor<2xf32>
  %y = "ascend.add"(%l, %m) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-drop-guards)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-drop-guards,ascend-drop-guards)' --split-input-file | FileCheck %s

// Something is left of each row of a known mask: the softmax is a number everywhere.
// CHECK-LABEL: func.func @causal
// CHECK-NOT: ascend.select
// CHECK: %[[P:.*]] = "ascend.div"
// CHECK-NEXT: return %[[P]]
func.func @causal(%a: tensor<2x16xf16>, %b: tensor<2x16xf16>) -> tensor<2x2xf32> {
  %m = "ascend.constant"() {value = dense<[[0.0, 0xFF800000], [0.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<2x2xf32>
  %c = "ascend.matmul"(%a, %b) {transpose_b} : (tensor<2x16xf16>, tensor<2x16xf16>) -> tensor<2x2xf32>
  %x = "ascend.add"(%c, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "ascend.reduce"(%e) {dims = array<i64: 1>, kind = "add"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %p = "ascend.div"(%e, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
  %y = "ascend.select"(%n, %zero, %p) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// Nothing is left of the second row.
// CHECK-LABEL: func.func @nothing_left
// CHECK: ascend.select
func.func @nothing_left(%a: tensor<2x16xf16>, %b: tensor<2x16xf16>) -> tensor<2x2xf32> {
  %m = "ascend.constant"() {value = dense<[[0.0, 0xFF800000], [0xFF800000, 0xFF800000]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<2x2xf32>
  %c = "ascend.matmul"(%a, %b) {transpose_b} : (tensor<2x16xf16>, tensor<2x16xf16>) -> tensor<2x2xf32>
  %x = "ascend.add"(%c, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "ascend.reduce"(%e) {dims = array<i64: 1>, kind = "add"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %p = "ascend.div"(%e, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
  %y = "ascend.select"(%n, %zero, %p) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// A mask that the caller gives, and something that is no softmax.
// CHECK-LABEL: func.func @unknown
// CHECK: ascend.select
// CHECK: ascend.select
func.func @unknown(%a: tensor<2x16xf16>, %b: tensor<2x16xf16>, %m: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<2x2xf32>
  %c = "ascend.matmul"(%a, %b) {transpose_b} : (tensor<2x16xf16>, tensor<2x16xf16>) -> tensor<2x2xf32>
  %x = "ascend.add"(%c, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "ascend.reduce"(%e) {dims = array<i64: 1>, kind = "add"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %p = "ascend.div"(%e, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
  %y = "ascend.select"(%n, %zero, %p) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %o = "ascend.compare"(%c, %c) {predicate = "NE"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
  %z = "ascend.select"(%o, %zero, %c) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y, %z : tensor<2x2xf32>, tensor<2x2xf32>
}

// -----

// The caller's flags hide by the lowest f32, which is a number: no row is minus infinity.
// CHECK-LABEL: func.func @lowest_number
// CHECK: ascend.select
// CHECK-NOT: ascend.select
// CHECK: %[[P:.*]] = "ascend.div"
// CHECK-NEXT: return %[[P]]
func.func @lowest_number(%a: tensor<2x16xf16>, %b: tensor<2x16xf16>, %flags: tensor<2x2xi1>) -> tensor<2x2xf32> {
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<2x2xf32>
  %low = "ascend.full"() {value = -3.40282347E+38 : f32} : () -> tensor<2x2xf32>
  %m = "ascend.select"(%flags, %zero, %low) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %c = "ascend.matmul"(%a, %b) {transpose_b} : (tensor<2x16xf16>, tensor<2x16xf16>) -> tensor<2x2xf32>
  %x = "ascend.add"(%c, %m) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %e = "ascend.exp"(%2) : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %3 = "ascend.reduce"(%e) {dims = array<i64: 1>, kind = "add"} : (tensor<2x2xf32>) -> tensor<2xf32>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x2xf32>
  %p = "ascend.div"(%e, %4) : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xi1>
  %y = "ascend.select"(%n, %zero, %p) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}

// -----

// In f16 the lowest number and a score may be minus infinity.
// CHECK-LABEL: func.func @lowest_half
// CHECK-COUNT-2: ascend.select
func.func @lowest_half(%a: tensor<2x16xf16>, %b: tensor<2x16xf16>, %flags: tensor<2x2xi1>) -> tensor<2x2xf16> {
  %zero = "ascend.full"() {value = 0.0 : f16} : () -> tensor<2x2xf16>
  %low = "ascend.full"() {value = -65504.0 : f16} : () -> tensor<2x2xf16>
  %m = "ascend.select"(%flags, %zero, %low) : (tensor<2x2xi1>, tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %c = "ascend.matmul"(%a, %b) {transpose_b} : (tensor<2x16xf16>, tensor<2x16xf16>) -> tensor<2x2xf16>
  %x = "ascend.add"(%c, %m) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %0 = "ascend.reduce"(%x) {dims = array<i64: 1>, kind = "max"} : (tensor<2x2xf16>) -> tensor<2xf16>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf16>) -> tensor<2x2xf16>
  %2 = "ascend.sub"(%x, %1) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %e = "ascend.exp"(%2) : (tensor<2x2xf16>) -> tensor<2x2xf16>
  %3 = "ascend.reduce"(%e) {dims = array<i64: 1>, kind = "add"} : (tensor<2x2xf16>) -> tensor<2xf16>
  %4 = "ascend.broadcast"(%3) {dims = array<i64: 0>} : (tensor<2xf16>) -> tensor<2x2xf16>
  %p = "ascend.div"(%e, %4) : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  %n = "ascend.compare"(%p, %p) {predicate = "NE"} : (tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xi1>
  %y = "ascend.select"(%n, %zero, %p) : (tensor<2x2xi1>, tensor<2x2xf16>, tensor<2x2xf16>) -> tensor<2x2xf16>
  return %y : tensor<2x2xf16>
}

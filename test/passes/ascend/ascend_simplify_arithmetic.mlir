// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-arithmetic)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-arithmetic,ascend-simplify-arithmetic)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-arithmetic{rewrites=none})' | FileCheck %s --check-prefix=OFF
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-simplify-arithmetic{precision=fp32})' | FileCheck %s --check-prefix=EXACT

// drop-identities: exact, so with every precision.
// CHECK-LABEL: func.func @main
// CHECK-NOT: ascend.{{add|mul|neg}}
// CHECK: %[[R:.*]] = "ascend.relu"(%arg0)
// CHECK-NOT: ascend.relu
// CHECK: %[[S:.*]] = "ascend.sub"(%[[R]], %arg1)
// CHECK: return %[[S]]
// EXACT-LABEL: func.func @main
// EXACT: ascend.relu
// EXACT-NEXT: ascend.sub
// OFF-LABEL: func.func @main
// OFF: ascend.mul
// OFF: ascend.add
// OFF: ascend.neg
// OFF-COUNT-2: ascend.relu
func.func @main(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %one = "ascend.full"() {value = 1.0 : f32} : () -> tensor<4x8xf32>
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<4x8xf32>
  %0 = "ascend.mul"(%one, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = "ascend.add"(%0, %zero) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "ascend.neg"(%1) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = "ascend.neg"(%2) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = "ascend.relu"(%3) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "ascend.relu"(%4) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = "ascend.neg"(%y) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = "ascend.add"(%6, %5) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// -----

// fold-scales: a normalisation by known statistics is one product and one sum.
// CHECK-LABEL: func.func @main
// CHECK: "ascend.mul"(%arg0, %{{.*}})
// CHECK: ascend.{{add|sub}}
// CHECK-NEXT: return
// EXACT-LABEL: func.func @main
// EXACT: ascend.sub
// EXACT: ascend.div
// EXACT: ascend.mul
// EXACT: ascend.add
// OFF-LABEL: func.func @main
// OFF: ascend.div
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = "ascend.constant"() {value = dense<[1.0, 2.0, 3.0, 5.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %mean = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<4xf32>) -> tensor<2x4xf32>
  %d = "ascend.full"() {value = 3.0 : f32} : () -> tensor<2x4xf32>
  %0 = "ascend.sub"(%x, %mean) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ascend.div"(%0, %d) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ascend.mul"(%1, %mean) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "ascend.add"(%2, %mean) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3 : tensor<2x4xf32>
}

// -----

// Numbers that are added to round, and taken off again, stay.
// CHECK-LABEL: func.func @main
// CHECK: ascend.add
// CHECK: ascend.sub
// EXACT-LABEL: func.func @main
// OFF-LABEL: func.func @main
func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = "ascend.full"() {value = 12582912.0 : f32} : () -> tensor<2x4xf32>
  %0 = "ascend.add"(%x, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ascend.sub"(%0, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}

// -----

// divisions-to-products, but not where the quotient is rounded next, as in quantized layers, nor by
// a power of two, which kernels multiply by anyway.
// CHECK-LABEL: func.func @main
// CHECK-DAG: "ascend.mul"(%arg0
// CHECK-DAG: "ascend.div"(%arg1
// CHECK-DAG: "ascend.div"(%arg2
// EXACT-LABEL: func.func @main
// EXACT-NOT: ascend.mul
// OFF-LABEL: func.func @main
// OFF-NOT: ascend.mul
func.func @main(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>, %z: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %c = "ascend.full"() {value = 3.0 : f32} : () -> tensor<2x4xf32>
  %e = "ascend.full"() {value = 8.0 : f32} : () -> tensor<2x4xf32>
  %0 = "ascend.div"(%x, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ascend.div"(%y, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ascend.relu"(%1) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "ascend.round"(%2) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "ascend.div"(%z, %e) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %3, %4 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// reciprocal-roots, through a broadcast; a root that is returned, too, stays.
// CHECK-LABEL: func.func @main
// CHECK: %[[R:.*]] = "ascend.rsqrt"(%arg1)
// CHECK: %[[B:.*]] = "ascend.broadcast"(%[[R]])
// CHECK: "ascend.mul"(%arg0, %[[B]])
// CHECK: ascend.sqrt
// CHECK: ascend.div
// EXACT-LABEL: func.func @main
// EXACT-NOT: ascend.rsqrt
// OFF-LABEL: func.func @main
// OFF-NOT: ascend.rsqrt
func.func @main(%x: tensor<2x4xf32>, %v: tensor<2xf32>, %w: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %0 = "ascend.sqrt"(%v) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = "ascend.broadcast"(%0) {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<2x4xf32>
  %2 = "ascend.div"(%x, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "ascend.sqrt"(%w) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "ascend.div"(%x, %3) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %2, %4, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// tanh-to-logistic, where nothing else reads the tangent; the half before it goes with the two.
// CHECK-LABEL: func.func @main
// CHECK: %[[L:.*]] = "ascend.logistic"
// CHECK: %[[G:.*]] = "ascend.mul"(%arg0, %[[L]])
// CHECK: %[[T:.*]] = "ascend.tanh"(%arg1)
// CHECK: return %[[G]], %{{.*}}, %[[T]]
// EXACT-LABEL: func.func @main
// EXACT-NOT: ascend.logistic
// OFF-LABEL: func.func @main
// OFF-NOT: ascend.logistic
func.func @main(%x: tensor<2x4xf32>, %y: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %one = "ascend.full"() {value = 1.0 : f32} : () -> tensor<2x4xf32>
  %half = "ascend.full"() {value = 0.5 : f32} : () -> tensor<2x4xf32>
  %0 = "ascend.tanh"(%y) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ascend.add"(%one, %0) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ascend.mul"(%x, %half) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "ascend.mul"(%2, %1) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = "ascend.tanh"(%y) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %5 = "ascend.add"(%4, %one) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %3, %5, %4 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// powers: x ** 1.5 and x ** -0.5 are made of roots only where x is known to be positive.
// CHECK-LABEL: func.func @main
// CHECK: %[[A:.*]] = "ascend.abs"(%arg0)
// CHECK-DAG: %[[S:.*]] = "ascend.sqrt"(%[[A]])
// CHECK-DAG: "ascend.mul"(%[[S]], %[[A]])
// CHECK-DAG: ascend.exp
// CHECK-DAG: "ascend.pow"(%arg0
// CHECK-DAG: ascend.rsqrt
// EXACT-LABEL: func.func @main
// EXACT-COUNT-4: ascend.pow
// OFF-LABEL: func.func @main
// OFF-COUNT-4: ascend.pow
func.func @main(%x: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = "ascend.full"() {value = 1.5 : f32} : () -> tensor<2x4xf32>
  %b = "ascend.full"() {value = 2.0 : f32} : () -> tensor<2x4xf32>
  %c = "ascend.full"() {value = -0.5 : f32} : () -> tensor<2x4xf32>
  %e = "ascend.full"() {value = 1.0e-5 : f32} : () -> tensor<2x4xf32>
  %y = "ascend.abs"(%x) : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %0 = "ascend.pow"(%y, %a) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = "ascend.pow"(%b, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = "ascend.pow"(%x, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %q = "ascend.mul"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %p = "ascend.add"(%q, %e) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %3 = "ascend.pow"(%p, %c) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  return %0, %1, %2, %3 : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// floored-remainders: exact, so with every precision; the second one adds another number.
// CHECK-LABEL: func.func @main
// CHECK: %[[O:.*]] = "ascend.remainder"(%arg0, %arg1) :
// CHECK: %[[R:.*]] = "ascend.remainder"(%arg0, %arg1) {{.*}}down
// CHECK: %[[S:.*]] = "ascend.select"({{.*}}, {{.*}}, %[[O]])
// CHECK: return %[[R]], %[[S]]
// EXACT-LABEL: func.func @main
// EXACT: ascend.remainder{{.*}}down
// OFF-LABEL: func.func @main
// OFF-NOT: down
// OFF-COUNT-2: ascend.select
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = "ascend.full"() {value = 0.0 : f32} : () -> tensor<4xf32>
  %r = "ascend.remainder"(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %n = "ascend.compare"(%r, %zero) {predicate = "NE"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %a = "ascend.compare"(%r, %zero) {predicate = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %b = "ascend.compare"(%y, %zero) {predicate = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %d = "ascend.compare"(%a, %b) {predicate = "NE"} : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %c = "ascend.and"(%d, %n) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %s = "ascend.add"(%r, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %0 = "ascend.select"(%c, %s, %r) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = "ascend.add"(%r, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = "ascend.select"(%c, %t, %r) : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

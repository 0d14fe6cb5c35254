// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fold-constants)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-fold-constants,ascend-fold-constants)' --split-input-file | FileCheck %s

// A chain is computed in one go; the original goes.
// CHECK-LABEL: func.func @chain
// CHECK-NEXT: %[[C:.*]] = "ascend.constant"() {value = dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf16>}
// CHECK-NEXT: return %[[C]]
func.func @chain() -> tensor<2x2xf16> {
  %c = "ascend.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = "ascend.cast"(%c) : (tensor<2x2xf32>) -> tensor<2x2xf16>
  %1 = "ascend.transpose"(%0) {permutation = array<i64: 1, 0>} : (tensor<2x2xf16>) -> tensor<2x2xf16>
  return %1 : tensor<2x2xf16>
}

// -----

// Weights are laid out at compile time, with zeros around: the value is the array that lies in GM.
// CHECK-LABEL: func.func @weight
// CHECK-NOT: ascend.relayout
// CHECK: %[[W:.*]] = "ascend.constant"() {value = dense<"0x003C00400000{{0*}}42004400{{0*}}"> : tensor<1x1x16x16xf16>} : () -> tensor<2x2xf16, #ascend.layout<"nz">>
// CHECK: "ascend.matmul"(%arg0, %[[W]])
func.func @weight(%a: tensor<2x2xf16>) -> tensor<2x2xf32> {
  %c = "ascend.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
  %0 = "ascend.relayout"(%c) : (tensor<2x2xf16>) -> tensor<2x2xf16, #ascend.layout<"nz">>
  %1 = "ascend.matmul"(%a, %0) : (tensor<2x2xf16>, tensor<2x2xf16, #ascend.layout<"nz">>) -> tensor<2x2xf32>
  return %1 : tensor<2x2xf32>
}

// And brought back to rows.
// CHECK-LABEL: func.func @rows
// CHECK-NEXT: %[[C:.*]] = "ascend.constant"() {value = dense<{{\[\[}}1.000000e+00, 3.000000e+00], [2.000000e+00, 4.000000e+00]]> : tensor<2x2xf16>}
// CHECK-NEXT: return %[[C]]
func.func @rows() -> tensor<2x2xf16> {
  %c = "ascend.constant"() {value = dense<[[1.0, 2.0], [3.0, 4.0]]> : tensor<2x2xf16>} : () -> tensor<2x2xf16>
  %0 = "ascend.transpose"(%c) {permutation = array<i64: 1, 0>} : (tensor<2x2xf16>) -> tensor<2x2xf16>
  %1 = "ascend.relayout"(%0) : (tensor<2x2xf16>) -> tensor<2x2xf16, #ascend.layout<"nz">>
  %2 = "ascend.relayout"(%1) : (tensor<2x2xf16, #ascend.layout<"nz">>) -> tensor<2x2xf16>
  return %2 : tensor<2x2xf16>
}

// -----

// A result that would be much larger than its operands is left to the device; a product of constants is one.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: "ascend.matmul"
// CHECK: "ascend.broadcast"
// CHECK: "ascend.{{constant|full}}"() {value = {{.*}}5.000000e+00
func.func @left_alone() -> (tensor<1048577x2xf32>, tensor<1x1xf32>) {
  %c = "ascend.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<2xf32>) -> tensor<1048577x2xf32>
  %a = "ascend.constant"() {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
  %b = "ascend.constant"() {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %1 = "ascend.matmul"(%a, %b) : (tensor<1x2xf32>, tensor<2x1xf32>) -> tensor<1x1xf32>
  return %0, %1 : tensor<1048577x2xf32>, tensor<1x1xf32>
}

// -----

// A product that would take long is left to the device.
// CHECK-LABEL: func.func @many_multiplications
// CHECK: "ascend.matmul"
func.func @many_multiplications() -> tensor<1024x1024xf32> {
  %a = "ascend.full"() {value = 1.0 : f16} : () -> tensor<1024x1024xf16>
  %c = "ascend.matmul"(%a, %a) : (tensor<1024x1024xf16>, tensor<1024x1024xf16>) -> tensor<1024x1024xf32>
  return %c : tensor<1024x1024xf32>
}

// -----

// A row that is repeated for elementwise operators is read in place; others are given what they read.
// CHECK-LABEL: func.func @repeated
// CHECK: "ascend.constant"(){{.*}}tensor<16xf32>
// CHECK: "ascend.broadcast"
// CHECK: "ascend.constant"(){{.*}}tensor<512x16xf32>
func.func @repeated(%x: tensor<512x16xf32>) -> (tensor<512x16xf32>, tensor<512x16xf32>) {
  %c = "ascend.constant"() {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<16xf32>} : () -> tensor<16xf32>
  %0 = "ascend.broadcast"(%c) {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<512x16xf32>
  %1 = "ascend.add"(%x, %0) : (tensor<512x16xf32>, tensor<512x16xf32>) -> tensor<512x16xf32>
  %2 = "ascend.neg"(%c) : (tensor<16xf32>) -> tensor<16xf32>
  %3 = "ascend.broadcast"(%2) {dims = array<i64: 1>} : (tensor<16xf32>) -> tensor<512x16xf32>
  return %1, %3 : tensor<512x16xf32>, tensor<512x16xf32>
}

// -----

// Element types that NumPy has not are left to the device.
// CHECK-LABEL: func.func @no_array
// CHECK: "ascend.neg"
func.func @no_array() -> tensor<2xbf16> {
  %c = "ascend.constant"() {value = dense<[1.0, 2.0]> : tensor<2xbf16>} : () -> tensor<2xbf16>
  %0 = "ascend.neg"(%c) : (tensor<2xbf16>) -> tensor<2xbf16>
  return %0 : tensor<2xbf16>
}

// -----

// Kernels, and the functions of scalar calls, are no functions on tensors of the host.
// CHECK-LABEL: func.func private @scalar
// CHECK: "ascend.neg"
func.func private @scalar() -> tensor<2xf32> {
  %c = "ascend.constant"() {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = "ascend.neg"(%c) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

// What flags select that are known, and the same everywhere.
// CHECK-LABEL: func.func @known_flags
// CHECK-NEXT: return %arg0, %arg1
func.func @known_flags(%a: tensor<2x2xf32>, %b: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %n = "ascend.full"() {value = 2 : i32} : () -> tensor<2x2xi32>
  %c = "ascend.constant"() {value = dense<[[3, 4], [5, 6]]> : tensor<2x2xi32>} : () -> tensor<2x2xi32>
  %t = "ascend.compare"(%n, %c) {predicate = "LT"} : (tensor<2x2xi32>, tensor<2x2xi32>) -> tensor<2x2xi1>
  %f = "ascend.full"() {value = false} : () -> tensor<2x2xi1>
  %0 = "ascend.select"(%t, %a, %b) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = "ascend.select"(%f, %a, %b) : (tensor<2x2xi1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  return %0, %1 : tensor<2x2xf32>, tensor<2x2xf32>
}

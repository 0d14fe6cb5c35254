// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-narrow-integers,stablehlo-narrow-integers,canonicalize,cse)' | FileCheck %s

// Flags, counts and places are computed with 32 bits, and read so.
// CHECK-LABEL: func.func @places(
// CHECK-SAME: %[[MASK:.+]]: tensor<8xi1>, %[[TABLE:.+]]: tensor<20x64xf32>
// CHECK: %[[ONES:.+]] = stablehlo.convert %[[MASK]] : (tensor<8xi1>) -> tensor<8xi32>
// CHECK: %[[ALL:.+]] = stablehlo.reduce(%[[ONES]] init: %{{.+}}) applies stablehlo.add across
// CHECK-SAME: (tensor<8xi32>, tensor<i32>) -> tensor<i32>
// CHECK: %[[EACH:.+]] = stablehlo.broadcast_in_dim %[[ALL]], dims = [] : (tensor<i32>)
// CHECK: %[[AT:.+]] = stablehlo.divide %[[EACH]], %{{.+}} : tensor<8xi32>
// CHECK: "stablehlo.gather"(%[[TABLE]], %[[AT]])
// CHECK-SAME: (tensor<20x64xf32>, tensor<8xi32>) -> tensor<8x64xf32>
func.func @places(%mask: tensor<8xi1>, %table: tensor<20x64xf32>) -> tensor<8x64xf32> {
  %two = stablehlo.constant dense<2> : tensor<8xi64>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %ones = stablehlo.convert %mask : (tensor<8xi1>) -> tensor<8xi64>
  %all = stablehlo.reduce(%ones init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xi64>, tensor<i64>) -> tensor<i64>
  %each = stablehlo.broadcast_in_dim %all, dims = [] : (tensor<i64>) -> tensor<8xi64>
  %at = stablehlo.divide %each, %two : tensor<8xi64>
  %rows = "stablehlo.gather"(%table, %at) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 64>, indices_are_sorted = false} : (tensor<20x64xf32>, tensor<8xi64>) -> tensor<8x64xf32>
  return %rows : tensor<8x64xf32>
}

// What meets any number of 64 bits gets a result converted back.
// CHECK-LABEL: func.func @back(
// CHECK: %[[N:.+]] = stablehlo.subtract %{{.+}}, %{{.+}} : tensor<4xi32>
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[N]] : (tensor<4xi32>) -> tensor<4xi64>
// CHECK: stablehlo.add %[[WIDE]], %{{.+}} : tensor<4xi64>
func.func @back(%x: tensor<4xi8>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %numbers = stablehlo.iota dim = 0 : tensor<4xi64>
  %wide = stablehlo.convert %x : (tensor<4xi8>) -> tensor<4xi64>
  %less = stablehlo.subtract %wide, %numbers : tensor<4xi64>
  %sum = stablehlo.add %less, %y : tensor<4xi64>
  return %sum : tensor<4xi64>
}

// What may leave 32 bits stays: products of words, and a division by what may be zero.
// CHECK-LABEL: func.func @too_large(
// CHECK: stablehlo.multiply %{{.+}}, %{{.+}} : tensor<4xi64>
// CHECK: stablehlo.divide %{{.+}}, %{{.+}} : tensor<4xi64>
func.func @too_large(%x: tensor<4xi32>, %y: tensor<4xi32>) -> (tensor<4xi64>, tensor<4xi64>) {
  %a = stablehlo.convert %x : (tensor<4xi32>) -> tensor<4xi64>
  %b = stablehlo.convert %y : (tensor<4xi32>) -> tensor<4xi64>
  %product = stablehlo.multiply %a, %b : tensor<4xi64>
  %quotient = stablehlo.divide %a, %b : tensor<4xi64>
  return %product, %quotient : tensor<4xi64>, tensor<4xi64>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-doubles-as-integers,stablehlo-doubles-as-integers,canonicalize,cse)' | FileCheck %s

// What only moves is moved as integers, numbers that are known among them.
// CHECK-LABEL: func.func @moved(
// CHECK-SAME: %[[X:.+]]: tensor<2x3xf64>
// CHECK-DAG: %[[HALF:.+]] = stablehlo.constant dense<4602678819172646912> : tensor<i64>
// CHECK-DAG: %[[BITS:.+]] = stablehlo.bitcast_convert %[[X]] : (tensor<2x3xf64>) -> tensor<2x3xi64>
// CHECK: %[[T:.+]] = stablehlo.transpose %[[BITS]], dims = [1, 0] : (tensor<2x3xi64>) -> tensor<3x2xi64>
// CHECK: %[[P:.+]] = stablehlo.pad %[[T]], %[[HALF]], low = [0, 1], high = [0, 0], interior = [0, 0]
// CHECK: %[[R:.+]] = stablehlo.bitcast_convert %[[P]] : (tensor<3x3xi64>) -> tensor<3x3xf64>
// CHECK: return %[[R]]
func.func @moved(%x: tensor<2x3xf64>) -> tensor<3x3xf64> {
  %half = stablehlo.constant dense<0.5> : tensor<f64>
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf64>) -> tensor<3x2xf64>
  %1 = stablehlo.pad %0, %half, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<3x2xf64>, tensor<f64>) -> tensor<3x3xf64>
  return %1 : tensor<3x3xf64>
}

// A scatter that stores its updates moves them; one that adds them computes.
// CHECK-LABEL: func.func @scattered(
// CHECK: "stablehlo.scatter"(%{{.+}}, %{{.+}}, %{{.+}})
// CHECK: (tensor<8xi64>, tensor<2x1xi32>, tensor<2xi64>) -> tensor<8xi64>
// CHECK: "stablehlo.scatter"(%{{.+}}, %{{.+}}, %{{.+}})
// CHECK: (tensor<8xf64>, tensor<2x1xi32>, tensor<2xf64>) -> tensor<8xf64>
func.func @scattered(%x: tensor<8xf64>, %i: tensor<2x1xi32>, %u: tensor<2xf64>) -> tensor<8xf64> {
  %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    stablehlo.return %b : tensor<f64>
  }) : (tensor<8xf64>, tensor<2x1xi32>, tensor<2xf64>) -> tensor<8xf64>
  %1 = "stablehlo.scatter"(%0, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f64>, %b: tensor<f64>):
    %s = stablehlo.add %a, %b : tensor<f64>
    stablehlo.return %s : tensor<f64>
  }) : (tensor<8xf64>, tensor<2x1xi32>, tensor<2xf64>) -> tensor<8xf64>
  return %1 : tensor<8xf64>
}

// Many numbers are computed with as their bits, few stay.
// CHECK-LABEL: func.func @bits(
// CHECK: stablehlo.custom_call @ascend.double_from_single(%{{.+}}) : (tensor<199xf32>) -> tensor<199xi64>
// CHECK: stablehlo.custom_call @ascend.double_mul(%{{.+}}, %{{.+}}) : (tensor<199xi64>, tensor<199xi64>) -> tensor<199xi64>
// CHECK: stablehlo.custom_call @ascend.double_to_long(%{{.+}}) : (tensor<199xi64>) -> tensor<199xi64>
func.func @bits(%x: tensor<199xf64>, %s: tensor<199xf32>) -> tensor<199xi32> {
  %0 = stablehlo.convert %s : (tensor<199xf32>) -> tensor<199xf64>
  %1 = stablehlo.multiply %x, %0 : tensor<199xf64>
  %2 = stablehlo.convert %1 : (tensor<199xf64>) -> tensor<199xi32>
  return %2 : tensor<199xi32>
}

// CHECK-LABEL: func.func @computed(
// CHECK-NOT: i64
func.func @computed(%x: tensor<8xf64>) -> tensor<8xf64> {
  %0 = stablehlo.add %x, %x : tensor<8xf64>
  return %0 : tensor<8xf64>
}

// Many numbers are compared as integers in their order, and tested for NaN by their size; few stay.
// CHECK-LABEL: func.func @compared(
// CHECK: %[[SIZE:.+]] = stablehlo.and %{{.+}}, %{{.+}} : tensor<9x8xi64>
// CHECK: stablehlo.compare GT, %[[SIZE]], %{{.+}} : (tensor<9x8xi64>, tensor<9x8xi64>) -> tensor<9x8xi1>
// CHECK: stablehlo.maximum %{{.+}}, %{{.+}} : tensor<8xf64>
func.func @compared(%x: tensor<9x8xf64>, %y: tensor<8xf64>) -> (tensor<9x8xi1>, tensor<8xf64>) {
  %0 = stablehlo.compare NE, %x, %x, FLOAT : (tensor<9x8xf64>, tensor<9x8xf64>) -> tensor<9x8xi1>
  %1 = stablehlo.maximum %y, %y : tensor<8xf64>
  return %0, %1 : tensor<9x8xi1>, tensor<8xf64>
}

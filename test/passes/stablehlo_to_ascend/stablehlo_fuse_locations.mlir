// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-fuse-locations)' --mlir-print-debuginfo | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-fuse-locations,stablehlo-fuse-locations)' --mlir-print-debuginfo | FileCheck %s

// Equal operations on equal operands; one place is not named twice. Not if attributes differ, or if
// the operation is not pure.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.exponential %arg0 : tensor<8xf32> loc([[EXPS:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.exponential %arg0 : tensor<8xf32> loc([[EXP_1:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.abs %{{.*}} : tensor<8xf32> loc([[ABSS:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.abs %{{.*}} : tensor<8xf32> loc([[ABS_1:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.abs %{{.*}} : tensor<8xf32> loc([[ABS_0:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.compare LT, {{.*}} loc([[LESS:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.compare GT, {{.*}} loc([[GREATER:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.custom_call {{.*}} loc([[CALL_0:#loc[0-9]+]])
// CHECK-NEXT: stablehlo.custom_call {{.*}} loc([[CALL_1:#loc[0-9]+]])
// CHECK: [[EXP_0:#loc[0-9]+]] = loc("Exp_0")
// CHECK: [[EXP_1]] = loc("Exp_1")
// CHECK: [[ABS_0]] = loc("Abs_0")
// CHECK: [[ABS_1]] = loc("Abs_1")
// CHECK: [[LESS]] = loc("Less")
// CHECK: [[GREATER]] = loc("Greater")
// CHECK: [[CALL_0]] = loc("Call_0")
// CHECK: [[CALL_1]] = loc("Call_1")
// CHECK: [[EXPS]] = loc(fused{{.}}[[EXP_0]], [[EXP_1]]])
// CHECK: [[ABSS]] = loc(fused{{.}}[[ABS_0]], [[ABS_1]]])
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.exponential %x : tensor<8xf32> loc("Exp_0")
  %1 = stablehlo.exponential %x : tensor<8xf32> loc("Exp_1")
  %2 = stablehlo.abs %0 : tensor<8xf32> loc("Abs_0")
  %3 = stablehlo.abs %1 : tensor<8xf32> loc("Abs_1")
  %4 = stablehlo.abs %1 : tensor<8xf32> loc("Abs_0")
  %5 = stablehlo.compare LT, %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1> loc("Less")
  %6 = stablehlo.compare GT, %2, %3 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1> loc("Greater")
  %7 = stablehlo.custom_call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("Call_0")
  %8 = stablehlo.custom_call @f(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("Call_1")
  return %3, %4 : tensor<8xf32>, tensor<8xf32>
}

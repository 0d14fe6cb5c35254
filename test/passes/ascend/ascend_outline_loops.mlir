// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-loops,ascend-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-loops{machine=ascend910b})' | FileCheck %s --check-prefix=SPLIT

// The right factor comes as fractals of f16, the state stays a value of the loop.
// CHECK-LABEL: func.func @main
// CHECK: "ascend.transpose"
// CHECK: call @loop_matmul_add_tanh
// CHECK-NOT: ascend.loop
// CHECK: module @kernels
// CHECK: func.func @loop_matmul_add_tanh
// CHECK: scf.for
// CHECK: tensor.extract_slice
// CHECK: "ascend.matmul"({{.*}}) {transpose_b}
// CHECK: tensor.insert_slice
// CHECK: scf.yield

// Cores of two kinds have no way of keeping it: the step is copied.
// SPLIT-LABEL: func.func @main
// SPLIT-COUNT-5: "ascend.matmul"
// SPLIT-NOT: "ascend.matmul"
// SPLIT-NOT: custom_call
module {
  func.func @loop_0(%h: tensor<3x16xf32>, %g: tensor<3x16xf32>, %r: tensor<16x16xf32>) -> (tensor<3x16xf32>, tensor<3x16xf32>) attributes {ascend.loop, ascend.steps = 5 : i64, ascend.roles = ["state", "slice", "fixed"], ascend.outputs = ["slice"]} {
    %p = "ascend.matmul"(%h, %r) : (tensor<3x16xf32>, tensor<16x16xf32>) -> tensor<3x16xf32>
    %s = "ascend.add"(%g, %p) : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
    %n = "ascend.tanh"(%s) : (tensor<3x16xf32>) -> tensor<3x16xf32>
    return %n, %n : tensor<3x16xf32>, tensor<3x16xf32>
  }
  func.func @main(%h: tensor<3x16xf32>, %g: tensor<5x3x16xf32>, %r: tensor<16x16xf32>) -> (tensor<3x16xf32>, tensor<5x3x16xf32>) {
    %y:2 = stablehlo.custom_call @ascend.loop(%h, %g, %r) {ascend.body = @loop_0} : (tensor<3x16xf32>, tensor<5x3x16xf32>, tensor<16x16xf32>) -> (tensor<3x16xf32>, tensor<5x3x16xf32>)
    return %y#0, %y#1 : tensor<3x16xf32>, tensor<5x3x16xf32>
  }
}

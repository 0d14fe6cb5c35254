// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-outline-loops,ascend-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --split-input-file --pass-pipeline='builtin.module(ascend-outline-loops{machine=ascend910b})' | FileCheck %s --check-prefix=SPLIT

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

// Cores of two kinds keep it together: the same kernel.
// SPLIT-LABEL: func.func @main
// SPLIT: call @loop_matmul_add_tanh
// SPLIT-NOT: ascend.loop
// SPLIT: module @kernels
// SPLIT: func.func @loop_matmul_add_tanh
// SPLIT: scf.for
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

// -----

// The product with the rows of one loop goes into the step of the next, which takes a row of its
// results; both are one kernel, as they take less time.
// CHECK-LABEL: func.func @main
// CHECK-NOT: "ascend.matmul"
// CHECK: call @loop_matmul_add_tanh
// CHECK-NOT: ascend.loop
// CHECK-NOT: call
// CHECK: module @kernels
// CHECK: %[[FIRST:.*]]:2 = scf.for
// CHECK: scf.for
// CHECK: tensor.extract_slice %[[FIRST]]#1
// CHECK-COUNT-2: "ascend.matmul"
// CHECK-NOT: scf.for
// There loops hand no rows on, and each is a kernel.
// SPLIT-LABEL: func.func @main
// SPLIT: call @loop_matmul_add_tanh
// SPLIT: "ascend.matmul"
// SPLIT: call @loop_matmul_add_tanh
module {
  func.func @loop_0(%h: tensor<1x256xf32>, %g: tensor<1x256xf32>, %r: tensor<256x256xf32>) -> (tensor<1x256xf32>, tensor<1x256xf32>) attributes {ascend.loop, ascend.steps = 50 : i64, ascend.roles = ["state", "slice", "fixed"], ascend.outputs = ["slice"]} {
    %p = "ascend.matmul"(%h, %r) : (tensor<1x256xf32>, tensor<256x256xf32>) -> tensor<1x256xf32>
    %s = "ascend.add"(%g, %p) : (tensor<1x256xf32>, tensor<1x256xf32>) -> tensor<1x256xf32>
    %n = "ascend.tanh"(%s) : (tensor<1x256xf32>) -> tensor<1x256xf32>
    return %n, %n : tensor<1x256xf32>, tensor<1x256xf32>
  }
  func.func @main(%h: tensor<1x256xf32>, %g: tensor<50x1x256xf32>, %r: tensor<256x256xf32>, %w: tensor<256x256xf32>) -> tensor<50x1x256xf32> {
    %y:2 = stablehlo.custom_call @ascend.loop(%h, %g, %r) {ascend.body = @loop_0} : (tensor<1x256xf32>, tensor<50x1x256xf32>, tensor<256x256xf32>) -> (tensor<1x256xf32>, tensor<50x1x256xf32>)
    %a = "ascend.reshape"(%y#1) : (tensor<50x1x256xf32>) -> tensor<50x256xf32>
    %b = "ascend.matmul"(%a, %w) : (tensor<50x256xf32>, tensor<256x256xf32>) -> tensor<50x256xf32>
    %c = "ascend.reshape"(%b) : (tensor<50x256xf32>) -> tensor<50x1x256xf32>
    %z:2 = stablehlo.custom_call @ascend.loop(%h, %c, %r) {ascend.body = @loop_0} : (tensor<1x256xf32>, tensor<50x1x256xf32>, tensor<256x256xf32>) -> (tensor<1x256xf32>, tensor<50x1x256xf32>)
    return %z#1 : tensor<50x1x256xf32>
  }
}

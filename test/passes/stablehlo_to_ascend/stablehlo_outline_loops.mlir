// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-outline-loops,stablehlo-outline-loops)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-outline-loops{fusion=none})' | FileCheck %s --check-prefix=KEPT
// RUN: npu-opt %s --pass-pipeline='builtin.module(stablehlo-outline-loops{precision=fp32})' | FileCheck %s --check-prefix=KEPT

// A scan: the product with the slice is made for all steps, the output is written part by part.
// CHECK-LABEL: func.func @scan
// CHECK: stablehlo.dot_general {{.*}} -> tensor<5x3x8xf32>
// CHECK-NOT: stablehlo.while
// CHECK: stablehlo.custom_call @ascend.loop
// KEPT-LABEL: func.func @scan
// KEPT: stablehlo.while
func.func @scan(%xs: tensor<5x3x4xf32>, %w: tensor<4x8xf32>, %r: tensor<8x8xf32>, %h0: tensor<3x8xf32>) -> (tensor<3x8xf32>, tensor<5x3x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %last = stablehlo.constant dense<4> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<5x3x8xf32>
  %s:3 = stablehlo.while(%i = %zero, %h = %h0, %ys = %empty) : tensor<i32>, tensor<3x8xf32>, tensor<5x3x8xf32>
   cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %at = stablehlo.subtract %last, %i : tensor<i32>
    %cut = stablehlo.dynamic_slice %xs, %at, %zero, %zero, sizes = [1, 3, 4] : (tensor<5x3x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x4xf32>
    %x = stablehlo.reshape %cut : (tensor<1x3x4xf32>) -> tensor<3x4xf32>
    %g = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
    %p = stablehlo.dot_general %h, %r, contracting_dims = [1] x [0] : (tensor<3x8xf32>, tensor<8x8xf32>) -> tensor<3x8xf32>
    %t = stablehlo.add %g, %p : tensor<3x8xf32>
    %n = stablehlo.tanh %t : tensor<3x8xf32>
    %row = stablehlo.reshape %n : (tensor<3x8xf32>) -> tensor<1x3x8xf32>
    %next = stablehlo.dynamic_update_slice %ys, %row, %at, %zero, %zero : (tensor<5x3x8xf32>, tensor<1x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<5x3x8xf32>
    %following = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %following, %n, %next : tensor<i32>, tensor<3x8xf32>, tensor<5x3x8xf32>
  }
  return %s#1, %s#2 : tensor<3x8xf32>, tensor<5x3x8xf32>
}

// The number of steps depends on values, an output is read, a state is of integers: all stay.
// CHECK-LABEL: func.func @stays
// CHECK-COUNT-3: stablehlo.while
func.func @stays(%n: tensor<i32>, %x: tensor<4xf32>, %k: tensor<4xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<4> : tensor<i32>
  %a:2 = stablehlo.while(%i = %zero, %y = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %f = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.tanh %y : tensor<4xf32>
    stablehlo.return %f, %z : tensor<i32>, tensor<4xf32>
  }
  %b:3 = stablehlo.while(%i = %zero, %y = %x, %o = %x) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %f = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %o : tensor<4xf32>
    %part = stablehlo.slice %z [0:1] : (tensor<4xf32>) -> tensor<1xf32>
    %v = stablehlo.dynamic_update_slice %o, %part, %i : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
    stablehlo.return %f, %z, %v : tensor<i32>, tensor<4xf32>, tensor<4xf32>
  }
  %d:2 = stablehlo.while(%i = %zero, %y = %k) : tensor<i32>, tensor<4xi32>
   cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %f = stablehlo.add %i, %one : tensor<i32>
    %z = stablehlo.add %y, %k : tensor<4xi32>
    stablehlo.return %f, %z : tensor<i32>, tensor<4xi32>
  }
  return %a#1, %b#1, %d#1 : tensor<4xf32>, tensor<4xf32>, tensor<4xi32>
}

// CHECK-LABEL: func.func @loop_0
// CHECK-SAME: ascend.outputs = ["backwards"], ascend.roles = ["state", "fixed", "backwards"], ascend.steps = 5
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK-NOT: stablehlo.dot_general
// CHECK: stablehlo.tanh

// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(stablehlo-unroll-loops))' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(stablehlo-unroll-loops,stablehlo-unroll-loops))' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(stablehlo-unroll-loops{limit=3}))' | FileCheck %s --check-prefix=LIMIT

// LIMIT-LABEL: func.func @up
// LIMIT: stablehlo.while
// CHECK-LABEL: func.func @up(%arg0: tensor<4xf32>)
// CHECK-NOT: stablehlo.while
// CHECK: %[[A:.*]] = stablehlo.multiply %arg0, %arg0
// CHECK: %[[B:.*]] = stablehlo.multiply %[[A]], %arg0
// CHECK-NOT: stablehlo.multiply
// CHECK: %[[END:.*]] = stablehlo.constant dense<7> : tensor<i32>
// CHECK: return %[[END]], %[[B]]
func.func @up(%x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %start = stablehlo.constant dense<1> : tensor<i32>
  %step = stablehlo.constant dense<3> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %r:2 = stablehlo.while(%i = %start, %y = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %step, %i : tensor<i32>
    %z = stablehlo.multiply %y, %x : tensor<4xf32>
    stablehlo.return %n, %z : tensor<i32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<i32>, tensor<4xf32>
}

// A bound on the left, counting down, and a loop inside.
// CHECK-LABEL: func.func @down_nested
// CHECK-NOT: stablehlo.while
// CHECK-COUNT-6: stablehlo.multiply
// CHECK-NOT: stablehlo.multiply
// CHECK: return
func.func @down_nested(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %r:2 = stablehlo.while(%i = %two, %y = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %c = stablehlo.compare LE, %zero, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.subtract %i, %one : tensor<i32>
    %s:2 = stablehlo.while(%j = %zero, %z = %y) : tensor<i32>, tensor<4xf32>
     cond {
      %c = stablehlo.compare NE, %j, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %m = stablehlo.add %j, %one : tensor<i32>
      %w = stablehlo.multiply %z, %x : tensor<4xf32>
      stablehlo.return %m, %w : tensor<i32>, tensor<4xf32>
    }
    stablehlo.return %n, %s#1 : tensor<i32>, tensor<4xf32>
  }
  return %r#1 : tensor<4xf32>
}

// The bound is not known, the step is not known, and the counter overflows: all three stay.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-3: stablehlo.while
func.func @others(%x: tensor<i8>) -> (tensor<i8>, tensor<i8>, tensor<i8>) {
  %one = stablehlo.constant dense<1> : tensor<i8>
  %five = stablehlo.constant dense<5> : tensor<i8>
  %most = stablehlo.constant dense<127> : tensor<i8>
  %a = stablehlo.while(%i = %one) : tensor<i8> cond {
    %c = stablehlo.compare LT, %i, %x : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i8>
    stablehlo.return %n : tensor<i8>
  }
  %b = stablehlo.while(%i = %one) : tensor<i8> cond {
    %c = stablehlo.compare LT, %i, %five : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %i, %x : tensor<i8>
    stablehlo.return %n : tensor<i8>
  }
  %d = stablehlo.while(%i = %one) : tensor<i8> cond {
    %c = stablehlo.compare LE, %i, %most : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %n = stablehlo.add %i, %one : tensor<i8>
    stablehlo.return %n : tensor<i8>
  }
  return %a, %b, %d : tensor<i8>, tensor<i8>, tensor<i8>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(stablehlo-select-branches))' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(func.func(stablehlo-select-branches,stablehlo-select-branches))' | FileCheck %s

// CHECK-LABEL: func.func @two(%arg0: tensor<i1>, %arg1: tensor<4xf32>)
// CHECK: %[[A:.*]] = stablehlo.add
// CHECK: %[[R:.*]] = stablehlo.select %arg0, %[[A]], %arg1
// CHECK: return %[[R]], %arg1
func.func @two(%p: tensor<i1>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = "stablehlo.if"(%p) ({
    %a = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %a, %x : tensor<4xf32>, tensor<4xf32>
  }, {
    stablehlo.return %x, %x : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @several
// CHECK-NOT: stablehlo.case
// CHECK-NOT: stablehlo.if
// CHECK: %[[A:.*]] = stablehlo.add
// CHECK: %[[B:.*]] = stablehlo.select %arg1, %arg2,
// CHECK: %[[IS_0:.*]] = stablehlo.compare EQ
// CHECK: %[[IS_1:.*]] = stablehlo.compare EQ
// CHECK: %[[R:.*]] = stablehlo.select %[[IS_1]], %[[B]], %arg2
// CHECK: %[[S:.*]] = stablehlo.select %[[IS_0]], %[[A]], %[[R]]
// CHECK: return %[[S]]
func.func @several(%i: tensor<i32>, %p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = "stablehlo.case"(%i) ({
    %a = stablehlo.add %x, %x : tensor<4xf32>
    stablehlo.return %a : tensor<4xf32>
  }, {
    %b = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<4xf32> }, {
      %c = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %c : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    stablehlo.return %b : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @with_loops
// CHECK: stablehlo.if
// CHECK: stablehlo.while
// CHECK: stablehlo.while
// CHECK: stablehlo.if
func.func @with_loops(%p: tensor<i1>, %x: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %r = "stablehlo.if"(%p) ({
    %w = stablehlo.while(%y = %x) : tensor<f32> cond { stablehlo.return %p : tensor<i1> } do {
      %z = stablehlo.add %y, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }
    stablehlo.return %w : tensor<f32>
  }, { stablehlo.return %x : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
  %s = stablehlo.while(%y = %x) : tensor<f32> cond { stablehlo.return %p : tensor<i1> } do {
    %z = "stablehlo.if"(%p) ({ stablehlo.return %x : tensor<f32> }, {
      stablehlo.return %y : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %z : tensor<f32>
  }
  return %r, %s : tensor<f32>, tensor<f32>
}

// CHECK-LABEL: func.func @in_a_region
// CHECK: stablehlo.map
// CHECK-NOT: stablehlo.if
// CHECK: stablehlo.select
func.func @in_a_region(%x: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %r = "stablehlo.map"(%x) ({
  ^bb0(%a: tensor<f32>):
    %z = "stablehlo.if"(%p) ({ stablehlo.return %a : tensor<f32> }, {
      %n = stablehlo.negate %a : tensor<f32>
      stablehlo.return %n : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}

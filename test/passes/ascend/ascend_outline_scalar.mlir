// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-scalar)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-outline-scalar,ascend-outline-scalar)' --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @main(%arg0: tensor<3x8xf32>)
// CHECK: %[[A:.*]] = call @sine_0(%arg0)
// CHECK: call @sine_0(%[[A]])
// CHECK: func.func private @sine_0(tensor<3x8xf32>) -> tensor<3x8xf32>
// CHECK: module @kernels
// CHECK: func.func @sine_0(%[[X:arg0]]: memref<3x8xf32>, %[[Y:arg1]]: memref<3x8xf32>) attributes {ascend.kernel, ascend.label = "sine 3x8 f32", ascend.op = "sine", ascend.unit = "scalar", ascend.work = {read_bytes = 96 : i64, vector_repeats = 1 : i64, write_bytes = 96 : i64}}
// CHECK: scf.for
// CHECK: scf.for
// CHECK: %[[L:.*]] = memref.load %[[X]]
// CHECK: %[[S:.*]] = math.sin %[[L]] : f32
// CHECK: memref.store %[[S]], %[[Y]]
func.func @main(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %0 = call @sine_0(%x) : (tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = call @sine_0(%0) : (tensor<3x8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}
func.func private @sine_0(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %0 = stablehlo.sine %x : tensor<3x8xf32>
  return %0 : tensor<3x8xf32>
}

// -----

// Booleans are bytes in GM.
// CHECK-LABEL: func.func @main(%arg0: tensor<4xi1>
// CHECK: call @select_0(%{{.*}}, %{{.*}}, %{{.*}}) : (tensor<4xi1>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
// CHECK: func.func @select_0(%{{.*}}: memref<4xi8>, %{{.*}}: memref<4xi64>, %{{.*}}: memref<4xi64>, %{{.*}}: memref<4xi64>)
func.func @main(%p: tensor<4xi1>, %x: tensor<4xi64>) -> tensor<4xi64> {
  %0 = call @select_0(%p, %x, %x) : (tensor<4xi1>, tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}
func.func private @select_0(%p: tensor<4xi1>, %x: tensor<4xi64>, %y: tensor<4xi64>) -> tensor<4xi64> {
  %0 = stablehlo.select %p, %x, %y : tensor<4xi1>, tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

// Temporaries are further results of the call.
// CHECK-LABEL: func.func @main(%arg0: tensor<3x5xi1>)
// CHECK: %[[R:.*]]:2 = call @or_0(%arg0) : (tensor<3x5xi1>) -> (tensor<3xi1>, tensor<3xi8>)
// CHECK: return %[[R]]#0
// CHECK: func.func @or_0(%{{.*}}: memref<3x5xi8>, %{{.*}}: memref<3xi8>, %{{.*}}: memref<3xi8>)
// CHECK-NOT: memref.alloc
func.func @main(%p: tensor<3x5xi1>) -> tensor<3xi1> {
  %0 = call @or_0(%p) : (tensor<3x5xi1>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}
func.func private @or_0(%p: tensor<3x5xi1>) -> tensor<3xi1> {
  %c = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.reduce(%p init: %c) applies stablehlo.or across dimensions = [1] : (tensor<3x5xi1>, tensor<i1>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

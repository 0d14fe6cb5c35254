// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-bufferize)' --split-input-file | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(ascend-bufferize,ascend-bufferize)' --split-input-file | FileCheck %s

// One launch an operator; equal operators share a kernel. The last one writes the output argument.
// A buffer that is read no more is used again, two that live at once never overlap.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:arg0]]: memref<300xf32> {ascend.name = "x"}
// CHECK-SAME: %[[Y:arg1]]: memref<300xf32> {ascend.name = "y", ascend.output}
// CHECK-SAME: ascend.arena_bytes = 2752 : i64
// CHECK-SAME: ascend.arena_unplanned_bytes = 4608 : i64
// CHECK-SAME: ascend.entry
// CHECK: %[[W:.*]] = memref.get_global @constant_0 : memref<300xf32>
// CHECK: %[[A:.*]] = memref.alloc() {alignment = 512 : i64} : memref<2752xi8>
// CHECK: %[[T0:.*]] = memref.view %[[A]][%c0][] : memref<2752xi8> to memref<300xf32>
// CHECK: call @add_f32_300(%[[X]], %[[W]], %[[T0]]) {ascend.blocks = 1 : i64, ascend.operators = ["First"]}
// CHECK: %[[T1:.*]] = memref.view %[[A]][%c1536][]
// CHECK: call @add_f32_300(%[[T0]], %[[W]], %[[T1]])
// CHECK: %[[T2:.*]] = memref.view %[[A]][%{{.*}}][]
// CHECK: call @exp_f32_300(%[[T1]], %[[T2]])
// CHECK: call @exp_f32_300(%[[T2]], %[[Y]])
// CHECK-NEXT: return
// CHECK-DAG: func.func private @add_f32_300({{.*}}) attributes {ascend.launch = @kernels::@add_f32_300}
// CHECK-DAG: memref.global "private" constant @constant_0 : memref<300xf32> = dense<2.000000e+00>
// CHECK: module @kernels
// CHECK: func.func @add_f32_300(%arg0: memref<300xf32>, %arg1: memref<300xf32>, %arg2: memref<300xf32>) attributes {ascend.kernel, ascend.label = "add 300 f32", ascend.op = "add", ascend.unit = "vector", ascend.work = {read_bytes = 2400 : i64, vector_repeats = 5 : i64, write_bytes = 1200 : i64}}
// CHECK-NEXT: %[[P:.*]] = bufferization.to_tensor %arg0 restrict
// CHECK-NEXT: %[[Q:.*]] = bufferization.to_tensor %arg1 restrict
// CHECK-NEXT: %[[R:.*]] = "ascend.add"(%[[P]], %[[Q]])
// CHECK-NEXT: bufferization.materialize_in_destination %[[R]] in restrict writable %arg2
// CHECK-NEXT: return
// CHECK: func.func @exp_f32_300
// CHECK-NOT: func.func
func.func @main(%x: tensor<300xf32> {ascend.name = "x"}) -> (tensor<300xf32> {ascend.name = "y"}) {
  %w = "ascend.constant"() {value = dense<2.0> : tensor<300xf32>} : () -> tensor<300xf32>
  %w2 = "ascend.constant"() {value = dense<2.0> : tensor<300xf32>} : () -> tensor<300xf32>
  %0 = "ascend.add"(%x, %w) : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32> loc("First")
  %1 = "ascend.add"(%0, %w2) : (tensor<300xf32>, tensor<300xf32>) -> tensor<300xf32>
  %2 = "ascend.exp"(%1) : (tensor<300xf32>) -> tensor<300xf32>
  %3 = "ascend.exp"(%2) : (tensor<300xf32>) -> tensor<300xf32>
  return %3 : tensor<300xf32>
}

// -----

// `full` goes into the kernels of operators, also through a reshape; kernels with different values
// differ. Matrix products run on the cube.
// CHECK-LABEL: func.func @main
// CHECK: call @mul_f32_6(%arg0, %{{.*}})
// CHECK: call @mul_f32_6_1(%{{.*}}, %{{.*}})
// CHECK-NOT: get_global
// CHECK: call @concat_f32_12(%{{.*}}, %arg{{.*}})
// CHECK: call @matmul_f32_16x16
// CHECK: func.func @mul_f32_6(
// CHECK: %[[F:.*]] = "ascend.full"() {value = 5.000000e-01 : f32} : () -> tensor<6xf32>
// CHECK: "ascend.mul"(%{{.*}}, %[[F]])
// CHECK: func.func @mul_f32_6_1(
// CHECK: "ascend.full"() {value = 2.500000e-01 : f32}
// CHECK: @matmul_f32_16x16({{.*}}ascend.unit = "cube"
func.func @main(%x: tensor<6xf32>, %a: tensor<16x16xf16, #ascend.layout<"nz">>) -> (tensor<12xf32>, tensor<16x16xf32, #ascend.layout<"nz">>) {
  %half = "ascend.full"() {value = 0.5 : f32} : () -> tensor<2x3xf32>
  %flat = "ascend.reshape"(%half) : (tensor<2x3xf32>) -> tensor<6xf32>
  %quarter = "ascend.full"() {value = 0.25 : f32} : () -> tensor<6xf32>
  %0 = "ascend.mul"(%x, %flat) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %1 = "ascend.mul"(%0, %quarter) : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  %2 = "ascend.concat"(%1, %quarter) {dim = 0 : i64} : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
  %3 = "ascend.matmul"(%a, %a) : (tensor<16x16xf16, #ascend.layout<"nz">>, tensor<16x16xf16, #ascend.layout<"nz">>) -> tensor<16x16xf32, #ascend.layout<"nz">>
  return %2, %3 : tensor<12xf32>, tensor<16x16xf32, #ascend.layout<"nz">>
}

// -----

// A reshape is a view, of an argument, of an output, or of the arena.
// CHECK-LABEL: func.func @main(%arg0: memref<2x3xf32>
// CHECK: %[[X:.*]] = memref.reinterpret_cast %arg0 to offset: [0], sizes: [6], strides: [1]
// CHECK: call @exp_f32_6(%[[X]], %[[T:.*]])
// CHECK: %[[V:.*]] = memref.view %{{.*}} to memref<3x2xf32>
// CHECK: %[[Y:.*]] = memref.reinterpret_cast %arg1 to offset: [0], sizes: [3, 2], strides: [2, 1]
// CHECK: call @exp_f32_3x2(%[[V]], %[[Y]])
func.func @main(%x: tensor<2x3xf32>) -> tensor<1x6xf32> {
  %0 = "ascend.reshape"(%x) : (tensor<2x3xf32>) -> tensor<6xf32>
  %1 = "ascend.exp"(%0) : (tensor<6xf32>) -> tensor<6xf32>
  %2 = "ascend.reshape"(%1) : (tensor<6xf32>) -> tensor<3x2xf32>
  %3 = "ascend.exp"(%2) : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %4 = "ascend.reshape"(%3) : (tensor<3x2xf32>) -> tensor<1x6xf32>
  return %4 : tensor<1x6xf32>
}

// -----

// Arguments and constants that are returned are copied; a value returned twice is not.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg2: memref<4xf32> {ascend.name = "out1", ascend.output, ascend.same = 0 : i64}
// CHECK: call @exp_f32_4(%arg0, %arg1)
// CHECK-NEXT: call @copy_f32_4(%arg0, %arg3)
// CHECK-NEXT: %[[C:.*]] = memref.get_global
// CHECK-NEXT: call @copy_f32_4(%[[C]], %arg4)
// CHECK-NEXT: return
// CHECK: "ascend.copy"(%{{.*}}) : (tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = "ascend.full"() {value = 1.0 : f32} : () -> tensor<4xf32>
  %0 = "ascend.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %0, %x, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Booleans are bytes in buffers.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %arg0: memref<4xi8>
// CHECK: memref.global "private" constant @{{.*}} : memref<4xi8> = dense<[1, 0, 1, 1]>
// CHECK: %[[N:.*]] = "ascend.not"(%{{.*}}) : (tensor<4xi1>) -> tensor<4xi1>
// CHECK: %[[B:.*]] = builtin.unrealized_conversion_cast %[[N]] : tensor<4xi1> to tensor<4xi8>
// CHECK: materialize_in_destination %[[B]] in restrict writable %arg1
// CHECK: "ascend.full"() {value = true} : () -> tensor<4xi1>
// CHECK: "ascend.compare"({{.*}}) {predicate = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @main(%x: tensor<4xi1>, %y: tensor<4xf32>) -> (tensor<4xi1>, tensor<4xi1>) {
  %c = "ascend.constant"() {value = dense<[true, false, true, true]> : tensor<4xi1>} : () -> tensor<4xi1>
  %true = "ascend.full"() {value = true} : () -> tensor<4xi1>
  %0 = "ascend.not"(%x) : (tensor<4xi1>) -> tensor<4xi1>
  %1 = "ascend.and"(%0, %c) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %2 = "ascend.xor"(%1, %true) : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %3 = "ascend.compare"(%y, %y) {predicate = "LT"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  return %2, %3 : tensor<4xi1>, tensor<4xi1>
}

// -----

// Nothing is launched for empty tensors.
// CHECK-LABEL: func.func @main
// CHECK-SAME: ascend.arena_bytes = 0 : i64
// CHECK-NOT: call
// CHECK: return
func.func @main(%x: tensor<0x3xf32>) -> (tensor<0x3xf32>, tensor<0x3xf32>) {
  %0 = "ascend.exp"(%x) : (tensor<0x3xf32>) -> tensor<0x3xf32>
  return %0, %x : tensor<0x3xf32>, tensor<0x3xf32>
}

// -----

// A call of a function that is a scalar kernel already is a launch of it.
// CHECK-LABEL: func.func @main
// CHECK: call @f(%arg0, %arg1) {ascend.blocks = 1 : i64, ascend.operators = ["line {{.*}}"]} : (memref<4xf32>, memref<4xf32>) -> ()
// CHECK: func.func private @f(memref<4xf32>, memref<4xf32>) attributes {ascend.launch = @kernels::@f}
// CHECK-NOT: tensor
func.func private @f(tensor<4xf32>) -> tensor<4xf32>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
module @kernels {
  func.func @f(%x: memref<4xf32>, %y: memref<4xf32>) attributes {ascend.kernel, ascend.op = "f", ascend.unit = "scalar"} {
    return
  }
}

// -----

// Views in nz and slices that leave bytes in place are no launch: heads split, and one of three merged products.
// CHECK-LABEL: func.func @main
// CHECK: call @exp_f16_100x2304(%arg0, %{{.*}})
// CHECK: %[[OFFSET:.*]] = arith.constant 172032 : index
// CHECK: %[[PART:.*]] = memref.view %{{.*}}[%[[OFFSET]]][] : memref<{{.*}}xi8> to memref<12x4x7x16x16xf16>
// CHECK-NEXT: call @neg_f16_12x100x64(%[[PART]], %arg1)
// CHECK-NEXT: return
func.func @main(%x: tensor<100x2304xf16, #ascend.layout<"nz">>) -> tensor<12x100x64xf16, #ascend.layout<"nz">> {
  %0 = "ascend.exp"(%x) : (tensor<100x2304xf16, #ascend.layout<"nz">>) -> tensor<100x2304xf16, #ascend.layout<"nz">>
  %1 = "ascend.slice"(%0) {starts = array<i64: 0, 768>, limits = array<i64: 100, 1536>, strides = array<i64: 1, 1>} : (tensor<100x2304xf16, #ascend.layout<"nz">>) -> tensor<100x768xf16, #ascend.layout<"nz">>
  %2 = "ascend.view"(%1) {shape = array<i64: 100, 12, 64>, permutation = array<i64: 1, 0, 2>} : (tensor<100x768xf16, #ascend.layout<"nz">>) -> tensor<12x100x64xf16, #ascend.layout<"nz">>
  %3 = "ascend.neg"(%2) : (tensor<12x100x64xf16, #ascend.layout<"nz">>) -> tensor<12x100x64xf16, #ascend.layout<"nz">>
  return %3 : tensor<12x100x64xf16, #ascend.layout<"nz">>
}

// -----

// Kernels cut what lies in an argument or will in an output, and rows off blocks; a returned part is copied.
// CHECK-LABEL: func.func @main
// CHECK: call @slice_f32_2x3(%arg0
// CHECK: call @slice_f32_17x8(%arg1
// CHECK: call @slice_f32_1x5({{.*}}) {{.*}} : (memref<4x5xf32>, memref<1x5xf32>)
// CHECK: call @copy_f32_2x8({{.*}}, %arg6)
// CHECK: "ascend.slice"({{.*}}) {limits = array<i64: 17, 40>, starts = array<i64: 0, 32>, strides = array<i64: 1, 1>}
func.func @main(%x: tensor<4x3xf32>, %y: tensor<17x40xf32, #ascend.layout<"nz">>, %z: tensor<4x5xf32>, %u: tensor<4x8xf32>)
    -> (tensor<2x3xf32>, tensor<17x8xf32, #ascend.layout<"nz">>, tensor<2x8xf32>, tensor<1x5xf32>) {
  %0 = "ascend.slice"(%x) {starts = array<i64: 1, 0>, limits = array<i64: 3, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = "ascend.slice"(%y) {starts = array<i64: 0, 32>, limits = array<i64: 17, 40>, strides = array<i64: 1, 1>} : (tensor<17x40xf32, #ascend.layout<"nz">>) -> tensor<17x8xf32, #ascend.layout<"nz">>
  %2 = "ascend.exp"(%z) : (tensor<4x5xf32>) -> tensor<4x5xf32>
  %3 = "ascend.slice"(%2) {starts = array<i64: 1, 0>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<4x5xf32>) -> tensor<1x5xf32>
  %4 = "ascend.exp"(%u) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = "ascend.slice"(%4) {starts = array<i64: 1, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %0, %1, %5, %3 : tensor<2x3xf32>, tensor<17x8xf32, #ascend.layout<"nz">>, tensor<2x8xf32>, tensor<1x5xf32>
}

// -----

// Fractals are arrays in buffers.
// CHECK-LABEL: func.func @main
// CHECK: func.func @matmul_f32_17x5(%arg0: memref<2x3x16x16xf16>, %arg1: memref<3x1x16x16xf16>, %arg2: memref<1x2x16x16xf32>)
// CHECK: "ascend.matmul"({{.*}}) {transpose_a, transpose_b}
func.func @main(%a: tensor<33x17xf16, #ascend.layout<"nz">>, %b: tensor<5x33xf16, #ascend.layout<"nz">>) -> tensor<17x5xf32, #ascend.layout<"nz">> {
  %0 = "ascend.matmul"(%a, %b) {transpose_a, transpose_b} : (tensor<33x17xf16, #ascend.layout<"nz">>, tensor<5x33xf16, #ascend.layout<"nz">>) -> tensor<17x5xf32, #ascend.layout<"nz">>
  return %0 : tensor<17x5xf32, #ascend.layout<"nz">>
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-cce{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-linalg-to-cce{machine=ascend910b},convert-linalg-to-cce{machine=ascend910b})' | FileCheck %s

// A masked load of a tile that a loop moves along, x / (1 + exp(-x)), and a masked store.
// CHECK-LABEL: func.func @silu
// CHECK-SAME: attributes {ascend.core = "aiv", ascend.kernel}
// CHECK-DAG: [[ONE:%.+]] = arith.constant 1.000000e+00 : f32
// CHECK: scf.for [[I:%.+]] = {{.*}} {
// CHECK: [[LEFT:%.+]] = arith.subi
// CHECK: [[X:%.+]] = memref.alloc() : memref<64xf32, #cce.space<"UB">>
// CHECK-NEXT: [[ROW:%.+]] = memref.reinterpret_cast [[X]]
// CHECK-NEXT: "cce.copy_rows"(%arg0, [[ROW]], [[I]], {{%.+}}, {{%.+}}, [[LEFT]])
// CHECK: "cce.vmuls"
// CHECK: "cce.vexp"
// CHECK: "cce.vadds"({{%.+}}, [[ONE]], {{%.+}})
// CHECK: "cce.vdiv"
// CHECK: "cce.copy_rows"({{%.+}}, %arg1, [[I]], {{%.+}}, {{%.+}}, [[LEFT]])
func.func @silu(%x: memref<1000xf32>, %y: memref<1000xf32>)
    attributes {ascend.kernel, ascend.core = "aiv", ascend.upstream} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c1000 = arith.constant 1000 : index
  %one = arith.constant dense<1.0> : tensor<64xf32>
  scf.for %i = %c0 to %c1000 step %c64 {
    %rest = arith.subi %c1000, %i : index
    %from = memref.reinterpret_cast %x to offset: [%i], sizes: [64], strides: [1] : memref<1000xf32> to memref<64xf32, strided<[1], offset: ?>>
    %to = memref.reinterpret_cast %y to offset: [%i], sizes: [64], strides: [1] : memref<1000xf32> to memref<64xf32, strided<[1], offset: ?>>
    %buffer = memref.alloc() : memref<64xf32>
    %part = memref.subview %from[0] [%rest] [1] : memref<64xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    %held = memref.subview %buffer[0] [%rest] [1] : memref<64xf32> to memref<?xf32, strided<[1]>>
    memref.copy %part, %held : memref<?xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1]>>
    %a = bufferization.to_tensor %buffer restrict writable : memref<64xf32> to tensor<64xf32>
    %n = arith.negf %a : tensor<64xf32>
    %e = math.exp %n : tensor<64xf32>
    %d = arith.addf %e, %one : tensor<64xf32>
    %r = arith.divf %a, %d : tensor<64xf32>
    %slice = tensor.extract_slice %r[0] [%rest] [1] : tensor<64xf32> to tensor<?xf32>
    %out = memref.subview %to[0] [%rest] [1] : memref<64xf32, strided<[1], offset: ?>> to memref<?xf32, strided<[1], offset: ?>>
    bufferization.materialize_in_destination %slice in writable %out : (tensor<?xf32>, memref<?xf32, strided<[1], offset: ?>>) -> ()
  }
  return
}

// The sum of a row stays on the vector unit: it lies in a block, which is a divisor of all of them.
// CHECK-LABEL: func.func @shares
// CHECK: "cce.copy_rows"(%arg0,
// CHECK: "cce.vcadd"
// CHECK-NOT: memref.load
// CHECK: "cce.vdiv"({{.*}} : (memref<16x8xf32, strided<[8, 1]>, #cce.space<"UB">>, memref<16x8xf32, strided<[0, 1]>, #cce.space<"UB">>
// CHECK: "cce.copy_rows"({{.*}}, %arg0
func.func @shares(%x: memref<128xf32>)
    attributes {ascend.kernel, ascend.core = "aiv", ascend.upstream} {
  %zero = arith.constant 0.0 : f32
  %part = memref.reinterpret_cast %x to offset: [0], sizes: [128], strides: [1] : memref<128xf32> to memref<128xf32, strided<[1]>>
  %buffer = memref.alloc() : memref<128xf32>
  memref.copy %part, %buffer : memref<128xf32, strided<[1]>> to memref<128xf32>
  %a = bufferization.to_tensor %buffer restrict writable : memref<128xf32> to tensor<128xf32>
  %none = bufferization.alloc_tensor() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%none : tensor<f32>) -> tensor<f32>
  %sum = linalg.reduce ins(%a : tensor<128xf32>) outs(%start : tensor<f32>) dimensions = [0]
    (%in: f32, %so_far: f32) {
      %more = arith.addf %in, %so_far : f32
      linalg.yield %more : f32
    }
  %total = tensor.extract %sum[] : tensor<f32>
  %empty = tensor.empty() : tensor<128xf32>
  %all = linalg.fill ins(%total : f32) outs(%empty : tensor<128xf32>) -> tensor<128xf32>
  %r = arith.divf %a, %all : tensor<128xf32>
  bufferization.materialize_in_destination %r in writable %part : (tensor<128xf32>, memref<128xf32, strided<[1]>>) -> ()
  return
}

// A kernel that is no kernel of upstream dialects stays as it is.
// CHECK-LABEL: func.func @other
// CHECK-NEXT: "cce.vexp"
func.func @other(%u: memref<64xf32, #cce.space<"UB">>) attributes {ascend.kernel} {
  "cce.vexp"(%u, %u) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  return
}

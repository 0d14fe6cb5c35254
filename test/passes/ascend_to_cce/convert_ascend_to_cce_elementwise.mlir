// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{core-choice=all})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{core-choice=all},convert-ascend-to-cce{core-choice=all})' | FileCheck %s

// One portion: copied in whole blocks, computed up to the end of the last one.
// CHECK-LABEL: @short
// CHECK-SAME: ascend.blocks = 1
// CHECK-NOT: cce.get_block_idx
// CHECK: "cce.copy"({{.*}}) {round_up} : (memref<13xf32
// CHECK: "cce.copy"({{.*}}) {round_up} : (memref<13xf32
// CHECK: "cce.vadd"({{.*}}) : (memref<16xf32
// CHECK: "cce.copy"({{.*}}) {round_up} : (memref<13xf32
func.func @short(%a: memref<13xf32>, %b: memref<13xf32>, %r: memref<13xf32>)
    attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<13xf32> to tensor<13xf32>
  %tb = bufferization.to_tensor %b restrict : memref<13xf32> to tensor<13xf32>
  %y = "ascend.add"(%ta, %tb) : (tensor<13xf32>, tensor<13xf32>) -> tensor<13xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<13xf32>, memref<13xf32>) -> ()
  return
}

// Tiles of whole repeats shared by the blocks; the last one is moved back to be whole blocks, and
// done by the block that does the tile it overlaps.
// CHECK-LABEL: @overlapping
// CHECK-SAME: ascend.blocks = 16
// CHECK: %[[BLOCK:.*]] = "cce.get_block_idx"()
// CHECK: %[[OWN:.*]] = arith.cmpi ult, %[[BLOCK]], %
// CHECK: scf.if %[[OWN]]
// CHECK: "cce.vexp"({{.*}}) : (memref<128xf32
// CHECK: } else {
// CHECK: [1920] [128] [1]
// CHECK: "cce.vexp"({{.*}}) : (memref<128xf32
// CHECK: [2043] [8] [1]
// CHECK: "cce.vexp"({{.*}}) : (memref<8xf32
func.func @overlapping(%a: memref<2051xf32>, %r: memref<2051xf32>) attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<2051xf32> to tensor<2051xf32>
  %y = "ascend.exp"(%ta) : (tensor<2051xf32>) -> tensor<2051xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<2051xf32>, memref<2051xf32>) -> ()
  return
}

// An operand that is the same everywhere is a scalar operand, or a buffer filled before the loop.
// CHECK-LABEL: @constant_operands
// CHECK: "cce.vector_dup"
// CHECK: "cce.vmax"({{.*}}memref<16x8xf32, strided<[0, 1]>
// CHECK-LABEL: @scalar_operand
// CHECK-NOT: "cce.vector_dup"
// CHECK: "cce.vmuls"
func.func @constant_operands(%a: memref<4096xf32>, %r: memref<4096xf32>)
    attributes {ascend.kernel} {
  %c = "ascend.full"() {value = 2.0 : f32} : () -> tensor<4096xf32>
  %ta = bufferization.to_tensor %a restrict : memref<4096xf32> to tensor<4096xf32>
  %y = "ascend.max"(%ta, %c) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<4096xf32>, memref<4096xf32>) -> ()
  return
}
func.func @scalar_operand(%a: memref<4096xf32>, %r: memref<4096xf32>)
    attributes {ascend.kernel} {
  %c = "ascend.full"() {value = 2.0 : f32} : () -> tensor<4096xf32>
  %ta = bufferization.to_tensor %a restrict : memref<4096xf32> to tensor<4096xf32>
  %y = "ascend.mul"(%ta, %c) : (tensor<4096xf32>, tensor<4096xf32>) -> tensor<4096xf32>
  bufferization.materialize_in_destination %y in restrict writable %r : (tensor<4096xf32>, memref<4096xf32>) -> ()
  return
}

// A comparison selects halves of 1 and 0, which become bytes.
// CHECK-LABEL: @compare
// CHECK: "cce.vcmpsel"({{.*}}) {predicate = "lt"}
// CHECK: "cce.vconv"({{.*}}xf32, {{.*}}xf16
// CHECK: "cce.vconv"({{.*}}xf16, {{.*}}xi8
func.func @compare(%a: memref<64xf32>, %b: memref<64xf32>, %r: memref<64xi8>)
    attributes {ascend.kernel} {
  %ta = bufferization.to_tensor %a restrict : memref<64xf32> to tensor<64xf32>
  %tb = bufferization.to_tensor %b restrict : memref<64xf32> to tensor<64xf32>
  %y = "ascend.compare"(%ta, %tb) {predicate = "LT"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xi1>
  %bytes = builtin.unrealized_conversion_cast %y : tensor<64xi1> to tensor<64xi8>
  bufferization.materialize_in_destination %bytes in restrict writable %r : (tensor<64xi8>, memref<64xi8>) -> ()
  return
}

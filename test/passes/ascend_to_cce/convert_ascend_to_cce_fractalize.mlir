// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1},canonicalize,cse)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1 fractalize=naive},canonicalize,cse)' | FileCheck %s --check-prefix=NAIVE
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-ascend-to-cce{cores=1},convert-ascend-to-cce{cores=1},canonicalize,cse)' | FileCheck %s

// 32 x 768 at a time, on two buffers in turn: one gather of repeat 96, two scatters of repeat 48, two
// blocks a burst.
// CHECK-LABEL: func.func @improved
// CHECK: scf.for
// CHECK-COUNT-2: memref.alloc() {cce.slots = 2 : i64} : memref<24576xf16, #cce.space<"UB">>
// CHECK: "cce.copy"
// CHECK: "cce.vnchwconv"{{.*}} : (memref<16x96x16xf16, strided<[1536, 16, 1]>, #cce.space<"UB">>, memref<16x96x16xf16, strided<[16, 256, 1]>, #cce.space<"UB">>)
// CHECK-COUNT-2: "cce.vnchwconv"{{.*}} : (memref<16x48x16xf16, {{.*}}memref<16x48x16xf16, strided<[32, 512, 1]
// CHECK: "cce.copy"{{.*}} : (memref<48x2x16x16xf16, strided<[512, 256, 16, 1]>, #cce.space<"UB">>
// CHECK: }

// Strips of 16 x 768: gathered, and transposed back.
// NAIVE-LABEL: func.func @improved
// NAIVE: scf.for
// NAIVE: "cce.copy"
// NAIVE-COUNT-2: "cce.vnchwconv"{{.*}} : (memref<16x48x16xf16
// NAIVE-NOT: vnchwconv
// NAIVE: "cce.copy"
// NAIVE-NOT: cce.copy
// NAIVE-LABEL: func.func @ragged
func.func @improved(%a: memref<512x768xf16>, %b: memref<48x32x16x16xf16>)
    attributes {ascend.kernel, ascend.op = "fractalize", ascend.unit = "vector"} {
  %ta = bufferization.to_tensor %a restrict : memref<512x768xf16> to tensor<512x768xf16>
  %y = "ascend.relayout"(%ta) : (tensor<512x768xf16>) -> tensor<512x768xf16, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<512x768xf16, #ascend.layout<"nz">> to tensor<48x32x16x16xf16>
  bufferization.materialize_in_destination %y_buffer in restrict writable %b : (tensor<48x32x16x16xf16>, memref<48x32x16x16xf16>) -> ()
  return
}

// Rows come as the run that they are in GM, and below them zeros; they are parted word by word.
// CHECK-LABEL: func.func @ragged
// CHECK: "cce.vector_dup"
// CHECK: "cce.copy"{{.*}} {round_up} : (memref<340xf16
// CHECK-NOT: scf.for
// CHECK: "cce.vnchwconv"
// CHECK: "cce.vor"
// CHECK-COUNT-2: "cce.vnchwconv"
// CHECK: "cce.copy"{{.*}} : (memref<2x2x16x16xf16
// Naive: rows are loaded one by one, the last one without touching what follows; what came behind
// the rows is overwritten between the two transpositions.
// NAIVE: scf.for
// NAIVE: "cce.copy"{{.*}} {round_up}
// NAIVE: memref.load
// NAIVE: memref.store
// NAIVE: "cce.vnchwconv"
// NAIVE: "cce.vector_dup"
// NAIVE: "cce.vnchwconv"
func.func @ragged(%a: memref<20x17xf16>, %b: memref<2x2x16x16xf16>)
    attributes {ascend.kernel, ascend.op = "fractalize", ascend.unit = "vector"} {
  %ta = bufferization.to_tensor %a restrict : memref<20x17xf16> to tensor<20x17xf16>
  %y = "ascend.relayout"(%ta) : (tensor<20x17xf16>) -> tensor<20x17xf16, #ascend.layout<"nz">>
  %y_buffer = builtin.unrealized_conversion_cast %y : tensor<20x17xf16, #ascend.layout<"nz">> to tensor<2x2x16x16xf16>
  bufferization.materialize_in_destination %y_buffer in restrict writable %b : (tensor<2x2x16x16xf16>, memref<2x2x16x16xf16>) -> ()
  return
}

// 32-bit elements come in whole columns of fractals, which begin in different banks; the vector
// unit puts them into rows.
// CHECK-LABEL: func.func @back
// CHECK-NOT: vnchwconv
// CHECK: "cce.copy"{{.*}} memref<4x2x16x16xf32, strided<[520, 256, 16, 1]>, #cce.space<"UB">>) -> ()
// CHECK: "cce.vmuls"{{.*}} memref<4x2x16x16xf32, strided<[16, 1024, 64, 1]>, #cce.space<"UB">>) -> ()
// CHECK: "cce.copy"
func.func @back(%a: memref<4x2x16x16xf32>, %b: memref<32x64xf32>)
    attributes {ascend.kernel, ascend.op = "defractalize", ascend.unit = "vector"} {
  %ta_buffer = bufferization.to_tensor %a restrict : memref<4x2x16x16xf32> to tensor<4x2x16x16xf32>
  %ta = builtin.unrealized_conversion_cast %ta_buffer : tensor<4x2x16x16xf32> to tensor<32x64xf32, #ascend.layout<"nz">>
  %y = "ascend.relayout"(%ta) : (tensor<32x64xf32, #ascend.layout<"nz">>) -> tensor<32x64xf32>
  bufferization.materialize_in_destination %y in restrict writable %b : (tensor<32x64xf32>, memref<32x64xf32>) -> ()
  return
}

// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(join-loads-and-products)' | FileCheck %s
// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(join-loads-and-products,join-loads-and-products)' | FileCheck %s

!a1 = memref<1024xf16, #cce.space<"L1">>
!a0 = memref<512xf16, #cce.space<"L0A">>
!b0 = memref<256xf16, #cce.space<"L0B">>

// Two steps of k that lie behind each other in L1 are one product, at the place of the second; A
// is blocks of k by blocks of m, B blocks of n by blocks of k.
// CHECK-LABEL: func.func @steps
// CHECK-NOT: L0A
// CHECK: "cce.nd2nz"
// CHECK: [[A:%.+]] = memref.reinterpret_cast {{.*}} sizes: [2, 2, 16, 16], strides: [512, 256, 16, 1]
// CHECK-NEXT: [[B:%.+]] = memref.reinterpret_cast {{.*}} to offset: [512], sizes: [1, 2, 16, 16], strides: [512, 256, 16, 1]
// CHECK-NEXT: "cce.mad_l1"([[A]], [[B]], {{.*}}) : (
// CHECK-NOT: cce.mad
// CHECK: return
func.func @steps(%x: memref<16x16xf16>, %y: memref<32x16xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %false = arith.constant false
  %l1 = memref.alloc() {cce.address = 0 : i64} : !a1
  %other = memref.alloc() {cce.address = 2048 : i64} : !a1
  %l0a = memref.alloc() {cce.address = 0 : i64} : !a0
  %l0b = memref.alloc() {cce.address = 0 : i64} : !b0
  %l0c = memref.alloc() {cce.address = 0 : i64} : memref<1x2x16x16xf32, #cce.space<"L0C">>
  %a_first = memref.reinterpret_cast %l1 to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 512, 16, 1] : !a1 to memref<2x1x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>
  %a_next = memref.reinterpret_cast %l1 to offset: [512], sizes: [2, 1, 16, 16], strides: [256, 512, 16, 1] : !a1 to memref<2x1x16x16xf16, strided<[256, 512, 16, 1], offset: 512>, #cce.space<"L1">>
  %b_first = memref.reinterpret_cast %other to offset: [512], sizes: [1, 1, 16, 16], strides: [256, 512, 16, 1] : !a1 to memref<1x1x16x16xf16, strided<[256, 512, 16, 1], offset: 512>, #cce.space<"L1">>
  %b_next = memref.reinterpret_cast %other to offset: [768], sizes: [1, 1, 16, 16], strides: [256, 512, 16, 1] : !a1 to memref<1x1x16x16xf16, strided<[256, 512, 16, 1], offset: 768>, #cce.space<"L1">>
  %rows = memref.reinterpret_cast %other to offset: [0], sizes: [1, 16, 16], strides: [256, 16, 1] : !a1 to memref<1x16x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %a = memref.reinterpret_cast %l0a to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1] : !a0 to memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>
  %b = memref.reinterpret_cast %l0b to offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : !b0 to memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0B">>
  "cce.nd2nz"(%x, %rows) : (memref<16x16xf16>, memref<1x16x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "M", event = 0 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "M", event = 0 : i64} : () -> ()
  "cce.load2d"(%a_first, %a) : (memref<2x1x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>, memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b_first, %b) {transpose} : (memref<1x1x16x16xf16, strided<[256, 512, 16, 1], offset: 512>, #cce.space<"L1">>, memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0B">>) -> ()
  "cce.mad"(%a, %b, %l0c, %true) : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>, memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0B">>, memref<1x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  "cce.load2d"(%a_next, %a) : (memref<2x1x16x16xf16, strided<[256, 512, 16, 1], offset: 512>, #cce.space<"L1">>, memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b_next, %b) {transpose} : (memref<1x1x16x16xf16, strided<[256, 512, 16, 1], offset: 768>, #cce.space<"L1">>, memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0B">>) -> ()
  "cce.mad"(%a, %b, %l0c, %false) : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>, memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0B">>, memref<1x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  "cce.fixpipe"(%l0c, %y) : (memref<1x2x16x16xf32, #cce.space<"L0C">>, memref<32x16xf16>) -> ()
  return
}

// What was loaded is overwritten in L1 before the product: it stays with its loads.
// CHECK-LABEL: func.func @overwritten
// CHECK: "cce.mad"(
// CHECK-NOT: mad_l1
func.func @overwritten(%x: memref<16x16xf16>) attributes {ascend.kernel} {
  %true = arith.constant true
  %l1 = memref.alloc() : !a1
  %l0a = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<1x1x16x16xf32, #cce.space<"L0C">>
  %f = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : !a1 to memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  %rows = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 16, 16], strides: [256, 16, 1] : !a1 to memref<1x16x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  "cce.load2d"(%f, %l0a) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.nd2nz"(%x, %rows) : (memref<16x16xf16>, memref<1x16x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.load2d"(%f, %l0b) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.mad"(%l0a, %l0b, %l0c, %true) : (memref<1x1x16x16xf16, #cce.space<"L0A">>, memref<1x1x16x16xf16, #cce.space<"L0B">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

// B is made by two loads, one of them of a buffer that is full of one number, and of the A that was
// loaded only half is multiplied: two products, the second one with the other column of C. What
// overwrites A in L1 comes behind them, also where a flag tells other cores that they may go on, for
// none of the launch writes to the argument.
// CHECK-LABEL: func.func @parts
// CHECK-NOT: L0A
// CHECK-NOT: "cce.nd2nz"
// CHECK: [[A:%.+]] = memref.reinterpret_cast %alloc to offset: [256], sizes: [1, 1, 16, 16]
// CHECK-NEXT: [[B:%.+]] = memref.reinterpret_cast [[OTHER:%.+]] to offset: [0], sizes: [1, 1, 16, 16]
// CHECK-NEXT: "cce.mad_l1"([[A]], [[B]], {{.*}}) {b_transpose} : {{.*}}memref<1x1x16x16xf32, strided<[256, 256, 16, 1]>,
// CHECK: "cce.mad_l1"({{.*}}) {b_transpose} : {{.*}}memref<1x1x16x16xf32, strided<[256, 256, 16, 1], offset: 256>,
// CHECK-NEXT: "cce.nd2nz"
// CHECK: return
func.func @parts(%x: memref<32x16xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %l1 = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %other = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %ones = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %l0a = memref.alloc() : memref<512xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<512xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<2x1x16x16xf32, #cce.space<"L0C">>
  %fill = memref.reinterpret_cast %ones to offset: [0], sizes: [1, 256], strides: [256, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x256xf16, strided<[256, 1]>, #cce.space<"L1">>
  %one = memref.reinterpret_cast %ones to offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  %image = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 1, 32, 16], strides: [512, 512, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>
  %rows = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 32, 16], strides: [512, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x32x16xf16, strided<[512, 16, 1]>, #cce.space<"L1">>
  %column = memref.reinterpret_cast %other to offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  %a = memref.reinterpret_cast %l0a to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L0A">> to memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>
  %half = memref.reinterpret_cast %l0a to offset: [256], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L0A">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 256>, #cce.space<"L0A">>
  %b_column = memref.reinterpret_cast %l0b to offset: [0], sizes: [1, 1, 16, 16], strides: [512, 256, 16, 1] : memref<512xf16, #cce.space<"L0B">> to memref<1x1x16x16xf16, strided<[512, 256, 16, 1]>, #cce.space<"L0B">>
  %b_one = memref.reinterpret_cast %l0b to offset: [256], sizes: [1, 1, 16, 16], strides: [512, 256, 16, 1] : memref<512xf16, #cce.space<"L0B">> to memref<1x1x16x16xf16, strided<[512, 256, 16, 1], offset: 256>, #cce.space<"L0B">>
  %b = memref.reinterpret_cast %l0b to offset: [0], sizes: [1, 2, 16, 16], strides: [512, 256, 16, 1] : memref<512xf16, #cce.space<"L0B">> to memref<1x2x16x16xf16, strided<[512, 256, 16, 1]>, #cce.space<"L0B">>
  "cce.clear_l1"(%fill) {bits = 15360 : i64} : (memref<1x256xf16, strided<[256, 1]>, #cce.space<"L1">>) -> ()
  "cce.load2d"(%one, %b_one) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf16, strided<[512, 256, 16, 1], offset: 256>, #cce.space<"L0B">>) -> ()
  "cce.load3d"(%image, %c0, %c0, %a) {kernel = array<i64: 1, 1>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0>, element = 0 : i64} : (memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>, index, index, memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L0A">>) -> ()
  "cce.nd2nz"(%x, %rows) : (memref<32x16xf16>, memref<1x32x16xf16, strided<[512, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.set_core_flag"() {flag = 1 : i64, pipe = "FIX"} : () -> ()
  "cce.load2d"(%column, %b_column) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf16, strided<[512, 256, 16, 1]>, #cce.space<"L0B">>) -> ()
  "cce.mad"(%half, %b, %l0c, %true) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 256>, #cce.space<"L0A">>, memref<1x2x16x16xf16, strided<[512, 256, 16, 1]>, #cce.space<"L0B">>, memref<2x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

// Rows that columns of fractals lack: a fill of each column, or where there are many one of the
// whole buffer in front of the rows.
// CHECK-LABEL: func.func @fills
// CHECK: "cce.nd2nz"
// CHECK-NEXT: "cce.clear_l1"({{.*}}) : (memref<2x128xf16,
// CHECK: [[ALL:%.+]] = memref.reinterpret_cast %{{.*}} to offset: [512], sizes: [1, 16384], strides: [16384, 1]
// CHECK-NEXT: "cce.clear_l1"([[ALL]])
// CHECK-NEXT: "cce.nd2nz"
// CHECK-NOT: "cce.clear_l1"
// CHECK: return
func.func @fills(%x: memref<8x1024xf16>, %y: memref<8x32xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %few = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %many = memref.alloc() : memref<16896xf16, #cce.space<"L1">>
  %l0a = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<1x1x16x16xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<1x1x16x16xf32, #cce.space<"L0C">>
  %few_rows = memref.reinterpret_cast %few to offset: [0], sizes: [2, 8, 16], strides: [256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<2x8x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %few_rest = memref.reinterpret_cast %few to offset: [128], sizes: [2, 128], strides: [256, 1] : memref<512xf16, #cce.space<"L1">> to memref<2x128xf16, strided<[256, 1], offset: 128>, #cce.space<"L1">>
  %many_rows = memref.reinterpret_cast %many to offset: [512], sizes: [64, 8, 16], strides: [256, 16, 1] : memref<16896xf16, #cce.space<"L1">> to memref<64x8x16xf16, strided<[256, 16, 1], offset: 512>, #cce.space<"L1">>
  %many_rest = memref.reinterpret_cast %many to offset: [640], sizes: [64, 128], strides: [256, 1] : memref<16896xf16, #cce.space<"L1">> to memref<64x128xf16, strided<[256, 1], offset: 640>, #cce.space<"L1">>
  %a = memref.reinterpret_cast %few to offset: [0], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  %b = memref.reinterpret_cast %many to offset: [512], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<16896xf16, #cce.space<"L1">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 512>, #cce.space<"L1">>
  "cce.nd2nz"(%y, %few_rows) : (memref<8x32xf16>, memref<2x8x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%few_rest) : (memref<2x128xf16, strided<[256, 1], offset: 128>, #cce.space<"L1">>) -> ()
  "cce.nd2nz"(%x, %many_rows) : (memref<8x1024xf16>, memref<64x8x16xf16, strided<[256, 16, 1], offset: 512>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%many_rest) : (memref<64x128xf16, strided<[256, 1], offset: 640>, #cce.space<"L1">>) -> ()
  "cce.load2d"(%a, %l0a) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b, %l0b) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 512>, #cce.space<"L1">>, memref<1x1x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.mad"(%l0a, %l0b, %l0c, %true) : (memref<1x1x16x16xf16, #cce.space<"L0A">>, memref<1x1x16x16xf16, #cce.space<"L0B">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

// Four rows of four fractals each. The first two come by one load of eight long rows, the others are
// full of zeros. Products read columns, so two loads bring four fractals each, of neighbouring
// columns; what these fractals lack is filled column by column, and so are the two whole ones behind
// them.
// CHECK-LABEL: func.func @columns
// CHECK-NOT: L0A
// CHECK: [[LEFT:%.+]] = memref.subview %arg0[0, 0] [8, 64] [1, 1]
// CHECK-NEXT: [[EVEN:%.+]] = memref.reinterpret_cast [[L1:%.+]] to offset: [0], sizes: [4, 8, 16], strides: [1024, 16, 1]
// CHECK-NEXT: "cce.nd2nz"([[LEFT]], [[EVEN]])
// CHECK: [[RIGHT:%.+]] = memref.subview %arg0[0, 64] [8, 64] [1, 1]
// CHECK-NEXT: [[ODD:%.+]] = memref.reinterpret_cast [[L1]] to offset: [256], sizes: [4, 8, 16], strides: [1024, 16, 1]
// CHECK-NEXT: "cce.nd2nz"([[RIGHT]], [[ODD]])
// CHECK: [[REST:%.+]] = memref.reinterpret_cast [[L1]] to offset: [128], sizes: [2, 128], strides: [256, 1]
// CHECK-NEXT: "cce.clear_l1"([[REST]])
// CHECK: [[ZEROS:%.+]] = memref.reinterpret_cast [[L1]] to offset: [512], sizes: [1, 512], strides: [512, 1]
// CHECK-NEXT: "cce.clear_l1"([[ZEROS]])
// CHECK: [[ZEROS:%.+]] = memref.reinterpret_cast [[L1]] to offset: [1536], sizes: [1, 512], strides: [512, 1]
// CHECK-NEXT: "cce.clear_l1"([[ZEROS]])
// CHECK: to offset: [2560], sizes: [1, 512]
// CHECK: to offset: [3584], sizes: [1, 512]
// CHECK: [[A:%.+]] = memref.reinterpret_cast [[L1]] to offset: [0], sizes: [4, 4, 16, 16], strides: [1024, 256, 16, 1]
// CHECK: "cce.mad_l1"([[A]], {{.*}}) {b_transpose}
// CHECK: return
func.func @columns(%x: memref<8x128xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %l1 = memref.alloc() : memref<4096xf16, #cce.space<"L1">>
  %other = memref.alloc() : !a1
  %l0a = memref.alloc() : memref<4x4x16x16xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<4x1x16x16xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<1x4x16x16xf32, #cce.space<"L0C">>
  %rows = memref.reinterpret_cast %l1 to offset: [0], sizes: [8, 8, 16], strides: [256, 16, 1] : memref<4096xf16, #cce.space<"L1">> to memref<8x8x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %rest = memref.reinterpret_cast %l1 to offset: [128], sizes: [8, 128], strides: [256, 1] : memref<4096xf16, #cce.space<"L1">> to memref<8x128xf16, strided<[256, 1], offset: 128>, #cce.space<"L1">>
  %zeros = memref.reinterpret_cast %l1 to offset: [2048], sizes: [1, 2048], strides: [2048, 1] : memref<4096xf16, #cce.space<"L1">> to memref<1x2048xf16, strided<[2048, 1], offset: 2048>, #cce.space<"L1">>
  %a = memref.reinterpret_cast %l1 to offset: [0], sizes: [4, 4, 16, 16], strides: [1024, 256, 16, 1] : memref<4096xf16, #cce.space<"L1">> to memref<4x4x16x16xf16, strided<[1024, 256, 16, 1]>, #cce.space<"L1">>
  %b = memref.reinterpret_cast %other to offset: [0], sizes: [4, 1, 16, 16], strides: [256, 256, 16, 1] : !a1 to memref<4x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  "cce.nd2nz"(%x, %rows) : (memref<8x128xf16>, memref<8x8x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%rest) : (memref<8x128xf16, strided<[256, 1], offset: 128>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%zeros) : (memref<1x2048xf16, strided<[2048, 1], offset: 2048>, #cce.space<"L1">>) -> ()
  "cce.load2d"(%a, %l0a) : (memref<4x4x16x16xf16, strided<[1024, 256, 16, 1]>, #cce.space<"L1">>, memref<4x4x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b, %l0b) : (memref<4x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<4x1x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.mad"(%l0a, %l0b, %l0c, %true) : (memref<4x4x16x16xf16, #cce.space<"L0A">>, memref<4x1x16x16xf16, #cce.space<"L0B">>, memref<1x4x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

// Rows of 32 elements, of which windows of two pixels make fractals, come as two columns of
// fractals, in each turn of a loop. The fill of what the rows lack is in front of all of them: it
// fills both columns.
// CHECK-LABEL: func.func @windows
// CHECK-NOT: L0A
// CHECK: [[ALL:%.+]] = memref.reinterpret_cast [[L1:%.+]] to offset: [0], sizes: [1, 512], strides: [512, 1]
// CHECK-NEXT: "cce.clear_l1"([[ALL]])
// CHECK: scf.for
// CHECK-NOT: "cce.copy"
// CHECK: [[ROWS:%.+]] = memref.reinterpret_cast [[L1]] to offset: [64], sizes: [2, 5, 16], strides: [256, 16, 1]
// CHECK-NEXT: "cce.nd2nz"(%arg0, [[ROWS]])
// CHECK: [[A:%.+]] = memref.reinterpret_cast [[L1]] to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1]
// CHECK: "cce.mad_l1"([[A]], {{.*}}) {b_transpose}
// CHECK: return
func.func @windows(%x: memref<5x32xf16>, %y: memref<16x16xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %l1 = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %other = memref.alloc() : !a1
  %l0a = memref.alloc() : memref<1x2x16x16xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<2x1x16x16xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<1x1x16x16xf32, #cce.space<"L0C">>
  %rest = memref.reinterpret_cast %l1 to offset: [256], sizes: [1, 256], strides: [256, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x256xf16, strided<[256, 1], offset: 256>, #cce.space<"L1">>
  %rows = memref.reinterpret_cast %l1 to offset: [128], sizes: [5, 32], strides: [32, 1] : memref<512xf16, #cce.space<"L1">> to memref<5x32xf16, strided<[32, 1], offset: 128>, #cce.space<"L1">>
  %image = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 1, 32, 16], strides: [512, 512, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>
  %b = memref.reinterpret_cast %other to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1] : !a1 to memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  "cce.clear_l1"(%rest) : (memref<1x256xf16, strided<[256, 1], offset: 256>, #cce.space<"L1">>) -> ()
  scf.for %i = %c0 to %c3 step %c1 {
    "cce.copy"(%x, %rows) : (memref<5x32xf16>, memref<5x32xf16, strided<[32, 1], offset: 128>, #cce.space<"L1">>) -> ()
    "cce.load3d"(%image, %c0, %c0, %l0a) {kernel = array<i64: 1, 2>, strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0>, element = 0 : i64} : (memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>, index, index, memref<1x2x16x16xf16, #cce.space<"L0A">>) -> ()
    "cce.load2d"(%b, %l0b) : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<2x1x16x16xf16, #cce.space<"L0B">>) -> ()
    "cce.mad"(%l0a, %l0b, %l0c, %true) : (memref<1x2x16x16xf16, #cce.space<"L0A">>, memref<2x1x16x16xf16, #cce.space<"L0B">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
    "cce.fixpipe"(%l0c, %y) : (memref<1x1x16x16xf32, #cce.space<"L0C">>, memref<16x16xf16>) -> ()
  }
  return
}

// Rows of which a part is filled behind them stay as they are, and so does the product.
// CHECK-LABEL: func.func @filled_behind
// CHECK: "cce.copy"
// CHECK: "cce.clear_l1"
// CHECK: kernel = array<i64: 1, 2>
// CHECK-NOT: mad_l1
// CHECK: return
func.func @filled_behind(%x: memref<16x32xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %c0 = arith.constant 0 : index
  %l1 = memref.alloc() : memref<512xf16, #cce.space<"L1">>
  %other = memref.alloc() : !a1
  %l0a = memref.alloc() : memref<1x2x16x16xf16, #cce.space<"L0A">>
  %l0b = memref.alloc() : memref<2x1x16x16xf16, #cce.space<"L0B">>
  %l0c = memref.alloc() : memref<1x1x16x16xf32, #cce.space<"L0C">>
  %rest = memref.reinterpret_cast %l1 to offset: [256], sizes: [1, 256], strides: [256, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x256xf16, strided<[256, 1], offset: 256>, #cce.space<"L1">>
  %rows = memref.reinterpret_cast %l1 to offset: [0], sizes: [16, 32], strides: [32, 1] : memref<512xf16, #cce.space<"L1">> to memref<16x32xf16, strided<[32, 1]>, #cce.space<"L1">>
  %image = memref.reinterpret_cast %l1 to offset: [0], sizes: [1, 1, 32, 16], strides: [512, 512, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>
  %b = memref.reinterpret_cast %other to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1] : !a1 to memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  "cce.copy"(%x, %rows) : (memref<16x32xf16>, memref<16x32xf16, strided<[32, 1]>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%rest) : (memref<1x256xf16, strided<[256, 1], offset: 256>, #cce.space<"L1">>) -> ()
  "cce.load3d"(%image, %c0, %c0, %l0a) {kernel = array<i64: 1, 2>, strides = array<i64: 1, 2>, dilations = array<i64: 1, 1>, pads = array<i64: 0, 0>, element = 0 : i64} : (memref<1x1x32x16xf16, strided<[512, 512, 16, 1]>, #cce.space<"L1">>, index, index, memref<1x2x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b, %l0b) : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<2x1x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.mad"(%l0a, %l0b, %l0c, %true) : (memref<1x2x16x16xf16, #cce.space<"L0A">>, memref<2x1x16x16xf16, #cce.space<"L0B">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  return
}

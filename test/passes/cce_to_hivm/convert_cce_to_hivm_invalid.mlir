// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm)' --split-input-file --verify-diagnostics

func.func @no_address(%x: memref<8xf32>) attributes {ascend.kernel} {
  // expected-error@below {{'memref.alloc' op has no address; expected the attribute cce.address; run plan-memory first}}
  %u = memref.alloc() : memref<8xf32, #cce.space<"UB">>
  "cce.copy"(%x, %u) : (memref<8xf32>, memref<8xf32, #cce.space<"UB">>) -> ()
  return
}

// -----

func.func @no_buffer(%x: memref<8xf32>, %c: i1) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<8xf32, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 32 : i64} : memref<8xf32, #cce.space<"UB">>
  // expected-error@below {{'arith.select' op makes a memref that cannot be traced to a buffer}}
  %w = arith.select %c, %u, %v : memref<8xf32, #cce.space<"UB">>
  "cce.copy"(%x, %w) : (memref<8xf32>, memref<8xf32, #cce.space<"UB">>) -> ()
  return
}

// -----

func.func @gm_alloc(%x: memref<8xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  // expected-error@below {{'memref.alloc' op allocates in GM inside a kernel}}
  %u = memref.alloc() : memref<8xf32>
  %v = memref.load %u[%c0] : memref<8xf32>
  memref.store %v, %x[%c0] : memref<8xf32>
  return
}

// -----

func.func @scalar_l1(%x: memref<8xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %u = memref.alloc() {cce.address = 0 : i64} : memref<8xf32, #cce.space<"L1">>
  // expected-error@below {{'memref.load' op accesses a memory that the scalar unit cannot reach; found L1; expected GM or UB}}
  %v = memref.load %u[%c0] : memref<8xf32, #cce.space<"L1">>
  memref.store %v, %x[%c0] : memref<8xf32>
  return
}

// -----

func.func @rounding() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<8xf32, #cce.space<"UB">>
  %b = memref.alloc() {cce.address = 32 : i64} : memref<8xf16, #cce.space<"UB">>
  // expected-error@below {{'cce.vconv' op has no instruction; found vconv_f322f16 rounding 'floor'}}
  "cce.vconv"(%a, %b) {round = "floor"} : (memref<8xf32, #cce.space<"UB">>, memref<8xf16, #cce.space<"UB">>) -> ()
  return
}

// -----

// The machine file says what the addresses of a memory are multiples of.
func.func @misaligned(%x: memref<8xf32>) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<16xf32, #cce.space<"UB">>
  %v = memref.subview %u[3] [8] [1] : memref<16xf32, #cce.space<"UB">> to memref<8xf32, strided<[1], offset: 3>, #cce.space<"UB">>
  // expected-error@below {{misaligned address of operand dst of copy_gm_to_ubuf; found UB 0xc; expected a multiple of 32 bytes (ascend910)}}
  "cce.copy"(%x, %v) : (memref<8xf32>, memref<8xf32, strided<[1], offset: 3>, #cce.space<"UB">>) -> ()
  return
}

// -----

func.func @misaligned_rows() attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 16 : i64} : memref<16x1x16xf16, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 1024 : i64} : memref<16x1x16xf16, #cce.space<"UB">>
  // expected-error@below {{misaligned row address of scatter_vnchwconv.b16; found UB 0x10; expected a multiple of 32 bytes (ascend910)}}
  "cce.vnchwconv"(%u, %v) : (memref<16x1x16xf16, #cce.space<"UB">>, memref<16x1x16xf16, #cce.space<"UB">>) -> ()
  return
}

// -----

func.func @no_bias_table() attributes {ascend.kernel} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<1x16xf32, #cce.space<"L1">>
  %t = memref.alloc() {cce.address = 0 : i64} : memref<1x16xf32, #cce.space<"BT">>
  // expected-error@below {{address of operand dst of copy_cbuf_to_bt is in a memory that ascend910 has not; found BT}}
  "cce.copy"(%l, %t) : (memref<1x16xf32, #cce.space<"L1">>, memref<1x16xf32, #cce.space<"BT">>) -> ()
  return
}

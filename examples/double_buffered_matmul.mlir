// A matmul on buffers by hand, double-buffered: C = A * B with A 128x128 held in L0A and B and C in
// strips of 32 columns that pass L0B, L0C and UB through two buffers each, and L1 through four to hide
// the latency of GM, so that all pipes work at once. A and B come as fractals of 16x16, C leaves so.
//   npu-run examples/double_buffered_matmul.mlir --trace t.json --report r.html
// docs/reports.md reads the report of this kernel.
module {
  func.func @main(%a: memref<8x8x16x16xf16> {ascend.name = "a"},
                  %b: memref<32x8x16x16xf16> {ascend.name = "b"},
                  %c: memref<32x8x16x16xf16> {ascend.name = "c", ascend.output}) attributes {ascend.entry} {
    call @matmul(%a, %b, %c)
        : (memref<8x8x16x16xf16>, memref<32x8x16x16xf16>, memref<32x8x16x16xf16>) -> ()
    return
  }
  func.func private @matmul(memref<8x8x16x16xf16>, memref<32x8x16x16xf16>, memref<32x8x16x16xf16>)
      attributes {ascend.launch = @kernels::@matmul}
  module @kernels {
    func.func @matmul(%a: memref<8x8x16x16xf16>, %b: memref<32x8x16x16xf16>, %c: memref<32x8x16x16xf16>)
        attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube", cce.synced} {
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c6 = arith.constant 6 : index
      %c8 = arith.constant 8 : index
      %strips = arith.constant 32 : index
      %new = arith.constant true
      %a_l1 = memref.alloc() {cce.address = 65536 : i64} : memref<8x8x16x16xf16, #cce.space<"L1">>
      %a_l0 = memref.alloc() {cce.address = 0 : i64} : memref<8x8x16x16xf16, #cce.space<"L0A">>
      %b_l1_0 = memref.alloc() {cce.address = 0 : i64} : memref<2x8x16x16xf16, #cce.space<"L1">>
      %b_l1_1 = memref.alloc() {cce.address = 8192 : i64} : memref<2x8x16x16xf16, #cce.space<"L1">>
      %b_l1_2 = memref.alloc() {cce.address = 16384 : i64} : memref<2x8x16x16xf16, #cce.space<"L1">>
      %b_l1_3 = memref.alloc() {cce.address = 24576 : i64} : memref<2x8x16x16xf16, #cce.space<"L1">>
      %b_l0_0 = memref.alloc() {cce.address = 0 : i64} : memref<8x2x16x16xf16, #cce.space<"L0B">>
      %c_l0_0 = memref.alloc() {cce.address = 0 : i64} : memref<2x8x16x16xf32, #cce.space<"L0C">>
      %c_ub_0 = memref.alloc() {cce.address = 0 : i64} : memref<2x8x16x16xf16, #cce.space<"UB">>
      %b_l0_1 = memref.alloc() {cce.address = 8192 : i64} : memref<8x2x16x16xf16, #cce.space<"L0B">>
      %c_l0_1 = memref.alloc() {cce.address = 16384 : i64} : memref<2x8x16x16xf32, #cce.space<"L0C">>
      %c_ub_1 = memref.alloc() {cce.address = 8192 : i64} : memref<2x8x16x16xf16, #cce.space<"UB">>

      // A: columns of fractals in GM and L1, rows of them in L0A.
      "cce.copy"(%a, %a_l1) : (memref<8x8x16x16xf16>, memref<8x8x16x16xf16, #cce.space<"L1">>) -> ()
      "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()
      %a_rows = memref.reinterpret_cast %a_l1 to offset: [0],
          sizes: [8, 8, 16, 16], strides: [256, 2048, 16, 1]
          : memref<8x8x16x16xf16, #cce.space<"L1">>
          to memref<8x8x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>
      "cce.load2d"(%a_rows, %a_l0)
          : (memref<8x8x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>,
             memref<8x8x16x16xf16, #cce.space<"L0A">>) -> ()

      // Every buffer is free at first: its reader says so to its writer.
      "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 0 : i64} : () -> ()
      "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 1 : i64} : () -> ()
      "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 2 : i64} : () -> ()
      "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 3 : i64} : () -> ()
      "cce.set_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
      "cce.set_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
      "cce.set_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
      "cce.set_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
      "cce.set_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
      "cce.set_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()

      scf.for %i = %c0 to %strips step %c8 {
        // Strip i / 2 + 0, through buffer 0 of L1 and the buffers 0 of the others.
        %b_gm_0 = memref.subview %b[%i, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %c_gm_0 = memref.subview %c[%i, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %b_rows_0 = memref.reinterpret_cast %b_l1_0 to offset: [0],
            sizes: [8, 2, 16, 16], strides: [256, 2048, 16, 1]
            : memref<2x8x16x16xf16, #cce.space<"L1">>
            to memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>
        "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 0 : i64} : () -> ()
        "cce.copy"(%b_gm_0, %b_l1_0)
            : (memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>,
               memref<2x8x16x16xf16, #cce.space<"L1">>) -> ()
        "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.load2d"(%b_rows_0, %b_l0_0) {transpose}
            : (memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>,
               memref<8x2x16x16xf16, #cce.space<"L0B">>) -> ()
        "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 0 : i64} : () -> ()
        "cce.set_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
        "cce.mad"(%a_l0, %b_l0_0, %c_l0_0, %new)
            : (memref<8x8x16x16xf16, #cce.space<"L0A">>, memref<8x2x16x16xf16, #cce.space<"L0B">>,
               memref<2x8x16x16xf32, #cce.space<"L0C">>, i1) -> ()
        "cce.set_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.set_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
        "cce.copy_l0c"(%c_l0_0, %c_ub_0)
            : (memref<2x8x16x16xf32, #cce.space<"L0C">>,
               memref<2x8x16x16xf16, #cce.space<"UB">>) -> ()
        "cce.set_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
        "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.copy"(%c_ub_0, %c_gm_0)
            : (memref<2x8x16x16xf16, #cce.space<"UB">>,
               memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>) -> ()
        "cce.set_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
        %j1 = arith.addi %i, %c2 : index
        // Strip i / 2 + 1, through buffer 1 of L1 and the buffers 1 of the others.
        %b_gm_1 = memref.subview %b[%j1, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %c_gm_1 = memref.subview %c[%j1, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %b_rows_1 = memref.reinterpret_cast %b_l1_1 to offset: [0],
            sizes: [8, 2, 16, 16], strides: [256, 2048, 16, 1]
            : memref<2x8x16x16xf16, #cce.space<"L1">>
            to memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>
        "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 1 : i64} : () -> ()
        "cce.copy"(%b_gm_1, %b_l1_1)
            : (memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>,
               memref<2x8x16x16xf16, #cce.space<"L1">>) -> ()
        "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.load2d"(%b_rows_1, %b_l0_1) {transpose}
            : (memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>,
               memref<8x2x16x16xf16, #cce.space<"L0B">>) -> ()
        "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 1 : i64} : () -> ()
        "cce.set_flag"() {src = "MTE1", dst = "M", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE1", dst = "M", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
        "cce.mad"(%a_l0, %b_l0_1, %c_l0_1, %new)
            : (memref<8x8x16x16xf16, #cce.space<"L0A">>, memref<8x2x16x16xf16, #cce.space<"L0B">>,
               memref<2x8x16x16xf32, #cce.space<"L0C">>, i1) -> ()
        "cce.set_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.set_flag"() {src = "M", dst = "V", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "V", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()
        "cce.copy_l0c"(%c_l0_1, %c_ub_1)
            : (memref<2x8x16x16xf32, #cce.space<"L0C">>,
               memref<2x8x16x16xf16, #cce.space<"UB">>) -> ()
        "cce.set_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
        "cce.set_flag"() {src = "V", dst = "MTE3", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "MTE3", event = 1 : i64} : () -> ()
        "cce.copy"(%c_ub_1, %c_gm_1)
            : (memref<2x8x16x16xf16, #cce.space<"UB">>,
               memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>) -> ()
        "cce.set_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()
        %j2 = arith.addi %i, %c4 : index
        // Strip i / 2 + 2, through buffer 2 of L1 and the buffers 0 of the others.
        %b_gm_2 = memref.subview %b[%j2, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %c_gm_2 = memref.subview %c[%j2, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %b_rows_2 = memref.reinterpret_cast %b_l1_2 to offset: [0],
            sizes: [8, 2, 16, 16], strides: [256, 2048, 16, 1]
            : memref<2x8x16x16xf16, #cce.space<"L1">>
            to memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>
        "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 2 : i64} : () -> ()
        "cce.copy"(%b_gm_2, %b_l1_2)
            : (memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>,
               memref<2x8x16x16xf16, #cce.space<"L1">>) -> ()
        "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 2 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 2 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.load2d"(%b_rows_2, %b_l0_0) {transpose}
            : (memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>,
               memref<8x2x16x16xf16, #cce.space<"L0B">>) -> ()
        "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 2 : i64} : () -> ()
        "cce.set_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
        "cce.mad"(%a_l0, %b_l0_0, %c_l0_0, %new)
            : (memref<8x8x16x16xf16, #cce.space<"L0A">>, memref<8x2x16x16xf16, #cce.space<"L0B">>,
               memref<2x8x16x16xf32, #cce.space<"L0C">>, i1) -> ()
        "cce.set_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
        "cce.set_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
        "cce.copy_l0c"(%c_l0_0, %c_ub_0)
            : (memref<2x8x16x16xf32, #cce.space<"L0C">>,
               memref<2x8x16x16xf16, #cce.space<"UB">>) -> ()
        "cce.set_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
        "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
        "cce.copy"(%c_ub_0, %c_gm_2)
            : (memref<2x8x16x16xf16, #cce.space<"UB">>,
               memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>) -> ()
        "cce.set_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
        %j3 = arith.addi %i, %c6 : index
        // Strip i / 2 + 3, through buffer 3 of L1 and the buffers 1 of the others.
        %b_gm_3 = memref.subview %b[%j3, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %c_gm_3 = memref.subview %c[%j3, 0, 0, 0] [2, 8, 16, 16] [1, 1, 1, 1]
            : memref<32x8x16x16xf16> to memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>
        %b_rows_3 = memref.reinterpret_cast %b_l1_3 to offset: [0],
            sizes: [8, 2, 16, 16], strides: [256, 2048, 16, 1]
            : memref<2x8x16x16xf16, #cce.space<"L1">>
            to memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>
        "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 3 : i64} : () -> ()
        "cce.copy"(%b_gm_3, %b_l1_3)
            : (memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>,
               memref<2x8x16x16xf16, #cce.space<"L1">>) -> ()
        "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 3 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 3 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.load2d"(%b_rows_3, %b_l0_1) {transpose}
            : (memref<8x2x16x16xf16, strided<[256, 2048, 16, 1]>, #cce.space<"L1">>,
               memref<8x2x16x16xf16, #cce.space<"L0B">>) -> ()
        "cce.set_flag"() {src = "MTE1", dst = "MTE2", event = 3 : i64} : () -> ()
        "cce.set_flag"() {src = "MTE1", dst = "M", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE1", dst = "M", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
        "cce.mad"(%a_l0, %b_l0_1, %c_l0_1, %new)
            : (memref<8x8x16x16xf16, #cce.space<"L0A">>, memref<8x2x16x16xf16, #cce.space<"L0B">>,
               memref<2x8x16x16xf32, #cce.space<"L0C">>, i1) -> ()
        "cce.set_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
        "cce.set_flag"() {src = "M", dst = "V", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "M", dst = "V", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()
        "cce.copy_l0c"(%c_l0_1, %c_ub_1)
            : (memref<2x8x16x16xf32, #cce.space<"L0C">>,
               memref<2x8x16x16xf16, #cce.space<"UB">>) -> ()
        "cce.set_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
        "cce.set_flag"() {src = "V", dst = "MTE3", event = 1 : i64} : () -> ()
        "cce.wait_flag"() {src = "V", dst = "MTE3", event = 1 : i64} : () -> ()
        "cce.copy"(%c_ub_1, %c_gm_3)
            : (memref<2x8x16x16xf16, #cce.space<"UB">>,
               memref<2x8x16x16xf16, strided<[2048, 256, 16, 1], offset: ?>>) -> ()
        "cce.set_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()
      }
      "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 1 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 2 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE1", dst = "MTE2", event = 3 : i64} : () -> ()
      "cce.wait_flag"() {src = "M", dst = "MTE1", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "M", dst = "MTE1", event = 1 : i64} : () -> ()
      "cce.wait_flag"() {src = "V", dst = "M", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "V", dst = "M", event = 1 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE3", dst = "V", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE3", dst = "V", event = 1 : i64} : () -> ()
      return
    }
  }
}

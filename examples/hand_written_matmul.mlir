// A kernel written by hand in operations on buffers: C = A * B, 32x64 times 64x32, fp16 into fp32.
//   npu-run examples/hand_written_matmul.mlir --outputs out.npz
//   npu-opt examples/hand_written_matmul.mlir --cce-to-hivm --hivm-to-llvm --npu-to-asm
// Buffers have addresses and every wait is written out, as plan-memory and insert-sync would do it
// (cce.synced tells the latter so). Leave out a pair of flags, and the simulator reports a race.
module {
  func.func @main(%a: memref<32x64xf16> {ascend.name = "a"}, %b: memref<64x32xf16> {ascend.name = "b"},
                  %c: memref<32x32xf32> {ascend.name = "c", ascend.output}) attributes {ascend.entry} {
    call @matmul(%a, %b, %c) : (memref<32x64xf16>, memref<64x32xf16>, memref<32x32xf32>) -> ()
    return
  }
  func.func private @matmul(memref<32x64xf16>, memref<64x32xf16>, memref<32x32xf32>)
      attributes {ascend.launch = @kernels::@matmul}
  module @kernels {
    func.func @matmul(%a: memref<32x64xf16>, %b: memref<64x32xf16>, %c: memref<32x32xf32>)
        attributes {ascend.kernel, ascend.op = "matmul", ascend.unit = "cube", cce.synced} {
      %a_l1 = memref.alloc() {cce.address = 0 : i64} : memref<4x2x16x16xf16, #cce.space<"L1">>
      %b_l1 = memref.alloc() {cce.address = 4096 : i64} : memref<2x4x16x16xf16, #cce.space<"L1">>
      %a_l0 = memref.alloc() {cce.address = 0 : i64} : memref<2x4x16x16xf16, #cce.space<"L0A">>
      %b_l0 = memref.alloc() {cce.address = 0 : i64} : memref<4x2x16x16xf16, #cce.space<"L0B">>
      %c_l0 = memref.alloc() {cce.address = 0 : i64} : memref<2x2x16x16xf32, #cce.space<"L0C">>
      %c_ub = memref.alloc() {cce.address = 0 : i64} : memref<2x2x16x16xf32, #cce.space<"UB">>

      // The cube takes fractals of 16x16. A row-major matrix is seen as columns of them, as
      // [n / 16][m / 16][16][16] (Nz), and the copies to L1 gather 32 bytes of each row at a time.
      %a_nz = memref.reinterpret_cast %a to offset: [0],
          sizes: [4, 2, 16, 16], strides: [16, 1024, 64, 1]
          : memref<32x64xf16> to memref<4x2x16x16xf16, strided<[16, 1024, 64, 1]>>
      %b_nz = memref.reinterpret_cast %b to offset: [0],
          sizes: [2, 4, 16, 16], strides: [16, 512, 32, 1]
          : memref<64x32xf16> to memref<2x4x16x16xf16, strided<[16, 512, 32, 1]>>
      %c_nz = memref.reinterpret_cast %c to offset: [0],
          sizes: [2, 2, 16, 16], strides: [16, 512, 32, 1]
          : memref<32x32xf32> to memref<2x2x16x16xf32, strided<[16, 512, 32, 1]>>
      "cce.copy"(%a_nz, %a_l1) : (memref<4x2x16x16xf16, strided<[16, 1024, 64, 1]>>,
                                  memref<4x2x16x16xf16, #cce.space<"L1">>) -> ()
      "cce.copy"(%b_nz, %b_l1) : (memref<2x4x16x16xf16, strided<[16, 512, 32, 1]>>,
                                  memref<2x4x16x16xf16, #cce.space<"L1">>) -> ()
      // MTE2 fills L1; MTE1, which empties it, waits for both copies.
      "cce.set_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE2", dst = "MTE1", event = 0 : i64} : () -> ()

      // L0A holds A in rows of fractals, [m / 16][k / 16]; so does L0B hold B, [k / 16][n / 16], each
      // fractal transposed inside.
      %a_rows = memref.reinterpret_cast %a_l1 to offset: [0],
          sizes: [2, 4, 16, 16], strides: [256, 512, 16, 1]
          : memref<4x2x16x16xf16, #cce.space<"L1">>
          to memref<2x4x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>
      %b_rows = memref.reinterpret_cast %b_l1 to offset: [0],
          sizes: [4, 2, 16, 16], strides: [256, 1024, 16, 1]
          : memref<2x4x16x16xf16, #cce.space<"L1">>
          to memref<4x2x16x16xf16, strided<[256, 1024, 16, 1]>, #cce.space<"L1">>
      "cce.load2d"(%a_rows, %a_l0) : (memref<2x4x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>,
                                      memref<2x4x16x16xf16, #cce.space<"L0A">>) -> ()
      "cce.load2d"(%b_rows, %b_l0) {transpose}
          : (memref<4x2x16x16xf16, strided<[256, 1024, 16, 1]>, #cce.space<"L1">>,
             memref<4x2x16x16xf16, #cce.space<"L0B">>) -> ()
      "cce.set_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "MTE1", dst = "M", event = 0 : i64} : () -> ()

      // `true`: L0C starts at zero and does not accumulate.
      %start = arith.constant true
      "cce.mad"(%a_l0, %b_l0, %c_l0, %start)
          : (memref<2x4x16x16xf16, #cce.space<"L0A">>, memref<4x2x16x16xf16, #cce.space<"L0B">>,
             memref<2x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
      "cce.set_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "M", dst = "V", event = 0 : i64} : () -> ()

      // Results leave L0C through the vector unit, and UB through MTE3, back into rows.
      "cce.copy_l0c"(%c_l0, %c_ub) : (memref<2x2x16x16xf32, #cce.space<"L0C">>,
                                      memref<2x2x16x16xf32, #cce.space<"UB">>) -> ()
      "cce.set_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
      "cce.wait_flag"() {src = "V", dst = "MTE3", event = 0 : i64} : () -> ()
      "cce.copy"(%c_ub, %c_nz) : (memref<2x2x16x16xf32, #cce.space<"UB">>,
                                  memref<2x2x16x16xf32, strided<[16, 512, 32, 1]>>) -> ()
      return
    }
  }
}

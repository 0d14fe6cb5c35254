// x / (1 + exp(-x)) of x = a b + bias in f32, a 128x64 and b 64x128 of f16 in rows: tiles of 64 rows
// by 32 columns on four cores. One program, as for a core that has cube and vector unit; for the
// 910B, whose cube and vector cores are apart, `split-cores` makes two of it.
// `davinci.kernel_from("examples/matmul_swish.mlir", machine="ascend910b")` can be called with arrays.
func.func @matmul_swish(%a: memref<128x64xf16>, %b: memref<64x128xf16>, %bias: memref<128xf32>,
    %out: memref<128x128xf32>) attributes {ascend.blocks = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c32 = arith.constant 32 : index
  %c4096 = arith.constant 4096 : index
  %true = arith.constant true
  %minus = arith.constant -1.0 : f32
  %one = arith.constant 1.0 : f32
  %block = cce.get_block_idx -> index
  %left = arith.muli %block, %c32 : index
  // Columns of b, as rows of fractals [4 k][2 n][16][16]: they stay in L0B.
  %b_gm = memref.reinterpret_cast %b to offset: [%left], sizes: [2, 64, 16], strides: [16, 128, 1] : memref<64x128xf16> to memref<2x64x16xf16, strided<[16, 128, 1], offset: ?>>
  %b_l1 = memref.alloc() : L1<2x64x16xf16>
  cce.copy %b_gm, %b_l1 : memref<2x64x16xf16, strided<[16, 128, 1], offset: ?>>, L1<2x64x16xf16>
  %b_rows = memref.reinterpret_cast %b_l1 to offset: [0], sizes: [4, 2, 16, 16], strides: [256, 1024, 16, 1] : L1<2x64x16xf16> to L1<4x2x16x16xf16, strided<[256, 1024, 16, 1]>>
  %b_l0 = memref.alloc() : L0B<4x2x16x16xf16>
  cce.load2d %b_rows, %b_l0 {transpose} : L1<4x2x16x16xf16, strided<[256, 1024, 16, 1]>>, L0B<4x2x16x16xf16>
  %bias_ub = memref.alloc() : UB<32xf32>
  %bias_gm = memref.subview %bias[%left] [32] [1] : memref<128xf32> to memref<32xf32, strided<[1], offset: ?>>
  cce.copy %bias_gm, %bias_ub : memref<32xf32, strided<[1], offset: ?>>, UB<32xf32>
  %bias_all = memref.reinterpret_cast %bias_ub to offset: [0], sizes: [2, 4, 16, 16], strides: [16, 0, 0, 1] : UB<32xf32> to UB<2x4x16x16xf32, strided<[16, 0, 0, 1]>>
  scf.for %i = %c0 to %c2 step %c1 {
    %a_at = arith.muli %i, %c4096 : index
    %a_gm = memref.reinterpret_cast %a to offset: [%a_at], sizes: [4, 64, 16], strides: [16, 64, 1] : memref<128x64xf16> to memref<4x64x16xf16, strided<[16, 64, 1], offset: ?>>
    %a_l1 = memref.alloc() : L1<4x64x16xf16>
    cce.copy %a_gm, %a_l1 : memref<4x64x16xf16, strided<[16, 64, 1], offset: ?>>, L1<4x64x16xf16>
    %a_rows = memref.reinterpret_cast %a_l1 to offset: [0], sizes: [4, 4, 16, 16], strides: [256, 1024, 16, 1] : L1<4x64x16xf16> to L1<4x4x16x16xf16, strided<[256, 1024, 16, 1]>>
    %a_l0 = memref.alloc() : L0A<4x4x16x16xf16>
    cce.load2d %a_rows, %a_l0 : L1<4x4x16x16xf16, strided<[256, 1024, 16, 1]>>, L0A<4x4x16x16xf16>
    %c = memref.alloc() : L0C<2x4x16x16xf32>
    cce.mad %a_l0, %b_l0, %c, %true : L0A<4x4x16x16xf16>, L0B<4x2x16x16xf16>, L0C<2x4x16x16xf32>, i1
    // The tile crosses from the cube to the vector unit.
    %x = memref.alloc() : UB<2x4x16x16xf32>
    cce.copy_l0c %c, %x : L0C<2x4x16x16xf32>, UB<2x4x16x16xf32>
    %y = memref.alloc() : UB<2x4x16x16xf32>
    cce.vadd %x, %bias_all, %x : UB<2x4x16x16xf32>, UB<2x4x16x16xf32, strided<[16, 0, 0, 1]>>, UB<2x4x16x16xf32>
    cce.vmuls %x, %minus, %y : UB<2x4x16x16xf32>, f32, UB<2x4x16x16xf32>
    cce.vexp %y, %y : UB<2x4x16x16xf32>
    cce.vadds %y, %one, %y : UB<2x4x16x16xf32>, f32, UB<2x4x16x16xf32>
    cce.vdiv %x, %y, %x : UB<2x4x16x16xf32>
    %x_rows = memref.reinterpret_cast %x to offset: [0], sizes: [64, 2, 16], strides: [16, 1024, 1] : UB<2x4x16x16xf32> to UB<64x2x16xf32, strided<[16, 1024, 1]>>
    %row = arith.muli %i, %c4096 : index
    %place = arith.muli %row, %c2 : index
    %at = arith.addi %place, %left : index
    %out_gm = memref.reinterpret_cast %out to offset: [%at], sizes: [64, 2, 16], strides: [128, 16, 1] : memref<128x128xf32> to memref<64x2x16xf32, strided<[128, 16, 1], offset: ?>>
    cce.copy %x_rows, %out_gm : UB<64x2x16xf32, strided<[16, 1024, 1]>>, memref<64x2x16xf32, strided<[128, 16, 1], offset: ?>>
  }
  return
}

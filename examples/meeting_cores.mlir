// Divides 65,536 numbers by their sum, in one launch of 32 blocks that wait for each other.
//
//     npu-run examples/meeting_cores.mlir
//
// Each block adds up its share, stores the sum in its line of %sums, and waits until all have done so
// (cce.sync_cores). Then it loads all sums. Its share has stayed in UB meanwhile. Without the operation,
// npu-run says which two instructions race.
module {
  memref.global "private" @counters : memref<32x8xi32> = dense<0>
  func.func @main(%x: memref<65536xf32> {ascend.name = "x"},
                  %y: memref<65536xf32> {ascend.name = "y", ascend.output}) attributes {ascend.entry} {
    %sums = memref.alloc() : memref<256xf32>
    %lines = memref.get_global @counters : memref<32x8xi32>
    call @normalise(%x, %sums, %lines, %y) {ascend.blocks = 32 : i64} : (memref<65536xf32>, memref<256xf32>, memref<32x8xi32>, memref<65536xf32>) -> ()
    return
  }
  func.func private @normalise(memref<65536xf32>, memref<256xf32>, memref<32x8xi32>, memref<65536xf32>)
      attributes {ascend.launch = @kernels::@normalise}

  module @kernels {
    func.func @normalise(%x: memref<65536xf32>, %sums: memref<256xf32>, %lines: memref<32x8xi32>, %y: memref<65536xf32>)
        attributes {ascend.kernel, ascend.op = "normalise", ascend.unit = "vector"} {
      %c0 = arith.constant 0 : index
      %c8 = arith.constant 8 : index
      %c2048 = arith.constant 2048 : index
      %one = arith.constant 1 : i32
      %zero = arith.constant 0.0 : f32
      %unit = arith.constant 1.0 : f32
      %block = cce.get_block_idx -> index
      %begin = arith.muli %block, %c2048 : index
      %line = arith.muli %block, %c8 : index
      %x_share = memref.subview %x[%begin] [2048] [1] : memref<65536xf32> to memref<2048xf32, strided<[1], offset: ?>>
      %y_share = memref.subview %y[%begin] [2048] [1] : memref<65536xf32> to memref<2048xf32, strided<[1], offset: ?>>
      %own_sum = memref.subview %sums[%line] [8] [1] : memref<256xf32> to memref<8xf32, strided<[1], offset: ?>>

      // Its share, and the sum of that.
      %share = memref.alloc() : UB<2048xf32>
      %row_sums = memref.alloc() : UB<32xf32>
      %sum = memref.alloc() : UB<8xf32>
      %scratch = memref.alloc() : UB<33x8xi32>
      cce.copy %x_share, %share : memref<2048xf32, strided<[1], offset: ?>>, UB<2048xf32>
      %rows = memref.reinterpret_cast %share to offset: [0], sizes: [32, 64], strides: [64, 1] : UB<2048xf32> to UB<32x64xf32, strided<[64, 1]>>
      cce.vcadd %rows, %row_sums : UB<32x64xf32, strided<[64, 1]>>, UB<32xf32>
      cce.vector_dup %zero, %sum : f32, UB<8xf32>
      %as_row = memref.reinterpret_cast %row_sums to offset: [0], sizes: [1, 32], strides: [32, 1] : UB<32xf32> to UB<1x32xf32, strided<[32, 1]>>
      %first = memref.subview %sum[0] [1] [1] : UB<8xf32> to UB<1xf32, strided<[1]>>
      cce.vcadd %as_row, %first : UB<1x32xf32, strided<[32, 1]>>, UB<1xf32, strided<[1]>>
      cce.copy %sum, %own_sum : UB<8xf32>, memref<8xf32, strided<[1], offset: ?>>

      // All blocks have stored their sums.
      %counter = cce.read_counter %lines, %scratch : memref<32x8xi32>, UB<33x8xi32> -> i32
      %number = arith.addi %counter, %one : i32
      cce.sync_cores %lines, %number, %scratch : memref<32x8xi32>, i32, UB<33x8xi32>

      %all = memref.alloc() : UB<256xf32>
      %four = memref.alloc() : UB<4xf32>
      %total = memref.alloc() : UB<1xf32>
      cce.copy %sums, %all : memref<256xf32>, UB<256xf32>
      %all_rows = memref.reinterpret_cast %all to offset: [0], sizes: [4, 64], strides: [64, 1] : UB<256xf32> to UB<4x64xf32, strided<[64, 1]>>
      cce.vcadd %all_rows, %four : UB<4x64xf32, strided<[64, 1]>>, UB<4xf32>
      %four_row = memref.reinterpret_cast %four to offset: [0], sizes: [1, 4], strides: [4, 1] : UB<4xf32> to UB<1x4xf32, strided<[4, 1]>>
      cce.vcadd %four_row, %total : UB<1x4xf32, strided<[4, 1]>>, UB<1xf32>
      %value = memref.load %total[%c0] : UB<1xf32>
      %factor = arith.divf %unit, %value : f32
      cce.vmuls %share, %factor, %share : UB<2048xf32>, f32, UB<2048xf32>
      cce.copy %share, %y_share : UB<2048xf32>, memref<2048xf32, strided<[1], offset: ?>>
      return
    }
  }
}

// A kernel by hand, without addresses and flags: out = x / (1 + exp(-x)) * gate, a row at a time, on
// eight cores. `davinci.kernel_from("examples/swiglu.mlir")` can be called with arrays, and
// `davinci.compile(model, kernels=["examples/swiglu.mlir"])` computes a model's operator `swiglu` by it.
func.func @swiglu(%x: memref<16x512xf32>, %gate: memref<16x512xf32>, %out: memref<16x512xf32>)
    attributes {ascend.blocks = 8 : i64} {
  %block = cce.get_block_idx -> index
  %blocks = cce.get_block_num -> index
  %minus = arith.constant -1.0 : f32
  %one = arith.constant 1.0 : f32
  %rows = arith.constant 16 : index
  scf.for %i = %block to %rows step %blocks {
    %a = memref.alloc() : UB<512xf32>
    %b = memref.alloc() : UB<512xf32>
    %c = memref.alloc() : UB<512xf32>
    %x_i = memref.subview %x[%i, 0] [1, 512] [1, 1] : memref<16x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    %g_i = memref.subview %gate[%i, 0] [1, 512] [1, 1] : memref<16x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    %o_i = memref.subview %out[%i, 0] [1, 512] [1, 1] : memref<16x512xf32> to memref<512xf32, strided<[1], offset: ?>>
    cce.copy %x_i, %a : memref<512xf32, strided<[1], offset: ?>>, UB<512xf32>
    cce.copy %g_i, %b : memref<512xf32, strided<[1], offset: ?>>, UB<512xf32>
    cce.vmuls %a, %minus, %c : UB<512xf32>, f32, UB<512xf32>
    cce.vexp %c, %c : UB<512xf32>
    cce.vadds %c, %one, %c : UB<512xf32>, f32, UB<512xf32>
    cce.vdiv %a, %c, %a : UB<512xf32>
    cce.vmul %a, %b, %a : UB<512xf32>
    cce.copy %a, %o_i : UB<512xf32>, memref<512xf32, strided<[1], offset: ?>>
  }
  return
}

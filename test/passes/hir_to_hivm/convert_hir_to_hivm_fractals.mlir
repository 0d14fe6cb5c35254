// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm)' | FileCheck %s

// Fractals as they lie in global memory, every other one: a burst each, whole blocks to L1.
// CHECK: func.func @fractals(%arg0: !llvm.ptr<1>)
// CHECK: "hivm.copy_gm_to_cbuf"({{.*}}, %arg0) {dst_gap = 0 : i64, len_burst = 16 : i64, n_burst = 4 : i64, src_gap = 16 : i64}
"builtin.module"() ({
  "func.func"() <{function_type = (memref<4x2x256xf16, #hivm.address_space<gm>>) -> (), sym_name = "fractals"}> ({
  ^bb0(%x: memref<4x2x256xf16, #hivm.address_space<gm>>):
    %c0 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %from = "memref.reinterpret_cast"(%x) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 4, 256>, static_strides = array<i64: 512, 1>}> : (memref<4x2x256xf16, #hivm.address_space<gm>>) -> memref<4x256xf16, strided<[512, 1]>, #hivm.address_space<gm>>
    %u = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<4x256xf16, #hivm.address_space<cbuf>>
    "hivm.hir.load"(%from, %u) <{init_out_buffer = false, operandSegmentSizes = array<i32: 1, 1, 0, 0, 0, 0>}> : (memref<4x256xf16, strided<[512, 1]>, #hivm.address_space<gm>>, memref<4x256xf16, #hivm.address_space<cbuf>>) -> ()
    "func.return"() : () -> ()
  }) {hacc.entry, hivm.func_core_type = #hivm.func_core_type<AIC>} : () -> ()
}) : () -> ()

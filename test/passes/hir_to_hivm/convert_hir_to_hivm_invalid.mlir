// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm)' 2>&1 | FileCheck %s

// CHECK: operations of AscendNPU-IR that are not supported yet; found vsort (2x), vtanh (1x), mmadL1 of fractals (256, 512) elements apart (1x)
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), sym_name = "k"}> ({
    %c0 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %u = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<64xf32, #hivm.address_space<ub>>
    "hivm.hir.vsort"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.vsort"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.vtanh"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIV>} : () -> ()
  "func.func"() <{function_type = () -> (), sym_name = "p"}> ({
    %c0 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %a = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<1024xf16, #hivm.address_space<cbuf>>
    %p = "memref.reinterpret_cast"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0, 0>, static_offsets = array<i64: 0>, static_sizes = array<i64: 2, 2, 16, 16>, static_strides = array<i64: 256, 512, 16, 1>}> : (memref<1024xf16, #hivm.address_space<cbuf>>) -> memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #hivm.address_space<cbuf>>
    %c = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<2x2x16x16xf32, #hivm.address_space<cc>>
    %n = "arith.constant"() <{value = 32 : index}> : () -> index
    %true = "arith.constant"() <{value = true}> : () -> i1
    "hivm.hir.mmadL1"(%p, %p, %true, %n, %n, %n, %c) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 0, 0, 0>}> : (memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #hivm.address_space<cbuf>>, memref<2x2x16x16xf16, strided<[256, 512, 16, 1]>, #hivm.address_space<cbuf>>, i1, index, index, index, memref<2x2x16x16xf32, #hivm.address_space<cc>>) -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIC>} : () -> ()
}) : () -> ()

// RUN: not npu-opt %s --pass-pipeline='builtin.module(convert-hir-to-hivm)' 2>&1 | FileCheck %s

// CHECK: operations of AscendNPU-IR that are not supported yet; found vsort (2x), vtanh (1x)
"builtin.module"() ({
  "func.func"() <{function_type = () -> (), sym_name = "k"}> ({
    %c0 = "arith.constant"() <{value = 0 : i64}> : () -> i64
    %u = "hivm.hir.pointer_cast"(%c0) <{operandSegmentSizes = array<i32: 1, 0>}> : (i64) -> memref<64xf32, #hivm.address_space<ub>>
    "hivm.hir.vsort"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.vsort"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "hivm.hir.vtanh"(%u, %u) : (memref<64xf32, #hivm.address_space<ub>>, memref<64xf32, #hivm.address_space<ub>>) -> ()
    "func.return"() : () -> ()
  }) {hivm.func_core_type = #hivm.func_core_type<AIV>} : () -> ()
}) : () -> ()

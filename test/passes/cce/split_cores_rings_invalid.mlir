// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores{machine=ascend910b depth=16})' --verify-diagnostics

!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!ub = memref<1x1x16x16xf32, #cce.space<"UB">>
// expected-error@below {{'func.func' op cannot have rings between its cores; found 16 places; expected 1..15, what a flag between cores counts to}}
func.func @deep(%out: memref<1x1x16x16xf32>) attributes {ascend.kernel} {
  %c = memref.alloc() : !l0c
  %t = memref.alloc() : !ub
  "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
  "cce.copy"(%t, %out) : (!ub, memref<1x1x16x16xf32>) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(load-before-meetings{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(load-before-meetings{machine=ascend910b},load-before-meetings{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(load-before-meetings{machine=ascend910})' | FileCheck %s --check-prefix=COUPLED

// The second phase has its weights loaded before the cores meet, the third one in the meeting behind
// the second, so all three are one kernel. Loads of what another phase writes stay behind meetings.
// Vector cores without a block in the first phase only meet. The last phase loads no weights. Cores
// of a coupled machine have one program.

!row = memref<16x16xf16>
!part = memref<16x16xf16, strided<[16, 1]>, #cce.space<"L1">>
!w = memref<8x32x16x16xf16>
!l1 = memref<8x32x16x16xf16, #cce.space<"L1">>
!ub = memref<16x16xf16, #cce.space<"UB">>

// CHECK:      func.func private @norm_to_product
// CHECK-SAME:   ascend.launch = [@kernels::@norm_to_product_aic, @kernels::@norm_to_product_aiv]
// CHECK:      func.func @main
// CHECK-SAME:   ascend.arena = array<i64: 0, 512, 0, 0, 512, 512, 0, 1>
// CHECK-NEXT:   %[[W:.*]] = memref.get_global @w
// CHECK-NEXT:   call @norm_to_product(%arg0, %arg1, %arg1, %[[W]], %arg2, %arg2, %[[W]], %arg1)
// CHECK-SAME:     ascend.blocks = 2 : i64
// CHECK-SAME:     ascend.members = {{.}}["n0"], ["n1"], ["n2"]]
// CHECK-SAME:     ascend.operators = ["n0", "n1", "n2"]
// CHECK-NEXT:   call @meeting
// CHECK-NEXT:   call @norm(
// CHECK-NEXT:   return
// CHECK-NOT:  @product(
// CHECK:      func.func @norm_to_product_aic(
// CHECK-SAME:   ascend.members = {{.}}["rms_norm", "n0"], ["matmul", "n1"], ["matmul", "n1"]]
// CHECK-SAME:   ascend.phases = [{choices = [1], key = "k"}]
// CHECK-NEXT:   memref.alloc
// CHECK-NEXT:   cce.copy{{.*}}%arg3,
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 0 : i64}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 1 : i64}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 3 : i64, of_all, pipe = "FIX"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 3 : i64}
// CHECK:        cce.copy{{.*}}%arg2,
// CHECK-NEXT:   cce.copy{{.*}}%arg3,
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 2 : i64, of_all, pipe = "MTE2"}
// CHECK-NEXT:   memref.alloc
// CHECK-NEXT:   cce.copy{{.*}}%arg6,
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 3 : i64, of_all, pipe = "FIX"}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 2 : i64}
// CHECK-NEXT:   cce.wait_core_flag{{.*}}{flag = 3 : i64}
// CHECK:        cce.copy{{.*}}%arg5,
// CHECK-NEXT:   cce.copy{{.*}}%arg6,
// CHECK-NEXT:   return
// CHECK:      func.func @norm_to_product_aiv(
// CHECK:        %[[BLOCK:.*]] = "cce.get_block_idx
// CHECK:        %[[TWICE:.*]] = arith.muli %[[BLOCK]]
// CHECK:        %[[LANE:.*]] = "cce.get_sub_block_idx
// CHECK:        %[[INDEX:.*]] = arith.addi %[[TWICE]], %[[LANE]]
// CHECK:        %[[WORKS:.*]] = arith.cmpi ult, %[[INDEX]]
// CHECK:        scf.if %[[WORKS]] {
// CHECK:          cce.copy
// CHECK:          cce.copy
// CHECK-NEXT:   }
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 0 : i64, pipe = "MTE2"}
// CHECK-NEXT:   cce.set_core_flag{{.*}}{flag = 1 : i64, pipe = "MTE3"}
// CHECK-NEXT:   return

// COUPLED-NOT: norm_to_product
// COUPLED:     call @product
module {
  memref.global "private" constant @w : !w = dense<1.0>
  func.func @main(%x: !row {ascend.name = "x"}, %t: !row {ascend.name = "t", ascend.output},
                  %y: !row {ascend.name = "y", ascend.output})
      attributes {ascend.entry, ascend.arena = array<i64: 0, 512, 0, 2, 512, 512, 1, 3>} {
    %w = memref.get_global @w : !w
    call @norm(%x, %t) {ascend.blocks = 1 : i64, ascend.operators = ["n0"]} : (!row, !row) -> ()
    call @meeting() {ascend.blocks = 2 : i64, ascend.meeting = -1 : i64} : () -> ()
    call @product(%t, %w, %y) {ascend.blocks = 2 : i64, ascend.operators = ["n1"]}
      : (!row, !w, !row) -> ()
    call @meeting() {ascend.blocks = 2 : i64, ascend.meeting = -1 : i64} : () -> ()
    call @product(%y, %w, %t) {ascend.blocks = 2 : i64, ascend.operators = ["n2"]}
      : (!row, !w, !row) -> ()
    call @meeting() {ascend.blocks = 2 : i64, ascend.meeting = -1 : i64} : () -> ()
    call @norm(%t, %y) {ascend.blocks = 1 : i64, ascend.operators = ["n3"]} : (!row, !row) -> ()
    return
  }
  func.func private @norm(!row, !row) attributes {ascend.launch = @kernels::@norm}
  func.func private @product(!row, !w, !row) attributes {ascend.launch = @kernels::@product}
  func.func private @meeting()
      attributes {ascend.launch = [@kernels::@meeting_aic, @kernels::@meeting_aiv]}

  module @kernels {
    func.func @norm(%x: !row, %y: !row)
        attributes {ascend.kernel, ascend.core = "aiv", ascend.members = [["rms_norm", "n0"]], ascend.work = {read_bytes = 512 : i64, write_bytes = 512 : i64}} {
      %a = memref.alloc() : !ub
      "cce.copy"(%x, %a) : (!row, !ub) -> ()
      "cce.copy"(%a, %y) : (!ub, !row) -> ()
      return
    }
    func.func @product(%a: !row, %b: !w, %c: !row)
        attributes {ascend.kernel, ascend.core = "aic", ascend.members = [["matmul", "n1"]], ascend.choices = [1], ascend.key = "k"} {
      %a_l1 = memref.alloc() : !l1
      %part = memref.subview %a_l1[0, 0, 0, 0] [1, 1, 16, 16] [1, 1, 1, 1] : !l1 to !part
      "cce.copy"(%a, %part) : (!row, !part) -> ()
      %b_l1 = memref.alloc() : !l1
      "cce.copy"(%b, %b_l1) : (!w, !l1) -> ()
      "cce.copy"(%b, %a_l1) : (!w, !l1) -> ()
      return
    }
    func.func @meeting_aic() attributes {ascend.kernel, ascend.core = "aic", cce.synced} {
      return
    }
    func.func @meeting_aiv() attributes {ascend.kernel, ascend.core = "aiv", cce.synced} {
      return
    }
  }
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores{machine=ascend910b},split-cores{machine=ascend910b})' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores{machine=ascend910b depth=3})' | FileCheck %s --check-prefix=DEEP
// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores)' | FileCheck %s --check-prefix=COUPLED

!l1 = memref<2x2x16x16xf16, #cce.space<"L1">>
!l0a = memref<2x2x16x16xf16, #cce.space<"L0A">>
!l0b = memref<2x2x16x16xf16, #cce.space<"L0B">>
!l0c = memref<2x2x16x16xf32, #cce.space<"L0C">>
!ub = memref<2x2x16x16xf32, #cce.space<"UB">>
!half = memref<2x2x16x16xf16, #cce.space<"UB">>
!fractals = memref<2x2x16x16xf16>
!sums = memref<2x2x16x16xf32>
!tiles = memref<4x2x2x16x16xf32>
!tile = memref<2x2x16x16xf32, strided<[512, 256, 16, 1], offset: ?>>
module {
  // Each launch has memory for the rings of its blocks, two places each.
  // CHECK-LABEL: func.func @main
  // CHECK: memref.alloc() : memref<3x2x2x2x16x16xf32>
  // CHECK: call @relu({{.*}}) {ascend.blocks = 3 : i64} : ({{.*}}, memref<3x2x2x2x16x16xf32>) -> ()
  // DEEP: memref.alloc() : memref<3x3x2x2x16x16xf32>
  func.func @main(%a: !fractals, %b: !fractals, %out: !tiles, %two: !sums) attributes {ascend.entry} {
    call @relu(%a, %b, %out) {ascend.blocks = 3 : i64} : (!fractals, !fractals, !tiles) -> ()
    call @both_ways(%a, %b, %two) : (!fractals, !fractals, !sums) -> ()
    call @alone(%a, %b, %two) : (!fractals, !fractals, !sums) -> ()
    call @cube(%a) : (!fractals) -> ()
    call @branch(%a, %b, %two) : (!fractals, !fractals, !sums) -> ()
    call @ragged(%a, %out) : (!fractals, !tiles) -> ()
    return
  }
  // CHECK: func.func private @relu({{.*}}ascend.launch = [@kernels::@relu, @kernels::@relu_vector]
  // COUPLED: func.func private @relu({{.*}}ascend.launch = @kernels::@relu}
  func.func private @relu(!fractals, !fractals, !tiles) attributes {ascend.launch = @kernels::@relu}
  func.func private @both_ways(!fractals, !fractals, !sums) attributes {ascend.launch = @kernels::@both_ways}
  func.func private @alone(!fractals, !fractals, !sums) attributes {ascend.launch = @kernels::@alone}
  func.func private @cube(!fractals) attributes {ascend.launch = @kernels::@cube}
  func.func private @branch(!fractals, !fractals, !sums) attributes {ascend.launch = @kernels::@branch}
  func.func private @ragged(!fractals, !tiles) attributes {ascend.launch = @kernels::@ragged}
  module @kernels {
    // COUPLED: func.func @relu
    // COUPLED: cce.copy_l0c
    // COUPLED-NOT: core_flag

    // The cube core waits for a place, fills it and says so; at its end for both places.
    // CHECK-LABEL: func.func @relu(
    // CHECK-SAME: ascend.core = "aic"
    // CHECK-NOT: "UB"
    // CHECK: scf.for [[I:%.*]] = [[BLOCK:%.*]] to
    // CHECK: "cce.mad"
    // CHECK: [[TURN:%.*]] = arith.remui
    // CHECK: [[PLACE:%.*]] = memref.subview %arg3{{\[}}[[BLOCK]], [[TURN]], 0, 0, 0, 0]
    // CHECK-NEXT: "cce.wait_core_flag"() {flag = 2 : i64}
    // CHECK-NEXT: "cce.fixpipe"({{.*}}, [[PLACE]])
    // CHECK-NEXT: "cce.set_core_flag"() {flag = 1 : i64, pipe = "FIX"}
    // CHECK-NEXT: }
    // CHECK-COUNT-2: "cce.wait_core_flag"() {flag = 2 : i64}
    // CHECK-NEXT: return
    // DEEP-LABEL: func.func @relu(
    // DEEP: "cce.fixpipe"
    // DEEP-NEXT: "cce.set_core_flag"
    // DEEP-NEXT: }
    // DEEP-COUNT-3: "cce.wait_core_flag"() {flag = 2 : i64}

    // Each vector core takes one of two columns of fractals; loops are those of the cube core.
    // CHECK-LABEL: func.func @relu_vector(
    // CHECK-SAME: ascend.core = "aiv"
    // CHECK-NOT: "L0C"
    // CHECK-COUNT-2: "cce.set_core_flag"() {flag = 2 : i64, pipe = "MTE2"}
    // CHECK: scf.for
    // CHECK: "cce.wait_core_flag"() {flag = 1 : i64}
    // CHECK: [[LANE:%.*]] = "cce.get_sub_block_idx"
    // CHECK: [[FROM:%.*]] = memref.subview {{.*}}{{\[}}[[LANE]], 0, 0, 0] [1, 2, 16, 16]
    // CHECK: "cce.copy"([[FROM]], [[HALF:%.*]]) : (memref<1x2x16x16xf32
    // CHECK-NEXT: "cce.set_core_flag"() {flag = 2 : i64, pipe = "MTE2"}
    // CHECK: "cce.vrelu"([[HALF]], [[HALF]])
    // CHECK: "cce.copy"([[HALF]], {{.*}}) : (memref<1x2x16x16xf32
    func.func @relu(%a: !fractals, %b: !fractals, %out: !tiles) attributes {ascend.kernel, ascend.op = "relu"} {
      %c4 = arith.constant 4 : index
      %true = arith.constant true
      %block = "cce.get_block_idx"() : () -> index
      %blocks = "cce.get_block_num"() : () -> index
      %l0a = memref.alloc() : !l0a
      %l0b = memref.alloc() : !l0b
      scf.for %i = %block to %c4 step %blocks {
        %l1 = memref.alloc() : !l1
        "cce.copy"(%a, %l1) : (!fractals, !l1) -> ()
        "cce.load2d"(%l1, %l0a) : (!l1, !l0a) -> ()
        "cce.load2d"(%l1, %l0b) : (!l1, !l0b) -> ()
        %c = memref.alloc() : !l0c
        "cce.mad"(%l0a, %l0b, %c, %true) : (!l0a, !l0b, !l0c, i1) -> ()
        %t = memref.alloc() : !ub
        "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
        "cce.vrelu"(%t, %t) : (!ub, !ub) -> ()
        %to = memref.subview %out[%i, 0, 0, 0, 0] [1, 2, 2, 16, 16] [1, 1, 1, 1, 1] : !tiles to !tile
        "cce.copy"(%t, %to) : (!ub, !tile) -> ()
      }
      return
    }

    // What crosses once needs no flag for a place that is free.
    // CHECK-LABEL: func.func @both_ways(
    // CHECK-NOT: "cce.set_core_flag"
    // CHECK: "cce.wait_core_flag"() {flag = 1 : i64}
    // CHECK-NEXT: "cce.copy"({{.*}}) : (memref<2x2x16x16xf16, {{.*}}>, memref<2x2x16x16xf16, #cce.space<"L1">>)
    // CHECK-NOT: "cce.set_core_flag"
    // CHECK: "cce.fixpipe"({{.*}}) {relu}
    // CHECK-NEXT: "cce.set_core_flag"() {flag = 2 : i64, pipe = "FIX"}
    // CHECK-NEXT: return
    // CHECK-LABEL: func.func @both_ways_vector(
    // CHECK: "cce.vexp"
    // CHECK: "cce.copy"({{.*}}) : (memref<1x2x16x16xf16, {{.*}}#cce.space<"UB">>, memref<1x2x16x16xf16, strided<
    // CHECK-NEXT: "cce.set_core_flag"() {flag = 1 : i64, pipe = "MTE3"}
    // CHECK-NEXT: {{.*}}memref.alloc
    // CHECK: "cce.wait_core_flag"() {flag = 2 : i64}
    func.func @both_ways(%a: !fractals, %b: !fractals, %out: !sums) attributes {ascend.kernel, ascend.op = "two"} {
      %true = arith.constant true
      %x = memref.alloc() : !half
      "cce.copy"(%a, %x) : (!fractals, !half) -> ()
      "cce.vexp"(%x, %x) : (!half, !half) -> ()
      %l1 = memref.alloc() : !l1
      "cce.copy_l1"(%x, %l1) : (!half, !l1) -> ()
      %l0a = memref.alloc() : !l0a
      %l0b = memref.alloc() : !l0b
      "cce.load2d"(%l1, %l0a) : (!l1, !l0a) -> ()
      "cce.load2d"(%l1, %l0b) : (!l1, !l0b) -> ()
      %c = memref.alloc() : !l0c
      "cce.mad"(%l0a, %l0b, %c, %true) : (!l0a, !l0b, !l0c, i1) -> ()
      %t = memref.alloc() : !ub
      "cce.copy_l0c"(%c, %t) {relu} : (!l0c, !ub) -> ()
      "cce.copy"(%t, %out) : (!ub, !sums) -> ()
      return
    }

    // The scalar unit reads what the vector unit made: one vector core does all of that.
    // CHECK-LABEL: func.func @alone_vector(
    // CHECK-SAME: ascend.unshared = "the scalar unit accesses vector memory: 'memref.load' at {{.*}}split_cores.mlir:
    // CHECK: [[FIRST:%.*]] = arith.cmpi eq
    // CHECK: scf.if [[FIRST]] {
    // CHECK: "cce.wait_core_flag"() {flag = 1 : i64}
    // CHECK: "cce.vmuls"
    // CHECK: } else {
    // CHECK-NEXT: "cce.wait_core_flag"() {flag = 1 : i64}
    // CHECK-NEXT: }
    func.func @alone(%a: !fractals, %b: !fractals, %out: !sums) attributes {ascend.kernel, ascend.op = "alone"} {
      %c0 = arith.constant 0 : index
      %c = memref.alloc() : !l0c
      %t = memref.alloc() : !ub
      "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
      %x = memref.load %t[%c0, %c0, %c0, %c0] : !ub
      "cce.vmuls"(%t, %x, %t) : (!ub, f32, !ub) -> ()
      "cce.copy"(%t, %out) : (!ub, !sums) -> ()
      return
    }

    // CHECK-LABEL: func.func @cube(
    // CHECK-SAME: ascend.core = "aic"
    // CHECK-NOT: @cube_vector
    func.func @cube(%a: !fractals) attributes {ascend.kernel, ascend.op = "cube"} {
      %l1 = memref.alloc() : !l1
      "cce.copy"(%a, %l1) : (!fractals, !l1) -> ()
      return
    }

    // A branch decides whether a tile crosses: there is one place.
    // CHECK-LABEL: func.func @branch(
    // CHECK-SAME: memref<1x1x2x2x16x16xf32>)
    // CHECK: scf.if
    // CHECK: "cce.wait_core_flag"() {flag = 2 : i64}
    // CHECK-NEXT: "cce.fixpipe"
    // CHECK-NEXT: "cce.set_core_flag"
    // CHECK-NEXT: }
    // CHECK-NEXT: "cce.wait_core_flag"() {flag = 2 : i64}
    // CHECK-NEXT: return
    func.func @branch(%a: !fractals, %b: !fractals, %out: !sums) attributes {ascend.kernel, ascend.op = "branch"} {
      %c0 = arith.constant 0 : index
      %block = "cce.get_block_idx"() : () -> index
      %first = arith.cmpi eq, %block, %c0 : index
      %c = memref.alloc() : !l0c
      %t = memref.alloc() : !ub
      scf.if %first {
        "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
        "cce.copy"(%t, %out) : (!ub, !sums) -> ()
      }
      return
    }

    // The inner loop is longer each time, so there is one place; a number of iterations that is the
    // same each time would count.
    // CHECK-LABEL: func.func @ragged(
    // CHECK-SAME: memref<1x1x2x2x16x16xf32>)
    // CHECK-LABEL: func.func @ragged_vector(
    func.func @ragged(%a: !fractals, %out: !tiles) attributes {ascend.kernel, ascend.op = "ragged"} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c4 = arith.constant 4 : index
      %c = memref.alloc() : !l0c
      %t = memref.alloc() : !ub
      scf.for %i = %c0 to %c4 step %c1 {
        scf.for %j = %c0 to %i step %c1 {
          "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
          %to = memref.subview %out[%j, 0, 0, 0, 0] [1, 2, 2, 16, 16] [1, 1, 1, 1, 1] : !tiles to !tile
          "cce.copy"(%t, %to) : (!ub, !tile) -> ()
        }
      }
      return
    }

    // The scalar unit stores to global memory, which one vector core does; and another kernel has the
    // name of the vector program.
    // CHECK-LABEL: func.func @stores(
    // CHECK-NOT: memref.store
    // CHECK-LABEL: func.func @stores_vector_1(
    // CHECK-SAME: ascend.core = "aiv"
    // CHECK-SAME: ascend.unshared = "the scalar unit accesses global memory: 'memref.store' at {{.*}}split_cores.mlir:
    // CHECK: scf.if
    // CHECK: memref.store
    // CHECK: } else {
    // CHECK-NOT: memref.store
    // CHECK-LABEL: func.func @stores_vector(
    // CHECK-NOT: aiv
    func.func @stores(%out: !sums, %one: memref<1xf32>) attributes {ascend.kernel, ascend.op = "stores"} {
      %c0 = arith.constant 0 : index
      %number = arith.constant 1.0 : f32
      %c = memref.alloc() : !l0c
      %t = memref.alloc() : !ub
      "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
      "cce.copy"(%t, %out) : (!ub, !sums) -> ()
      memref.store %number, %one[%c0] : memref<1xf32>
      return
    }
    func.func @stores_vector(%out: !sums) attributes {ascend.kernel, ascend.op = "stores_vector"} {
      %t = memref.alloc() : !ub
      "cce.copy"(%out, %t) : (!sums, !ub) -> ()
      return
    }
  }
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(split-cores{machine=ascend910b})' --split-input-file --verify-diagnostics

!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!ub = memref<1x1x16x16xf32, #cce.space<"UB">>
func.func @by_hand(%out: memref<1x1x16x16xf32>) attributes {ascend.kernel} {
  %c = memref.alloc() : !l0c
  %t = memref.alloc() : !ub
  "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
  // expected-error@below {{'cce.pipe_barrier' op is in a kernel that is to become a program for each kind of core; leave synchronisation to insert-sync, or write both programs, each with ascend.core}}
  "cce.pipe_barrier"() {pipe = "V"} : () -> ()
  "cce.copy"(%t, %out) : (!ub, memref<1x1x16x16xf32>) -> ()
  return
}

// -----

!l0c = memref<1x1x16x16xi32, #cce.space<"L0C">>
!ub = memref<1x1x16x16xf16, #cce.space<"UB">>
!scales = memref<1x16xf16, #cce.space<"UB">>
func.func @scales() attributes {ascend.kernel} {
  %c = memref.alloc() : !l0c
  %s = memref.alloc() : !scales
  %t = memref.alloc() : !ub
  // expected-error@below {{'cce.dequantize_l0c' op scales sums on a way that cube and vector cores do not share; found scales in UB; expected cce.copy_l0c of i32; move the sums, then convert (cce.vconv) and scale them (cce.vmul) in UB}}
  "cce.dequantize_l0c"(%c, %s, %t) : (!l0c, !scales, !ub) -> ()
  return
}

// -----

!l0c = memref<1x1x16x16xf16, #cce.space<"L0C">>
!ub = memref<1x1x16x16xf16, #cce.space<"UB">>
func.func @half_sums() attributes {ascend.kernel} {
  %c = memref.alloc() : !l0c
  %t = memref.alloc() : !ub
  // expected-error@below {{'cce.copy_l0c' op leaves L0C for other cores; found f16 to f16; expected f32 to f16, f32 to f32, s32 to s32}}
  "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
  return
}

// -----

// A number that is loaded says how many tiles cross.
!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!ub = memref<1x1x16x16xf32, #cce.space<"UB">>
func.func @data(%count: memref<1xi32>, %out: memref<1x1x16x16xf32>) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %loaded = memref.load %count[%c0] : memref<1xi32>
  %trips = arith.index_cast %loaded : i32 to index
  %c = memref.alloc() : !l0c
  %t = memref.alloc() : !ub
  scf.for %i = %c0 to %trips step %c1 {
    // expected-error@below {{'cce.copy_l0c' op is a crossing of tiles that both kinds of cores must come to alike; found 'scf.for' around it, which depends on data; expected bounds and conditions of constants, block numbers, and variables of loops; let the tile cross always, and decide what becomes of it behind that}}
    "cce.copy_l0c"(%c, %t) : (!l0c, !ub) -> ()
    "cce.copy"(%t, %out) : (!ub, memref<1x1x16x16xf32>) -> ()
  }
  return
}

// -----

// What the scalar unit reads in UB says what the cube core loads.
!l0c = memref<1x1x16x16xf32, #cce.space<"L0C">>
!l1 = memref<1x1x16x16xf32, #cce.space<"L1">>
!ub = memref<8xi32, #cce.space<"UB">>
!tiles = memref<4x1x16x16xf32>
!tile = memref<1x1x16x16xf32, strided<[256, 256, 16, 1], offset: ?>>
func.func @number(%which: memref<8xi32>, %x: !tiles) attributes {ascend.kernel} {
  %c0 = arith.constant 0 : index
  %t = memref.alloc() : !ub
  "cce.copy"(%which, %t) : (memref<8xi32>, !ub) -> ()
  // expected-error@below {{'memref.load' op is needed by the cube cores; found an access to UB; expected numbers that both kinds of cores know: constants, block numbers, variables of loops, loads from global memory; have what follows from it done by the same unit}}
  %loaded = memref.load %t[%c0] : !ub
  %place = arith.index_cast %loaded : i32 to index
  %from = memref.subview %x[%place, 0, 0, 0] [1, 1, 16, 16] [1, 1, 1, 1] : !tiles to !tile
  %l1 = memref.alloc() : !l1
  "cce.copy"(%from, %l1) : (!tile, !l1) -> ()
  return
}

// -----

// Tiles go from the vector unit to the cube by global memory, without a crossing.
!ub = memref<1x1x16x16xf32, #cce.space<"UB">>
!l1 = memref<1x1x16x16xf32, #cce.space<"L1">>
func.func @exchange(%x: memref<1x1x16x16xf32>) attributes {ascend.kernel} {
  %t = memref.alloc() : !ub
  %l1 = memref.alloc() : !l1
  "cce.vexp"(%t, %t) : (!ub, !ub) -> ()
  // expected-error@below {{'cce.copy' op writes an array in global memory that the other kind of core accesses; found argument 0; expected tiles that cross by cce.copy_l0c or cce.copy_l1; keep what the other unit needs on the chip, or write two kernels}}
  "cce.copy"(%t, %x) : (!ub, memref<1x1x16x16xf32>) -> ()
  "cce.copy"(%x, %l1) : (memref<1x1x16x16xf32>, !l1) -> ()
  return
}

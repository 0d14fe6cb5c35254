// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(convert-cce-to-hir)' | FileCheck %s
// RUN: npu-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(convert-cce-to-hir,convert-cce-to-hir)' | FileCheck %s

// Buffers at their addresses, copies by the memories between which they are, numbers as operands,
// a fill of some lanes, a copy of whole blocks, and a barrier at the end.
// CHECK: func.func @k(%arg0: memref<100xf32, "gm">, %arg1: memref<17xf32, "gm">)
// CHECK: [[B:%.+]] = "hir.get_block_idx"() : () -> i64
// CHECK-NEXT: arith.index_cast [[B]] : i64 to index
// CHECK: [[C:%.+]] = arith.constant 512 : i64
// CHECK-NEXT: [[U:%.+]] = "hir.pointer_cast"([[C]]) {operandSegmentSizes = array<i32: 1, 0>} : (i64) -> memref<4x64xf32, "ub">
// CHECK: "hir.load"({{.*}}) {init_out_buffer = false{{.*}}} : (memref<4x16xf32, strided<[16, 1]>, "gm">, memref<4x16xf32, strided<[64, 1]>, "ub">) -> ()
// CHECK-NEXT: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, static_event_id = #hir.event<EVENT_ID3>, wait_pipe = #hir.pipe<PIPE_V>}
// CHECK: memref.subview [[U]][0, 8] [4, 16] [1, 1]
// CHECK-NEXT: "hir.vbrc"({{.*}}) {broadcast_dims = array<i64>} : (f32, memref<4x16xf32
// CHECK-NEXT: "hir.vadd"({{.*}}, %cst, {{.*}}) {broadcast = array<i64>, operandSegmentSizes = array<i32: 2, 1, 0>, transpose = array<i64>}
// CHECK-NEXT: "hir.vcast"({{.*}}) {{{.*}}round_mode = #hir.round_mode<rint>
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK: "hir.store"({{.*}}) {{{.*}}} : (memref<24xf32, strided<[1]>, "ub">, memref<24xf32, strided<[1]>, "gm">) -> ()
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_ALL>}
// CHECK-NEXT: return
func.func @k(%x: memref<100xf32>, %y: memref<17xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %cst = arith.constant 2.0 : f32
  %b = "cce.get_block_idx"() : () -> index
  %u = memref.alloc() {cce.address = 512 : i64} : memref<4x64xf32, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 4096 : i64} : memref<24xf32, #cce.space<"UB">>
  %h = memref.alloc() {cce.address = 8192 : i64} : memref<24xf16, #cce.space<"UB">>
  %from = memref.reinterpret_cast %x to offset: [0], sizes: [4, 16], strides: [16, 1] : memref<100xf32> to memref<4x16xf32, strided<[16, 1]>>
  %part = memref.subview %u[0, 0] [4, 16] [1, 1] : memref<4x64xf32, #cce.space<"UB">> to memref<4x16xf32, strided<[64, 1]>, #cce.space<"UB">>
  "cce.copy"(%from, %part) : (memref<4x16xf32, strided<[16, 1]>>, memref<4x16xf32, strided<[64, 1]>, #cce.space<"UB">>) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 3 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 3 : i64} : () -> ()
  "cce.vector_dup"(%cst, %u) {first_lane = 8 : i64, lanes = 16 : i64} : (f32, memref<4x64xf32, #cce.space<"UB">>) -> ()
  "cce.vadds"(%v, %cst, %v) : (memref<24xf32, #cce.space<"UB">>, f32, memref<24xf32, #cce.space<"UB">>) -> ()
  "cce.vconv"(%v, %h) : (memref<24xf32, #cce.space<"UB">>, memref<24xf16, #cce.space<"UB">>) -> ()
  "cce.pipe_barrier"() {pipe = "V"} : () -> ()
  %some = memref.subview %v[0] [17] [1] : memref<24xf32, #cce.space<"UB">> to memref<17xf32, strided<[1]>, #cce.space<"UB">>
  %to = memref.reinterpret_cast %y to offset: [0], sizes: [17], strides: [1] : memref<17xf32> to memref<17xf32, strided<[1]>>
  "cce.copy"(%some, %to) {round_up} : (memref<17xf32, strided<[1]>, #cce.space<"UB">>, memref<17xf32, strided<[1]>>) -> ()
  return
}

// A kernel without operations of cce stays as it is.
// CHECK: func.func @empty(%arg0: memref<100xf32>)
func.func @empty(%x: memref<100xf32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  return
}

// A multiply-add is a product behind all buffers and a sum, or both in the place of the result; bits
// of two types are those of one.
// CHECK: func.func @adds()
// CHECK: [[A:%.+]] = "hir.pointer_cast"
// CHECK: [[M:%.+]] = "hir.pointer_cast"{{.*}} -> memref<64xi32, "ub">
// CHECK: [[END:%.+]] = arith.constant 1280 : i64
// CHECK-NEXT: [[T:%.+]] = "hir.pointer_cast"([[END]])
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK-NEXT: "hir.vmul"([[A]], [[A]], [[T]])
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK-NEXT: "hir.vadd"([[T]], [[A]], [[A]])
// CHECK: "hir.vmul"([[A]], [[A]], [[A]])
// CHECK-NEXT: "hir.pipe_barrier"
// CHECK-NEXT: "hir.vadd"([[A]], [[A]], [[A]])
// CHECK: [[F:%.+]] = "hir.pointer_cast"{{.*}} -> memref<64xf32, "ub">
// CHECK-NEXT: "hir.vand"([[A]], [[F]], [[A]])
func.func @adds() attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<64xf32, #cce.space<"UB">>
  %m = memref.alloc() {cce.address = 1024 : i64} : memref<64xi32, #cce.space<"UB">>
  "cce.vmla"(%a, %a, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vmadd"(%a, %a, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vand"(%a, %m, %a) : (memref<64xf32, #cce.space<"UB">>, memref<64xi32, #cce.space<"UB">>, memref<64xf32, #cce.space<"UB">>) -> ()
  return
}

// On cube cores: loads of a product wait for what comes into L1, and it for them; rows become
// columns of fractals, what is behind them is filled run by run, and results are rounded. Products
// begin with either half of L0A and L0B in turn, which are free at first and waited for at the end.
// The second one takes 16 of k from columns of 32, which its sizes have.
// CHECK: func.func @p(
// CHECK: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_M>, static_event_id = #hir.event<EVENT_ID0>, wait_pipe = #hir.pipe<PIPE_MTE1>}
// CHECK: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_M>, static_event_id = #hir.event<EVENT_ID1>, wait_pipe = #hir.pipe<PIPE_MTE1>}
// CHECK: "hir.nd2nz"({{.*}}) {dst_continuous, init_out_buffer = false, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<12x32xf16, "gm">, memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, "cbuf">) -> ()
// CHECK: memref.reinterpret_cast {{.*}} to offset: [192], sizes: [64], strides: [1]
// CHECK: "hir.vbrc"
// CHECK: memref.reinterpret_cast {{.*}} to offset: [448], sizes: [64], strides: [1]
// CHECK: "hir.vbrc"
// CHECK: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, static_event_id = #hir.event<EVENT_ID0>, wait_pipe = #hir.pipe<PIPE_MTE1>}
// CHECK: [[N:%.+]] = arith.constant -1 : i64
// CHECK: [[TURN:%.+]] = arith.constant 0 : i64
// CHECK: [[FIRST:%.+]] = arith.constant 0 : i64
// CHECK: [[SECOND:%.+]] = arith.constant 1 : i64
// CHECK: "hir.mmadL1"({{.*}}, [[N]], [[N]], [[N]], [[N]], [[TURN]], [[FIRST]], [[SECOND]]) {b_transpose, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 1, 7, 0, 0>}
// CHECK: arith.constant 16 : index
// CHECK-NEXT: [[K:%.+]] = arith.constant 16 : index
// CHECK: [[TURN:%.+]] = arith.constant 1 : i64
// CHECK: "hir.mmadL1"({{%[^,]+, %[^,]+, %[^,]+, %[^,]+}}, [[K]], {{.*}}, [[TURN]], {{%[^,]+, %[^,]+}}) {{.*}} : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 256>, "cbuf">, memref<2x2x16x16xf16, strided<[512, 256, 16, 1], offset: 256>, "cbuf">,
// CHECK: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_M>, static_event_id = #hir.event<EVENT_ID1>, wait_pipe = #hir.pipe<PIPE_MTE2>}
// CHECK: "hir.fixpipe"({{.*}}) {dma_mode = #hir.dma_mode<nz2nd>, operandSegmentSizes = array<i32: 1, 1, 0, 0>, pre_quant = #hir.fixpipe_pre_quant_mode<F322F16>, pre_relu = #hir.fixpipe_pre_relu_mode<NORMAL_RELU>}
// CHECK: "hir.wait_flag"() {set_pipe = #hir.pipe<PIPE_M>, static_event_id = #hir.event<EVENT_ID0>, wait_pipe = #hir.pipe<PIPE_MTE1>}
// CHECK: "hir.wait_flag"() {set_pipe = #hir.pipe<PIPE_M>, static_event_id = #hir.event<EVENT_ID1>, wait_pipe = #hir.pipe<PIPE_MTE1>}
func.func @p(%x: memref<12x32xf16>, %y: memref<16x16xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %true = arith.constant true
  %l1 = memref.alloc() {cce.address = 0 : i64} : memref<512xf16, #cce.space<"L1">>
  %c = memref.alloc() {cce.address = 0 : i64} : memref<1x1x16x16xf32, #cce.space<"L0C">>
  %rows = memref.reinterpret_cast %l1 to offset: [0], sizes: [2, 12, 16], strides: [256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<2x12x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %rest = memref.reinterpret_cast %l1 to offset: [192], sizes: [2, 64], strides: [256, 1] : memref<512xf16, #cce.space<"L1">> to memref<2x64xf16, strided<[256, 1], offset: 192>, #cce.space<"L1">>
  %a = memref.reinterpret_cast %l1 to offset: [0], sizes: [2, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>
  "cce.nd2nz"(%x, %rows) : (memref<12x32xf16>, memref<2x12x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%rest) : (memref<2x64xf16, strided<[256, 1], offset: 192>, #cce.space<"L1">>) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "M", event = 0 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "M", event = 0 : i64} : () -> ()
  "cce.mad_l1"(%a, %a, %c, %true) {b_transpose} : (memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<2x1x16x16xf16, strided<[256, 256, 16, 1]>, #cce.space<"L1">>, memref<1x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  %l2 = memref.alloc() {cce.address = 1024 : i64} : memref<1024xf16, #cce.space<"L1">>
  %c2 = memref.alloc() {cce.address = 1024 : i64} : memref<2x1x16x16xf32, #cce.space<"L0C">>
  %second = memref.reinterpret_cast %l1 to offset: [256], sizes: [1, 1, 16, 16], strides: [256, 256, 16, 1] : memref<512xf16, #cce.space<"L1">> to memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 256>, #cce.space<"L1">>
  %half = memref.reinterpret_cast %l2 to offset: [256], sizes: [2, 1, 16, 16], strides: [512, 256, 16, 1] : memref<1024xf16, #cce.space<"L1">> to memref<2x1x16x16xf16, strided<[512, 256, 16, 1], offset: 256>, #cce.space<"L1">>
  "cce.mad_l1"(%second, %half, %c2, %true) : (memref<1x1x16x16xf16, strided<[256, 256, 16, 1], offset: 256>, #cce.space<"L1">>, memref<2x1x16x16xf16, strided<[512, 256, 16, 1], offset: 256>, #cce.space<"L1">>, memref<2x1x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  "cce.set_flag"() {src = "M", dst = "MTE2", event = 1 : i64} : () -> ()
  "cce.wait_flag"() {src = "M", dst = "MTE2", event = 1 : i64} : () -> ()
  "cce.fixpipe"(%c, %y) {relu} : (memref<1x1x16x16xf32, #cce.space<"L0C">>, memref<16x16xf16>) -> ()
  return
}

// Results go to columns of fractals: whole ones at once, the first rows of each by themselves.
// CHECK: func.func @f(
// CHECK: memref.expand_shape {{.*}} {{\[\[}}0], [1, 2], [3]] output_shape [2, 2, 16, 16]
// CHECK: "hir.fixpipe"({{.*}}) {dma_mode = #hir.dma_mode<normal>, operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (memref<2x2x16x16xf32, "cc">, memref<2x2x16x16xf32, "gm">) -> ()
// CHECK: [[C1:%.+]] = memref.subview {{.*}}[0, 0, 0, 0] [1, 2, 16, 16]
// CHECK: [[R1:%.+]] = memref.subview {{.*}}[0, 0, 0] [1, 30, 16]
// CHECK: "hir.fixpipe"([[C1]], [[R1]]) {dma_mode = #hir.dma_mode<nz2nd>
// CHECK: [[C2:%.+]] = memref.subview {{.*}}[1, 0, 0, 0] [1, 2, 16, 16]
// CHECK: [[R2:%.+]] = memref.subview {{.*}}[1, 0, 0] [1, 30, 16]
// CHECK: "hir.fixpipe"([[C2]], [[R2]]) {dma_mode = #hir.dma_mode<nz2nd>
func.func @f(%whole: memref<2x32x16xf32>, %first: memref<2x30x16xf32>) attributes {ascend.kernel, ascend.core = "aic"} {
  %c = memref.alloc() {cce.address = 0 : i64} : memref<2x2x16x16xf32, #cce.space<"L0C">>
  "cce.fixpipe"(%c, %whole) : (memref<2x2x16x16xf32, #cce.space<"L0C">>, memref<2x32x16xf32>) -> ()
  "cce.fixpipe"(%c, %first) : (memref<2x2x16x16xf32, #cce.space<"L0C">>, memref<2x30x16xf32>) -> ()
  return
}

// Blocks become numbers, and numbers blocks by way of a buffer behind all others.
// CHECK: func.func @b(
// CHECK: [[SUMS:%.+]] = memref.expand_shape {{.*}} {{\[\[}}0], [1, 2]] output_shape [2, 8, 1] : memref<2x8xf32, "ub"> into memref<2x8x1xf32, "ub">
// CHECK-NEXT: "hir.vreduce"({{.*}}, [[SUMS]]) {arith = #hir.reduce_op<sum>, operandSegmentSizes = array<i32: 1, 1, 0, 0>, reduce_dims = array<i64: 2>}
// CHECK: [[AT:%.+]] = arith.constant 576 : i64
// CHECK: [[BUFFER:%.+]] = "hir.pointer_cast"([[AT]]) {{.*}} -> memref<128xf32, "ub">
// CHECK: "hir.vbrc"({{.*}}, {{.*}}, [[BUFFER]]) {broadcast_dims = array<i64: 2>}
func.func @b() attributes {ascend.kernel, ascend.core = "aiv"} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<2x8x8xf32, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 512 : i64} : memref<2x8xf32, #cce.space<"UB">>
  "cce.vcgadd"(%u, %v) : (memref<2x8x8xf32, #cce.space<"UB">>, memref<2x8xf32, #cce.space<"UB">>) -> ()
  "cce.vbrcb"(%v, %u) : (memref<2x8xf32, #cce.space<"UB">>, memref<2x8x8xf32, #cce.space<"UB">>) -> ()
  return
}

// A row of squares becomes a column; squares apart are transposed one by one, as words of 16 bits.
// CHECK: func.func @t(
// CHECK: [[FROM:%.+]] = memref.reinterpret_cast {{.*}} to offset: [0], sizes: [16, 32], strides: [32, 1]
// CHECK-NEXT: [[TO:%.+]] = memref.reinterpret_cast {{.*}} to offset: [0], sizes: [32, 16], strides: [16, 1]
// CHECK-NEXT: "hir.vtranspose"([[FROM]], [[TO]]) {disable_align = false, permutation = array<i64: 1, 0>}
// CHECK: memref.reinterpret_cast {{.*}} to offset: [256], sizes: [16, 16], strides: [16, 1] : memref<512xf16, "ub">
// CHECK-NOT: "cce.
// CHECK: return
func.func @t() attributes {ascend.kernel, ascend.core = "aiv"} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<512xf16, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 1024 : i64} : memref<512xf16, #cce.space<"UB">>
  %w = memref.alloc() {cce.address = 2048 : i64} : memref<256xf32, #cce.space<"UB">>
  %rows = memref.reinterpret_cast %u to offset: [0], sizes: [16, 2, 16], strides: [32, 16, 1] : memref<512xf16, #cce.space<"UB">> to memref<16x2x16xf16, strided<[32, 16, 1]>, #cce.space<"UB">>
  %columns = memref.reinterpret_cast %v to offset: [0], sizes: [16, 2, 16], strides: [16, 256, 1] : memref<512xf16, #cce.space<"UB">> to memref<16x2x16xf16, strided<[16, 256, 1]>, #cce.space<"UB">>
  %words = memref.reinterpret_cast %w to offset: [0], sizes: [2, 8, 2, 8], strides: [64, 8, 128, 1] : memref<256xf32, #cce.space<"UB">> to memref<2x8x2x8xf32, strided<[64, 8, 128, 1]>, #cce.space<"UB">>
  "cce.vnchwconv"(%rows, %columns) : (memref<16x2x16xf16, strided<[32, 16, 1]>, #cce.space<"UB">>, memref<16x2x16xf16, strided<[16, 256, 1]>, #cce.space<"UB">>) -> ()
  "cce.vnchwconv"(%words, %rows) : (memref<2x8x2x8xf32, strided<[64, 8, 128, 1]>, #cce.space<"UB">>, memref<16x2x16xf16, strided<[32, 16, 1]>, #cce.space<"UB">>) -> ()
  return
}

// Flags between cores are at a place that is the first argument; a meeting of all blocks is a flag
// of all cores of the kind, behind what was loaded.
// CHECK: func.func @meets([[BASE:%.+]]: i64, [[X:%.+]]: memref<16x8xi32, "gm">) attributes {{.*}}"aiv"
// CHECK-NEXT: "hir.set_ffts_base_addr"([[BASE]]) : (i64) -> ()
// CHECK: "hir.sync_block_wait"() {pipe = #hir.pipe<PIPE_S>, static_flag_id = 2 : i64, tcore_type = #hir.tcore_type<VECTOR>, tpipe = #hir.pipe<PIPE_S>}
// CHECK: "hir.set_flag"() {set_pipe = #hir.pipe<PIPE_MTE2>, static_event_id = #hir.event<EVENT_ID7>, wait_pipe = #hir.pipe<PIPE_MTE3>}
// CHECK-NEXT: "hir.wait_flag"()
// CHECK-NEXT: "hir.sync_block_set"([[BASE]]) {{{.*}}static_flag_id = 0 : i64, {{.*}}tpipe = #hir.pipe<PIPE_MTE3>, tsync_instr_mode = #hir.sync_block_instr_mode<INTER_BLOCK_SYNCHRONIZATION>}
// CHECK-NEXT: "hir.sync_block_wait"() {{{.*}}static_flag_id = 0 : i64
// CHECK-NEXT: "hir.sync_block_set"([[BASE]]) {{{.*}}static_flag_id = 3 : i64, {{.*}}tpipe = #hir.pipe<PIPE_MTE3>, tsync_instr_mode = #hir.sync_block_instr_mode<INTRA_BLOCK_SYNCHRONIZATION>}
// CHECK-NOT: "cce.
// CHECK: return
func.func @meets(%lines: memref<16x8xi32>) attributes {ascend.kernel, ascend.core = "aiv"} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<17x8xi32, #cce.space<"UB">>
  "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
  %n = "cce.read_counter"(%lines, %u) : (memref<16x8xi32>, memref<17x8xi32, #cce.space<"UB">>) -> i32
  "cce.sync_cores"(%lines, %n, %u) : (memref<16x8xi32>, i32, memref<17x8xi32, #cce.space<"UB">>) -> ()
  "cce.set_core_flag"() {flag = 3 : i64, pipe = "MTE3"} : () -> ()
  return
}

// A square whose rows are not equally far apart is copied into rows that are, behind all buffers,
// by as few copies as have rows that are; of rows at one place only the last one is left.
// CHECK: func.func @scattered(
// CHECK-COUNT-2: "hir.copy"({{.*}}) : (memref<8x16xf16, {{.*}}, memref<8x16xf16,
// CHECK-NEXT: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK: "hir.vtranspose"({{.*}}) {{{.*}}} : (memref<16x16xf16, strided<[16, 1]>, "ub">, memref<16x16xf16, strided<[16, 1], offset: 256>, "ub">)
// CHECK: "hir.pipe_barrier"() {pipe = #hir.pipe<PIPE_V>}
// CHECK: "hir.copy"({{.*}}) : (memref<8x16xf16, strided<[16, 1], offset: 384>, "ub">, memref<8x16xf16, strided<[16, 1]>, "ub">) -> ()
// CHECK-NOT: "hir.copy"
// CHECK: return
func.func @scattered() attributes {ascend.kernel, ascend.core = "aiv"} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<512xf16, #cce.space<"UB">>
  %v = memref.alloc() {cce.address = 1024 : i64} : memref<512xf16, #cce.space<"UB">>
  %rows = memref.reinterpret_cast %u to offset: [0], sizes: [2, 8, 1, 16], strides: [256, 16, 16, 1] : memref<512xf16, #cce.space<"UB">> to memref<2x8x1x16xf16, strided<[256, 16, 16, 1]>, #cce.space<"UB">>
  %columns = memref.reinterpret_cast %v to offset: [0], sizes: [2, 8, 1, 16], strides: [0, 16, 16, 1] : memref<512xf16, #cce.space<"UB">> to memref<2x8x1x16xf16, strided<[0, 16, 16, 1]>, #cce.space<"UB">>
  "cce.vnchwconv"(%rows, %columns) : (memref<2x8x1x16xf16, strided<[256, 16, 16, 1]>, #cce.space<"UB">>, memref<2x8x1x16xf16, strided<[0, 16, 16, 1]>, #cce.space<"UB">>) -> ()
  return
}

// Fractals that lie in global memory are loaded as they are.
// CHECK: func.func @fractals(
// CHECK: "hir.load"({{.*}}) {init_out_buffer = false{{.*}}} : (memref<4x32x16xf16, "gm">, memref<4x32x16xf16, "cbuf">) -> ()
func.func @fractals(%x: memref<4x32x16xf16>) attributes {ascend.kernel, ascend.core = "aic"} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<4x32x16xf16, #cce.space<"L1">>
  "cce.copy"(%x, %u) : (memref<4x32x16xf16>, memref<4x32x16xf16, #cce.space<"L1">>) -> ()
  return
}

// The first lanes of rows are summed, to numbers at a distance.
// CHECK: func.func @s(
// CHECK: [[LANES:%.+]] = memref.subview {{.*}}[0, 0] [2, 40]
// CHECK: [[SUMS:%.+]] = memref.expand_shape {{.*}} {{\[\[}}0, 1]] output_shape [2, 1] : memref<2xf32, strided<[8]>, "ub"> into memref<2x1xf32, strided<[8, 8]>, "ub">
// CHECK: "hir.vreduce"([[LANES]], [[SUMS]]) {arith = #hir.reduce_op<sum>, operandSegmentSizes = array<i32: 1, 1, 0, 0>, reduce_dims = array<i64: 1>}
func.func @s() attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x64xf32, #cce.space<"UB">>
  %t = memref.alloc() {cce.address = 512 : i64} : memref<16xf32, #cce.space<"UB">>
  %d = memref.reinterpret_cast %t to offset: [0], sizes: [2], strides: [8] : memref<16xf32, #cce.space<"UB">> to memref<2xf32, strided<[8]>, #cce.space<"UB">>
  "cce.vcadd"(%a, %d) {lanes = 40 : i64} : (memref<2x64xf32, #cce.space<"UB">>, memref<2xf32, strided<[8]>, #cce.space<"UB">>) -> ()
  return
}

// Where UB has no room for a whole product, it is one of a piece in a loop, and of the rest.
// CHECK: func.func @pieces(
// CHECK: [[A:%.+]] = "hir.pointer_cast"{{.*}} -> memref<40000xf32, "ub">
// CHECK: scf.for [[I:%.+]] = %c0{{.*}} to %c36608{{.*}} step %c9152
// CHECK-NEXT: [[P:%.+]] = memref.subview [[A]][[[I]]] [9152] [1]
// CHECK: [[T:%.+]] = "hir.pointer_cast"{{.*}} -> memref<9152xf32, "ub">
// CHECK: "hir.vmul"([[P]], %cst, [[T]])
// CHECK: "hir.vadd"([[T]], [[P]], [[P]])
// CHECK: [[P:%.+]] = memref.subview [[A]][36608] [3392] [1]
// CHECK: [[T:%.+]] = "hir.pointer_cast"{{.*}} -> memref<3392xf32, "ub">
// CHECK: "hir.vmul"([[P]], %cst, [[T]])
// CHECK: "hir.vadd"([[T]], [[P]], [[P]])
func.func @pieces() attributes {ascend.kernel, ascend.core = "aiv"} {
  %cst = arith.constant 2.0 : f32
  %a = memref.alloc() {cce.address = 0 : i64} : memref<40000xf32, #cce.space<"UB">>
  "cce.vaxpy"(%a, %cst, %a) : (memref<40000xf32, #cce.space<"UB">>, f32, memref<40000xf32, #cce.space<"UB">>) -> ()
  return
}

// A choice between an array, whose step of 0 along one element is none, and a block that repeats,
// which is copied to all places of a piece of a row.
// CHECK: func.func @chosen(
// CHECK: scf.for [[I:%.+]] = %c0
// CHECK: scf.for [[J:%.+]] = %c0{{.*}} to %c2216{{.*}} step %c1108
// CHECK: [[X:%.+]] = memref.subview {{.*}}[[[I]], 0, [[J]], 0] [1, 1, 1108, 8] [1, 1, 1, 1]
// CHECK: [[S:%.+]] = "hir.pointer_cast"{{.*}} -> memref<32xi8, "ub">
// CHECK: [[B:%.+]] = "hir.pointer_cast"{{.*}} -> memref<1108x8xi1, "ub">
// CHECK: [[C:%.+]] = "hir.pointer_cast"{{.*}} -> memref<1108x8xf32, "ub">
// CHECK: "hir.vbrc"({{.*}}, [[C]]) {broadcast_dims = array<i64: 0>}
// CHECK: "hir.vcmp"([[X]], [[C]], [[B]])
// CHECK: "hir.vsel"([[B]], [[X]], [[C]], [[X]], [[S]])
// CHECK-NOT: "cce.
func.func @chosen() attributes {ascend.kernel, ascend.core = "aiv"} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<39984xf32, #cce.space<"UB">>
  %one = memref.alloc() {cce.address = 159968 : i64} : memref<8xf32, #cce.space<"UB">>
  %x = memref.reinterpret_cast %a to offset: [0], sizes: [2, 1, 2499, 8], strides: [19992, 0, 8, 1] : memref<39984xf32, #cce.space<"UB">> to memref<2x1x2499x8xf32, strided<[19992, 0, 8, 1]>, #cce.space<"UB">>
  %y = memref.reinterpret_cast %one to offset: [0], sizes: [2, 1, 2499, 8], strides: [0, 0, 0, 1] : memref<8xf32, #cce.space<"UB">> to memref<2x1x2499x8xf32, strided<[0, 0, 0, 1]>, #cce.space<"UB">>
  "cce.vcmpsel"(%x, %y, %x, %y, %x) {predicate = "lt"} : (memref<2x1x2499x8xf32, strided<[19992, 0, 8, 1]>, #cce.space<"UB">>, memref<2x1x2499x8xf32, strided<[0, 0, 0, 1]>, #cce.space<"UB">>, memref<2x1x2499x8xf32, strided<[19992, 0, 8, 1]>, #cce.space<"UB">>, memref<2x1x2499x8xf32, strided<[0, 0, 0, 1]>, #cce.space<"UB">>, memref<2x1x2499x8xf32, strided<[19992, 0, 8, 1]>, #cce.space<"UB">>) -> ()
  return
}

// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm)' | FileCheck %s
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm{machine=ascend910b})' | FileCheck %s --check-prefix=B
// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-cce-to-hivm,convert-cce-to-hivm)' | FileCheck %s

// Whole repeats of 64 numbers, then 44 under a prefix mask; the copies round up to 38 blocks.
// CHECK-LABEL: func.func @flat
// CHECK-SAME: (%arg0: !llvm.ptr<1>, %arg1: !llvm.ptr<1>) attributes {ascend.kernel}
// CHECK-DAG: [[AT512:%.+]] = arith.constant 512 : i64
// CHECK-DAG: [[AT1536:%.+]] = arith.constant 1536 : i64
// CHECK: [[U:%.+]] = llvm.inttoptr [[AT512]] : i64 to !llvm.ptr<6>
// CHECK-NEXT: "hivm.copy_gm_to_ubuf"([[U]], %arg0) {dst_gap = 0 : i64, len_burst = 38 : i64, n_burst = 1 : i64
// CHECK-NEXT: "hivm.set_flag"() {dst_pipe = 1 : i64, event = 2 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.wait_flag"() {dst_pipe = 1 : i64, event = 2 : i64, src_pipe = 4 : i64}
// CHECK-NEXT: "hivm.set_vector_mask"() {high = -1 : i64, low = -1 : i64}
// CHECK-NEXT: "hivm.vexp"([[U]], [[U]]) {{{.*}}repeat = 4 : i64{{.*}}type = "f32"}
// CHECK-NEXT: "hivm.set_vector_mask"() {high = 0 : i64, low = 17592186044415 : i64}
// CHECK-NEXT: [[TAIL:%.+]] = llvm.inttoptr [[AT1536]]
// CHECK-NEXT: "hivm.vexp"([[TAIL]], [[TAIL]]) {{{.*}}repeat = 1 : i64
// CHECK-NEXT: "hivm.pipe_barrier"() {pipe = 1 : i64}
// CHECK-NEXT: "hivm.copy_ubuf_to_gm"(%arg1, [[U]])
func.func @flat(%x: memref<300xf32>, %y: memref<300xf32>) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 512 : i64} : memref<300xf32, #cce.space<"UB">>
  "cce.copy"(%x, %u) {round_up} : (memref<300xf32>, memref<300xf32, #cce.space<"UB">>) -> ()
  "cce.set_flag"() {src = "MTE2", dst = "V", event = 2 : i64} : () -> ()
  "cce.wait_flag"() {src = "MTE2", dst = "V", event = 2 : i64} : () -> ()
  "cce.vexp"(%u, %u) : (memref<300xf32, #cce.space<"UB">>, memref<300xf32, #cce.space<"UB">>) -> ()
  "cce.pipe_barrier"() {pipe = "V"} : () -> ()
  "cce.copy"(%u, %y) {round_up} : (memref<300xf32, #cce.space<"UB">>, memref<300xf32>) -> ()
  return
}

// A run of three blocks less a number comes and goes to the element, its length in bytes.
// CHECK-LABEL: func.func @exact
// CHECK: "hivm.copy_gm_to_ubuf_align"({{.*}}) {dst_gap = 0 : i64, len_burst = 92 : i64, n_burst = 1 : i64, src_gap = 0 : i64, type = "b32"}
// CHECK: "hivm.copy_ubuf_to_gm_align"({{.*}}) {dst_gap = 0 : i64, len_burst = 92 : i64, n_burst = 1 : i64, src_gap = 0 : i64, type = "b32"}
func.func @exact(%x: memref<23xf32>, %y: memref<23xf32>) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 512 : i64} : memref<23xf32, #cce.space<"UB">>
  "cce.copy"(%x, %u) {exact} : (memref<23xf32>, memref<23xf32, #cce.space<"UB">>) -> ()
  "cce.copy"(%u, %y) {exact} : (memref<23xf32, #cce.space<"UB">>, memref<23xf32>) -> ()
  return
}

// One row of 8 added to 30 rows: rows are blocks of a repeat, the row is read again by stride 0.
// Repeats of 6 rows each divide them evenly, so that there is one instruction.
// CHECK-LABEL: func.func @broadcast
// CHECK: "hivm.set_vector_mask"() {high = 0 : i64, low = 281474976710655 : i64}
// CHECK: "hivm.vadd"{{.*}} {dst_blk_stride = 1 : i64, dst_rep_stride = 6 : i64, repeat = 5 : i64, src0_blk_stride = 1 : i64, src0_rep_stride = 6 : i64, src1_blk_stride = 0 : i64, src1_rep_stride = 0 : i64, type = "f32"}
// CHECK-NOT: "hivm.vadd"
func.func @broadcast() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<30x8xf32, #cce.space<"UB">>
  %row = memref.alloc() {cce.address = 960 : i64} : memref<8xf32, #cce.space<"UB">>
  %b = memref.reinterpret_cast %row to offset: [0], sizes: [30, 8], strides: [0, 1]
    : memref<8xf32, #cce.space<"UB">> to memref<30x8xf32, strided<[0, 1]>, #cce.space<"UB">>
  "cce.vadd"(%a, %b, %a) : (memref<30x8xf32, #cce.space<"UB">>, memref<30x8xf32, strided<[0, 1]>, #cce.space<"UB">>, memref<30x8xf32, #cce.space<"UB">>) -> ()
  return
}

// Rows of 72 at a stride of 80: whole repeats over the rows, then the last 8 of each row.
// CHECK-LABEL: func.func @rows
// CHECK: "hivm.set_vector_mask"() {high = -1 : i64, low = -1 : i64}
// CHECK: "hivm.vabs"{{.*}}dst_rep_stride = 10 : i64, repeat = 9 : i64
// CHECK: "hivm.set_vector_mask"
// CHECK: "hivm.vabs"
func.func @rows() attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<9x80xf32, #cce.space<"UB">>
  %v = memref.subview %u[0, 0] [9, 72] [1, 1]
    : memref<9x80xf32, #cce.space<"UB">> to memref<9x72xf32, strided<[80, 1]>, #cce.space<"UB">>
  "cce.vabs"(%v, %v) : (memref<9x72xf32, strided<[80, 1]>, #cce.space<"UB">>, memref<9x72xf32, strided<[80, 1]>, #cce.space<"UB">>) -> ()
  return
}

// Bursts with a gap at both ends; where gaps are no whole blocks, every 16th row goes together, in a
// loop over the first of them.
// CHECK-LABEL: func.func @bursts
// CHECK: "hivm.copy_gm_to_cbuf"{{.*}} {dst_gap = 1 : i64, len_burst = 2 : i64, n_burst = 5 : i64, src_gap = 6 : i64}
// CHECK: scf.for
// CHECK: [[OFFSET:%.+]] = arith.muli {{.*}} : i64
// CHECK: llvm.getelementptr %arg1{{\[}}[[OFFSET]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK: "hivm.copy_gm_to_cbuf"{{.*}} {dst_gap = 15 : i64, len_burst = 1 : i64, n_burst = 3 : i64, src_gap = 16 : i64}
func.func @bursts(%x: memref<5x64xf32>, %y: memref<48x17xf16>) attributes {ascend.kernel} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<5x24xf32, #cce.space<"L1">>
  %m = memref.alloc() {cce.address = 1024 : i64} : memref<48x16xf16, #cce.space<"L1">>
  %xs = memref.subview %x[0, 8] [5, 16] [1, 1] : memref<5x64xf32> to memref<5x16xf32, strided<[64, 1], offset: 8>>
  %ls = memref.subview %l[0, 0] [5, 16] [1, 1] : memref<5x24xf32, #cce.space<"L1">> to memref<5x16xf32, strided<[24, 1]>, #cce.space<"L1">>
  "cce.copy"(%xs, %ls) : (memref<5x16xf32, strided<[64, 1], offset: 8>>, memref<5x16xf32, strided<[24, 1]>, #cce.space<"L1">>) -> ()
  %ys = memref.subview %y[0, 1] [48, 16] [1, 1] : memref<48x17xf16> to memref<48x16xf16, strided<[17, 1], offset: 1>>
  "cce.copy"(%ys, %m) : (memref<48x16xf16, strided<[17, 1], offset: 1>>, memref<48x16xf16, #cce.space<"L1">>) -> ()
  return
}

// CHECK-LABEL: func.func @cube
// CHECK-SAME: (%arg0: i1)
// CHECK: "hivm.load_cbuf_to_ca"{{.*}} {repeat = 3 : i64, src_stride = 2 : i64, start_index = 0 : i64, transpose = 0 : i64, type = "f16"}
// CHECK: "hivm.load_cbuf_to_ca"{{.*}} {repeat = 3 : i64, src_stride = 2 : i64
// CHECK: "hivm.load_cbuf_to_cb"{{.*}} {repeat = 3 : i64, src_stride = 1 : i64, start_index = 0 : i64, transpose = 1 : i64, type = "f16"}
// CHECK: [[INIT:%.+]] = arith.extui %arg0 : i1 to i64
// CHECK: "hivm.mad"({{.*}}, [[INIT]]) {dynamic = ["init"], k = 48 : i64, m = 32 : i64, n = 16 : i64, type = "f162f32"}
// CHECK: "hivm.mad"{{.*}} {init = 1 : i64, k = 48 : i64, m = 32 : i64, n = 16 : i64, type = "f162f32"}
// CHECK: "hivm.copy_matrix_cc_to_ubuf"{{.*}} {dst_gap = 0 : i64, len_burst = 2 : i64, n_burst = 1 : i64, src_gap = 0 : i64, type = "f322f16"}
func.func @cube(%init: i1) attributes {ascend.kernel} {
  %a1 = memref.alloc() {cce.address = 0 : i64} : memref<3x2x16x16xf16, #cce.space<"L1">>
  %b1 = memref.alloc() {cce.address = 4096 : i64} : memref<3x1x16x16xf16, #cce.space<"L1">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x3x16x16xf16, #cce.space<"L0A">>
  %b = memref.alloc() {cce.address = 0 : i64} : memref<3x1x16x16xf16, #cce.space<"L0B">>
  %c = memref.alloc() {cce.address = 0 : i64} : memref<1x2x16x16xf32, #cce.space<"L0C">>
  %u = memref.alloc() {cce.address = 0 : i64} : memref<1x2x16x16xf16, #cce.space<"UB">>
  %zz = memref.reinterpret_cast %a1 to offset: [0], sizes: [2, 3, 16, 16], strides: [256, 512, 16, 1]
    : memref<3x2x16x16xf16, #cce.space<"L1">> to memref<2x3x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>
  "cce.load2d"(%zz, %a) : (memref<2x3x16x16xf16, strided<[256, 512, 16, 1]>, #cce.space<"L1">>, memref<2x3x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%b1, %b) {transpose} : (memref<3x1x16x16xf16, #cce.space<"L1">>, memref<3x1x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.mad"(%a, %b, %c, %init) : (memref<2x3x16x16xf16, #cce.space<"L0A">>, memref<3x1x16x16xf16, #cce.space<"L0B">>, memref<1x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  %true = arith.constant true
  "cce.mad"(%a, %b, %c, %true) : (memref<2x3x16x16xf16, #cce.space<"L0A">>, memref<3x1x16x16xf16, #cce.space<"L0B">>, memref<1x2x16x16xf32, #cce.space<"L0C">>, i1) -> ()
  "cce.copy_l0c"(%c, %u) : (memref<1x2x16x16xf32, #cce.space<"L0C">>, memref<1x2x16x16xf16, #cce.space<"UB">>) -> ()
  return
}

// Scales of each column of fractals are named before it is copied.
// CHECK-LABEL: func.func @dequantize
// CHECK: "hivm.set_deqscale"() {bits = 128 : i64}
// CHECK: "hivm.copy_matrix_cc_to_ubuf"{{.*}} {dst_gap = 0 : i64, len_burst = 3 : i64, n_burst = 1 : i64, src_gap = 0 : i64, type = "s322f16v"}
// CHECK: "hivm.set_deqscale"() {bits = 129 : i64}
// CHECK: "hivm.copy_matrix_cc_to_ubuf"{{.*}}type = "s322f16v"
func.func @dequantize() attributes {ascend.kernel} {
  %c = memref.alloc() {cce.address = 0 : i64} : memref<2x3x16x16xi32, #cce.space<"L0C">>
  %s = memref.alloc() {cce.address = 4096 : i64} : memref<2x16xf16, #cce.space<"UB">>
  %u = memref.alloc() {cce.address = 0 : i64} : memref<2x3x16x16xf16, #cce.space<"UB">>
  "cce.dequantize_l0c"(%c, %s, %u) : (memref<2x3x16x16xi32, #cce.space<"L0C">>, memref<2x16xf16, #cce.space<"UB">>, memref<2x3x16x16xf16, #cce.space<"UB">>) -> ()
  return
}

// On cores without a vector unit rows become fractals on their way to L1, and sums leave L0C for GM;
// rows of GM that lie too far apart for one transfer come one by one.
// CHECK-LABEL: func.func @cube_core
// CHECK: "hivm.copy_gm_to_cbuf_multi_nd2nz"{{.*}} {d_value = 33 : i64, dst_nz_c0_stride = 16 : i64, dst_nz_matrix_stride = 0 : i64, dst_nz_n_stride = 1 : i64, n_value = 5 : i64, nd_num = 1 : i64, src_d_value = 40 : i64
// CHECK-COUNT-2: "hivm.copy_gm_to_cbuf_multi_nd2nz"{{.*}}n_value = 1 : i64
// CHECK: "hivm.create_cbuf_matrix"{{.*}} {dst_gap = 5 : i64, len_burst = 11 : i64, n_burst = 3 : i64, type = "b16", value = 0 : i64}
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 70 : i64, m_size = 30 : i64, n_size = 50 : i64, nz2nd = 1 : i64, relu = 1 : i64, src_stride = 32 : i64, type = "f322f16"}
// CHECK: "hivm.fixpipe"{{.*}} {dst_stride = 96 : i64, m_size = 32 : i64, n_size = 64 : i64, nz2nd = 0 : i64, relu = 0 : i64, src_stride = 32 : i64, type = "f32"}
func.func @cube_core(%x: memref<5x33xf16, strided<[40, 1]>>, %far: memref<2x16xf16, strided<[70000, 1]>>, %y: memref<30x50xf16, strided<[70, 1]>>, %z: memref<4x2x16x16xf32, strided<[768, 256, 16, 1]>>) attributes {ascend.kernel} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<3x16x16xf16, #cce.space<"L1">>
  %c = memref.alloc() {cce.address = 0 : i64} : memref<4x2x16x16xf32, #cce.space<"L0C">>
  %top = memref.reinterpret_cast %l to offset: [0], sizes: [3, 5, 16], strides: [256, 16, 1]
    : memref<3x16x16xf16, #cce.space<"L1">> to memref<3x5x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %two = memref.reinterpret_cast %l to offset: [0], sizes: [1, 2, 16], strides: [256, 16, 1]
    : memref<3x16x16xf16, #cce.space<"L1">> to memref<1x2x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>
  %rest = memref.reinterpret_cast %l to offset: [80], sizes: [3, 176], strides: [256, 1]
    : memref<3x16x16xf16, #cce.space<"L1">> to memref<3x176xf16, strided<[256, 1], offset: 80>, #cce.space<"L1">>
  "cce.nd2nz"(%x, %top) : (memref<5x33xf16, strided<[40, 1]>>, memref<3x5x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.nd2nz"(%far, %two) : (memref<2x16xf16, strided<[70000, 1]>>, memref<1x2x16xf16, strided<[256, 16, 1]>, #cce.space<"L1">>) -> ()
  "cce.clear_l1"(%rest) : (memref<3x176xf16, strided<[256, 1], offset: 80>, #cce.space<"L1">>) -> ()
  "cce.fixpipe"(%c, %y) {relu} : (memref<4x2x16x16xf32, #cce.space<"L0C">>, memref<30x50xf16, strided<[70, 1]>>) -> ()
  "cce.fixpipe"(%c, %z) : (memref<4x2x16x16xf32, #cce.space<"L0C">>, memref<4x2x16x16xf32, strided<[768, 256, 16, 1]>>) -> ()
  return
}

// Columns of fractals are one load of a rectangle of windows where the machine has that.
// B-LABEL: func.func @rectangle
// B: "hivm.set_fmatrix"() {l1_h = 1 : i64, l1_w = 80 : i64
// B: "hivm.img2colv2_cbuf_to_ca"{{.*}}k_extension = 32 : i64{{.*}}m_extension = 48 : i64
// CHECK-LABEL: func.func @rectangle
// CHECK-COUNT-3: "hivm.load_cbuf_to_ca"
func.func @rectangle() attributes {ascend.kernel, ascend.unit = "cube"} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<2x5x16x16xf16, #cce.space<"L1">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<3x2x16x16xf16, #cce.space<"L0A">>
  %part = memref.reinterpret_cast %l to offset: [0], sizes: [3, 2, 16, 16], strides: [256, 1280, 16, 1]
    : memref<2x5x16x16xf16, #cce.space<"L1">> to memref<3x2x16x16xf16, strided<[256, 1280, 16, 1]>, #cce.space<"L1">>
  "cce.load2d"(%part, %a) : (memref<3x2x16x16xf16, strided<[256, 1280, 16, 1]>, #cce.space<"L1">>, memref<3x2x16x16xf16, #cce.space<"L0A">>) -> ()
  return
}

// Transposed columns are one, too, where B is [n][k] in L1 or A is [m][k]; in L0B such a load
// always transposes, so B that lies as [k][n] is loaded row by row.
// B-LABEL: func.func @turned
// B: "hivm.set_fmatrix"() {l1_h = 1 : i64, l1_w = 64 : i64
// B: "hivm.img2colv2_cbuf_to_cb"{{.*}}k_extension = 32 : i64{{.*}}m_extension = 48 : i64{{((?!transpose).)*$}}
// B: "hivm.img2colv2_cbuf_to_ca"{{.*}}k_extension = 32 : i64{{.*}}m_extension = 48 : i64{{.*}}transpose = 1 : i64
// B-COUNT-3: "hivm.load_cbuf_to_cb"{{.*}}transpose = 0 : i64
// CHECK-LABEL: func.func @turned
// CHECK-COUNT-3: "hivm.load_cbuf_to_cb"{{.*}}transpose = 1 : i64
// CHECK-COUNT-2: "hivm.load_cbuf_to_ca"{{.*}}transpose = 1 : i64
func.func @turned() attributes {ascend.kernel, ascend.unit = "cube"} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<2x4x16x16xf16, #cce.space<"L1">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x3x16x16xf16, #cce.space<"L0A">>
  %b = memref.alloc() {cce.address = 0 : i64} : memref<3x2x16x16xf16, #cce.space<"L0B">>
  %kn = memref.reinterpret_cast %l to offset: [0], sizes: [3, 2, 16, 16], strides: [256, 1024, 16, 1]
    : memref<2x4x16x16xf16, #cce.space<"L1">> to memref<3x2x16x16xf16, strided<[256, 1024, 16, 1]>, #cce.space<"L1">>
  %mk = memref.reinterpret_cast %l to offset: [0], sizes: [2, 3, 16, 16], strides: [1024, 256, 16, 1]
    : memref<2x4x16x16xf16, #cce.space<"L1">> to memref<2x3x16x16xf16, strided<[1024, 256, 16, 1]>, #cce.space<"L1">>
  "cce.load2d"(%kn, %b) {transpose} : (memref<3x2x16x16xf16, strided<[256, 1024, 16, 1]>, #cce.space<"L1">>, memref<3x2x16x16xf16, #cce.space<"L0B">>) -> ()
  "cce.load2d"(%mk, %a) {transpose} : (memref<2x3x16x16xf16, strided<[1024, 256, 16, 1]>, #cce.space<"L1">>, memref<2x3x16x16xf16, #cce.space<"L0A">>) -> ()
  "cce.load2d"(%kn, %b) : (memref<3x2x16x16xf16, strided<[256, 1024, 16, 1]>, #cce.space<"L1">>, memref<3x2x16x16xf16, #cce.space<"L0B">>) -> ()
  return
}

// Windows: load3dv2 takes all elements of the kernel of all windows, and counts both from the first
// ones: here from channel 16 of the second block on, with two rows of padding above the image.
// B-LABEL: func.func @windows
// B: "hivm.set_fmatrix"() {l1_h = 6 : i64, l1_w = 8 : i64, pad_bottom = 0 : i64, pad_left = 1 : i64, pad_right = 1 : i64, pad_top = 2 : i64}
// B: "hivm.img2colv2_cbuf_to_ca"{{.*}}k_extension = 64 : i64, k_start = 16 : i64, m_extension = 32 : i64, m_start = 16 : i64
// CHECK-LABEL: func.func @windows
// CHECK-COUNT-2: "hivm.img2col_cbuf_to_ca"
func.func @windows() attributes {ascend.kernel, ascend.unit = "cube"} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<2x6x8x16xf16, #cce.space<"L1">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x4x16x16xf16, #cce.space<"L0A">>
  %first = arith.constant 16 : index
  %top = arith.constant -2 : index
  "cce.load3d"(%l, %first, %top, %a) {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, element = 10 : i64}
    : (memref<2x6x8x16xf16, #cce.space<"L1">>, index, index, memref<2x4x16x16xf16, #cce.space<"L0A">>) -> ()
  return
}

// Window 120608 is more than 16 bits say: windows are counted from row 200 of them on, the first that
// begins a fractal of windows with no more than one row of padding above the image.
// B-LABEL: func.func @late_windows
// B: "hivm.set_fmatrix"() {{.*}}pad_top = 1 : i64}
// B: "hivm.img2colv2_cbuf_to_ca"{{.*}}m_start = 608 : i64
func.func @late_windows() attributes {ascend.kernel, ascend.unit = "cube"} {
  %l = memref.alloc() {cce.address = 0 : i64} : memref<1x4x600x16xf16, #cce.space<"L1">>
  %a = memref.alloc() {cce.address = 0 : i64} : memref<2x4x16x16xf16, #cce.space<"L0A">>
  %first = arith.constant 120608 : index
  %top = arith.constant -201 : index
  "cce.load3d"(%l, %first, %top, %a) {kernel = array<i64: 3, 3>, strides = array<i64: 1, 1>, dilations = array<i64: 1, 1>, pads = array<i64: 1, 1>, element = 0 : i64}
    : (memref<1x4x600x16xf16, #cce.space<"L1">>, index, index, memref<2x4x16x16xf16, #cce.space<"L0A">>) -> ()
  return
}

// A compare and a select a repeat: 128 numbers are two of them.
// CHECK-LABEL: func.func @select
// CHECK-COUNT-2: "hivm.vcmp_ge"{{.*}} {repeat = 1 : i64, src0_blk_stride = 1 : i64, src1_blk_stride = 1 : i64, type = "f32"}
// CHECK-NOT: "hivm.vcmp_ge"
func.func @select() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<128xf32, #cce.space<"UB">>
  %b = memref.alloc() {cce.address = 512 : i64} : memref<128xf32, #cce.space<"UB">>
  "cce.vcmpsel"(%a, %b, %a, %b, %a) {predicate = "ge"} : (memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>, memref<128xf32, #cce.space<"UB">>) -> ()
  return
}

// CHECK-LABEL: func.func @scalar
// CHECK: [[BLOCK:%.+]] = "hivm.get_block_idx"() : () -> i64
// CHECK: [[OFFSET:%.+]] = arith.muli [[BLOCK]], {{.*}} : i64
// CHECK: [[AT:%.+]] = llvm.getelementptr %arg0{{\[}}[[OFFSET]]]
// CHECK: [[X:%.+]] = "hivm.ld"([[AT]]) : (!llvm.ptr<1>) -> f32
// CHECK: [[BITS:%.+]] = arith.bitcast [[X]] : f32 to i32
// CHECK: [[WORD:%.+]] = arith.extui [[BITS]] : i32 to i64
// CHECK: "hivm.vadds"({{.*}}, [[WORD]]) {{{.*}}dynamic = ["value"]
// CHECK: "hivm.vmuls"({{.*}}) {{{.*}}value = 1069547520 : i64}
// CHECK: "hivm.vaxpy"({{.*}}) {{{.*}}value = 1069547520 : i64}
// CHECK: "hivm.st"(%arg0, [[X]]) : (!llvm.ptr<1>, f32) -> ()
func.func @scalar(%x: memref<16xf32>) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<64xf32, #cce.space<"UB">>
  %i = "cce.get_block_idx"() : () -> index
  %v = memref.load %x[%i] : memref<16xf32>
  %w = arith.constant 1.5 : f32
  "cce.vadds"(%u, %v, %u) : (memref<64xf32, #cce.space<"UB">>, f32, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vmuls"(%u, %w, %u) : (memref<64xf32, #cce.space<"UB">>, f32, memref<64xf32, #cce.space<"UB">>) -> ()
  "cce.vaxpy"(%u, %w, %u) : (memref<64xf32, #cce.space<"UB">>, f32, memref<64xf32, #cce.space<"UB">>) -> ()
  %c0 = arith.constant 0 : index
  memref.store %v, %x[%c0] : memref<16xf32>
  return
}

// Eight set_va_reg take 4 of the 32 row addresses each.
// CHECK-LABEL: func.func @transpose
// CHECK: "hivm.set_va_reg"() {address0 = 64 : i64, address1 = 67 : i64, address2 = 70 : i64, address3 = 73 : i64, half = 0 : i64, va = 0 : i64}
// CHECK-COUNT-7: "hivm.set_va_reg"
// CHECK: "hivm.scatter_vnchwconv"() {dst_stride = 1 : i64, dst_va0 = 0 : i64, dst_va1 = 1 : i64, repeat = 3 : i64, src_stride = 1 : i64, src_va0 = 2 : i64, src_va1 = 3 : i64, type = "b16"}
func.func @transpose() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<16x3x16xf16, #cce.space<"UB">>
  %b = memref.alloc() {cce.address = 2048 : i64} : memref<16x3x16xf16, #cce.space<"UB">>
  "cce.vnchwconv"(%a, %b) : (memref<16x3x16xf16, #cce.space<"UB">>, memref<16x3x16xf16, #cce.space<"UB">>) -> ()
  return
}

// A repeat takes eight elements to a block each.
// CHECK-LABEL: func.func @repeat_lanes
// CHECK: "hivm.vbrcb"({{.*}}) {dst_blk_stride = 2 : i64, dst_rep_stride = 16 : i64, repeat = 3 : i64, type = "b32"}
func.func @repeat_lanes() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<3x8xf32, #cce.space<"UB">>
  %b = memref.alloc() {cce.address = 1024 : i64} : memref<384xf32, #cce.space<"UB">>
  %c = memref.reinterpret_cast %b to offset: [0], sizes: [3, 8, 8], strides: [128, 16, 1] : memref<384xf32, #cce.space<"UB">> to memref<3x8x8xf32, strided<[128, 16, 1]>, #cce.space<"UB">>
  "cce.vbrcb"(%a, %c) : (memref<3x8xf32, #cce.space<"UB">>, memref<3x8x8xf32, strided<[128, 16, 1]>, #cce.space<"UB">>) -> ()
  return
}

// Whole repeats of 64 words, then the lanes that are left.
// CHECK-LABEL: func.func @gather
// CHECK: "hivm.vgather"({{.*}}) {dst_rep_stride = 8 : i64, repeat = 2 : i64, type = "b32"}
// CHECK: "hivm.set_vector_mask"() {high = 0 : i64, low = 3 : i64}
// CHECK: "hivm.vgather"({{.*}}) {dst_rep_stride = 8 : i64, repeat = 1 : i64, type = "b32"}
func.func @gather() attributes {ascend.kernel} {
  %a = memref.alloc() {cce.address = 0 : i64} : memref<130xi32, #cce.space<"UB">>
  %b = memref.alloc() {cce.address = 1024 : i64} : memref<40xf32, #cce.space<"UB">>
  %c = memref.alloc() {cce.address = 2048 : i64} : memref<130xf32, #cce.space<"UB">>
  "cce.vgather"(%a, %b, %c) : (memref<130xi32, #cce.space<"UB">>, memref<40xf32, #cce.space<"UB">>, memref<130xf32, #cce.space<"UB">>) -> ()
  return
}

// Flags between a cube core and its vector cores.
// CHECK-LABEL: func.func @core_flags
// CHECK: "hivm.get_sub_block_idx"
// CHECK: "hivm.wait_flag_dev"() {flag = 2 : i64}
// CHECK: "hivm.ffts_cross_core_sync"() {flag = 3 : i64, mode = 2 : i64, pipe = 5 : i64}
// CHECK: "hivm.ffts_cross_core_sync"() {flag = 4 : i64, mode = 0 : i64, pipe = 5 : i64}
func.func @core_flags(%x: memref<2x64xf32>) attributes {ascend.kernel} {
  %u = memref.alloc() {cce.address = 0 : i64} : memref<64xf32, #cce.space<"UB">>
  %i = "cce.get_sub_block_idx"() : () -> index
  %v = memref.subview %x[%i, 0] [1, 64] [1, 1] : memref<2x64xf32> to memref<64xf32, strided<[1], offset: ?>>
  "cce.wait_core_flag"() {flag = 2 : i64} : () -> ()
  "cce.copy"(%u, %v) : (memref<64xf32, #cce.space<"UB">>, memref<64xf32, strided<[1], offset: ?>>) -> ()
  "cce.set_core_flag"() {flag = 3 : i64, pipe = "MTE3"} : () -> ()
  "cce.set_core_flag"() {of_all, flag = 4 : i64, pipe = "MTE3"} : () -> ()
  return
}

// Functions that are no kernels keep their arrays.
// CHECK-LABEL: func.func @host
// CHECK-SAME: memref<4xf32>
// CHECK: memref.load
func.func @host(%x: memref<4xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<4xf32>
  return %v : f32
}

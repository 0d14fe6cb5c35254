// RUN: npu-opt %s --pass-pipeline='builtin.module(convert-hivm-to-llvm{machine=ascend910b})' --split-input-file --verify-diagnostics

// expected-error@below {{'func.func' op is not for the cores of ascend910b; expected ascend.core = "aic" or ascend.core = "aiv"}}
func.func @coupled() attributes {ascend.kernel} {
  return
}

// -----

// expected-error@below {{'func.func' op is not for the cores of ascend910b; found ascend.core = "cube"; expected ascend.core = "aic" or ascend.core = "aiv"}}
func.func @misspelt() attributes {ascend.kernel, ascend.core = "cube"} {
  return
}

// -----

func.func @path(%ub: !llvm.ptr<6>, %l1: !llvm.ptr<2>) attributes {ascend.kernel, ascend.core = "aiv"} {
  // expected-error@below {{'hivm.copy_cbuf_to_ubuf' op is illegal: ascend910b has no instruction copy_cbuf_to_ubuf}}
  "hivm.copy_cbuf_to_ubuf"(%ub, %l1) {n_burst = 1, len_burst = 1, src_gap = 0, dst_gap = 0} : (!llvm.ptr<6>, !llvm.ptr<2>) -> ()
  return
}

// -----

func.func @type(%a: !llvm.ptr<3>, %b: !llvm.ptr<4>, %c: !llvm.ptr<5>) attributes {ascend.kernel, ascend.core = "aic"} {
  // expected-error@below {{'hivm.mad' op is illegal: ascend910b has no mad of type f162f16, only of f162f32, s82s32}}
  "hivm.mad"(%c, %a, %b) {type = "f162f16", m = 16, k = 16, n = 16, init = 1} : (!llvm.ptr<5>, !llvm.ptr<3>, !llvm.ptr<4>) -> ()
  return
}

// -----

func.func @memory(%x: !llvm.ptr<1>, %ub: !llvm.ptr<6>) attributes {ascend.kernel, ascend.core = "aic"} {
  // expected-error@below {{'hivm.copy_gm_to_ubuf' op is illegal: copy_gm_to_ubuf needs UB, which a cube core (AIC) of ascend910b has not}}
  "hivm.copy_gm_to_ubuf"(%ub, %x) {n_burst = 1, len_burst = 1, src_gap = 0, dst_gap = 0} : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
  return
}

// -----

func.func @pipe() attributes {ascend.kernel, ascend.core = "aiv"} {
  // expected-error@below {{'hivm.pipe_barrier' op is illegal: pipe_barrier names PIPE_M, which a vector core (AIV) of ascend910b has not}}
  "hivm.pipe_barrier"() {pipe = 2} : () -> ()
  return
}

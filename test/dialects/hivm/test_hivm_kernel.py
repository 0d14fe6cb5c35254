"""A kernel written by hand as hivm text compiles, runs and is checked like a generated one."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.errors import DavinciError, DeviceFault

TYPE = "memref<1024xf32>"
WAIT = '"hivm.wait_flag"() {src_pipe = 4, dst_pipe = 1, event = 0} : () -> ()'
EXP = f"""
module {{
  func.func @main(%x: {TYPE} {{ascend.name = "x"}}, %y: {TYPE} {{ascend.name = "y", ascend.output}})
      attributes {{ascend.entry}} {{
    call @exp(%x, %y) {{ascend.blocks = 1 : i64}} : ({TYPE}, {TYPE}) -> ()
    return
  }}
  func.func private @exp({TYPE}, {TYPE}) attributes {{ascend.launch = @kernels::@exp}}
  module @kernels {{
    func.func @exp(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>)
        attributes {{ascend.kernel, ascend.op = "exp", ascend.unit = "vector"}} {{
      %c0 = arith.constant 0 : i64
      %repeat = arith.constant 16 : i64
      %ub = llvm.inttoptr %c0 : i64 to !llvm.ptr<6>
      "hivm.copy_gm_to_ubuf"(%ub, %x) {{n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}}
        : (!llvm.ptr<6>, !llvm.ptr<1>) -> ()
      "hivm.set_flag"() {{src_pipe = 4, dst_pipe = 1, event = 0}} : () -> ()
      {WAIT}
      "hivm.vexp"(%ub, %ub, %repeat) {{type = "f32", dynamic = ["repeat"], dst_blk_stride = 1,
        src_blk_stride = 1, dst_rep_stride = 8, src_rep_stride = 8}}
        : (!llvm.ptr<6>, !llvm.ptr<6>, i64) -> ()
      "hivm.set_flag"() {{src_pipe = 1, dst_pipe = 5, event = 0}} : () -> ()
      "hivm.wait_flag"() {{src_pipe = 1, dst_pipe = 5, event = 0}} : () -> ()
      "hivm.copy_ubuf_to_gm"(%y, %ub) {{n_burst = 1, len_burst = 128, src_gap = 0, dst_gap = 0}}
        : (!llvm.ptr<1>, !llvm.ptr<6>) -> ()
      return
    }}
  }}
}}
"""
X = np.linspace(-3, 3, 1024, dtype=np.float32)


def test_result_and_counts() -> None:
    executable = davinci.compile(EXP)
    found = executable.run({"x": X})["y"]
    np.testing.assert_allclose(found, np.exp(X), rtol=2.0**-22)
    (kernel,) = executable.profile["kernels"]
    assert (kernel["gm_read_bytes"], kernel["gm_write_bytes"]) == (4096, 4096)
    assert kernel["instructions"] == 7


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("constant 16 :", "constant 17 :", "it reads bytes that nobody wrote"),
        ("constant 0 :", "constant 16 :", "misaligned address of operand dst"),
        ("constant 0 :", "constant 262112 :", "out of bounds"),
        (WAIT, "", "vexp.f32"),
    ],
    ids=["unwritten", "misaligned", "out of bounds", "no wait"],
)
def test_faults_of_the_machine(before: str, after: str, message: str) -> None:
    executable = davinci.compile(EXP.replace(before, after, 1))
    with pytest.raises(DeviceFault, match=message):
        executable.run({"x": X})


def test_constant_operand_out_of_range_is_refused() -> None:
    with pytest.raises(DavinciError, match="field repeat is out of range; found 256"):
        davinci.compile(EXP.replace("constant 16 :", "constant 256 :", 1))

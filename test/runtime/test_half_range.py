"""What leaves the range of f16 is counted where it happens, and told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from davinci.errors import CheckFailed
from davinci.isa.core import BY_OPCODE
from davinci.report.value_range import range_summary
from davinci.simulator.core.half_range import (
    Lost,
    converts,
    lost_by_arithmetic,
    lost_by_conversion,
    lost_by_product,
)
from davinci.tools import npu_run
from support import compile_text

PRODUCT = """func.func @main(%x: tensor<16x32xf32>, %y: tensor<32x8xf32>) -> tensor<16x8xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<16x32xf32>, tensor<32x8xf32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}"""
MASKED = """func.func @main(%x: tensor<64xf32>, %m: tensor<64xf32>) -> tensor<64xf32> {
  %0 = stablehlo.add %x, %m : tensor<64xf32>
  %1 = stablehlo.exponential %0 : tensor<64xf32>
  return %1 : tensor<64xf32>
}"""


def run(text: str, x: Any, y: Any, **options: Any) -> dict[str, Any]:
    executable = compile_text(text, **options)
    executable.run(x, y)
    profile: dict[str, Any] = executable.profile
    return profile


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
def test_operands_of_a_product(precision: str) -> None:
    x, y = np.ones((16, 32), np.float32), np.ones((32, 8), np.float32)
    x[0, :3], x[1, 2], x[2, :14], x[3, 3] = -1e5, np.inf, 1e-9, np.nan
    record = run(PRODUCT, x, y, precision=precision)
    (row,) = record["range"]["kernels"]
    assert (row["name"], row["overflows"], row["underflows"]) == ("matmul_f32_16x8", 3, 14)
    assert (record["range"]["overflows"], record["range"]["underflows"]) == (3, 14)
    line = range_summary(record)
    assert "3 values became infinite in matmul_f32_16x8" in line
    assert "14 values became 0 in matmul_f32_16x8" in line
    x[2, :12] = 1
    assert "became 0" not in range_summary(run(PRODUCT, x, y, precision=precision))
    assert "--precision fp32" in line


def test_fp32_is_no_remedy_for_fp32() -> None:
    """A model that asks for f16 itself: no other precision keeps what it loses there."""
    lost = {"kernels": [{"name": "k", "operators": [], "overflows": 2, "converted": 9}]}
    assert "--precision fp32" in range_summary({"range": lost, "precision": "mixed"})
    assert range_summary({"range": lost, "precision": "fp32"}).endswith("infinite in k")


@pytest.mark.parametrize("precision", ["mixed", "fp16"])
def test_operands_without_a_number_that_keeps_its_digits(precision: str) -> None:
    """Multiples of 2**-24 are all that f16 has below 2**-14."""
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(1, 2, shape).astype(np.float32) for shape in ((16, 32), (32, 8)))
    x *= np.float32(1e-6)
    record = run(PRODUCT, x, y, precision=precision)
    row = record["range"]["kernels"][0]
    assert row["subnormals"] > 500 and not row["underflows"]
    assert "below 6.1e-05 lost digits in matmul_f32_16x8 (" in range_summary(record)
    x[:, ::16] = 1  # beside which they do not matter
    assert range_summary(run(PRODUCT, x, y, precision=precision)) == ""


def test_products_in_half_precision_that_vanish() -> None:
    x, y = np.array([2.0**-10, 0.0, 0.3, 1e-4], np.float16), np.full(4, 2.0**-12, np.float16)
    exact = x.astype(np.float32) * y.astype(np.float32)
    lost = lost_by_product([x, y], exact.astype(np.float16))
    # 2**-22 is a multiple of 2**-24, 0.3 2**-12 is normal, and makes the others small beside it.
    assert lost == Lost()
    x[2] = 0
    lost = lost_by_product([x, y], (x.astype(np.float32) * y.astype(np.float32)).astype(np.float16))
    assert lost == Lost(0, 1, 0, 0)


def test_parts_of_f32_values_lose_nothing() -> None:
    x, y = np.ones((16, 32), np.float32), np.full((32, 8), 1e-30, np.float32)
    x[1], x[2, :5] = 1e30, 1 + 2.0**-23
    assert run(PRODUCT, x, y, precision="fp32")["range"]["kernels"] == []


def test_every_instruction_that_rounds_f32_to_f16_is_looked_at() -> None:
    found = {record.mnemonic for record in BY_OPCODE.values() if converts(record)}
    copies = ("copy_matrix_cc_to_ubuf.f322f16", "copy_matrix_cc_to_ubuf.f322f16relu")
    of_the_950 = ("vcvt_reg.f322f16", "fixpipe_to_ub.f322f16")
    through_fixpipe = ("fixpipe.f322f16", "fixpipe_to_l1.f322f16")
    assert found == {"vconv_f322f16", *copies, *through_fixpipe, *of_the_950}


def test_a_failed_check_says_so(tmp_path: Path) -> None:
    path = tmp_path / "scores.mlir"
    scaled = "%k = stablehlo.constant dense<1.0e9> : tensor<16x32xf32>\n"
    scaled += "%z = stablehlo.multiply %x, %k : tensor<16x32xf32>\n%0 ="
    path.write_text(PRODUCT.replace("%0 =", scaled, 1).replace("dot_general %x", "dot_general %z"))
    with pytest.raises(CheckFailed, match=r"512 values became infinite .*--precision fp32"):
        npu_run.execute(npu_run.make_parser().parse_args([str(path), "--check"]))
    assert npu_run.main([str(path), "--check", "--precision", "fp32"]) == 0


def test_results_on_the_way_out_of_l0c() -> None:
    x, y = np.full((16, 32), 100, np.float32), np.full((32, 8), 100, np.float32)
    record = run(PRODUCT, x, y, precision="fp16")
    (row,) = record["range"]["kernels"]
    assert row["name"].startswith("matmul")
    assert row["overflows"] >= 16 * 8


def test_masks_that_are_added_in_f32() -> None:
    x = np.zeros(64, np.float32)
    mask = np.where(np.arange(64) % 2, np.float32(-1e9), np.float32(0))
    record = run(MASKED, x, mask)
    nothing = {"overflows": 0, "underflows": 0, "subnormals": 0, "kernels": []}
    assert record["range"] == nothing
    assert range_summary(record) == ""


def test_arithmetic_in_half_precision() -> None:
    record = run(MASKED, np.full(64, 12, np.float32), np.zeros(64, np.float32), precision="fp16")
    (row,) = record["range"]["kernels"]
    assert (row["name"], row["overflows"], row["underflows"]) == ("add_exp_f32_64", 64, 0)


HALVES = np.array([65504, np.inf, -np.inf, np.nan, 0, 1], np.float16)


@pytest.mark.parametrize(
    ("value", "lost"),
    [
        (65519.0, Lost(0, 0, 2)),
        (65520.0, Lost(1, 0, 2)),
        (-65520.0, Lost(1, 0, 2)),
        (-1e9, Lost(1, 0, 2)),
        (np.inf, Lost(0, 0, 2)),
        (float(np.finfo(np.float32).min), Lost(0, 0, 2)),
        (-3.3895313892515355e38, Lost(0, 0, 2)),
        (np.nan, Lost(0, 0, 2)),
        (2.0**-25, Lost(0, 1, 2)),
        (2.0**-25 * 1.0001, Lost(0, 0, 2)),
        (-0.0, Lost(0, 0, 2)),
    ],
)
def test_conversions(value: float, lost: Lost) -> None:
    source = np.array([1.0, value], np.float32)
    with np.errstate(all="ignore"):
        assert lost_by_conversion(source, source.astype(np.float16)) == lost


def test_infinite_operands_and_what_they_give_are_no_overflows() -> None:
    with np.errstate(all="ignore"):
        result = HALVES + HALVES
    assert lost_by_arithmetic([HALVES, HALVES], result) == Lost(1, 0)


def test_what_stands_for_an_infinity_loses_nothing() -> None:
    least, score = np.full(4, -65504, np.float16), np.full(4, -100, np.float16)
    with np.errstate(all="ignore"):
        assert lost_by_arithmetic([score, least], score + least) == Lost(0, 0)
        assert lost_by_arithmetic([score * 8, score * 8], score * 800) == Lost(4, 0)
        row = np.array([-np.inf, 0], np.float16)
        assert lost_by_arithmetic([score, row], least + least) == Lost(0, 0)


MASKED_SOFTMAX = """
func.func @main(%s: tensor<64x64xf32>, %m: tensor<64x64xi1>) -> tensor<64x64xf32> {{
  %low = stablehlo.constant dense<{least}> : tensor<64x64xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<64x64xf32>
  %mask = stablehlo.select %m, %zero, %low : tensor<64x64xi1>, tensor<64x64xf32>
  %t = stablehlo.add %s, %mask : tensor<64x64xf32>
  %e = stablehlo.exponential %t : tensor<64x64xf32>
  return %e : tensor<64x64xf32>
}}"""


@pytest.mark.parametrize("least", ["0xFF800000", "0xFF7FFFFF"], ids=["infinity", "least"])
def test_masks_lose_nothing(least: str) -> None:
    kept = np.tril(np.ones((64, 64), bool))
    scores = np.zeros((64, 64), np.float32)
    record = run(MASKED_SOFTMAX.format(least=least), scores, kept, precision="fp16")
    assert range_summary(record) == ""
    assert record["range"]["overflows"] == 0 and not record["range_of_constants"]

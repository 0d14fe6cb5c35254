"""Texts of JAX that say how tensors lie on several devices, and calls of LAPACK in them."""

from __future__ import annotations

import numpy as np
import pytest

import davinci
from davinci.errors import CompileError

SHARDED = """
module @jit_f {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
      -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
    %0 = stablehlo.add %arg0, %arg0
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
"""
POTRF = """
func.func @main(%x: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>) {{
  %0:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {{
    mhlo.backend_config = {{uplo = {uplo} : ui8}},
    sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l], []) {{i=3, j=3}}, custom>}}
    : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<3x3xf32>, tensor<i32>
}}
"""
TRSM = """
func.func @main(%a: tensor<3x3xf32>, %b: tensor<3x2xf32>) -> tensor<3x2xf32> {{
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {{mhlo.backend_config =
    {{diag = {diag} : ui8, side = 76 : ui8, trans_x = {trans} : ui8, uplo = {uplo} : ui8}}}}
    : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}}
"""
MATRIX = np.array([[4, 1, 2], [1, 5, 3], [2, 3, 6]], np.float32)


def test_shardings_change_nothing() -> None:
    executable = davinci.compile(SHARDED, cores=1)
    x = np.arange(4, dtype=np.float32)
    (found,) = executable.run({"arg0": x}).values()
    np.testing.assert_array_equal(found, 2 * x)


def test_a_computation_split_by_hand_is_refused_by_name() -> None:
    split = "sdy.manual_computation(%0) in_shardings=[<@mesh, [{}]>] : tensor<4xf32>"
    text = SHARDED.replace("sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<4xf32>", split)
    with pytest.raises(CompileError, match=r":8: 'sdy\.manual_computation' splits"):
        davinci.compile(text)


@pytest.mark.parametrize("uplo", ["L", "U"])
def test_cholesky_of_lapack(uplo: str) -> None:
    executable = davinci.compile(POTRF.format(uplo=ord(uplo)), cores=1)
    (name,) = executable.input_names
    found, state = executable.run({name: MATRIX}).values()
    kept = np.tril if uplo == "L" else np.triu
    wanted = np.linalg.cholesky(MATRIX)
    np.testing.assert_allclose(kept(found), wanted if uplo == "L" else wanted.T, rtol=1e-5)
    assert state == 0
    _, state = executable.run({name: MATRIX - 6 * np.eye(3, dtype=np.float32)}).values()
    assert state != 0


@pytest.mark.parametrize(("uplo", "trans", "diag"), ["LNN", "UTN", "LNU"])
def test_a_triangular_solver_of_lapack(uplo: str, trans: str, diag: str) -> None:
    options = {"uplo": ord(uplo), "trans": ord(trans), "diag": ord(diag)}
    executable = davinci.compile(TRSM.format(**options), cores=1)
    b = np.arange(6, dtype=np.float32).reshape(3, 2)
    (found,) = executable.run(dict(zip(executable.input_names, (MATRIX, b), strict=True))).values()
    matrix = np.tril(MATRIX) if uplo == "L" else np.triu(MATRIX)
    matrix = matrix if diag == "N" else matrix - np.diag(np.diag(matrix)) + np.eye(3)
    matrix = matrix.T if trans == "T" else matrix
    np.testing.assert_allclose(found, np.linalg.solve(matrix, b), rtol=1e-4, atol=1e-5)

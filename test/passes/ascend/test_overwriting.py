"""Results in the bytes of operands: updates in place, and copies that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support import compile_text

UPDATE = """
  module @kernels {
    func.func @update(%a: memref<6x64xf32>, %u: memref<2x64xf32>, %out: memref<6x64xf32>)
        attributes {ascend.kernel, ascend.op = "update", ascend.overwrites = [[0, 0]]} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c64 = arith.constant 64 : index
      scf.for %i = %c0 to %c2 step %c1 {
        scf.for %j = %c0 to %c64 step %c1 {
          %v = memref.load %u[%i, %j] : memref<2x64xf32>
          %k = arith.addi %i, %c1 : index
          memref.store %v, %out[%k, %j] : memref<6x64xf32>
        }
      }
      return
    }
  }
  func.func private @update(!t, !u) -> !t"""

CALL = "func.call @update(%{}, %u) : (!t, !u) -> !t"


def network(body: str, results: str) -> str:
    """A module of some operators and updates of rows 1 and 2."""
    count = results.count("%")
    returned = ", ".join(["!t"] * count)
    return f"""
    !t = tensor<6x64xf32>
    !u = tensor<2x64xf32>
    module {{{UPDATE}
      func.func @main(%x: !t, %u: !u) -> ({returned}) {{
        {body}
        return {results} : {returned}
      }}
    }}"""


def neg(result: str, operand: str) -> str:
    return f'%{result} = "ascend.neg"(%{operand}) : (!t) -> !t'


DOUBLE = '%d = "ascend.add"(%a, %a) : (!t, !t) -> !t'

X = np.arange(6 * 64, dtype=np.float32).reshape(6, 64)
U = -np.ones((2, 64), np.float32)


def updated(array: Any, rows: Any = U) -> Any:
    array = array.copy()
    array[1:3] = rows
    return array


CASES = {
    "operand is needed no more": (
        [neg("a", "x"), f"%b = {CALL.format('a')}", neg("c", "b")],
        "%c",
        [-updated(-X)],
        0,
    ),
    "operand is needed later": (
        [neg("a", "x"), f"%b = {CALL.format('a')}", neg("c", "b"), DOUBLE],
        "%c, %d",
        [-updated(-X), -2 * X],
        1,
    ),
    "operand was needed before": (
        [neg("a", "x"), DOUBLE, f"%b = {CALL.format('a')}", neg("c", "b")],
        "%c, %d",
        [-updated(-X), -2 * X],
        0,
    ),
    "operand is an argument": ([f"%b = {CALL.format('x')}"], "%b", [updated(X)], 1),
    "result is an output": ([neg("a", "x"), f"%b = {CALL.format('a')}"], "%b", [updated(-X)], 0),
    "operand is an output": (
        [neg("a", "x"), f"%b = {CALL.format('a')}", neg("c", "b")],
        "%a, %c",
        [-X, -updated(-X)],
        1,
    ),
    "one after the other": (
        [neg("a", "x"), f"%b = {CALL.format('a')}", f"%c = {CALL.format('b')}"],
        "%c",
        [updated(-X)],
        0,
    ),
    "one operand, twice": (
        [neg("a", "x"), f"%b = {CALL.format('a')}", f"%c = {CALL.format('a')}", neg("d", "b")],
        "%c, %d",
        [updated(-X), -updated(-X)],
        1,
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("plan", ["sequential", "time"])
def test_updates(name: str, plan: str) -> None:
    body, results, wanted, copies = CASES[name]
    executable = compile_text(network("\n".join(body), results), fusion="none", plan=plan)
    found = executable.run({"arg0": X, "arg1": U})
    for array, expected in zip(found.values(), wanted, strict=True):
        np.testing.assert_array_equal(array, expected)
    names = [one["kernel"] for one in executable.profile["launches_list"]]
    assert sum("copy" in name for name in names) == copies, names

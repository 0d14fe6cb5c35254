"""Results in the bytes of operands: updates in place, and copies that are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from davinci.passes.ascend import overwriting
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


def chain(rows: int, columns: int) -> tuple[str, Any, Any]:
    """Residual sums of products, one after the other; its inputs and results."""
    t, w = f"tensor<{rows}x{columns}xf32>", f"tensor<{columns}x{columns}xf32>"
    dims = "contracting_dims = [1] x [0]"
    body = []
    for number, before in enumerate(["%x", "%s0", "%s1", "%s2"]):
        p, s = f"%p{number}", f"%s{number}"
        body.append(f"{p} = stablehlo.dot_general {before}, %w, {dims} : ({t}, {w}) -> {t}")
        body.append(f"%t{number} = stablehlo.dot_general {p}, %w, {dims} : ({t}, {w}) -> {t}")
        body.append(f"{s} = stablehlo.add {before}, %t{number} : {t}")
    lines = "\n".join(body)
    text = f"func.func @main(%x: {t}, %w: {w}) -> {t} {{\n{lines}\nreturn %s3 : {t}\n}}"
    random = np.random.default_rng(0)
    x = random.integers(-2, 3, (rows, columns)).astype(np.float32)
    weights = np.eye(columns, dtype=np.float32)[random.permutation(columns)]
    wanted = x
    for _ in range(4):
        wanted = wanted + wanted @ weights @ weights
    return text, {"arg0": x, "arg1": weights}, wanted


@pytest.mark.parametrize(
    ("size", "options"),
    [
        ((17, 32), {}),
        ((17, 32), {"fusion": "none"}),
        ((48, 32), {"cores": 1}),
        ((200, 160), {}),
        ((200, 160), {"fusion": "none"}),
        ((33, 17), {"cores": 1}),
    ],
    ids=str,
)
def test_residual_sums_lie_where_an_operand_was(
    size: tuple[int, int], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, inputs, wanted = chain(*size)
    executable = compile_text(text, **options)
    executable.poison = True
    (found,) = executable.run(inputs).values()
    np.testing.assert_array_equal(found, wanted)
    monkeypatch.setattr(overwriting, "shareable", lambda graph: [])
    apart = compile_text(text, cache=False, **options)
    less = executable.facts.arena_bytes - apart.facts.arena_bytes
    assert less < 0 if size[0] > 33 else less <= 0


def test_poison_reaches_results_that_read_what_is_free() -> None:
    text, inputs, wanted = chain(48, 32)
    executable = compile_text(text)
    executable.poison = True
    host: Any = executable._host
    places = host.arena_uses
    assert len(places) > 1
    for number, (offset, size, first, last) in enumerate(places):
        if last > first:
            host.arena_uses = [*places[:number], (offset, size, 0, 0), *places[number + 1 :]]
            (found,) = executable.run(inputs).values()
            assert not np.array_equal(found, wanted)
    host.arena_uses = places
    np.testing.assert_array_equal(*executable.run(inputs).values(), wanted)

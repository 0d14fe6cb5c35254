"""ascend-legalize-precision: policy `fp16` replaces values that depend on constants only, and
in `mixed` operators that jump read what was computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import davinci
from davinci import frontends
from davinci.mlir import make_context
from davinci.passes.ascend import ascend_legalize_precision as legalize
from davinci.passes.pipeline import runner

KIND = "tensor<16x16xf32>"
TEXT = f"""
func.func @main(%x: {KIND}) -> {KIND} {{
  %w = "ascend.constant"() {{value = dense<0.5> : {KIND}}} : () -> {KIND}
  %a = "ascend.exp"(%w) : ({KIND}) -> {KIND}
  %b = "ascend.exp"(%a) : ({KIND}) -> {KIND}
  %c = "ascend.exp"(%x) : ({KIND}) -> {KIND}
  %d = "ascend.matmul"(%c, %b) : ({KIND}, {KIND}) -> {KIND}
  return %d : {KIND}
}}"""


def test_values_of_erased_operations_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """MLIR's values are told apart by their addresses, and one that is made later may have that of
    one that was erased: it would be taken for one that depends on constants only."""
    found: list[set[Any]] = []

    def mark_foldable(block: Any) -> set[Any]:
        found.append(legalize_mark(block))
        assert len(found[-1]) == 2
        return found[-1]

    legalize_mark = legalize.mark_foldable
    monkeypatch.setattr(legalize, "mark_foldable", mark_foldable)
    module = frontends.load(TEXT, make_context())
    runner.run(module.operation, "builtin.module(ascend-legalize-precision{precision=fp16})")
    assert found == [set()]


def test_what_jumps_reads_what_was_computed() -> None:
    """1 - 2^-13 is 1 as f16, as which a product reads it; its whole number is 0."""
    kind, pair = KIND, f"({KIND}, {KIND}) -> {KIND}"
    text = f"""
        func.func @main(%x: {kind}, %w: {kind})
            -> ({kind}, tensor<16x16xi32>, {kind}, tensor<16x16xi1>, {kind}) {{
          %v = stablehlo.negate %x : {kind}
          %p = stablehlo.dot_general %v, %w, contracting_dims = [1] x [0] : {pair}
          %i = stablehlo.convert %v : ({kind}) -> tensor<16x16xi32>
          %f = stablehlo.floor %v : {kind}
          %one = stablehlo.constant dense<1.0> : {kind}
          %c = stablehlo.compare LT, %v, %one : ({kind}, {kind}) -> tensor<16x16xi1>
          %t = stablehlo.transpose %v, dims = [1, 0] : ({kind}) -> {kind}
          %s = stablehlo.sign %t : {kind}
          %d = stablehlo.subtract %s, %f : {kind}
          return %p, %i, %f, %c, %d : {kind}, tensor<16x16xi32>, {kind}, tensor<16x16xi1>, {kind}
        }}"""
    x = np.full((16, 16), -(1 - 2.0**-13), np.float32)
    found = list(davinci.compile(text).run(x, np.eye(16, dtype=np.float32)).values())
    product, whole, floor, less, difference = found
    assert (product == 1).all()
    assert (whole == 0).all() and (floor == 0).all() and less.all() and (difference == 1).all()

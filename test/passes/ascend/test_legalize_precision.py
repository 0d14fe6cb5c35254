"""ascend-legalize-precision: policy `fp16` replaces values that depend on constants only."""

from __future__ import annotations

from typing import Any

import pytest

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

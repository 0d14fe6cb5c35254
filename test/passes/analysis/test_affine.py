"""Quotients and remainders of numbers that differ by a constant."""

from __future__ import annotations

import pytest

from davinci.mlir import ir, make_context
from davinci.passes.analysis.affine import AffineForm, Forms

PARTS = """
func.func @k() {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 12 : index
  %scale = arith.constant SCALE : index
  %more = arith.constant MORE : index
  %divisor = arith.constant DIVISOR : index
  scf.for %i = %c0 to %n step %c1 {
    %first = arith.muli %i, %scale : index
    %row = arith.divui %first, %divisor : index
    %column = arith.remui %first, %divisor : index
    %other = arith.addi %first, %more : index
    %other_row = arith.divui %other, %divisor : index
    %other_column = arith.remui %other, %divisor : index
  }
  return
}
"""


@pytest.mark.parametrize(
    ("scale", "more", "divisor", "known"),
    [
        (4, 3, 8, True),  # of four tiles each, in rows of eight
        (4, 4, 8, False),  # where the next four may be in the next row
        (1, 32, 8, True),  # whole rows on
        (1, 1, 8, False),
        (6, 17, 8, True),  # two rows and a column of two
        (6, 19, 8, False),
        (8, 5, 8, True),
    ],
)
def test_a_constant_passes_a_division(scale: int, more: int, divisor: int, known: bool) -> None:
    text = PARTS.replace("SCALE", str(scale)).replace("MORE", str(more))
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text.replace("DIVISOR", str(divisor)))
        body = module.body.operations[0].regions[0].blocks[0]
        loop = next(op.operation for op in body.operations if op.operation.name == "scf.for")
        inside = [
            op.operation.results[0] for op in loop.regions[0].blocks[0].operations if op.results
        ]
        _, row, column, _, other_row, other_column = inside
        forms = Forms()
        forms.enter_loop(loop)
        own = {value: forms.of(value) for value in (row, column)}
        found = [forms.of(value) for value in (other_row, other_column)]
        assert (found != [AffineForm(0, ((v, 1),)) for v in (other_row, other_column)]) is known
        if known:
            assert {v for form in found for v, _ in form.terms} <= own.keys()
        for i in range(12):
            at = {row: scale * i // divisor, column: scale * i % divisor}
            number = scale * i + more
            at |= {other_row: number // divisor, other_column: number % divisor}
            values = [form.constant + sum(c * at[v] for v, c in form.terms) for form in found]
            assert values == [number // divisor, number % divisor]

"""Operators with loops of our own against the interpreter: every form, element types in turns."""

from __future__ import annotations

import importlib

import pytest
from stablehlo_coverage import judge
from stablehlo_forms import FORMS, Form, load_forms

from davinci.passes.stablehlo_to_scf import FAMILIES, LOWERINGS

load_forms()
for _family in FAMILIES:
    importlib.import_module(f"davinci.passes.stablehlo_to_scf.{_family}")

CASES = [
    (form, form.types[turn % len(form.types)])
    for number, form in enumerate(f for f in FORMS if f.operator in LOWERINGS)
    for turn in sorted({0, (1 + number) % len(form.types)})
]


@pytest.mark.parametrize(
    ("form", "element"), CASES, ids=[f"{f.operator}-{f.name}-{e}" for f, e in CASES]
)
def test_form(form: Form, element: str) -> None:
    outcome = judge(form, element)
    assert (outcome.kind, outcome.detail) == ("correct", "")
    # An operation on no element, a branch and an unrolled loop need no kernel of the scalar unit.
    assert outcome.unit in ("scalar", "vector", "none")

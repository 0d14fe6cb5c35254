"""Every fold agrees with the kernel that computes the same, and a broken fold does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from davinci.element_types import DTYPES
from davinci.operators import OPERATORS, Tensor
from davinci.operators.comparison import PREDICATES
from davinci.operators.products import PRODUCTS
from davinci.operators.reduce import REDUCTIONS
from fold_cases import CASES, Array, Case, element
from support import compile_text

NEVER_FOLDED = (*PRODUCTS, "fractalize", "defractalize")
"""Operators whose values would take too long, and kernels, which tensors have none of."""

TABLES: dict[str, dict[str, Any]] = {
    "": {name: r for name, r in OPERATORS.items() if r.operands and name not in NEVER_FOLDED},
    "predicate": PREDICATES,
    "kind": REDUCTIONS,
}
"""What folds, by the attribute that chooses in it; the operator does in the first."""


def tensor(shape: tuple[int, ...], kind: str) -> str:
    return f"tensor<{'x'.join(map(str, (*shape, kind)))}>"


def result_of(case: Case) -> tuple[tuple[int, ...], str]:
    """Shape and element type of the result."""
    last = case.inputs[-1] if case.inputs else None
    shape = case.shape if last is None or case.shape is not None else last.shape
    assert shape is not None
    return shape, case.result or element(case.inputs[-1])


def kernel_text(case: Case) -> str:
    """A module that computes the case from arguments."""
    inputs = [tensor(x.shape, element(x)) for x in case.inputs]
    result = tensor(*result_of(case))
    arguments = ", ".join(f"%{i}: {t}" for i, t in enumerate(inputs))
    operands = ", ".join(f"%{i}" for i in range(len(inputs)))
    attributes = f" {{{case.text}}}" if case.text else ""
    return f"""func.func @main({arguments}) -> {result} {{
      %r = "ascend.{case.name}"({operands}){attributes} : ({", ".join(inputs)}) -> {result}
      return %r : {result}
    }}"""


@cache
def by_kernel(number: int) -> Array:
    case = CASES[number]
    shape, kind = result_of(case)
    if case.name in ("copy", "reshape", "relayout", "view"):  # the same elements
        return case.inputs[0].reshape(shape)
    if case.name == "iota":  # always folded
        return np.indices(shape)[case.attributes["dim"]].astype(DTYPES[kind])
    executable = compile_text(kernel_text(case), cores=1)
    (found,) = executable.run(*case.inputs).values()
    return np.asarray(found)


def by_fold(case: Case) -> Array:
    shape, kind = result_of(case)
    result = Tensor(shape, kind)
    found = OPERATORS[case.name].values(case.inputs, result, case.attributes)
    assert found.dtype == DTYPES[kind]
    return found


def check(number: int) -> None:
    """Compares fold and kernel: the same bits, or within the errors of a series."""
    case, wanted = CASES[number], by_kernel(number)
    found = by_fold(case)
    assert found.shape == wanted.shape
    if case.rtol:
        np.testing.assert_allclose(found.astype(float), wanted.astype(float), case.rtol)
        return
    np.testing.assert_array_equal(found, wanted)
    if found.dtype.kind == "f":
        numbers = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("number", range(len(CASES)), ids=map(str, CASES))
def test_fold_and_kernel_agree(number: int) -> None:
    check(number)


def key_in(attribute: str, case: Case) -> Any:
    return case.attributes.get(attribute) if attribute else case.name


ENTRIES = [(attribute, key) for attribute, table in TABLES.items() for key in table]


def broken(fold: Callable[..., Any]) -> Callable[..., Any]:
    """The fold with one of its results wrong."""

    def wrong(*arguments: Any, **options: Any) -> Any:
        result = np.array(fold(*arguments, **options))
        at = np.unravel_index(np.argmax(np.isfinite(result)), result.shape)
        result[at] = not result[at] if result.dtype == np.bool_ else -2 * result[at] - 1
        return result

    return wrong


@pytest.mark.parametrize(("attribute", "key"), ENTRIES)
def test_a_broken_fold_is_noticed(
    attribute: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each entry of each table has a case that fails without it: a new one needs data."""
    numbers = [i for i, case in enumerate(CASES) if key_in(attribute, case) == key]
    assert numbers, f"no case in fold_cases.py folds {key}"
    table = TABLES[attribute] if attribute else OPERATORS
    field = {"": "formula", "kind": "values"}.get(attribute)
    found = table[key]
    worse = replace(found, **{field: broken(getattr(found, field))}) if field else broken(found)
    monkeypatch.setitem(table, key, worse)
    with pytest.raises(AssertionError):
        for number in numbers:
            check(number)

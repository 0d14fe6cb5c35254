"""Einsum, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from davinci.errors import InputError
from onnx_support import node_model, run

CASES = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]),
    ("bhqd,bhkd->bhqk", [(1, 2, 3, 4), (1, 2, 5, 4)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,i->", [(5,), (5,)]),
    ("ii->i", [(4, 4)]),
    ("ii", [(4, 4)]),
    ("iij->j", [(4, 4, 3)]),
    ("ij->ji", [(3, 4)]),
    ("ij->i", [(3, 4)]),
    ("...->...", [(2, 3)]),
    ("i...->...", [(4, 3)]),
    ("ab,bc,cd->ad", [(2, 3), (3, 4), (4, 5)]),
    ("ab,ab,ab->a", [(2, 3), (2, 3), (2, 3)]),
    ("ij,j->ij", [(3, 4), (4,)]),
    ("ba,b", [(2, 3), (2,)]),
    (" i j , j k -> k i ", [(3, 4), (4, 5)]),
    (",ij->ij", [(), (3, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES, ids=[c[0] for c in CASES])
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(2)
    operands = [rng.standard_normal(shape, dtype=np.float32) for shape in shapes]
    model, inputs = node_model("Einsum", *operands, equation=equation)
    found = run(model, inputs, precision="mixed")["y"]
    wanted = np.einsum(equation.replace(" ", ""), *operands)
    np.testing.assert_allclose(found, wanted, atol=0.01)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij,jk->il", "names .*'l'"),
        ("ij->ij", "has 1 terms for 2 operands"),
        ("ijk,jk->i", "does not fit an operand of rank 2"),
        ("ij,ij->ij", "has sizes"),
    ],
)
def test_bad_equation(equation: str, message: str) -> None:
    operands = [np.zeros((2, 3), np.float32), np.zeros((3, 4), np.float32)]
    model, inputs = node_model("Einsum", *operands, equation=equation)
    with pytest.raises(InputError, match=message):
        run(model, inputs)

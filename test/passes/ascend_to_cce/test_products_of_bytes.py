"""Products of bytes: k split between cores, and numbers of rows and columns on the vector cores
beside cube cores, to which rows of bytes come as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

import davinci
from davinci.passes.ascend import product_grouping
from onnx_support import Arrays, model_of

Sizes = tuple[int, ...]


def of_bytes(sizes: Sizes, scaled: bool) -> tuple[onnx.ModelProto, Arrays, npt.NDArray[np.float32]]:
    """A product of bytes by constant ones, batch in front, as i32; or times a number for each
    column and one for each row, both of each matrix, and its SiLU; its inputs, and what it is."""
    *batch, m, k, n = sizes
    random = np.random.default_rng(sum(sizes))
    a, b = (random.integers(-128, 128, (*batch, *x), np.int8) for x in ((m, k), (k, n)))
    q, r = (random.random((*batch, *x), np.float32) / 8 for x in ((1, n), (m, 1)))
    nodes = [helper.make_node("MatMulInteger", ["a", "b"], ["c"])]
    made: npt.NDArray[Any] = a.astype(np.int64) @ b.astype(np.int64)
    given: Arrays = {"a": a}
    if not scaled:
        return model_of(nodes, given, ("c",), {"b": b}), given, made
    nodes.append(helper.make_node("Cast", ["c"], ["f"], to=TensorProto.FLOAT))
    for text in ("Mul f q d", "Mul d r e", "Sigmoid e s", "Mul e s y"):
        kind, *operands, result = text.split()
        nodes.append(helper.make_node(kind, operands, [result]))
    e = made * np.float64(q) / np.float32(k) * r
    wanted = e / (1 + np.exp(-e))
    kept = {"b": b, "q": (q / np.float32(k)).astype(np.float32)}
    given["r"] = r
    return model_of(nodes, given, ("y",), kept), given, wanted


@pytest.mark.parametrize(
    ("sizes", "machine"),
    [
        ((16, 16384, 64), "ascend910"),
        ((1, 32768, 40), "ascend910"),
        ((128, 16384, 256), "ascend910b"),
        ((100, 16416, 272), "ascend910b"),
    ],
)
def test_split_along_k(sizes: Sizes, machine: str) -> None:
    """Sums are whole numbers, and exact; the last part of some k is shorter."""
    model, arrays, wanted = of_bytes(sizes, scaled=False)
    executable = davinci.compile(model, machine=machine)
    executable.poison = True
    (found,) = executable.run(arrays).values()
    np.testing.assert_array_equal(found, wanted)
    assert any("which meet" in kernel["schedule"] for kernel in executable.profile["kernels"])


@pytest.mark.parametrize(
    ("sizes", "cores"),
    [
        ((33, 64, 48), 0),
        ((257, 96, 208), 0),
        ((100, 1024, 272), 1),
        ((2, 100, 96, 352), 2),
        ((3, 77, 64, 112), 0),
        ((2, 3, 40, 32, 16), 5),
    ],
)
def test_numbers_of_rows_and_columns(
    sizes: Sizes, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One kernel does all of it, where matrices have numbers of their own, and parts of the last
    columns are narrower than others."""
    monkeypatch.setattr(product_grouping, "pays", lambda *_: True)
    model, arrays, wanted = of_bytes(sizes, scaled=True)
    executable = davinci.compile(model, machine="ascend910b", cores=cores, core_choice="all")
    executable.poison = True
    (found,) = executable.run(arrays).values()
    assert len(executable.profile["kernels"]) == 1
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


def test_rows_come_as_they_are() -> None:
    """No kernel lays bytes out before cube cores that have no vector unit."""
    model, arrays, wanted = of_bytes((64, 256, 96), scaled=False)
    executable = davinci.compile(model, machine="ascend910b")
    (found,) = executable.run(arrays).values()
    np.testing.assert_array_equal(found, wanted)
    assert [kernel["name"] for kernel in executable.profile["kernels"]] == ["matmul_i32_64x96"]

"""Products of f32 with `--precision fp32` on cubes that take f32 as it is."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import helper

import davinci
from onnx_support import Arrays, model_of

Sizes = tuple[int, ...]


def product(
    sizes: Sizes, constant: bool, turned: bool = False
) -> tuple[onnx.ModelProto, Arrays, npt.NDArray[np.float64]]:
    """A product of f32, batch in front, a bias and what follows; its inputs, and what it is.

    Args:
        turned: whether A comes with rows and columns exchanged.
    """
    *batch, m, k, n = sizes
    random = np.random.default_rng(sum(sizes))
    a, b, bias = (
        random.standard_normal(shape).astype(np.float32)
        for shape in ((*batch, m, k), (*batch, k, n), (n,))
    )
    kept: Arrays = {"bias": bias, **({"b": b} if constant else {})}
    given: Arrays = {"a": np.ascontiguousarray(a.swapaxes(-1, -2)) if turned else a}
    if not constant:
        given["b"] = b
    axes = [*range(len(batch)), len(batch) + 1, len(batch)]
    nodes = [helper.make_node("Transpose", ["a"], ["t"], perm=axes)] if turned else []
    nodes += [
        helper.make_node("MatMul", ["t" if turned else "a", "b"], ["c"]),
        helper.make_node("Add", ["c", "bias"], ["d"]),
        helper.make_node("Tanh", ["d"], ["y"]),
    ]
    wanted = np.tanh(np.float64(a) @ np.float64(b) + bias)
    return model_of(nodes, given, ("y",), kept), given, wanted


@pytest.mark.parametrize(
    ("sizes", "constant", "turned"),
    [
        ((16, 64, 32), True, False),
        ((33, 50, 40), True, False),
        ((33, 50, 40), False, False),
        ((7, 9, 11), True, False),
        ((1, 300, 176), True, False),
        ((100, 520, 272), True, False),
        ((3, 20, 33, 24), False, False),
        ((2, 40, 24, 18), False, True),
        ((64, 48, 48), True, True),
    ],
)
def test_values(sizes: Sizes, constant: bool, turned: bool) -> None:
    """As near as f32 sums are, where k ends inside a fractal of 8 columns, too; B is turned round
    at compile time, or before."""
    model, arrays, wanted = product(sizes, constant, turned)
    executable = davinci.compile(model, machine="ascend910b", precision="fp32")
    executable.poison = True
    (found,) = executable.run(arrays).values()
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_one_product_of_singles() -> None:
    """The cube of the 910B multiplies f32 as it is; that of the 910 several f16 parts."""
    for machine, alone in (("ascend910b", True), ("ascend910", False)):
        model, arrays, wanted = product((40, 128, 64), True)
        executable = davinci.compile(model, machine=machine, precision="fp32")
        (found,) = executable.run(arrays).values()
        np.testing.assert_allclose(found, wanted, atol=2e-5)
        names = {name for launch in executable.launches for name in launch.instructions}
        mads = {name for name in names if name.startswith("mad")}
        assert mads and all(name.endswith("f322f32") == alone for name in mads)
